//! What must hold of posting lists whatever bytes come: the property that the fuzz target asserts.

use super::{PostingList, encode, push_varint, take_varint};

/// The most numbers that are compared one by one.
const MOST: usize = 4096;

/// Reads a list. The input is four bytes for the bound, two for a cut between two windows, and the list. Numbers ascend
/// below the bound, windows add up, retaining is intersecting, and what was read can be written and read again.
pub(crate) fn posting_list(bytes: &[u8]) {
    let mut rest = bytes;
    if let Some(number) = take_varint(&mut rest) {
        let mut written = Vec::new();
        push_varint(&mut written, number);
        assert!(written.len() <= bytes.len() - rest.len());
        assert_eq!(take_varint(&mut written.as_slice()), Some(number));
    }
    let Some((bound, rest)) = bytes.split_first_chunk::<4>() else { return };
    let Some((cut, list)) = rest.split_first_chunk::<2>() else { return };
    let (bound, cut) = (u32::from_le_bytes(*bound), u32::from(u16::from_le_bytes(*cut)));
    let Some(mut read) = PostingList::read(list, bound) else { return };
    let mut numbers = Vec::new();
    read.each(0..bound, |number| numbers.push(number));
    assert!(numbers.is_sorted_by(|one, other| one < other));
    assert!(numbers.last().is_none_or(|last| *last < bound));
    // A number takes a bit at least.
    assert!(numbers.len() <= list.len() * 8);

    let mut by_windows = Vec::new();
    let mut read = PostingList::read(list, bound).expect("it was read before");
    let cut = cut.min(bound);
    read.each(0..cut, |number| by_windows.push(number));
    read.each(cut..bound, |number| by_windows.push(number));
    assert_eq!(by_windows, numbers);

    let candidates: Vec<u32> = (0..bound.min(MOST as u32)).step_by(3).collect();
    let mut kept = candidates.clone();
    PostingList::read(list, bound).expect("it was read before").retain(0..bound, &mut kept);
    let expected: Vec<u32> =
        candidates.into_iter().filter(|number| numbers.binary_search(number).is_ok()).collect();
    assert_eq!(kept, expected);

    // A bitmap of the largest bound is half a gigabyte, and it is never written: lists are written for blocks that exist.
    if !numbers.is_empty() && bound <= 1 << 24 {
        let mut written = Vec::new();
        encode(&numbers, bound, &mut written);
        let mut again = Vec::new();
        PostingList::read(&written, bound)
            .expect("what was written is a list")
            .each(0..bound, |number| again.push(number));
        assert_eq!(again, numbers);
    }
}

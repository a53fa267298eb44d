//! What must hold of segments whatever bytes come: the property that the fuzz target asserts.

use std::io;

use super::{
    PagedFile, Section, TextSegment, Torn,
    paged::fuzzing::{file_of, stated_seal, written},
};

/// Reads a segment. The first byte says how the rest becomes a file:
///
/// - 0: it is the file.
/// - Any other number is how many damages (up to seven) are done to a file that was written well. Each damage is three
///   bytes: where, and which bits are flipped; no bits flipped cuts the file off there. Then come the sections, each of
///   them a number, two bytes for the length, and the content.
///
/// A file that was written well gives back its sections, and whatever they hold is read without a panic. A damaged one
/// is found out, or gives the same as before: never something else.
pub(crate) fn index_segment(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    if first == 0 {
        if let Ok(segment) = open(rest, stated_seal(rest)) {
            ask(&segment);
        }
        return;
    }
    let Some((damages, mut rest)) = rest.split_at_checked(usize::from(first % 8) * 3) else { return };
    let mut sections: Vec<(Section, &[u8])> = Vec::new();
    while let Some(([name, high, low], content)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(content.len());
        let (content, after) = content.split_at(length);
        sections.push((Section::from(*name), content));
        rest = after;
    }
    let (good, seal) = written(&sections).expect("memory can be written");
    let file = map(&good, seal).expect("what was written can be read");
    let contents: Vec<_> = sections.iter().map(|(name, content)| (*name, Some(*content))).collect();
    assert_eq!(file.contents(), contents);
    file.verify_checksums().expect("nobody changed it");
    let answers = open(&good, seal).map(|segment| ask(&segment));
    let damaged = damage(&good, damages);
    if damaged == good {
        return;
    }
    // The seal is known from elsewhere, so no damage goes unseen.
    if let Ok(file) = map(&damaged, seal) {
        assert!(file.verify_checksums().is_err(), "a damage was not seen");
        for (found, expected) in file.contents().into_iter().zip(contents) {
            assert!(found.0 == expected.0 && (found.1.is_none() || found == expected));
        }
    }
    if let Ok(segment) = open(&damaged, seal) {
        let answers = answers.expect("a file that opens after a damage opened before it");
        for (found, expected) in ask(&segment).into_iter().zip(answers) {
            assert!(found.is_err() || found == expected, "{found:?} in place of {expected:?}");
        }
    }
}

fn map(bytes: &[u8], seal: u64) -> io::Result<PagedFile> {
    let mapped = PagedFile::map(file_of(bytes)?, seal);
    // An empty file cannot be mapped; all others are torn or well.
    assert!(mapped.as_ref().err().is_none_or(|error| bytes.is_empty() || is_torn(error)));
    mapped
}

fn open(bytes: &[u8], seal: u64) -> io::Result<TextSegment> {
    let opened = TextSegment::map(file_of(bytes)?, seal);
    assert!(opened.as_ref().err().is_none_or(|error| bytes.is_empty() || is_torn(error)));
    opened
}

fn is_torn(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

fn damage(good: &[u8], damages: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for &[high, low, flip] in damages.as_chunks().0 {
        let position = usize::from(u16::from_be_bytes([high, low])) % bytes.len().max(1);
        match bytes.get_mut(position) {
            Some(byte) if flip != 0 => *byte ^= flip,
            _ => bytes.truncate(position),
        }
    }
    bytes
}

/// Asks a segment everything that a search asks. The answers are in an order that depends only on how many files and
/// blocks the segment has.
fn ask(segment: &TextSegment) -> Vec<Result<String, Torn>> {
    let (file, files) = (segment.file(), segment.files());
    // Each file has a record of 72 bytes, and each block a line number of four.
    assert!(files.count() as u64 * 72 + u64::from(files.blocks()) * 4 <= file.length());
    let mut answers = vec![
        segment.scan_whole_files().map(|numbers| format!("{numbers:?}")),
        segment.tombstones().map(|paths| format!("{paths:?}")),
        segment.skipped().map(|passed| format!("{passed:?}")),
    ];
    for number in 0..files.count().min(64) {
        answers.push(files.path(file, number).map(|path| format!("{path:?}")));
        answers.push(files.file(file, number).map(|known| format!("{known:?}")));
        answers.push(files.state(file, number).map(|state| format!("{state:?}")));
        answers.push(files.blocks_of(file, number).map(|blocks| format!("{blocks:?}")));
    }
    for block in 0..files.blocks().min(64) {
        answers.push(segment.first_line(block).map(|line| format!("{line}")));
        answers.push(files.file_of_block(file, block).map(|number| format!("{number}")));
    }
    for path in [&b""[..], b"a", b"src/main.rs", b"\xff"] {
        answers.push(files.find(file, path).map(|number| format!("{number:?}")));
    }
    for trigram in [0, 0x61_61_61, 0x61_62_63, 0xff_ff_ff] {
        answers.push(segment.find_postings(trigram).and_then(|range| {
            let Some(range) = range else { return Ok("none".into()) };
            let mut blocks = Vec::new();
            segment.posting_list(range)?.each(0..files.blocks(), |block| blocks.push(block));
            assert!(blocks.is_sorted_by(|one, other| one < other));
            assert!(blocks.last().is_none_or(|last| *last < files.blocks()));
            Ok(format!("{blocks:?}"))
        }));
    }
    answers
}

//! Keeps the beginning and the end of an output of any length, with bounded memory.

use std::collections::VecDeque;

/// How much of a stream is kept, in bytes: its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// From the beginning.
    pub first: usize,
    /// From the end.
    pub last: usize,
}

impl Keep {
    /// A quarter of the bytes from the beginning and the rest from the end, where errors and summaries usually are.
    pub fn ends(bytes: usize) -> Self {
        Self { first: bytes / 4, last: bytes - bytes / 4 }
    }

    /// Everything up to a limit.
    pub fn whole(limit: usize) -> Self {
        Self { first: limit, last: 0 }
    }
}

/// What was kept of a stream.
#[derive(Clone, Debug)]
pub struct Kept {
    keep: Keep,
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
}

impl Kept {
    /// An empty stream.
    pub fn new(keep: Keep) -> Self {
        Self { keep, first: Vec::new(), last: VecDeque::new(), total: 0 }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.keep.first - self.first.len()));
        self.first.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.keep.last)..];
        let over = (self.last.len() + rest.len()).saturating_sub(self.keep.last);
        self.last.drain(..over);
        self.last.extend(rest);
    }

    /// How many bytes the stream had.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many of them were not kept.
    pub fn omitted(&self) -> u64 {
        self.total - (self.first.len() + self.last.len()) as u64
    }

    /// The bytes, if none were dropped.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.omitted() == 0).then(|| self.first.iter().chain(&self.last).copied().collect())
    }

    /// The stream as text, with a line that says how many bytes were dropped. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        if let Some(whole) = self.whole() {
            return match String::from_utf8(whole) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            };
        }
        let (first, last) = (&self.first, self.last.iter().copied().collect::<Vec<u8>>());
        // A character that was cut in two is dropped, not replaced.
        let first = match std::str::from_utf8(first) {
            Err(error) if error.error_len().is_none() => &first[..error.valid_up_to()],
            _ => first,
        };
        let is_rest = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let last = &last[last.iter().take(3).take_while(is_rest).count()..];
        let omitted = self.total - (first.len() + last.len()) as u64;
        let (first, last) = (String::from_utf8_lossy(first), String::from_utf8_lossy(last));
        format!("{first}\n[{omitted} bytes left out]\n{last}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_beginning_and_the_end_are_kept_however_the_stream_is_cut(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
            first in 0..50_usize,
            last in 0..50_usize,
        ) {
            let mut kept = Kept::new(Keep { first, last });
            chunks.iter().for_each(|chunk| kept.push(chunk));
            let all = chunks.concat();
            let head = &all[..first.min(all.len())];
            let tail = &all[head.len().max(all.len().saturating_sub(last))..];
            prop_assert_eq!(&kept.first, head);
            prop_assert_eq!(kept.last.iter().copied().collect::<Vec<_>>(), tail);
            prop_assert_eq!(kept.omitted() as usize, all.len() - head.len() - tail.len());
            prop_assert_eq!(kept.whole().is_some(), kept.omitted() == 0);
            // Never fails, and says how much is missing.
            prop_assert_eq!(kept.text().contains("bytes left out]"), kept.omitted() > 0);
        }
    }

    #[test]
    fn a_character_that_was_cut_is_counted_as_left_out() {
        let mut kept = Kept::new(Keep { first: 2, last: 3 });
        kept.push("aéxxxéb".as_bytes());
        assert_eq!(kept.text(), "a\n[5 bytes left out]\néb");
        let mut kept = Kept::new(Keep { first: 2, last: 2 });
        kept.push("aéxxxéb".as_bytes());
        assert_eq!(kept.text(), "a\n[7 bytes left out]\nb");
    }
}

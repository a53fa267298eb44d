//! Counts matching lines, file by file.

use super::Filter;
use pintle_root::{Root, Stamp};

use crate::{
    candidate_files::CandidateFiles,
    in_order::verify_in_order,
    pattern::Pattern,
    snapshot::{SearchError, Snapshot},
    summary::ScanCounts,
    verify::{Line, LineSink, Verified, Verifier, VerifyOptions},
};

/// The result of a count.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The number of matching lines in all files.
    pub(crate) total: u64,
    /// The first files with matching lines, in the order of paths, each with its count.
    pub(crate) files: Vec<(Vec<u8>, u64)>,
    /// The number of files with matching lines.
    pub(crate) matching_files: u64,
    /// Counts of the files that were read, by outcome.
    pub(crate) scanned: ScanCounts,
}

/// Counts the matching lines. At most `most_files` files are named.
pub(crate) fn count_lines(
    root: &Root,
    snapshot: &Snapshot,
    (pattern, filter): (&Pattern, &Filter<'_>),
    most_files: usize,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Counts, SearchError> {
    let admit = |path: &[u8], language| filter.admits(path, language);
    let mut candidates = CandidateFiles::new(snapshot, &pattern.requirement, b"", &admit)?;
    let mut counts = Counts::default();
    let options = VerifyOptions { line_numbers: false, hashes: false, context: 0, max_lines: u64::MAX };
    verify_in_order(
        &snapshot.index,
        &mut candidates,
        || Verifier::new(root, pattern, options, snapshot.manifest.limit, has_ended),
        Counter::default,
        |counter| {
            counts.total += counter.lines as u64;
            counts.matching_files += counter.files.len() as u64;
            counts.scanned.merge(counter.scanned);
            let left = most_files.saturating_sub(counts.files.len());
            counts.files.extend(counter.files.into_iter().take(left));
            !has_ended()
        },
    )?;
    if has_ended() {
        return Err(SearchError::Cancelled);
    }
    Ok(counts)
}

#[derive(Default)]
struct Counter {
    files: Vec<(Vec<u8>, u64)>,
    /// The file of the line that was counted last.
    path: Vec<u8>,
    /// The matching lines of all files.
    lines: usize,
    scanned: ScanCounts,
}

impl LineSink for Counter {
    fn line(&mut self, path: &[u8], _: Line<'_>) -> bool {
        if self.path != path {
            self.path.clear();
            self.path.extend_from_slice(path);
        }
        self.lines += 1;
        true
    }

    fn mark(&self) -> usize {
        self.lines
    }

    fn is_full(&self) -> bool {
        false
    }

    fn roll_back(&mut self, mark: usize) {
        self.lines = mark;
    }

    fn file_verified(&mut self, verified: Verified) {
        self.scanned.add(verified);
    }

    fn end_file(&mut self, mark: usize, _: Stamp, _: [u8; 32]) {
        if self.lines > mark {
            self.files.push((self.path.clone(), (self.lines - mark) as u64));
        }
    }
}

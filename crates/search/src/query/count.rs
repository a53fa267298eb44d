//! How many lines match, file by file.

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

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// How many lines match.
    pub(crate) total: u64,
    /// The first files that have some, with how many each has, in the order of paths.
    pub(crate) files: Vec<(Vec<u8>, u64)>,
    /// How many files have some.
    pub(crate) matching_files: u64,
    /// What the files were found to be that were looked into.
    pub(crate) scanned: ScanCounts,
}

/// Counts the lines that match, and names as many files as are wanted.
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
    let options = VerifyOptions { line_numbers: false, hashes: false, around: 0, most: u64::MAX };
    verify_in_order(
        &snapshot.index,
        &mut candidates,
        || Verifier::new(root, pattern, options, snapshot.manifest.limit, has_ended),
        Counter::default,
        |counter| {
            counts.total += counter.lines as u64;
            counts.matching_files += counter.files.len() as u64;
            counts.scanned.merge(counter.scanned);
            let room = most_files.saturating_sub(counts.files.len());
            counts.files.extend(counter.files.into_iter().take(room));
            !has_ended()
        },
    )?;
    if has_ended() {
        return Err(SearchError::Cancelled);
    }
    Ok(counts)
}

/// Counts lines.
#[derive(Default)]
struct Counter {
    files: Vec<(Vec<u8>, u64)>,
    /// The file of the last line.
    path: Vec<u8>,
    /// The lines of all files.
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

//! Searches for literals and regular expressions.

use bstr::ByteSlice;

use super::{
    ContextLines, Filter, Hit, Page, context,
    cursor::Cursor,
    hit::{ResultBudget, cut_text},
};
use crate::{
    candidate_files::CandidateFiles,
    in_order::verify_in_order,
    pattern::Pattern,
    snapshot::{SearchError, Snapshot},
    summary::ScanCounts,
    verify::{Line, LineSink, Verified, Verifier, VerifyOptions},
};
use pintle_root::{Root, Stamp};

/// A text search, and which page of it is wanted.
pub(crate) struct TextQuery<'a> {
    pub(crate) pattern: &'a Pattern,
    pub(crate) filter: &'a Filter<'a>,
    pub(crate) top: usize,
    pub(crate) around: ContextLines,
    /// The budget for the text of the hits, in bytes.
    pub(crate) most_bytes: usize,
    pub(crate) from: Option<&'a Cursor>,
    pub(crate) fingerprint: u64,
}

/// A page of the matching lines, in the order of paths and lines.
pub(crate) fn search_text(
    root: &Root,
    snapshot: &Snapshot,
    query: &TextQuery<'_>,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Page, SearchError> {
    let admit = |path: &[u8], language| query.filter.admits(path, language);
    let from = query.from.map_or(&b""[..], |from| &from.path);
    let mut candidates = CandidateFiles::new(snapshot, &query.pattern.requirement, from, &admit)?;
    let (mut hits, mut scanned) = (Vec::<LocatedHit>::new(), ScanCounts::default());
    // One hit more than the page holds shows that there is a next page. The search ends as soon as it has that one
    // (early exit).
    let wanted_hits = query.top + 1;
    let options = VerifyOptions { line_numbers: true, hashes: true, context: 0, max_lines: u64::MAX };
    verify_in_order(
        &snapshot.index,
        &mut candidates,
        || Verifier::new(root, query.pattern, options, snapshot.manifest.limit, has_ended),
        || HitCollector { query, found: Vec::new(), wanted_hits, scanned: ScanCounts::default() },
        |mut sink| {
            hits.append(&mut sink.found);
            scanned.merge(sink.scanned);
            hits.len() < wanted_hits && !has_ended()
        },
    )?;
    if has_ended() {
        return Err(SearchError::Cancelled);
    }
    let before = query.from.map_or(0, |from| from.count);
    let has_more = hits.len() > query.top;
    let total = before + hits.len() as u64;
    hits.truncate(query.top);
    if !query.around.is_none() {
        context::add(root, &mut hits, query.around, &mut ResultBudget::new(query.most_bytes))?;
    }
    let next = hits.last().filter(|_| has_more).map(|last| Cursor {
        query: query.fingerprint,
        count: before + hits.len() as u64,
        path: last.hit.raw_path.clone(),
        line: last.hit.line,
    });
    let hits = hits.into_iter().map(|found| found.hit).collect();
    Ok(Page { hits, total, is_total_exact: !has_more, has_more, next, scanned })
}

/// A hit, with the offsets of its line and the stamp of the file that it was found in.
pub(crate) struct LocatedHit {
    pub(crate) hit: Hit,
    pub(crate) stamp: Stamp,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Collects hits.
struct HitCollector<'a> {
    query: &'a TextQuery<'a>,
    found: Vec<LocatedHit>,
    wanted_hits: usize,
    scanned: ScanCounts,
}

impl LineSink for HitCollector<'_> {
    fn line(&mut self, path: &[u8], line: Line<'_>) -> bool {
        let is_before = |from: &Cursor| path == from.path && line.number <= from.line;
        if self.query.from.is_some_and(is_before) {
            return true;
        }
        let column = line.column(self.query.pattern);
        let (text, text_column) = cut_text(line.text, column);
        self.found.push(LocatedHit {
            hit: Hit {
                path: path.to_str_lossy().into_owned(),
                raw_path: path.to_owned(),
                line: line.number,
                column,
                end_line: line.number,
                text,
                text_column,
                before: Vec::new(),
                after: Vec::new(),
                hash: String::new(),
                kind: None,
                name: None,
                score: None,
            },
            stamp: Stamp::default(),
            start: line.start,
            end: line.start + line.text.len() as u64,
        });
        !self.is_full()
    }

    fn mark(&self) -> usize {
        self.found.len()
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.wanted_hits
    }

    fn roll_back(&mut self, mark: usize) {
        self.found.truncate(mark);
    }

    fn file_verified(&mut self, verified: Verified) {
        self.scanned.add(verified);
    }

    fn end_file(&mut self, mark: usize, stamp: Stamp, hash: [u8; 32]) {
        let hash = base16ct::lower::encode_string(&hash);
        for found in &mut self.found[mark..] {
            found.hit.hash.clone_from(&hash);
            found.stamp = stamp;
        }
    }
}

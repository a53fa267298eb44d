//! What the command line needs: building the index with a progress display, and printing matching lines as fast as
//! they are found.

use std::{
    io::{self, Write},
    ops::Range,
};

use grep_matcher::Matcher;
use pintle_contract::{Fault, Permissions, WorkspacePath};
use pintle_root::Stamp;
use pintle_tool::{CallContext, Caller};
use serde_json::Value;

use crate::{
    build::{Mode, Observer},
    candidate_files::CandidateFiles,
    in_order::verify_in_order,
    pattern::{Case, Meaning, Pattern, Syntax},
    query::Filter,
    search::Search,
    snapshot::Snapshot,
    tools::{self, Match},
    verify::{Line, LineSink, Verifier, VerifyOptions, column},
};

/// The outcome of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildReport {
    /// The current generation.
    pub generation: u64,
    /// How many files were read, and how many were removed from the index.
    pub read: u64,
    /// See `read`.
    pub removed: u64,
    /// Why everything was read although only changes were asked for.
    pub rebuilt: Option<&'static str>,
    /// The number of files that are searched, and their size in bytes.
    pub files: u64,
    /// See `files`.
    pub bytes: u64,
    /// The number of skipped files, by reason.
    pub skipped: Vec<(&'static str, u64)>,
    /// The size of the index on disk: the part for text searches, and all of it.
    pub text_size: u64,
    /// See `text_size`.
    pub size: u64,
}

/// A search for hits, answered as the tool `search` does.
pub struct HitSearch<'a> {
    /// What to search for.
    pub query: &'a str,
    /// How `query` is read.
    pub matching: Match,
    /// Whether case is ignored; `None` for the tool's default.
    pub case: Option<Case>,
    /// Whether only whole words match.
    pub is_word: bool,
    /// Which files are searched.
    pub globs: &'a [String],
    /// Only files in this language are searched.
    pub language: Option<&'a str>,
    /// Only symbols of this kind are returned.
    pub kind: Option<&'a str>,
    /// How many context lines are shown before and after each hit.
    pub around: u32,
    /// How many hits are wanted; `None` for all.
    pub top: Option<u64>,
}

/// A search for matching lines.
pub struct LineSearch<'a> {
    /// What to search for.
    pub query: &'a str,
    /// Whether `query` is a regular expression, not literal text.
    pub is_regex: bool,
    /// Whether case is ignored.
    pub case: Case,
    /// Whether only whole words match.
    pub is_word: bool,
    /// Which files are searched.
    pub globs: &'a [String],
    /// Only files in this language are searched.
    pub language: Option<&'a str>,
    /// How many lines to print at most.
    pub top: Option<u64>,
    /// How many context lines are printed before and after each match.
    pub around: usize,
    /// Whether line numbers are needed.
    pub line_numbers: bool,
    /// What is printed between the lines of one file and those of the next.
    pub separator: &'a [u8],
}

/// A matching line, or a context line.
pub struct MatchedLine<'a> {
    /// The file.
    pub path: &'a [u8],
    /// The line number from 1, if it was asked for.
    pub number: u64,
    /// The line without its terminator.
    pub text: &'a [u8],
    /// Whether it is the first printed line of its file.
    pub is_first: bool,
    /// Whether it is a context line.
    pub is_around: bool,
    /// The column of the first match, if it is known already.
    column: Option<u64>,
    pattern: &'a Pattern,
}

impl MatchedLine<'_> {
    /// The column of the first match, in bytes from 1.
    pub fn column(&self) -> u64 {
        self.column.unwrap_or_else(|| column(self.pattern, self.text))
    }

    /// All matches in the line.
    pub fn matches(&self) -> Vec<Range<usize>> {
        matches(self.pattern, self.text)
    }
}

/// The outcome of printing lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PrintedLines {
    /// The number of matching lines.
    pub count: u64,
    /// The files that could not be read.
    pub missed: Vec<Vec<u8>>,
    /// A warning if the index was built with another size limit than the one that is set now.
    pub other_limit: Option<String>,
    /// Whether an index answered; without one the files were scanned.
    pub is_indexed: bool,
}

/// The result of a search, for programs and for people.
pub struct Answer {
    /// The tool's result.
    pub json: Value,
    /// Its hits.
    pub hits: Vec<ShownHit>,
    /// A warning if the index was built with another size limit than the one that is set now.
    pub other_limit: Option<String>,
    /// Whether an index answered; without one the files were scanned.
    pub is_indexed: bool,
}

/// A hit as the command line prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownHit {
    /// The file.
    pub path: Vec<u8>,
    /// The line number, from 1.
    pub line: u64,
    /// The column of the first match, in bytes from 1.
    pub column: u64,
    /// The line.
    pub text: String,
    /// The context lines before it.
    pub before: Vec<String>,
    /// The context lines after it.
    pub after: Vec<String>,
}

fn matches(pattern: &Pattern, line: &[u8]) -> Vec<Range<usize>> {
    let mut matches = Vec::new();
    // The matcher cannot fail.
    let _ = pattern.matcher().find_iter(line, |found| {
        matches.push(found.start()..found.end());
        true
    });
    matches
}

/// The context of a call by the local user, without a deadline.
fn local_call() -> CallContext {
    CallContext::detached(Caller::local())
}

impl Search {
    /// Builds or refreshes the index.
    pub fn build_index(
        &self,
        is_full: bool,
        path: Option<&WorkspacePath>,
        observer: &dyn Observer,
    ) -> Result<BuildReport, Fault> {
        let mode = if is_full { Mode::Full } else { Mode::Incremental };
        let built = self.build(mode, path, observer)?;
        let snapshot = self.snapshot_on_disk(false)?;
        let summary = self.summary(&snapshot, &Permissions::everything())?;
        let (text_size, size) = snapshot.index.bytes();
        Ok(BuildReport {
            generation: built.generation,
            read: built.read,
            removed: built.removed,
            rebuilt: built.rebuilt,
            files: summary.files,
            bytes: summary.bytes,
            skipped: summary.skipped.iter().map(|(reason, count)| (*reason, *count)).collect(),
            text_size,
            size,
        })
    }

    /// Answers as the tool `search` does. With `is_fresh` the root is walked first.
    pub fn answer(&self, search: &HitSearch<'_>, is_fresh: bool) -> Result<Answer, Fault> {
        let (output, snapshot) = tools::search_now(self, search, is_fresh, &local_call())?;
        let hits = output.hits().iter().map(|hit| ShownHit {
            path: hit.raw_path.clone(),
            line: hit.line,
            column: hit.column,
            text: hit.text.clone(),
            before: hit.before.clone(),
            after: hit.after.clone(),
        });
        let hits = hits.collect();
        let json = serde_json::to_value(output).map_err(|error| Fault::internal(error.to_string()))?;
        Ok(Answer { json, hits, other_limit: self.other_limit(&snapshot), is_indexed: snapshot.is_indexed() })
    }

    /// Prints all matching lines, in the order of paths and lines. `format` writes one line.
    pub fn print_lines(
        &self,
        search: &LineSearch<'_>,
        is_fresh: bool,
        format: &(dyn Fn(&MatchedLine<'_>, &mut Vec<u8>) + Sync),
        out: &mut dyn Write,
    ) -> Result<io::Result<PrintedLines>, Fault> {
        let syntax = if search.is_regex { Syntax::Regex } else { Syntax::Literal };
        let meaning = Meaning { syntax, case: search.case, is_word: search.is_word };
        let pattern = tools::pattern_of(search.query, meaning)?;
        let permissions = Permissions::everything();
        let within = tools::walk_within(self, search.globs, &permissions);
        let snapshot = self.snapshot_on_disk_or_files(within, is_fresh)?;
        let filter = tools::filter_of(self, search.globs, search.language, &permissions)?;
        self.print(&snapshot, &pattern, &filter, search, format, out)
    }

    fn print(
        &self,
        snapshot: &Snapshot,
        pattern: &Pattern,
        filter: &Filter<'_>,
        search: &LineSearch<'_>,
        format: &(dyn Fn(&MatchedLine<'_>, &mut Vec<u8>) + Sync),
        out: &mut dyn Write,
    ) -> Result<io::Result<PrintedLines>, Fault> {
        let admit = |path: &[u8], language| filter.admits(path, language);
        let candidates = CandidateFiles::new(snapshot, &pattern.requirement, b"", &admit);
        let mut candidates = candidates.map_err(|torn| self.handle_error(torn.into()))?;
        let max_lines = search.top.unwrap_or(u64::MAX);
        let options = VerifyOptions {
            line_numbers: search.line_numbers,
            hashes: false,
            context: search.around,
            max_lines,
        };
        let (mut printed, mut missed) = (Ok(0), Vec::new());
        let outcome = verify_in_order(
            &snapshot.index,
            &mut candidates,
            || Verifier::new(&self.root, pattern, options, snapshot.manifest.limit, &|| false),
            || LineBuffer::new(search, pattern, format),
            |sink| {
                let Ok(before) = printed else { return false };
                missed.extend_from_slice(&sink.missed);
                // The sinks of several threads may have more lines than are wanted.
                let (text, lines) = sink.first_lines(max_lines - before);
                let separator = if before > 0 && lines > 0 { search.separator } else { b"" };
                printed =
                    out.write_all(separator).and_then(|()| out.write_all(text)).map(|()| before + lines);
                printed.as_ref().is_ok_and(|lines| *lines < max_lines)
            },
        );
        outcome.map_err(|torn| self.handle_error(torn.into()))?;
        let other_limit = self.other_limit(snapshot);
        let is_indexed = snapshot.is_indexed();
        Ok(printed.map(|count| PrintedLines { count, missed, other_limit, is_indexed }))
    }
}

/// A sink with this many bytes is printed before more lines are collected.
const FLUSH_BYTES: usize = 1 << 18;

/// Collects lines in printed form.
struct LineBuffer<'a> {
    pattern: &'a Pattern,
    format: &'a (dyn Fn(&MatchedLine<'_>, &mut Vec<u8>) + Sync),
    separator: &'a [u8],
    max_lines: u64,
    out: Vec<u8>,
    /// The end of each line in `out`, if the number of lines is limited.
    ends: Vec<usize>,
    /// The number of matching lines.
    lines: u64,
    /// The number of matching lines in the files before the current one.
    lines_before: u64,
    /// Whether the current file has no line yet.
    is_file_start: bool,
    /// How many context lines are printed, and how many came since the last match.
    around: usize,
    since: usize,
    missed: Vec<Vec<u8>>,
}

impl<'a> LineBuffer<'a> {
    fn new(
        search: &LineSearch<'a>,
        pattern: &'a Pattern,
        format: &'a (dyn Fn(&MatchedLine<'_>, &mut Vec<u8>) + Sync),
    ) -> Self {
        let max_lines = search.top.unwrap_or(u64::MAX);
        Self {
            pattern,
            format,
            separator: search.separator,
            max_lines,
            out: Vec::new(),
            ends: Vec::new(),
            lines: 0,
            lines_before: 0,
            is_file_start: true,
            around: search.around,
            since: 0,
            missed: Vec::new(),
        }
    }

    fn print(&mut self, path: &[u8], line: &Line<'_>, is_around: bool) {
        let is_first = std::mem::take(&mut self.is_file_start);
        if is_first && self.lines > 0 {
            self.out.extend_from_slice(self.separator);
        }
        let Line { number, text, column, .. } = *line;
        let line = MatchedLine { path, number, text, is_first, is_around, column, pattern: self.pattern };
        (self.format)(&line, &mut self.out);
    }

    fn first_lines(&self, count: u64) -> (&[u8], u64) {
        if self.lines <= count {
            return (&self.out, self.lines);
        }
        let end = (count as usize).checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        (&self.out[..end], count)
    }
}

impl LineSink for LineBuffer<'_> {
    fn line(&mut self, path: &[u8], line: Line<'_>) -> bool {
        self.print(path, &line, false);
        self.lines += 1;
        self.since = 0;
        if self.max_lines < u64::MAX {
            self.ends.push(self.out.len());
        }
        // With context the searcher itself stops, after the context of the last match.
        self.around > 0 || !self.is_full()
    }

    fn context_line(&mut self, path: &[u8], line: Line<'_>) {
        self.print(path, &line, true);
        self.since += 1;
        if self.since <= self.around
            && let Some(end) = self.ends.last_mut()
            && self.lines > self.lines_before
        {
            *end = self.out.len();
        }
    }

    fn context_break(&mut self) {
        self.out.extend_from_slice(b"--\n");
        self.since = self.around;
    }

    fn mark(&self) -> usize {
        self.out.len()
    }

    fn is_full(&self) -> bool {
        self.lines >= self.max_lines
    }

    fn file_unreadable(&mut self, path: &[u8]) {
        self.missed.push(path.to_owned());
    }

    fn should_flush(&self) -> bool {
        self.out.len() >= FLUSH_BYTES
    }

    fn roll_back(&mut self, mark: usize) {
        self.lines = self.lines_before;
        self.ends.truncate(usize::try_from(self.lines).unwrap_or(usize::MAX));
        self.out.truncate(mark);
        self.is_file_start = true;
    }

    fn end_file(&mut self, _: usize, _: Stamp, _: [u8; 32]) {
        self.lines_before = self.lines;
        self.is_file_start = true;
    }
}

//! Every match of a query, for a tool that replaces what a search finds.
//!
//! First the files with matches are found as any search finds them. Their matches are looked for later, in text that the
//! caller reads itself, because only the caller knows when nobody else can change a file.

use std::{io, ops::Range, sync::Arc};

use grep_matcher::{Captures, Matcher};
use pintle_contract::Fault;
use pintle_root::Stamp;
use pintle_tool::CallContext;

use crate::{
    pattern::{Case, Meaning, Pattern, Syntax},
    query::{Counts, count_lines},
    search::Search,
    tools::{filter_of, pattern_of, walk_within},
    verify::{Line, LineSink, Verifier, VerifyOptions},
};

/// A query whose matches are wanted, with the arguments of the tool `search`.
pub struct MatchSearch<'a> {
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
}

/// The files that have matches.
pub struct MatchingFiles {
    /// The first of them, in the order of their paths.
    pub paths: Vec<Vec<u8>>,
    /// How many there are.
    pub files: u64,
    /// How many matching lines they have.
    pub lines: u64,
    /// Finds the matches in their text.
    pub matches: MatchFinder,
}

/// The groups of a match, as ranges of the text; the first is the whole match. Groups that have no part in it are `None`.
pub type Groups = [Option<Range<usize>>];

/// Finds all matches in the lines of a text.
pub struct MatchFinder {
    search: Arc<Search>,
    pattern: Arc<Pattern>,
    call: CallContext,
}

/// Why the matches of a text are not known.
#[derive(Debug, PartialEq, Eq)]
pub enum MatchError {
    /// The call was cancelled or is past its deadline.
    Ended,
    /// A line has this many bytes, and looking for an expression in it could not be cancelled.
    LongLine(usize),
}

/// The longest line in which the matches of an expression are looked for. Some expressions need seconds for each MiB, in
/// which nothing else can happen.
pub const LONGEST_LINE: usize = 4 << 20;

impl Search {
    /// Finds the files that have matches. At most `most_files` are named.
    pub fn find_matches(
        self: &Arc<Self>,
        wanted: &MatchSearch<'_>,
        most_files: usize,
        call: &CallContext,
    ) -> Result<MatchingFiles, Fault> {
        let syntax = if wanted.is_regex { Syntax::Regex } else { Syntax::Literal };
        let meaning = Meaning { syntax, case: wanted.case, is_word: wanted.is_word };
        let pattern = pattern_of(wanted.query, meaning)?;
        let permissions = call.caller().permissions();
        let filter = filter_of(self, wanted.globs, wanted.language, permissions)?;
        let within = walk_within(self, wanted.globs, permissions);
        let counts = self.snapshot_or_files(within, call).and_then(|snapshot| {
            if !snapshot.is_indexed() {
                self.build_in_background();
            }
            let has_ended = || call.has_ended();
            count_lines(&self.root, &snapshot, (&pattern, &filter), most_files, &has_ended)
                .map_err(|error| self.handle_error(error))
        });
        self.rebuild_if_damaged();
        let Counts { total, files, matching_files, .. } = counts?;
        let pattern = Arc::new(pattern);
        Ok(MatchingFiles {
            paths: files.into_iter().map(|(path, _)| path).collect(),
            files: matching_files,
            lines: total,
            matches: MatchFinder { search: Arc::clone(self), pattern, call: call.clone() },
        })
    }
}

impl MatchFinder {
    /// How many groups a match has, the whole match included.
    pub fn groups(&self) -> usize {
        self.pattern.matcher().capture_count()
    }

    /// The number of the group with a name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.pattern.matcher().capture_index(name)
    }

    /// Looks for matches in whole lines that begin at an offset of their file, as a search does. `take` receives the groups
    /// of each match.
    pub fn find(&self, text: &[u8], offset: u64, take: &mut dyn FnMut(&Groups)) -> Result<(), MatchError> {
        let has_ended = || self.call.has_ended();
        let options = VerifyOptions { line_numbers: false, hashes: false, context: 0, max_lines: u64::MAX };
        let mut verifier = Verifier::new(&self.search.root, &self.pattern, options, u64::MAX, &has_ended);
        let is_limited = self.pattern.is_slow || self.pattern.is_word;
        let mut lines = MatchedLines { is_limited, text: offset, ranges: Vec::new(), error: None };
        let searched = verifier.search_lines(text, offset, &mut lines);
        // Only the end of the call interrupts a search in memory.
        let MatchedLines { ranges, error, .. } = lines;
        if let Some(error) = error {
            return Err(error);
        }
        searched.map_err(|_: io::Error| MatchError::Ended)?;
        let mut groups = Vec::new();
        for line in ranges {
            self.find_in_line(&text[line.clone()], line.start, &mut groups, take)?;
        }
        Ok(())
    }

    fn find_in_line(
        &self,
        line: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
        take: &mut dyn FnMut(&Groups),
    ) -> Result<(), MatchError> {
        let matcher = self.pattern.matcher();
        // The matcher's own errors cannot happen: their type has no values that it makes.
        let never = |_| MatchError::Ended;
        let mut captures = matcher.new_captures().map_err(never)?;
        let mut has_ended = false;
        let found = matcher.captures_iter(line, &mut captures, |captures| {
            groups.clear();
            groups
                .extend((0..captures.len()).map(|group| {
                    captures.get(group).map(|found| start + found.start()..start + found.end())
                }));
            take(groups);
            has_ended = self.call.has_ended();
            !has_ended
        });
        found.map_err(never)?;
        if has_ended { Err(MatchError::Ended) } else { Ok(()) }
    }
}

/// The lines that match, as ranges of the text that is searched.
struct MatchedLines {
    /// Whether lines must not be long.
    is_limited: bool,
    /// The offset of the text in its file.
    text: u64,
    ranges: Vec<Range<usize>>,
    error: Option<MatchError>,
}

impl LineSink for MatchedLines {
    fn line(&mut self, _: &[u8], line: Line<'_>) -> bool {
        if self.is_limited && line.text.len() > LONGEST_LINE {
            self.error = Some(MatchError::LongLine(line.text.len()));
            return false;
        }
        let start = usize::try_from(line.start - self.text).unwrap_or(usize::MAX);
        self.ranges.push(start..start + line.text.len());
        true
    }

    fn mark(&self) -> usize {
        self.ranges.len()
    }

    fn is_full(&self) -> bool {
        self.error.is_some()
    }

    fn roll_back(&mut self, mark: usize) {
        self.ranges.truncate(mark);
    }

    fn end_file(&mut self, _: usize, _: Stamp, _: [u8; 32]) {}
}

//! What the files toolset needs of search, to replace what a search finds.

use std::sync::Arc;

use pintle_contract::{Fault, WorkspacePath};
use pintle_files::{Case, Groups, LineMatcher, MatchError, MatchingFiles, TextQuery, TextSearch};
use pintle_search::{LONGEST_LINE, MatchFinder, MatchSearch, Search};
use pintle_tool::CallContext;

/// The search toolset as the files toolset uses it.
pub struct SearchText(pub Arc<Search>);

impl TextSearch for SearchText {
    fn find(&self, query: &TextQuery, most_files: usize, call: &CallContext) -> Result<MatchingFiles, Fault> {
        let wanted = MatchSearch {
            query: &query.query,
            is_regex: query.is_regex,
            case: match query.case {
                Case::Smart => pintle_search::Case::Smart,
                Case::Sensitive => pintle_search::Case::Sensitive,
                Case::Insensitive => pintle_search::Case::Insensitive,
            },
            is_word: query.is_word,
            globs: &query.globs,
            language: query.language.as_deref(),
        };
        let found = self.0.find_matches(&wanted, most_files, call)?;
        let path = |path: Vec<u8>| {
            let name = String::from_utf8(path)
                .map_err(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())?;
            WorkspacePath::parse(&name).map_err(|_| name)
        };
        Ok(MatchingFiles {
            paths: found.paths.into_iter().map(path).collect(),
            files: found.files,
            lines: found.lines,
            matcher: Box::new(Matches(found.matches)),
        })
    }
}

/// Matches as a search finds them.
struct Matches(MatchFinder);

impl LineMatcher for Matches {
    fn groups(&self) -> usize {
        self.0.groups()
    }

    fn group(&self, name: &str) -> Option<usize> {
        self.0.group(name)
    }

    fn find(&self, text: &[u8], offset: u64, take: &mut dyn FnMut(&Groups)) -> Result<(), MatchError> {
        self.0.find(text, offset, take).map_err(|error| match error {
            pintle_search::MatchError::Ended => MatchError::Ended,
            pintle_search::MatchError::LongLine(bytes) => MatchError::LongLine(bytes, LONGEST_LINE),
        })
    }
}

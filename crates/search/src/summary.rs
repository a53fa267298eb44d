//! What an index covers: how many files it has, and where all others are.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use pintle_auth::Scopes;
use pintle_contract::WorkspacePath;
use pintle_symbols::Language;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    live::Snapshot,
    query::may_read,
    segment::{State, Torn},
    walk::Passed,
};

/// The account of all files that a caller may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// How many files are searched, and how many bytes they have.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// By language: how many of them.
    pub(crate) languages: BTreeMap<&'static str, u64>,
    /// By reason: how many are not searched.
    pub(crate) skipped: BTreeMap<&'static str, u64>,
    /// How many differ from what the index on disk knows.
    pub(crate) pending: u64,
}

/// Which searches can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Ready {
    /// Literals and regular expressions.
    pub(crate) text: bool,
    /// Words.
    pub(crate) words: bool,
    /// Symbols.
    pub(crate) symbols: bool,
}

impl Ready {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let segments = &snapshot.manifest.segments;
        Self {
            text: true,
            words: segments.iter().all(|parts| parts.words.is_some()),
            symbols: segments.iter().all(|parts| parts.names.is_some()),
        }
    }
}

impl Summary {
    /// Counts what a caller may read.
    pub(crate) fn of(snapshot: &Snapshot, scopes: &Scopes) -> Result<Self, Torn> {
        let mut summary = Self::default();
        let (index, overlay) = (&snapshot.index, &snapshot.overlay);
        for place in index.places() {
            let path = index.path(place)?;
            if may_read(scopes, path) && !overlay.contains(path) {
                let file = index.file(place)?;
                summary.count(file.state, file.stamp.size, file.language);
            }
        }
        for path in overlay.paths().filter(|path| may_read(scopes, path)) {
            summary.pending += 1;
            if let Some(Some(file)) = overlay.get(path) {
                summary.count(file.state, file.stamp.size, file.language);
            }
        }
        for (folder, counts) in &index.passed {
            if may_read_in(scopes, folder) {
                for (reason, count) in counts {
                    *summary.skipped.entry(name(*reason)).or_default() += count;
                }
            }
        }
        Ok(summary)
    }

    /// How many files there are under the root, searched or not.
    pub(crate) fn found(&self) -> u64 {
        self.files + self.skipped.values().sum::<u64>()
    }

    fn count(&mut self, state: State, size: u64, language: u8) {
        let reason = match state {
            State::Indexed | State::Whole => {
                self.files += 1;
                self.bytes += size;
                let language = Language::from_id(language).map_or("other", Language::name);
                *self.languages.entry(language).or_default() += 1;
                return;
            }
            State::Binary => "binary",
            State::TooLarge => "too_large",
            State::Unreadable => name(Passed::Unreadable),
        };
        *self.skipped.entry(reason).or_default() += 1;
    }
}

fn name(reason: Passed) -> &'static str {
    match reason {
        Passed::Ignored => "ignored",
        Passed::Git => "git",
        Passed::Link => "link",
        Passed::Special => "special",
        Passed::Unreadable => "unreadable",
    }
}

/// Whether a caller may read what lies directly in a folder.
fn may_read_in(scopes: &Scopes, folder: &[u8]) -> bool {
    scopes.are_everything()
        || folder.to_str().is_ok_and(|folder| {
            let inside = WorkspacePath::parse(&format!("{folder}/x"));
            inside.is_ok_and(|inside| scopes.may_read(&inside))
        })
}

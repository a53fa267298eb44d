//! Counts of what a search covers: searched files, and skipped ones by reason.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use pintle_contract::{Permissions, WorkspacePath};
use pintle_root::scan::{Passed, PassedOver};
use pintle_symbols::Language;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    index::Index,
    segment::{FileRecord, FileState, Torn},
    snapshot::{Overlay, Snapshot},
    verify::{ActualFile, Verified},
};

/// Counts of all files that a caller may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The number of files that are searched, and their size.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// The number of searched files, by language.
    pub(crate) languages: BTreeMap<&'static str, u64>,
    /// The number of skipped files, by reason.
    pub(crate) skipped: BTreeMap<&'static str, u64>,
    /// The number of files that differ from the index on disk.
    pub(crate) pending: u64,
}

/// Counts of the files that a scan has read, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanCounts {
    files: u64,
    binary: u64,
    too_large: u64,
    unreadable: u64,
}

impl ScanCounts {
    pub(crate) fn add(&mut self, verified: Verified) {
        match verified {
            Verified::AsIndexed | Verified::Differs(ActualFile::Text) => self.files += 1,
            Verified::Differs(ActualFile::Binary) => self.binary += 1,
            Verified::Differs(ActualFile::TooLarge) => self.too_large += 1,
            Verified::Differs(ActualFile::Unreadable) => self.unreadable += 1,
            // The file was removed between the walk and the search.
            Verified::Differs(ActualFile::Gone) => {}
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.files += other.files;
        self.binary += other.binary;
        self.too_large += other.too_large;
        self.unreadable += other.unreadable;
    }
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
        let (words, symbols) = snapshot.manifest.has_ranked();
        Self { text: true, words: snapshot.is_indexed() && words, symbols: snapshot.is_indexed() && symbols }
    }
}

impl Summary {
    /// Counts the files of an index that a caller may read.
    pub(crate) fn of(index: &Index, permissions: &Permissions) -> Result<Self, Torn> {
        let mut summary = Self::default();
        for id in index.live_files() {
            if permissions.may_read_bytes(index.path(id)?) {
                summary.add(&index.file(id)?);
            }
        }
        summary.set_skipped(&index.skipped()?, permissions);
        Ok(summary)
    }

    /// The counts of a scan.
    pub(crate) fn of_scan(seen: ScanCounts) -> Self {
        let skipped = [
            (FileState::Binary, seen.binary),
            (FileState::TooLarge, seen.too_large),
            (FileState::Unreadable, seen.unreadable),
        ];
        let skipped = skipped.into_iter().filter(|(_, count)| *count > 0);
        let skipped = skipped.filter_map(|(state, count)| Some((skipped_for(state)?, count)));
        Self { files: seen.files, skipped: skipped.collect(), ..Self::default() }
    }

    /// Replaces the counts of files that the walk skipped.
    pub(crate) fn set_skipped(&mut self, skipped: &PassedOver, permissions: &Permissions) {
        let reasons = Passed::ALL.map(name);
        self.skipped.retain(|reason, _| !reasons.contains(reason));
        for (_, counts) in skipped.iter().filter(|(folder, _)| may_read_in(permissions, folder)) {
            for (reason, count) in counts {
                *self.skipped.entry(name(*reason)).or_default() += count;
            }
        }
    }

    /// The same counts, updated with the overlay.
    pub(crate) fn with(
        &self,
        index: &Index,
        overlay: &Overlay,
        permissions: &Permissions,
    ) -> Result<Self, Torn> {
        let mut summary = self.clone();
        for path in overlay.paths().filter(|path| permissions.may_read_bytes(path)) {
            summary.pending += 1;
            if let Some(id) = index.find(path)? {
                summary.remove(&index.file(id)?);
            }
            if let Some(Some(file)) = overlay.get(path) {
                summary.add(file);
            }
        }
        Ok(summary)
    }

    /// The number of all files under the root, searched or skipped.
    pub(crate) fn found(&self) -> u64 {
        self.files + self.skipped.values().sum::<u64>()
    }

    fn add(&mut self, file: &FileRecord) {
        match skipped_for(file.state) {
            Some(reason) => *self.skipped.entry(reason).or_default() += 1,
            None => {
                self.files += 1;
                self.bytes += file.stamp.size;
                *self.languages.entry(language(file)).or_default() += 1;
            }
        }
    }

    /// Undoes `add`.
    fn remove(&mut self, file: &FileRecord) {
        let take = |counts: &mut BTreeMap<&'static str, u64>, name| {
            if let Some(count) = counts.get_mut(name) {
                *count -= 1;
            }
            counts.retain(|_, count| *count > 0);
        };
        match skipped_for(file.state) {
            Some(reason) => take(&mut self.skipped, reason),
            None => {
                self.files -= 1;
                self.bytes -= file.stamp.size;
                take(&mut self.languages, language(file));
            }
        }
    }
}

fn language(file: &FileRecord) -> &'static str {
    Language::from_id(file.language).map_or("other", Language::name)
}

/// The reason why a file is skipped, if it is.
fn skipped_for(state: FileState) -> Option<&'static str> {
    match state {
        FileState::Indexed | FileState::ScanWhole => None,
        FileState::Binary => Some("binary"),
        FileState::TooLarge => Some("too_large"),
        FileState::Unreadable => Some("unreadable"),
    }
}

/// The reason for files that an ignore rule excludes.
pub(crate) const IGNORED: &str = "ignored_by_rule";

fn name(reason: Passed) -> &'static str {
    match reason {
        Passed::Ignored => IGNORED,
        Passed::Git => "inside_git",
        Passed::Link => "symbolic_link",
        Passed::Special => "special_file",
        Passed::Unreadable => "unreadable_folder",
    }
}

/// Whether a caller may read the files directly in a folder. They are counted by folder, so with deny rules, which are about
/// names, none of them are.
fn may_read_in(permissions: &Permissions, folder: &[u8]) -> bool {
    permissions.may_read_everything()
        || folder.to_str().is_ok_and(|folder| {
            WorkspacePath::parse(folder).is_ok_and(|folder| permissions.may_read_all_in(&folder))
        })
}

//! Hints for a search without hits: what may be the reason.

use std::{fs, path::Path};

use bstr::ByteSlice;
use pintle_contract::{Fault, Permissions, WorkspacePath, nearest};

use crate::{
    pattern::{Meaning, Pattern},
    query::{Filter, count_lines},
    search::Search,
    snapshot::Snapshot,
    summary::{IGNORED, Summary},
};

/// A search without hits.
pub(super) struct NoHits<'a> {
    pub(super) search: &'a Search,
    pub(super) snapshot: &'a Snapshot,
    pub(super) filter: &'a Filter<'a>,
    pub(super) permissions: &'a Permissions,
    pub(super) globs: &'a [String],
    /// The query with case ignored, if the search did not ignore it.
    pub(super) other_case: Option<(&'a str, Meaning)>,
}

impl NoHits<'_> {
    /// Looks for possible reasons until `has_ended`.
    pub(super) fn hint(
        &self,
        summary: &mut Summary,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<String>, Fault> {
        let mut reasons = Vec::new();
        reasons.extend(self.no_file(has_ended));
        if reasons.is_empty() {
            reasons.extend(self.another_case(has_ended));
        }
        if let Some(listing) = &self.snapshot.listing {
            let skipped = self.search.root.passed_over_by(listing, has_ended);
            // An incomplete count would be misleading.
            if !has_ended() {
                summary.set_skipped(&skipped, self.permissions);
            }
        }
        if let Some(count) = summary.skipped.get(IGNORED).filter(|count| **count > 0) {
            let files = if *count == 1 { "file is" } else { "files are" };
            reasons.push(format!("{count} {files} left out by ignore rules, and not searched"));
        }
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    fn another_case(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Option<String> {
        let (query, meaning) = self.other_case?;
        if query.to_lowercase() == query.to_uppercase() {
            return None;
        }
        let pattern = Pattern::new(query, meaning).ok()?;
        let counts =
            count_lines(&self.search.root, self.snapshot, (&pattern, self.filter), 0, has_ended).ok()?;
        let lines = if counts.total == 1 { "line matches" } else { "lines match" };
        (counts.total > 0)
            .then(|| format!("ignoring case, {} {lines}: set `case` to `insensitive`", counts.total))
    }

    /// Explains why `path` matches no searched file, if it does not.
    fn no_file(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Option<String> {
        let mut is_any = false;
        self.snapshot.each_path(&mut |path| {
            is_any |= self.filter.admits(path, None);
            !is_any
        });
        if is_any || self.globs.is_empty() {
            return None;
        }
        let missing = self.globs.iter().filter(|glob| !glob.starts_with('!'));
        // If `path` restricted the listing, files elsewhere were not listed.
        let is_narrowed = self.snapshot.listing.as_ref().is_some_and(|listing| listing.within.is_some());
        let whole = is_narrowed.then(|| self.search.list_files(None, has_ended).ok()).flatten();
        let whole = whole.as_ref().unwrap_or(self.snapshot);
        let missing = missing.filter_map(|glob| self.missing(glob, whole)).collect::<Vec<_>>();
        match missing.is_empty() {
            true => Some("`path` matches no searched file".to_owned()),
            false => Some(shown(missing)),
        }
    }

    /// Which part of a path does not exist, and the nearest path that does.
    fn missing(&self, glob: &str, whole: &Snapshot) -> Option<String> {
        let plain = glob.strip_prefix("./").unwrap_or(glob).trim_matches('/');
        let mut folder = String::new();
        for name in plain.split('/') {
            if name.contains(['*', '?', '[', '{', '\\']) {
                return None;
            }
            let here = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if self.is_there(&here) {
                folder = here;
                continue;
            }
            let near = self.elsewhere(plain, whole).or_else(|| self.neighbour(&folder, name));
            let near = near.map(|near| format!("; the nearest is `{near}`"));
            return Some(format!("there is nothing at `{plain}`{}", near.unwrap_or_default()));
        }
        Some(format!("`{plain}` exists, but no file there is searched"))
    }

    fn is_there(&self, path: &str) -> bool {
        self.permissions.may_read_bytes(path.as_bytes())
            && WorkspacePath::parse(path).is_ok()
            && self.search.root_path().join(path).symlink_metadata().is_ok()
    }

    /// A file of the same name in another folder.
    fn elsewhere(&self, path: &str, whole: &Snapshot) -> Option<String> {
        let name = path.rsplit('/').next()?.as_bytes();
        let mut found = None;
        whole.each_path(&mut |path| {
            if path.rsplit(|byte| *byte == b'/').next() == Some(name) && self.permissions.may_read_bytes(path)
            {
                found = path.to_str().ok().map(str::to_owned);
            }
            found.is_none()
        });
        found
    }

    /// The most similar name in a folder that the caller may read.
    fn neighbour(&self, folder: &str, name: &str) -> Option<String> {
        let entries = fs::read_dir(self.search.root_path().join(Path::new(folder))).ok()?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let path = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let mut names = names
            .filter(|name| name != ".git" && self.permissions.may_read_bytes(path(name).as_bytes()))
            .collect::<Vec<_>>();
        names.sort_unstable();
        nearest(name, names.iter().map(String::as_str)).map(path)
    }
}

/// The first of several explanations, and how many more there are.
fn shown(remarks: Vec<String>) -> String {
    const SHOWN: usize = 3;
    let more = remarks.len().saturating_sub(SHOWN);
    let first = remarks.into_iter().take(SHOWN).collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{first}; and {more} more such paths") } else { first }
}

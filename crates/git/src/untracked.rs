//! The files that are neither in the index nor ignored.

use std::{ops::Range, os::fd::OwnedFd, vec};

use rustix::fs::{AtFlags, Dir, FileType};

use crate::{
    discovery::is_nested_repository,
    ignored::{self, Ignored},
    index::{Index, mode},
    problem::{HasEnded, Problem, go_on},
    repository::Repository,
    status::{Admits, LIMIT},
};

/// The paths, in their order; one more than the limit says that there is more. A repository of its own is one path,
/// with a slash at its end.
pub(crate) fn list(
    repository: &Repository,
    index: &Index,
    admits: Admits<'_>,
    has_ended: HasEnded<'_>,
) -> Result<Vec<Vec<u8>>, Problem> {
    let Some(ignored) = rules_of_root(repository, index)? else { return Ok(Vec::new()) };
    let (work_tree, path) = (repository.work_tree(), repository.work_tree().prefix().to_vec());
    let root = work_tree.open_folder(path.strip_suffix(b"/").unwrap_or(&path));
    let root = root.map_err(|error| Problem::unreadable("the root", error))?;
    let beneath = index.beneath(&path);
    let mut walk = Walk { repository, index, admits, has_ended, ignored, path, found: Vec::new() };
    let mut open = vec![walk.enter(root, beneath)?];
    while let Some(folder) = open.last_mut() {
        walk.path.truncate(folder.depth);
        let Some(child) = folder.children.next() else {
            if folder.has_patterns {
                walk.ignored.leave();
            }
            open.pop();
            continue;
        };
        walk.path.extend_from_slice(&child.key);
        if child.is_folder() {
            if let Some(inner) = walk.visit_folder(folder)? {
                open.push(inner);
            }
        } else {
            walk.visit_file(folder);
        }
        if walk.found.len() > LIMIT {
            break;
        }
    }
    Ok(walk.found)
}

/// The rules that apply in the root, with those of the folders above it; `None` if the root itself is ignored or is a
/// submodule without a repository, so that nothing in it counts as untracked.
fn rules_of_root(repository: &Repository, index: &Index) -> Result<Option<Ignored>, Problem> {
    let (mut ignored, work_tree) = (Ignored::new(repository)?, repository.work_tree());
    let next = work_tree.folders_above_root().skip(1).chain([work_tree.prefix()]);
    for (folder, next) in work_tree.folders_above_root().zip(next) {
        ignored.enter(repository, folder)?;
        let path = next.strip_suffix(b"/").unwrap_or(next);
        if ignored.contains(path, true) || index.find(path).is_some_and(|entry| entry.mode == mode::SUBMODULE)
        {
            return Ok(None);
        }
    }
    Ok(Some(ignored))
}

struct Walk<'a> {
    repository: &'a Repository,
    index: &'a Index,
    admits: Admits<'a>,
    has_ended: HasEnded<'a>,
    ignored: Ignored,
    /// What is visited; a folder with a slash at its end.
    path: Vec<u8>,
    found: Vec<Vec<u8>>,
}

/// A folder that is being walked through.
struct Folder {
    /// The length of its path.
    depth: usize,
    children: vec::IntoIter<Child>,
    /// The entries of the index below it that were not yet passed by.
    entries: Range<usize>,
    /// All of them.
    all: Range<usize>,
    has_patterns: bool,
}

struct Child {
    /// Its name; that of a folder ends with a slash. So a folder and the index are in the same order.
    key: Vec<u8>,
}

impl Child {
    fn is_folder(&self) -> bool {
        self.key.ends_with(b"/")
    }
}

impl Walk<'_> {
    fn find(&mut self) {
        if (self.admits)(&self.path) {
            self.found.push(self.path.clone());
        }
    }

    fn enter(&mut self, folder: OwnedFd, entries: Range<usize>) -> Result<Folder, Problem> {
        go_on(self.has_ended)?;
        let children = self.children(folder)?;
        let may_ignore = children.binary_search_by(|child| child.key[..].cmp(ignored::NAME)).is_ok();
        let has_patterns = may_ignore && self.ignored.enter(self.repository, &self.path)?;
        Ok(Folder {
            depth: self.path.len(),
            children: children.into_iter(),
            all: entries.clone(),
            entries,
            has_patterns,
        })
    }

    /// The files, links and folders in a folder, in order. What cannot be read is left out.
    fn children(&self, folder: OwnedFd) -> Result<Vec<Child>, Problem> {
        let mut children = Vec::new();
        let Ok(mut entries) = Dir::new(folder) else { return Ok(children) };
        while let Some(Ok(entry)) = entries.read() {
            if children.len() % 4096 == 4095 {
                go_on(self.has_ended)?;
            }
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b".." | b".git") {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system returns the type with the name.
                FileType::Unknown => entries
                    .fd()
                    .and_then(|folder| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            match kind {
                FileType::Directory => children.push(Child { key: [name, b"/"].concat() }),
                FileType::RegularFile | FileType::Symlink => children.push(Child { key: name.to_vec() }),
                _ => {}
            }
        }
        children.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(children)
    }

    fn visit_file(&mut self, folder: &mut Folder) {
        let rest = &self.path[folder.depth..];
        while let Some(entry) = self.index.entries[folder.entries.clone()].first() {
            let own = self.index.path(entry).get(folder.depth..).unwrap_or_default();
            if own == rest {
                return;
            }
            if own > rest {
                break;
            }
            folder.entries.start += 1;
        }
        if !self.ignored.contains(&self.path, false) {
            self.find();
        }
    }

    /// The folder, if files may be found in it.
    fn visit_folder(&mut self, folder: &mut Folder) -> Result<Option<Folder>, Problem> {
        let index = self.index;
        let key = &self.path[folder.depth..];
        let below = index.range_of(folder.entries.clone(), folder.depth, key);
        folder.entries.start = below.end;
        let path = &self.path[..self.path.len() - 1];
        let own = &index.entries[folder.all.clone()];
        let is_submodule = own
            .binary_search_by(|entry| index.path(entry).cmp(path))
            .is_ok_and(|at| own[at].mode == mode::SUBMODULE);
        if is_submodule || self.ignored.contains(path, true) {
            return Ok(None);
        }
        // It may have gone in the meantime, or may not be ours to read.
        let Ok(opened) = self.repository.work_tree().open_folder(path) else { return Ok(None) };
        if below.is_empty() && is_nested_repository(&opened) {
            self.find();
            return Ok(None);
        }
        self.enter(opened, below).map(Some)
    }
}

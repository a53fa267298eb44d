//! Repository discovery: from the root upwards to the nearest folder with a `.git`, by git's own rules.
//!
//! The search goes from handle to handle through `..`, so no path is resolved twice. It stops at a file system boundary.
//! A repository above the root is used only if it belongs to the user whom the server runs as, or to the owner of the
//! root: git's rule for `safe.directory`. Otherwise anybody who may write to a shared folder such as `/tmp` could show a
//! repository of theirs as the one of every root beneath it.

use std::{
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::{Component, Path},
};

use pintle_root::{Directory, identity, open_file_in, open_folder_in};
use rustix::{
    fs::{AtFlags, FileType, Stat},
    io::Errno,
};

use crate::{
    directory::{GitDirectory, read_all},
    gitfile::{self, GITFILE_LIMIT, GitDirectories},
    layout::{Layout, WorkTree},
    problem::Problem,
};

/// The name of git's own folder, or of the file that names it.
pub(crate) const GIT: &[u8] = b".git";

/// Finds the repository whose work tree the root is, or is part of. `None` if there is none.
pub(crate) fn discover(path: &Path) -> Result<Option<Layout>, Problem> {
    let unreadable = |error: Errno| Problem::unreadable("the root", error);
    let root = Directory::open(path).map_err(unreadable)?;
    // A root that may be passed through, but not listed, has no state.
    let root_stat = root.open_folder(b"").and_then(rustix::fs::fstat).map_err(unreadable)?;
    let owners = Owners { server: rustix::process::geteuid().as_raw(), root: root_stat.st_uid };
    // What looks like a repository but is none is the answer only if there is nothing above it.
    let mut unusable = None;
    let (mut above, mut depth, mut is_other_file_system) = (None, 0, false);
    loop {
        let level = above.as_ref().unwrap_or(&root);
        let entry = match rustix::fs::statat(level, GIT, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) if depth == 0 => return Err(Problem::unreadable(".git", error)),
            Err(_) => break,
        };
        if entry.is_some() && depth > 0 {
            if is_other_file_system {
                let reason = "the repository above the root lies on another file system, where git does not look either";
                return Err(Problem::NotUsed(reason.into()));
            }
            let level_stat = rustix::fs::fstat(level).map_err(unreadable)?;
            entry.iter().chain([&level_stat]).try_for_each(|stat| owners.check(stat))?;
        }
        let directories = match entry.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None if is_git_directory(level, level).is_ok() => {
                let reason = "the root is a bare repository, or lies in a git directory: it has no work tree";
                return Err(Problem::NotUsed(reason.into()));
            }
            None => None,
            Some(FileType::Directory) => open_git_folder(level, &mut unusable)?,
            Some(FileType::RegularFile) => Some(gitfile::follow(level, &parent_path(path, depth), owners)?),
            Some(FileType::Symlink) => {
                let reason = "`.git` is a symbolic link, which is not followed; a file with `gitdir: PATH` in its place is";
                return Err(Problem::NotUsed(reason.into()));
            }
            Some(_) => {
                unusable.get_or_insert(Problem::damaged(".git", "it is neither a folder nor a file"));
                None
            }
        };
        if let Some(directories) = directories {
            let prefix = prefix(path, depth)?;
            return layout(root, above, prefix, directories).map(Some);
        }
        let Ok(Some(parent)) = level.parent() else { break };
        let device = rustix::fs::fstat(&parent).map_err(unreadable)?.st_dev;
        is_other_file_system |= device != root_stat.st_dev;
        above = Some(parent);
        depth += 1;
    }
    unusable.map_or(Ok(None), Err)
}

/// Users whose repositories are used although they lie outside of the root.
#[derive(Clone, Copy)]
pub(crate) struct Owners {
    server: u32,
    root: u32,
}

impl Owners {
    /// Refuses what belongs to anybody else.
    pub(crate) fn check(self, stat: &Stat) -> Result<(), Problem> {
        if [self.server, self.root].contains(&stat.st_uid) {
            return Ok(());
        }
        Err(Problem::NotUsed(format!(
            "the repository lies outside of the root and belongs to user {}, while the server runs as user {}: it is not \
             read, as git would not use it either (safe.directory)",
            stat.st_uid, self.server
        )))
    }
}

/// Whether two open folders are a git directory and its common directory: those of git that must be there.
pub(crate) fn is_git_directory(git_dir: &Directory, common_dir: &Directory) -> Result<(), &'static str> {
    if matches!(git_dir.open_file(b"HEAD"), Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR)) {
        return Err("`HEAD` is missing");
    }
    // Anything else that is wrong with HEAD is reported when it is read.
    if common_dir.open_folder(b"objects").is_err() {
        return Err("the folder `objects` is missing, or is a symbolic link");
    }
    if common_dir.open_folder(b"refs").is_err() {
        return Err("the folder `refs` is missing, or is a symbolic link");
    }
    Ok(())
}

/// Whether a folder in the work tree is a repository of its own, so that nothing in it belongs to the one around it.
pub(crate) fn is_nested_repository(folder: impl AsFd) -> bool {
    let folder = folder.as_fd();
    match open_folder_in(folder, GIT) {
        Ok(own) => {
            let head = open_file_in(&own, b"HEAD").ok();
            let head = head.and_then(|file| read_all(&file, "HEAD", GITFILE_LIMIT).ok()).unwrap_or_default();
            let is_head = match head.strip_prefix(b"ref:") {
                Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
                None => head.len() >= 40 && head[..40].iter().all(u8::is_ascii_hexdigit),
            };
            is_head && [&b"objects"[..], b"refs"].iter().all(|name| open_folder_in(&own, name).is_ok())
        }
        Err(_) => open_file_in(folder, GIT).is_ok_and(|file| {
            read_all(&file, ".git", GITFILE_LIMIT).is_ok_and(|text| gitfile::parse(&text).is_some())
        }),
    }
}

/// Opens a folder `.git`. As in git, one that is no repository does not end the search.
fn open_git_folder(
    level: &Directory,
    unusable: &mut Option<Problem>,
) -> Result<Option<GitDirectories>, Problem> {
    let git_dir = GitDirectory::beneath(level, GIT).map_err(|error| Problem::unreadable(".git", error))?;
    if git_dir.open_file(b"commondir").is_ok() {
        // A linked worktree has a file `.git`. A folder with such a file in it was made up to lead elsewhere.
        return Err(Problem::damaged(
            ".git",
            "`commondir` belongs into the git directory of a linked worktree",
        ));
    }
    match is_git_directory(&git_dir, &git_dir) {
        Ok(()) => Ok(Some(GitDirectories { git_dir, common_dir: None, needs_back_pointer: false })),
        Err(reason) => {
            unusable.get_or_insert(Problem::damaged(".git", reason));
            Ok(None)
        }
    }
}

fn layout(
    root: Directory,
    top: Option<Directory>,
    prefix: Vec<u8>,
    directories: GitDirectories,
) -> Result<Layout, Problem> {
    if let Some(top) = &top {
        let reached = top.open_folder(prefix.strip_suffix(b"/").unwrap_or(&prefix)).and_then(identity);
        if reached.is_err() || reached != identity(&root) {
            return Err(Problem::NotUsed("the root was moved while its repository was looked for".into()));
        }
    }
    let GitDirectories { git_dir, common_dir, needs_back_pointer } = directories;
    Ok(Layout { work_tree: WorkTree::new(root, top, prefix), git_dir, common_dir, needs_back_pointer })
}

/// The path of a folder that lies some levels above the root.
fn parent_path(root: &Path, depth: usize) -> std::path::PathBuf {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.ancestors().nth(depth).unwrap_or(&real).to_owned()
}

/// The path of the root as seen from a folder some levels above it: empty, or with a slash at its end.
fn prefix(root: &Path, depth: usize) -> Result<Vec<u8>, Problem> {
    if depth == 0 {
        return Ok(Vec::new());
    }
    let real = root.canonicalize().map_err(|error| Problem::unreadable("the root", error))?;
    let names: Vec<_> = real.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let mut prefix = Vec::new();
    for name in &names[names.len().saturating_sub(depth)..] {
        prefix.extend_from_slice(name.as_os_str().as_bytes());
        prefix.push(b'/');
    }
    Ok(prefix)
}

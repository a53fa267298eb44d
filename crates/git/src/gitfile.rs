//! A file `.git`, which names the git directory: in linked worktrees, in submodules, after `--separate-git-dir`.
//!
//! The file comes with the work tree, so whoever wrote the work tree may have made it name anything. If it were simply
//! followed, the index of somebody else's repository would show its paths as deleted files. So what it names has to name
//! this work tree in turn, in a file that git itself wrote beside the repository:
//!
//! - A linked worktree's git directory lies in `worktrees` of the repository, and its file `gitdir` names this `.git`.
//! - A submodule's git directory has a configuration whose `core.worktree` names this folder.
//! - A git directory that lies in the same folder as the file needs neither: it shows nothing that is not there already.

use std::{
    ffi::OsStr,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use pintle_root::{Directory, identity, open_folder_anywhere};
use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

use crate::{
    directory::{GitDirectory, read_file},
    discovery::{GIT, Owners, is_git_directory},
    problem::Problem,
};

/// Such a file holds one path.
pub(crate) const GITFILE_LIMIT: u64 = 64 << 10;

/// Where git's own files are.
pub(crate) struct GitDirectories {
    pub(crate) git_dir: GitDirectory,
    /// None unless this is a linked worktree.
    pub(crate) common_dir: Option<GitDirectory>,
    /// Whether `core.worktree` still has to name the work tree.
    pub(crate) needs_back_pointer: bool,
}

/// The path that such a file holds; `None` if it is not one.
pub(crate) fn parse(content: &[u8]) -> Option<&[u8]> {
    let path = trim_newlines(content.strip_prefix(b"gitdir: ")?);
    (!path.is_empty()).then_some(path)
}

/// Opens what the file `.git` in the folder `top` names; `top_path` is the real path of that folder.
pub(crate) fn follow(top: &Directory, top_path: &Path, owners: Owners) -> Result<GitDirectories, Problem> {
    let content = read_file(top, GIT, ".git", GITFILE_LIMIT)?.unwrap_or_default();
    let path = parse(&content).ok_or_else(|| damaged("it does not begin with `gitdir: ` and a path"))?;
    let inside = relative_to(top_path, path).and_then(|path| GitDirectory::beneath(top, &path).ok());
    let is_inside = inside.is_some();
    let git_dir = match inside {
        Some(git_dir) => git_dir,
        None => {
            let opened = open_folder_anywhere(top, path).and_then(GitDirectory::from_handle);
            opened.map_err(|error| match error {
                Errno::NOENT | Errno::NOTDIR | Errno::LOOP => damaged(
                    "the git directory that it names does not exist, or the server cannot see it from where it runs, \
                     such as in a container; after a move, `git worktree repair` or `git submodule update --init` in \
                     the repository sets it",
                ),
                error => Problem::unreadable("the git directory that `.git` names", error),
            })?
        }
    };
    let common_dir = common_directory(&git_dir, top)?;
    if let Err(reason) = is_git_directory(&git_dir, common_dir.as_ref().unwrap_or(&git_dir)) {
        return Err(damaged(&format!("what it names is no git directory: {reason}")));
    }
    if !is_inside {
        for folder in [Some(&git_dir), common_dir.as_ref()].into_iter().flatten() {
            let stat = rustix::fs::fstat(&**folder);
            owners.check(&stat.map_err(|error| Problem::unreadable("the git directory", error))?)?;
        }
    }
    let needs_back_pointer = !is_inside && common_dir.is_none();
    Ok(GitDirectories { git_dir, common_dir, needs_back_pointer })
}

/// The common directory of a linked worktree; `None` if it is no linked worktree.
fn common_directory(git_dir: &GitDirectory, top: &Directory) -> Result<Option<GitDirectory>, Problem> {
    let Some(content) = git_dir.read(b"commondir", GITFILE_LIMIT)? else { return Ok(None) };
    if !is_named_back(git_dir, top)? {
        return Err(Problem::NotUsed(
            "`.git` names the git directory of a linked worktree that is registered for another folder; if this worktree \
             was moved, run `git worktree repair` in it"
                .into(),
        ));
    }
    // A git directory anywhere else could name any repository as the one that it belongs to.
    let unregistered = || {
        Problem::NotUsed(
            "`.git` names a git directory with a `commondir`, but it is none of the linked worktrees of that repository"
                .into(),
        )
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let common = || -> Result<GitDirectory, Errno> {
        let worktrees = rustix::fs::openat(&**git_dir, "..", flags, Mode::empty())?;
        let common = rustix::fs::openat(&worktrees, "..", flags, Mode::empty())?;
        let registered = rustix::fs::statat(&common, "worktrees", AtFlags::SYMLINK_NOFOLLOW)?;
        let named = open_folder_anywhere(&**git_dir, trim_newlines(&content))?;
        let is_registered = (registered.st_dev, registered.st_ino) == identity(&worktrees)?
            && identity(named)? == identity(&common)?;
        if is_registered { GitDirectory::from_handle(common) } else { Err(Errno::XDEV) }
    };
    common().map(Some).map_err(|_| unregistered())
}

/// Whether the file `gitdir` of a linked worktree's git directory names the file `.git` in this folder.
fn is_named_back(git_dir: &GitDirectory, top: &Directory) -> Result<bool, Problem> {
    let content = git_dir.read(b"gitdir", GITFILE_LIMIT)?.unwrap_or_default();
    let Some(folder) = content.trim_ascii_end().strip_suffix(b"/.git") else { return Ok(false) };
    Ok(is_folder(git_dir, folder, top))
}

/// Whether a path that a file of git holds, relative to the git directory or absolute, leads to a certain folder.
pub(crate) fn is_folder(git_dir: &Directory, path: &[u8], expected: &Directory) -> bool {
    let named = open_folder_anywhere(git_dir, path).and_then(identity);
    named.is_ok() && named == identity(expected)
}

/// A path that is relative to a folder, or below it by its real path, as it is beneath that folder; `None` if it leads
/// elsewhere.
fn relative_to(folder: &Path, path: &[u8]) -> Option<Vec<u8>> {
    let path = Path::new(OsStr::from_bytes(path));
    let relative = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let mut beneath = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => beneath.push(name),
            Component::CurDir => {}
            Component::ParentDir if beneath.pop() => {}
            _ => return None,
        }
    }
    let beneath = beneath.into_os_string().into_vec();
    (!beneath.is_empty()).then_some(beneath)
}

fn trim_newlines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

fn damaged(reason: &str) -> Problem {
    Problem::damaged("the file `.git`", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::name_of;

    #[test]
    fn a_gitfile_holds_one_path() {
        assert_eq!(parse(b"gitdir: ../a b\r\n\n"), Some(&b"../a b"[..]));
        for content in [&b""[..], b"gitdir:", b"gitdir: ", b"gitdir: \n", b"gitdir:/x", b"GITDIR: /x", b"\n"]
        {
            assert_eq!(parse(content), None, "{}", name_of(content));
        }
    }

    #[test]
    fn a_path_out_of_the_folder_is_not_beneath_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a path");
        let inside = folder.join("data/git");
        let relative_to = |path: &[u8]| relative_to(&folder, path);
        assert_eq!(relative_to(b"data/./git"), Some(b"data/git".to_vec()));
        assert_eq!(relative_to(inside.as_os_str().as_bytes()), Some(b"data/git".to_vec()));
        for path in [&b"../x"[..], b"a/../../x", b"/x", b"", b"."] {
            assert_eq!(relative_to(path), None, "{}", name_of(path));
        }
    }
}

//! The root: the folder that callers see as `/`, and where the paths that they name lead.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use pintle_contract::WorkspacePath;
use rustix::{
    fs::{Access, AtFlags, CWD, FileType, OFlags, accessat, fstat, readlinkat, statat},
    io::Errno,
};

use crate::{
    beneath::{Directory, FOLDER, READ, open_to_reach_in},
    stamp::identity,
};

/// The name of unfinished files, which the files toolset keeps for itself in every folder. Nobody else sees what has it.
pub const TEMPORARY_FILE: &str = ".pintle-tmp";

/// The name of the folders in which change sets stage files, next to the files that they change. Reserved as well.
pub const STAGING_FOLDER: &str = ".pintle-staged";

/// The names that nothing in the root has but what is being changed.
pub(crate) const RESERVED: [&str; 2] = [TEMPORARY_FILE, STAGING_FOLDER];

/// The root, held open.
///
/// Errors of the system are those of [`Directory`]. A path is `NOENT` also if a name on its way is
/// [reserved](is_reserved), and `ILSEQ` if it leads to a name that is no text.
pub struct Root {
    pub(crate) directory: Directory,
    path: PathBuf,
}

/// Why the root cannot be used any more. The texts follow the name of the root.
#[derive(Debug, thiserror::Error)]
pub enum RootProblem {
    /// Nothing is at its path.
    #[error("is gone: {0}")]
    Gone(io::Error),
    /// Its path leads to another folder by now.
    #[error("is another folder than the one that was opened")]
    Replaced,
    /// The process may not list it or enter it.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
}

impl Root {
    /// Opens the folder at a path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { directory: Directory::open(path)?, path: path.to_owned() })
    }

    /// The same, in the way that works without the kernel's help.
    pub fn open_portably(path: &Path) -> io::Result<Self> {
        Ok(Self { directory: Directory::open_portably(path)?, path: path.to_owned() })
    }

    /// The path by which the root was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that the root has now, without links.
    pub fn real_path(&self) -> io::Result<PathBuf> {
        handle_path(&self.directory)
    }

    /// The device and inode of the root.
    pub fn identity(&self) -> Result<(u64, u64), Errno> {
        identity(&self.directory)
    }

    /// Whether the path still leads to the folder that was opened, and that may be read.
    pub fn check(&self) -> Result<(), RootProblem> {
        let here =
            statat(CWD, &self.path, AtFlags::empty()).map_err(|error| RootProblem::Gone(error.into()))?;
        let opened = self.identity().map_err(|error| RootProblem::Gone(error.into()))?;
        if (here.st_dev, here.st_ino) != opened {
            return Err(RootProblem::Replaced);
        }
        accessat(CWD, &self.path, Access::READ_OK | Access::EXEC_OK, AtFlags::empty())
            .map_err(|error| RootProblem::Unreadable(error.into()))
    }

    /// Opens whatever it is, and returns its resolved path.
    pub fn open_any(&self, path: &WorkspacePath) -> Result<(OwnedFd, WorkspacePath), Errno> {
        self.open_resolved(path, READ)
    }

    /// Opens a folder, and returns its resolved path.
    pub fn open_folder(&self, path: &WorkspacePath) -> Result<(OwnedFd, WorkspacePath), Errno> {
        self.open_resolved(path, FOLDER)
    }

    /// Opens whatever it is, if no link is on the way, so that the path is its own resolved path, and if the system has
    /// the way to it in memory.
    pub fn open_cached(&self, path: &WorkspacePath) -> Option<OwnedFd> {
        let is_plain = !path.is_root() && !is_reserved(path);
        is_plain.then(|| self.directory.open_cached(path.as_str().as_bytes(), READ))?.ok()
    }

    /// The resolved path of a folder, or the one that it will have once it is made.
    pub fn resolve_folder(&self, path: &WorkspacePath) -> Result<WorkspacePath, Errno> {
        match self.open_folder(path) {
            Ok((_, resolved)) => Ok(resolved),
            Err(Errno::NOENT) => Ok(self.follow_hypothetically(path).pop().unwrap_or_default()),
            Err(error) => Err(error),
        }
    }

    /// The paths that a path leads to, whatever exists there: one for each link on the way, with the link still in it,
    /// and at last the one without links. Only links are looked at, so the paths say nothing about the other names in
    /// them. A link that cannot be followed, because it leaves the root or is one too many, is the end.
    ///
    /// Whoever may not use one of these paths must not learn why the first cannot be opened.
    pub fn follow_hypothetically(&self, path: &WorkspacePath) -> Vec<WorkspacePath> {
        /// As many as the system follows.
        const MOST_LINKS: usize = 40;
        let mut paths = Vec::new();
        let mut resolved: Vec<Vec<u8>> = Vec::new();
        // The names that are still to come, the next one last.
        let mut names: Vec<Vec<u8>> = Vec::new();
        let push = |names: &mut Vec<Vec<u8>>, text: &[u8]| {
            names.extend(text.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        };
        push(&mut names, path.as_str().as_bytes());
        // What has been resolved, while it is a folder that exists.
        let mut folder = self.directory.open_to_reach(b"").ok();
        while let Some(name) = names.pop() {
            match name.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    // Only the target of a link has this name in it, so there is a path already.
                    if resolved.pop().is_none() {
                        return paths;
                    }
                    folder = self.directory.open_to_reach(&resolved.join(&b'/')).ok();
                    continue;
                }
                _ => {}
            }
            let target =
                folder.as_ref().and_then(|folder| readlinkat(folder, name.as_slice(), Vec::new()).ok());
            resolved.push(name);
            let Some(target) = target else {
                let name = resolved.last().map(Vec::as_slice).unwrap_or_default();
                folder = folder.and_then(|folder| open_to_reach_in(folder, name).ok());
                continue;
            };
            paths.push(as_path(resolved.iter().chain(names.iter().rev())));
            if paths.len() > MOST_LINKS || target.as_bytes().starts_with(b"/") {
                return paths;
            }
            resolved.pop();
            push(&mut names, target.as_bytes());
        }
        paths.push(as_path(resolved.iter()));
        paths
    }

    /// What a link leads to, if that lies in the root: its resolved path, what it is, and its size.
    pub fn follow_link(&self, path: &WorkspacePath) -> Option<(WorkspacePath, FileType, u64)> {
        let flags = if self.directory.is_portable() { READ } else { OFlags::PATH | OFlags::CLOEXEC };
        let opened = self.directory.open_through_links(path.as_str().as_bytes(), flags).ok()?;
        let stat = fstat(&opened).ok()?;
        let resolved = self.resolved_path(&opened, path).ok()?;
        Some((resolved, FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Refuses a path so long that the system could not return it as the resolved path of what lies there.
    pub fn refuse_too_deep(&self, path: &WorkspacePath) -> Result<(), Errno> {
        const LONGEST: usize = 4096;
        let root = self.real_path().map(|root| root.as_os_str().len()).unwrap_or_default();
        // A slash before it, and the NUL that ends it.
        if root + path.as_str().len() + 2 > LONGEST { Err(Errno::NAMETOOLONG) } else { Ok(()) }
    }

    fn open_resolved(&self, path: &WorkspacePath, flags: OFlags) -> Result<(OwnedFd, WorkspacePath), Errno> {
        refuse_reserved(path)?;
        let text = path.as_str().as_bytes();
        if !self.directory.is_portable() {
            // Most paths have no link on their way, and lead to where they say.
            match self.directory.open_without_links(text, flags) {
                Ok(opened) => return Ok((opened, path.clone())),
                Err(Errno::LOOP | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        let opened = self.directory.open_through_links(text, flags)?;
        let resolved = self.resolved_path(&opened, path)?;
        Ok((opened, resolved))
    }

    /// Where something that was opened by a path is, beneath the root.
    fn resolved_path(&self, opened: &OwnedFd, path: &WorkspacePath) -> Result<WorkspacePath, Errno> {
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let resolved = match handle_path(opened) {
            Ok(full) => {
                let root = self.real_path().map_err(errno)?;
                // What has been moved out of the root, or removed, is no longer there.
                full.strip_prefix(&root).map(Path::to_owned).map_err(|_| Errno::NOENT)?
            }
            Err(_) if self.directory.is_portable() => {
                self.directory.resolve_again(path.as_str().as_bytes(), opened)?
            }
            Err(error) => return Err(errno(error)),
        };
        // A link may lead to a name that is no text; then it cannot be spoken of.
        let resolved = resolved.to_str().and_then(|text| WorkspacePath::parse(text).ok());
        let resolved = resolved.ok_or(Errno::ILSEQ)?;
        refuse_reserved(&resolved)?;
        Ok(resolved)
    }
}

/// The path that something open has now, where the system has `/proc`.
pub fn handle_path(open: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()))
}

/// Whether a name is reserved for [unfinished files](TEMPORARY_FILE) or [staged ones](STAGING_FOLDER).
pub fn is_reserved_name(name: &[u8]) -> bool {
    RESERVED.iter().any(|reserved| name == reserved.as_bytes())
}

/// Whether a name on the way is [reserved](is_reserved_name).
pub fn is_reserved(path: &WorkspacePath) -> bool {
    is_reserved_path(path.as_str().as_bytes())
}

/// The same for a path that need not be text.
pub fn is_reserved_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(is_reserved_name)
}

/// Names as a path. What no path can have in it is replaced. What makes it too long, or leaves the root, is cut off: then
/// the path is that of a folder above.
fn as_path<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> WorkspacePath {
    let mut names: Vec<_> =
        names.map(|name| String::from_utf8_lossy(name).replace(['\\', '\0'], "\u{FFFD}")).collect();
    loop {
        match WorkspacePath::parse(&names.join("/")) {
            Ok(path) => return path,
            Err(_) => drop(names.pop()),
        }
    }
}

fn refuse_reserved(path: &WorkspacePath) -> Result<(), Errno> {
    if is_reserved(path) { Err(Errno::NOENT) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).expect("a path")
    }

    #[test]
    fn what_is_opened_through_links_has_its_own_path_and_nothing_outside_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::write(root.join("a/b/file"), "x").expect("written");
        fs::write(folder.path().join("outside"), "x").expect("written");
        symlink("a/b", root.join("link")).expect("linked");
        symlink("../outside", root.join("out")).expect("linked");
        symlink("round", root.join("round")).expect("linked");
        fs::write(root.join("a/.pintle-tmp"), "x").expect("written");
        symlink("a/.pintle-tmp", root.join("unfinished")).expect("linked");
        for open in [Root::open, Root::open_portably] {
            let root = open(&root).expect("opened");
            let resolved = |text: &str| root.open_any(&path(text)).map(|(_, resolved)| resolved);
            assert_eq!(resolved("a/b/file"), Ok(path("a/b/file")));
            assert_eq!(resolved("link/file"), Ok(path("a/b/file")));
            assert_eq!(resolved(""), Ok(path("")));
            assert_eq!(resolved("none"), Err(Errno::NOENT));
            assert_eq!(resolved("a/.pintle-tmp"), Err(Errno::NOENT));
            assert_eq!(resolved("unfinished"), Err(Errno::NOENT));
            for outside in ["out", "round"] {
                assert!(matches!(resolved(outside), Err(Errno::XDEV | Errno::LOOP)), "{outside}");
                assert!(root.follow_link(&path(outside)).is_none(), "{outside}");
            }
            assert_eq!(root.open_folder(&path("link")).map(|(_, resolved)| resolved), Ok(path("a/b")));
            assert_eq!(root.resolve_folder(&path("link/new/deep")), Ok(path("a/b/new/deep")));
            let followed = root.follow_link(&path("link/file")).map(|(resolved, _, size)| (resolved, size));
            assert_eq!(followed, Some((path("a/b/file"), 1)));
            root.check().expect("still there");
        }
    }

    #[test]
    fn where_a_path_would_lead_does_not_depend_on_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("vault/sub")).expect("made");
        fs::write(root.join("vault/file"), "x").expect("written");
        for (link, target) in [
            ("link", "vault"),
            ("nothing", "vault/none"),
            ("vault/back", "../open/./x"),
            ("vault/sub/up", "../../open"),
            ("vault/absolute", "/etc"),
            ("vault/outside", "../../outside"),
            ("vault/round", "round"),
            ("vault/a", "b"),
            ("vault/b", "a"),
        ] {
            symlink(target, root.join(link)).expect("linked");
        }
        let long = format!("{}/x", "n/".repeat(2000));
        symlink(format!("{}x", "n/".repeat(1000)), root.join("deep")).expect("linked");
        for open in [Root::open, Root::open_portably] {
            let root = open(&root).expect("opened");
            let followed = |text: &str| -> Vec<String> {
                let paths = root.follow_hypothetically(&path(text));
                paths.iter().map(|path| path.as_str().to_owned()).collect()
            };
            for (named, expected) in [
                ("", &[""][..]),
                ("vault/file/x", &["vault/file/x"]),
                ("link", &["link", "vault"]),
                ("link/file/x", &["link/file/x", "vault/file/x"]),
                ("link/none/x", &["link/none/x", "vault/none/x"]),
                ("link/sub/x", &["link/sub/x", "vault/sub/x"]),
                ("nothing/x", &["nothing/x", "vault/none/x"]),
                ("link/back/y", &["link/back/y", "vault/back/y", "open/x/y"]),
                ("link/sub/up/y", &["link/sub/up/y", "vault/sub/up/y", "open/y"]),
                ("link/absolute/y", &["link/absolute/y", "vault/absolute/y"]),
                ("link/outside/y", &["link/outside/y", "vault/outside/y"]),
            ] {
                assert_eq!(followed(named), expected, "{named}");
            }
            for (named, second) in [("link/round/y", "vault/round/y"), ("link/a", "vault/a")] {
                let paths = followed(named);
                assert_eq!((paths.len(), paths[1].as_str()), (41, second));
                assert!(paths[1..].iter().all(|path| path.starts_with("vault/")), "{paths:?}");
            }
            // What no path can be is cut off.
            assert!(followed(&format!("deep/{}", &long[..3000]))[1].starts_with("n/n/"));
        }
    }
}

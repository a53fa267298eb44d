//! Whether the root is a repository, and which one.

use std::{
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType},
    io::Errno,
};

use crate::{
    config::Config,
    problem::Problem,
    root::{Root, joined, name_of, open_file_in, open_folder_in, read_all},
};

const NAME: &[u8] = b".git";
/// What stands before the path in a file that leads elsewhere.
const LEAD: &[u8] = b"gitdir: ";
/// More than any configuration is.
const CONFIG_LIMIT: u64 = 4 << 20;
/// A file that leads elsewhere holds one path.
const LEAD_LIMIT: u64 = 64 << 10;

/// A repository whose work tree is the root.
pub(crate) struct Repository {
    pub(crate) root: Root,
    pub(crate) config: Config,
    /// Where git's own files are, below the root.
    folder: Vec<u8>,
}

impl Repository {
    /// The repository of this work tree; `None` if there is none that lies in it.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Problem> {
        let root = Root::open(path).map_err(|error| Problem::unreadable("the root", error))?;
        let Some(folder) = find_folder(&root, path)? else { return Ok(None) };
        let mut repository = Self { root, config: Config::default(), folder };
        let is_linked = repository.read("commondir", LEAD_LIMIT)?.is_some();
        let has_head = match repository.root.open_file(&repository.place("HEAD")) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => false,
            // Whatever it is, it will be told when it is read.
            _ => true,
        };
        if is_linked || !has_head || repository.root.open_folder(&repository.place("objects")).is_err() {
            return Ok(None);
        }
        for file in ["config", "config.worktree"] {
            if file == "config" || repository.config.has_own_file() {
                let text = repository.read(file, CONFIG_LIMIT)?.unwrap_or_default();
                repository.config.read(&text)?;
            }
        }
        if repository.config.is_bare {
            return Ok(None);
        }
        repository.config.check()?;
        Ok(Some(repository))
    }

    /// Where one of git's own files is, below the root.
    pub(crate) fn place(&self, name: &str) -> Vec<u8> {
        joined(&self.folder, name.as_bytes())
    }

    /// The content of one of git's own files, if it is there.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Problem> {
        self.root.read(&self.place(name), limit)
    }
}

/// Where git's own files are, if they are below the root.
fn find_folder(root: &Root, path: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let stat = match rustix::fs::statat(root.as_folder(), NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(Problem::unreadable(name_of(NAME), error)),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(Some(NAME.to_vec())),
        FileType::RegularFile => {
            let content = root.read(NAME, LEAD_LIMIT)?.unwrap_or_default();
            Ok(content.strip_prefix(LEAD).and_then(|lead| below(path, lead.trim_ascii_end())))
        }
        _ => Ok(None),
    }
}

/// A path that somebody wrote, as it is below the root; `None` if it leads elsewhere.
fn below(root: &Path, lead: &[u8]) -> Option<Vec<u8>> {
    let lead = Path::new(OsStr::from_bytes(lead));
    let relative = if lead.is_absolute() {
        let real = root.canonicalize().ok()?;
        lead.strip_prefix(&real).or_else(|_| lead.strip_prefix(root)).ok()?
    } else {
        lead
    };
    let mut place = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir if place.pop() => {}
            _ => return None,
        }
    }
    let place = place.into_os_string().into_vec();
    (!place.is_empty()).then_some(place)
}

/// Whether a folder in the work tree is a repository of its own, so that nothing in it belongs to the one around it.
pub(crate) fn is_repository(folder: &OwnedFd) -> bool {
    match open_folder_in(folder, NAME) {
        Ok(own) => {
            let head = open_file_in(&own, b"HEAD").ok();
            let head = head.and_then(|file| read_all(&file, NAME, LEAD_LIMIT).ok()).unwrap_or_default();
            let is_head = match head.strip_prefix(b"ref:") {
                Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
                None => head.len() >= 40 && head[..40].iter().all(u8::is_ascii_hexdigit),
            };
            is_head && [&b"objects"[..], b"refs"].iter().all(|name| open_folder_in(&own, name).is_ok())
        }
        Err(_) => open_file_in(folder, NAME)
            .is_ok_and(|file| read_all(&file, NAME, LEAD_LIMIT).is_ok_and(|text| text.starts_with(LEAD))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_out_of_the_root_leads_nowhere() {
        let root = tempfile::tempdir().expect("a folder");
        let inside = root.path().join("data/git");
        let below = |lead: &[u8]| below(root.path(), lead);
        assert_eq!(below(b"data/./git"), Some(b"data/git".to_vec()));
        assert_eq!(below(inside.as_os_str().as_bytes()), Some(b"data/git".to_vec()));
        for lead in [&b"../x"[..], b"a/../../x", b"/x", b"", b"."] {
            assert_eq!(below(lead), None, "{}", name_of(lead));
        }
    }
}

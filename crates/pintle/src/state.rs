//! The state folder, kept from other users of the machine.
//!
//! An index holds paths and names out of files that only their owner may read. So what Pintle keeps in the state folder
//! is readable by nobody else: folders 0700, files 0600. What an earlier version left open is corrected at the start.
//!
//! The state folder itself may be one that the user has for other things as well, such as the home folder. It is
//! corrected only where it holds nothing but what Pintle put there. Links are not followed below it, and a file with
//! several hard links is left as it is: its other names may have nothing to do with Pintle.

use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat},
    io::Errno,
    process::geteuid,
};
use thiserror::Error;

use crate::notices;

/// What Pintle puts into the state folder.
const OWN: [&str; 2] = ["index", "packs"];

/// How deep the folders go: one for each root, with one for what a build only needs meanwhile.
const DEPTH: usize = 3;

const FOLDER: Mode = Mode::RWXU;
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Why a state folder is refused.
#[derive(Debug, Error)]
pub enum StateError {
    /// The tools could read and change what is in it.
    #[error(
        "the state folder {} lies inside the root {}, where the tools could change it; name one outside with \
         --state-dir (PINTLE_STATE_DIR), or choose a smaller --root",
        folder.display(),
        root.display()
    )]
    InsideRoot { folder: PathBuf, root: PathBuf },
    /// It cannot be kept from other users.
    #[error(
        "the state folder {} {problem}; name a folder of your own with --state-dir (PINTLE_STATE_DIR)",
        folder.display()
    )]
    Unprotected { folder: PathBuf, problem: Unprotected },
}

/// Why a state folder cannot be kept from other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unprotected {
    #[error("is not a folder")]
    NotAFolder,
    #[error("cannot be opened ({0})")]
    NotOpened(Errno),
    #[error("cannot be looked at")]
    NotSeen,
    #[error("belongs to another user")]
    OfAnotherUser,
    #[error("has a folder `{0}` that belongs to another user")]
    PartOfAnotherUser(&'static str),
    #[error("has something named `{0}` that is not a folder")]
    PartNotAFolder(&'static str),
    #[error("has a folder `{0}` that cannot be opened ({1})")]
    PartNotOpened(&'static str, Errno),
}

/// Takes other users' access to what lies in the state folder. A folder that is not there yet is made by whoever writes
/// to it first.
pub fn protect(state_dir: &Path) -> Result<(), StateError> {
    let refuse =
        |problem: Unprotected| Err(StateError::Unprotected { folder: state_dir.to_owned(), problem });
    // The user may have put a link here, to keep the state on another disk.
    let folder = match open_folder(CWD, state_dir.as_os_str(), OFlags::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR) => return refuse(Unprotected::NotAFolder),
        Err(error) => return refuse(Unprotected::NotOpened(error)),
    };
    let Ok(about) = fstat(&folder) else { return refuse(Unprotected::NotSeen) };
    if about.st_uid != geteuid().as_raw() && about.st_uid != 0 {
        return refuse(Unprotected::OfAnotherUser);
    }
    let mut failure = None;
    for name in OWN {
        match open_folder(&folder, OsStr::new(name), OFlags::NOFOLLOW) {
            Ok(own) => match fstat(&own) {
                Ok(about) if is_ours(&about) => failure = correct(&own, &about, DEPTH).or(failure),
                _ => return refuse(Unprotected::PartOfAnotherUser(name)),
            },
            Err(Errno::NOENT) => {}
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return refuse(Unprotected::PartNotAFolder(name));
            }
            Err(error) => return refuse(Unprotected::PartNotOpened(name, error)),
        }
    }
    if is_ours(&about) && holds_only_ours(&folder) {
        failure = narrow(&folder, &about, FOLDER).or(failure);
    }
    if let Some(error) = failure {
        notices::warning(&format!(
            "other users may be able to read the state folder {}: its mode cannot be changed ({error}); \
             name one on another file system with --state-dir (PINTLE_STATE_DIR)",
            state_dir.display()
        ));
    }
    Ok(())
}

/// Corrects a folder and all in it. The folder itself comes last: one that is right was corrected to the end, or made
/// so, and nobody else reaches what is in it. So where there is nothing to correct, nothing more is looked at.
fn correct(folder: &OwnedFd, about: &Stat, depth: usize) -> Option<Errno> {
    if permissions(about) == FOLDER {
        return None;
    }
    let mut failure = None;
    let entries = if depth > 0 { Dir::read_from(folder) } else { return narrow(folder, about, FOLDER) };
    for entry in entries.into_iter().flatten().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        // Neither a link is followed nor a pipe waited for. What vanishes meanwhile needs no correction.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(opened) = openat(folder, name, flags, Mode::empty()) else { continue };
        let Ok(about) = fstat(&opened) else { continue };
        failure = match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory if is_ours(&about) => correct(&opened, &about, depth - 1),
            FileType::RegularFile if is_ours(&about) && about.st_nlink == 1 => narrow(&opened, &about, FILE),
            _ => None,
        }
        .or(failure);
    }
    narrow(folder, about, FOLDER).or(failure)
}

fn narrow(file: &OwnedFd, about: &Stat, mode: Mode) -> Option<Errno> {
    if permissions(about) == mode { None } else { fchmod(file, mode).err() }
}

fn permissions(about: &Stat) -> Mode {
    Mode::from_raw_mode(about.st_mode)
}

fn is_ours(about: &Stat) -> bool {
    about.st_uid == geteuid().as_raw()
}

/// Whether all that lies in the state folder was put there by Pintle.
fn holds_only_ours(folder: &OwnedFd) -> bool {
    let Ok(entries) = Dir::read_from(folder) else { return false };
    let mut names = entries.map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
    let is_ours = |name: &[u8]| [".", ".."].iter().chain(&OWN).any(|own| own.as_bytes() == name);
    names.all(|name| name.is_ok_and(|name| is_ours(&name)))
}

fn open_folder(at: impl AsFd, path: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

//! Folders in which packs are prepared, beside the installed ones. Their names begin with a dot, which no pack's does.
//!
//! The owner of a staging folder holds a lock on it (`flock`), which the system releases when the owner ends, however it
//! ends. So whoever gets the lock of a folder knows that nobody uses it any more, and removes it.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use pintle_contract::Fault;

use crate::{Limits, Spool, error::not_stored, tree};

const PREFIX: &str = ".staging-";

/// A staging folder. It is removed, with all that is in it, when this is dropped.
pub struct Staging {
    folder: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Staging {
    /// Makes a staging folder in the folder of packs.
    pub(crate) fn create(packs: &Path) -> Result<Self, Fault> {
        Self::try_create(packs).map_err(|error| not_stored("no pack can be prepared", &error))
    }

    fn try_create(packs: &Path) -> io::Result<Self> {
        tree::create_folders(packs)?;
        loop {
            let folder = packs.join(format!("{PREFIX}{}", random_name()?));
            tree::create_folder(&folder)?;
            if let Some(staging) = Self::lock(folder)? {
                return Ok(staging);
            }
        }
    }

    /// Takes the lock of a new folder. None if somebody took the folder for a left-over and removed it meanwhile.
    fn lock(folder: PathBuf) -> io::Result<Option<Self>> {
        let lock = match File::open(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        lock.lock()?;
        let (locked, there) = (lock.metadata()?, fs::symlink_metadata(&folder));
        let is_same = there.is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()));
        Ok(is_same.then_some(Self { folder, _lock: lock }))
    }

    /// A file in it for an archive.
    pub fn spool(&self) -> Result<Spool, Fault> {
        let file = tree::create_file(&self.folder.join("archive"));
        let file = file.map_err(|error| not_stored("the archive cannot be stored", &error))?;
        Ok(Spool::new(file, Limits::PACK))
    }

    /// The pack that is prepared in it, or the one that was taken out of use.
    pub(crate) fn pack(&self) -> PathBuf {
        self.folder.join("pack")
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is removed by the next command.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the staging folders whose owners have ended.
pub(crate) fn remove_left_over(packs: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(packs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = match File::open(entry.path()) {
            // Somebody else removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        match lock.try_lock() {
            Ok(()) => match fs::remove_dir_all(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(base16ct::lower::encode_string(&bytes))
}

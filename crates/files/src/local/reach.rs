//! Reaching what is to be changed, and locking the folder that it lies in.

use std::os::fd::OwnedFd;

use pintle_auth::Verb;
use pintle_contract::WorkspacePath;
use rustix::fs::{Mode, OFlags};

use super::{LocalFolder, lock::Lock, problem, regular, source::OpenFile, temporary};
use crate::store::{StoreError, Terms};

/// How often a place is looked for anew when it changes while it is being reached.
pub(super) const TRIES: usize = 16;

/// A file that is about to be changed.
pub(super) struct Reached {
    /// The name that is changed, without links.
    pub(super) place: WorkspacePath,
    /// Its last part.
    pub(super) name: String,
    /// The folder that the name lies in.
    pub(super) lock: Lock,
    /// The file, with its content.
    pub(super) source: OpenFile,
    /// Whether the name is that of a link to the file.
    pub(super) is_link: bool,
}

impl Reached {
    /// The folder that the name lies in, without links.
    pub(super) fn folder(&self) -> Option<WorkspacePath> {
        self.place.split_last().map(|(folder, _)| folder)
    }
}

impl LocalFolder {
    /// Reaches the file that a path leads to, through all links.
    pub(super) fn reach_file(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            let place = self.root.find_file(path)?;
            may_write(&place.path, terms)?;
            let Some(folder) = self.root.open_folder_of(&place)? else { continue };
            let lock = Lock::take(folder, terms.has_ended)?;
            temporary::sweep(&lock);
            // Somebody may have moved it before the lock was there.
            match open_by_name(&lock, &place.name) {
                Ok(source) => {
                    return Ok(Reached { place: place.path, name: place.name, lock, source, is_link: false });
                }
                Err(StoreError::NotFound | StoreError::Escapes) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::NotFound)
    }

    /// Reaches a name, which may be that of a link.
    pub(super) fn reach_name(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        if temporary::is_temporary(name) {
            return Err(StoreError::NotFound);
        }
        let (folder, real) = self.root.open_folder(&folder).map_err(on_the_way)?;
        let place = real.join(name).ok_or(StoreError::NotFound)?;
        may_write(&place, terms)?;
        let lock = Lock::take(folder, terms.has_ended)?;
        temporary::sweep(&lock);
        let (source, is_link) = match open_by_name(&lock, name) {
            Ok(source) => (source, false),
            // That is how the system says that it is a link.
            Err(StoreError::Escapes) => {
                let (file, real) = self.root.open_file(&place)?;
                may_write(&real, terms)?;
                (OpenFile::new(file)?, true)
            }
            Err(error) => return Err(error),
        };
        Ok(Reached { place, name: name.to_owned(), lock, source, is_link })
    }

    /// Reaches a place where something is to be put: the folder, which is made if it is missing, and the path
    /// without links. `check` is asked of that path before anything is made.
    pub(super) fn reach_new<'a>(
        &self,
        path: &'a WorkspacePath,
        terms: &Terms<'_>,
        check: &dyn Fn(&WorkspacePath) -> Result<(), StoreError>,
    ) -> Result<(OwnedFd, &'a str), StoreError> {
        let (folder, name) = path.split_last().ok_or(StoreError::Exists)?;
        if temporary::is_temporary(name) {
            return Err(StoreError::Reserved);
        }
        for _ in 0..TRIES {
            let planned = self.root.place_of_folder(&folder).map_err(on_the_way)?;
            let place = planned.join(name).ok_or(StoreError::Reserved)?;
            may_write(&place, terms)?;
            check(&place)?;
            let (opened, real) =
                self.root.make_folders(&folder, &|place| may_write(place, terms), self.durability)?;
            if real == planned {
                return Ok((opened, name));
            }
        }
        Err(StoreError::NotFound)
    }
}

/// What is wrong with a folder, for those who asked for something in it.
fn on_the_way(error: StoreError) -> StoreError {
    match error {
        StoreError::IsFile => StoreError::NotFolder,
        error => error,
    }
}

/// Whether a place may be changed by whoever asks, and at all.
fn may_write(place: &WorkspacePath, terms: &Terms<'_>) -> Result<(), StoreError> {
    (terms.permit)(Verb::Write, place)?;
    Ok(terms.rules.may_change(place)?)
}

/// Opens a regular file by its name in a folder, following nothing.
fn open_by_name(folder: &Lock, name: &str) -> Result<OpenFile, StoreError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(problem)?;
    Ok(OpenFile::new(regular(file)?)?)
}

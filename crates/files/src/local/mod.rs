//! A folder on this machine as a store.
//!
//! The folder is held open, and everything below it is reached through that handle: the kernel resolves each
//! path and refuses to leave. No path is ever put together as text and opened again by its name from outside.
//!
//! A file is changed by writing a **temporary file** beside it and renaming it into place. Writers lock the
//! folder that holds the file, so that of two who expect the same version one wins, also between processes.

mod folder;
mod lock;
mod place;
mod root;
mod temporary;

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
    path::Path,
};

use pintle_auth::Verb;
use pintle_contract::WorkspacePath;
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

use self::{lock::Lock, place::Place, root::Root, temporary::Temporary};
use crate::{
    hash::{Hash, Hasher},
    store::{Entry, Plan, Source, Splice, Store, StoreError, Terms},
};

/// How much is read and written at a time.
const CHUNK: usize = 1 << 20;
/// The largest file that rules are applied to.
const JUDGED: u64 = 64 << 20;
/// How often a place is looked for anew when it changes while it is being reached.
const TRIES: usize = 16;

/// A folder on this machine.
pub struct LocalFolder {
    root: Root,
}

impl LocalFolder {
    /// Opens the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { root: Root::open(path)? })
    }

    /// Opens the folder in the way that works without the kernel's help.
    pub fn open_portably(path: &Path) -> io::Result<Self> {
        Ok(Self { root: Root::open_portably(path)? })
    }

    /// Reaches a file that is to be changed, and locks the folder that it lies in.
    fn reach(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            let place = self.root.find_file(path)?;
            (terms.permit)(Verb::Write, &place.path)?;
            terms.rules.may_change(&place.path)?;
            let Some(folder) = self.root.open_folder_of(&place)? else { continue };
            let lock = Lock::take(folder, terms.has_ended)?;
            temporary::sweep(&lock);
            // Somebody may have moved it before the lock was there.
            match open_file(&lock, &place.name) {
                Ok(file) => return Ok(Reached { place, lock, file }),
                Err(StoreError::NotFound | StoreError::Escapes) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::NotFound)
    }
}

/// A file that is about to be changed.
struct Reached {
    place: Place,
    lock: Lock,
    file: File,
}

impl Reached {
    fn source(&self) -> io::Result<LocalSource<'_>> {
        Ok(LocalSource { size: self.file.metadata()?.len(), file: &self.file })
    }

    /// The version that the file has now.
    fn check(&self, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError> {
        let source = self.source()?;
        let mut hasher = Hasher::default();
        copy(&source, 0, source.size, terms, |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        let found = hasher.finish();
        if found == expected { Ok(()) } else { Err(StoreError::Stale(found)) }
    }
}

impl Store for LocalFolder {
    fn open(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Box<dyn Source>, StoreError> {
        let (file, real) = self.root.open_file(path)?;
        (terms.permit)(Verb::Read, &real)?;
        let size = file.metadata()?.len();
        Ok(Box::new(OwnedSource { file, size }))
    }

    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError> {
        let (folder, name) = path.split_last().ok_or(StoreError::Exists)?;
        if temporary::is_temporary(name) {
            return Err(StoreError::Reserved);
        }
        let (folder, real) = self.root.make_folders(&folder, &|place| {
            (terms.permit)(Verb::Write, place)?;
            terms.rules.may_change(place)?;
            Ok(())
        })?;
        let real = real.join(name).ok_or(StoreError::Reserved)?;
        (terms.permit)(Verb::Write, &real)?;
        terms.rules.may_change(&real)?;
        if terms.rules.apply_to(&real) {
            terms.rules.judge(&real, None, content)?;
        }
        let lock = Lock::take(folder, terms.has_ended)?;
        temporary::sweep(&lock);
        if rustix::fs::statat(&lock, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(StoreError::Exists);
        }
        let mut temporary = Temporary::create(&lock, Mode::from_raw_mode(0o666))?;
        temporary.write(content)?;
        temporary.put(name, RenameFlags::NOREPLACE)?;
        Ok(Hash::of(content))
    }

    fn swap(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let reached = self.reach(path, terms)?;
        let before = reached.file.metadata()?;
        let source = reached.source()?;
        let Plan { found, change } = plan(&source)?;
        if found != expected {
            return Err(StoreError::Stale(found));
        }
        let splice = change?;
        let mut temporary = Temporary::like(&reached.lock, &before)?;
        let hash = write_spliced(&source, &splice, &mut temporary, terms)?;
        if terms.rules.apply_to(&reached.place.path) {
            judge(&reached, &source, &temporary, terms)?;
        }
        // Programs that know nothing of the lock may have written in between.
        let after = reached.file.metadata()?;
        if !same_content(&before, &after) {
            reached.check(expected, terms)?;
        }
        temporary.put(&reached.place.name, RenameFlags::empty())?;
        Ok(hash)
    }

    fn remove(&self, path: &WorkspacePath, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError> {
        let reached = self.reach(path, terms)?;
        reached.check(expected, terms)?;
        // What was asked to be removed is the name: a link goes, not what it leads to.
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let (folder, real) = self.root.open_folder(&folder)?;
        (terms.permit)(Verb::Write, &real.join(name).ok_or(StoreError::NotFound)?)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(problem)?;
        rustix::fs::fsync(&folder).map_err(problem)
    }

    fn rename(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let (to_folder, to_name) = to.split_last().ok_or(StoreError::Exists)?;
        if temporary::is_temporary(to_name) {
            return Err(StoreError::Reserved);
        }
        let reached = self.reach(path, terms)?;
        reached.check(expected, terms)?;
        let (from_folder, from_name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let (from_folder, from_real) = self.root.open_folder(&from_folder)?;
        (terms.permit)(Verb::Write, &from_real.join(from_name).ok_or(StoreError::NotFound)?)?;
        let (to_folder, to_real) = self.root.make_folders(&to_folder, &|place| {
            (terms.permit)(Verb::Write, place)?;
            terms.rules.may_change(place)?;
            Ok(())
        })?;
        let to_real = to_real.join(to_name).ok_or(StoreError::Reserved)?;
        (terms.permit)(Verb::Write, &to_real)?;
        terms.rules.may_change(&to_real)?;
        if terms.rules.apply_to(&to_real) {
            let content = whole(&reached.source()?, terms)?;
            terms.rules.judge(&to_real, None, &content)?;
        }
        rustix::fs::renameat_with(&from_folder, from_name, &to_folder, to_name, RenameFlags::NOREPLACE)
            .map_err(problem)?;
        rustix::fs::fsync(&to_folder).map_err(problem)?;
        rustix::fs::fsync(&from_folder).map_err(problem)
    }

    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError> {
        let (folder, real) = self.root.open_folder(path)?;
        (terms.permit)(Verb::Read, &real)?;
        if let Some(lock) = Lock::try_take(&folder) {
            temporary::sweep(&lock);
        }
        folder::entries(&self.root, &folder, &real, terms)
    }
}

/// Writes what a splice makes of a source, and gives its hash.
fn write_spliced(
    source: &LocalSource<'_>,
    splice: &Splice,
    temporary: &mut Temporary<'_>,
    terms: &Terms<'_>,
) -> Result<Hash, StoreError> {
    let mut hasher = Hasher::default();
    let mut write = |bytes: &[u8]| {
        hasher.update(bytes);
        temporary.write(bytes)
    };
    copy(source, 0, splice.start, terms, &mut write)?;
    write(&splice.inserted)?;
    let rest = splice.start + splice.removed;
    copy(source, rest, source.size.saturating_sub(rest), terms, &mut write)?;
    Ok(hasher.finish())
}

fn judge(
    reached: &Reached,
    before: &LocalSource<'_>,
    temporary: &Temporary<'_>,
    terms: &Terms<'_>,
) -> Result<(), StoreError> {
    let after = temporary.read_back(JUDGED)?;
    let before = whole(before, terms)?;
    Ok(terms.rules.judge(&reached.place.path, Some(&before), &after)?)
}

fn whole(source: &LocalSource<'_>, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
    if source.size > JUDGED {
        return Err(io::Error::from(Errno::FBIG).into());
    }
    let mut content = Vec::new();
    copy(source, 0, source.size, terms, |bytes| {
        content.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(content)
}

/// Hands on a part of a source, piece by piece.
fn copy(
    source: &dyn Source,
    start: u64,
    length: u64,
    terms: &Terms<'_>,
    mut take: impl FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut buffer = vec![0; CHUNK.min(usize::try_from(length).unwrap_or(CHUNK))];
    let (mut place, end) = (start, start + length);
    while place < end {
        if (terms.has_ended)() {
            return Err(StoreError::Ended);
        }
        let wanted = usize::try_from(end - place).unwrap_or(CHUNK).min(buffer.len());
        let count = source.read_at(place, &mut buffer[..wanted])?;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        take(&buffer[..count])?;
        place += count as u64;
    }
    Ok(())
}

struct LocalSource<'a> {
    file: &'a File,
    size: u64,
}

struct OwnedSource {
    file: File,
    size: u64,
}

impl Source for LocalSource<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, place: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, place)
    }
}

impl Source for OwnedSource {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, place: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, place)
    }
}

/// Opens a regular file by its name in a folder, following nothing.
fn open_file(folder: &Lock, name: &str) -> Result<File, StoreError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(problem)?;
    regular(file)
}

/// A descriptor as a file, if it is a regular one.
fn regular(file: OwnedFd) -> Result<File, StoreError> {
    match kind_of(&file)? {
        FileType::RegularFile => Ok(file.into()),
        FileType::Directory => Err(StoreError::IsFolder),
        _ => Err(StoreError::Special),
    }
}

fn kind_of(file: &OwnedFd) -> Result<FileType, StoreError> {
    let stat = rustix::fs::fstat(file).map_err(problem)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn same_content(before: &std::fs::Metadata, after: &std::fs::Metadata) -> bool {
    before.len() == after.len() && before.modified().ok() == after.modified().ok()
}

/// What the system's refusals mean.
fn problem(error: Errno) -> StoreError {
    match error {
        Errno::NOENT => StoreError::NotFound,
        Errno::NOTDIR => StoreError::NotFolder,
        Errno::ISDIR => StoreError::IsFolder,
        Errno::EXIST => StoreError::Exists,
        Errno::XDEV | Errno::LOOP => StoreError::Escapes,
        Errno::NXIO | Errno::NODEV => StoreError::Special,
        error => StoreError::Io(error.into()),
    }
}

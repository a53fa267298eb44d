//! The folder that the tools see as `/`, and the one way to reach what is below it.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use pintle_contract::WorkspacePath;
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::{Durability, problem, temporary};
use crate::store::StoreError;

/// The root, held open.
pub(super) struct Root {
    folder: OwnedFd,
    /// Set where the kernel does not resolve paths beneath a folder by itself.
    portable: Option<Dir>,
}

/// The folders that were made for a change, which go again unless it happens.
#[derive(Default)]
pub(super) struct MadeFolders(Vec<(OwnedFd, String)>);

impl MadeFolders {
    /// The change has happened.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // One that somebody else uses by now stays.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens whatever it is without waiting for anything and without becoming its terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::openat(CWD, path, FOLDER, Mode::empty())?;
        // Old kernels do not know the call, and some sandboxes forbid it.
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&folder, ".", FOLDER, Mode::empty(), beneath) {
            Ok(_) => Ok(Self { folder, portable: None }),
            Err(Errno::NOSYS | Errno::PERM) => Self::open_portably(path),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn open_portably(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::openat(CWD, path, FOLDER, Mode::empty())?;
        let dir = Dir::from_std_file(File::from(folder.try_clone()?));
        Ok(Self { folder, portable: Some(dir) })
    }

    /// Opens whatever it is, and tells where it really is.
    pub(super) fn open_any(&self, path: &WorkspacePath) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        self.open_with_place(path, READ)
    }

    /// Opens a folder, and tells where it really is.
    pub(super) fn open_folder(&self, path: &WorkspacePath) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        self.open_with_place(path, FOLDER)
    }

    /// Opens whatever it is, and tells where it really is, if no link is on the way and the system knows the way by
    /// heart.
    pub(super) fn open_known(&self, path: &WorkspacePath) -> Option<(OwnedFd, WorkspacePath)> {
        let is_plain = self.portable.is_none() && !path.is_root() && !is_reserved(path);
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
        let opened = is_plain.then(|| self.resolve(path, READ, resolve))?.ok()?;
        Some((opened, path.clone()))
    }

    fn open_with_place(
        &self,
        path: &WorkspacePath,
        flags: OFlags,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        refuse_reserved(path)?;
        if self.portable.is_none() {
            // Most paths have no link on their way, and lead to where they say.
            match self.resolve(path, flags, ResolveFlags::NO_SYMLINKS) {
                Ok(opened) => return Ok((opened, path.clone())),
                Err(Errno::LOOP | Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(problem(error)),
            }
        }
        let opened = self.open_beneath(path, flags)?;
        let real = self.real_path(&opened, path)?;
        Ok((opened, real))
    }

    /// Where a folder is, or will be once it is made.
    pub(super) fn place_of_folder(&self, path: &WorkspacePath) -> Result<WorkspacePath, StoreError> {
        match self.open_folder(path) {
            Ok((_, real)) => Ok(real),
            Err(StoreError::NotFound) => {
                let (parent, name) = path.split_last().ok_or(StoreError::NotFound)?;
                self.place_of_folder(&parent)?.join(name).ok_or(StoreError::NotFound)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a folder, and makes it first where it is missing; `check` is asked before each one is made.
    pub(super) fn make_folders(
        &self,
        path: &WorkspacePath,
        check: &dyn Fn(&WorkspacePath) -> Result<(), StoreError>,
        durability: Durability,
        made: &mut MadeFolders,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        match self.open_folder(path) {
            Err(StoreError::NotFound) => {}
            found => return found,
        }
        let (parent, name) = path.split_last().ok_or(StoreError::NotFound)?;
        let (parent, real) = self.make_folders(&parent, check, durability, made)?;
        check(&real.join(name).ok_or(StoreError::Reserved)?)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                made.0.push((parent.try_clone()?, name.to_owned()));
                durability.settle(&parent)?;
            }
            // Somebody else made it, or it is a link that leads nowhere: opening it will tell.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(problem(error)),
        }
        self.open_folder(path)
    }

    /// Whether a folder above the root holds a repository. Only that is asked of it: no rules come from there.
    pub(super) fn is_below_repository(&self) -> bool {
        let is_repository = |folder: &Path| [".git", ".jj"].iter().any(|name| folder.join(name).exists());
        place_of(&self.folder).is_ok_and(|root| root.ancestors().skip(1).any(is_repository))
    }

    /// What a link leads to, if that lies in the root: where, what it is, and its size.
    pub(super) fn look_at(&self, path: &WorkspacePath) -> Option<(WorkspacePath, FileType, u64)> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = match self.portable {
            None => self.open_beneath(path, flags).ok()?,
            Some(_) => self.open_beneath(path, READ).ok()?,
        };
        let stat = rustix::fs::fstat(&opened).ok()?;
        let real = self.real_path(&opened, path).ok()?;
        Some((real, FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    fn open_beneath(&self, path: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, StoreError> {
        if let Some(dir) = &self.portable {
            let text = if path.is_root() { "." } else { path.as_str() };
            return steadily(|| settled(|| open_portably(dir, text, flags), || parts(dir, path)));
        }
        steadily(|| match self.resolve(path, flags, ResolveFlags::empty()) {
            Err(Errno::AGAIN | Errno::INTR) => Err(StoreError::Unsteady),
            opened => opened.map_err(problem),
        })
    }

    fn resolve(&self, path: &WorkspacePath, flags: OFlags, more: ResolveFlags) -> Result<OwnedFd, Errno> {
        let text = if path.is_root() { "." } else { path.as_str() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | more;
        rustix::fs::openat2(&self.folder, text, flags, Mode::empty(), resolve)
    }

    /// Where something that was opened really is, below the root.
    fn real_path(&self, opened: &OwnedFd, path: &WorkspacePath) -> Result<WorkspacePath, StoreError> {
        let real = match (place_of(opened), &self.portable) {
            (Ok(place), _) => {
                let root = place_of(&self.folder).map_err(outside)?;
                // What has been moved out of the root, or removed, is no longer there.
                place.strip_prefix(&root).map(Path::to_owned).map_err(|_| StoreError::NotFound)?
            }
            (Err(_), Some(dir)) => canonical(dir, opened, path)?,
            (Err(error), None) => return Err(outside(error)),
        };
        // A link may lead to a name that is no text; then it cannot be spoken of.
        let real = real.to_str().ok_or(StoreError::Special)?;
        let real = WorkspacePath::parse(real).map_err(|_| StoreError::Special)?;
        refuse_reserved(&real)?;
        Ok(real)
    }

    /// Refuses what would lie so deep that the system could not say where it is.
    pub(super) fn refuse_too_deep(&self, place: &WorkspacePath) -> Result<(), StoreError> {
        const LONGEST: usize = 4096;
        let root = place_of(&self.folder).map(|root| root.as_os_str().len()).unwrap_or_default();
        // A slash before it, and what ends the text.
        if root + place.as_str().len() + 2 > LONGEST { Err(StoreError::NameTooLong) } else { Ok(()) }
    }
}

/// Resolves a path, again and again if others move it about meanwhile.
fn steadily<T>(resolve: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    const TRIES: usize = 64;
    for _ in 1..TRIES {
        match resolve() {
            Err(StoreError::Unsteady) => {}
            resolved => return resolved,
        }
    }
    resolve()
}

/// Resolves a path part by part. Where a part is a folder at one look and a link at the next, a single look may find
/// something that was never there: it counts only if every look finds it, and `stamp` says that nothing has changed.
fn settled<T, S: PartialEq>(
    resolve: impl Fn() -> Result<T, StoreError>,
    stamp: impl Fn() -> S,
) -> Result<T, StoreError> {
    /// So many looks that find the same are enough.
    const SAME: usize = 24;
    const LOOKS: usize = 256;
    let before = stamp();
    let mut is_steady = true;
    for look in 1..=LOOKS {
        let error = match resolve() {
            Err(error @ (StoreError::NotFolder | StoreError::Special)) => error,
            resolved => return resolved,
        };
        is_steady &= stamp() == before;
        if is_steady && look >= SAME {
            return Err(error);
        }
    }
    Err(StoreError::Unsteady)
}

/// What each part of a path is, without following the last link of each: this changes when a part is replaced.
fn parts(dir: &Dir, path: &WorkspacePath) -> Vec<Option<(u64, u64)>> {
    let text = path.as_str().trim_start_matches('/');
    let ends = text.match_indices('/').map(|(end, _)| end).chain([text.len()]);
    let part = |end: usize| {
        let found = dir.symlink_metadata(&text[..end]).ok()?;
        Some((found.dev(), found.ino()))
    };
    ends.map(part).collect()
}

fn place_of(opened: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// The place of something that was opened, where the system does not tell: the path is followed once more, and what is
/// there has to be the same thing.
fn canonical(dir: &Dir, opened: &OwnedFd, path: &WorkspacePath) -> Result<PathBuf, StoreError> {
    let text = if path.is_root() { "." } else { path.as_str() };
    let place = steadily(|| dir.canonicalize(text).map_err(outside))?;
    let there = rustix::fs::statat(dir, &place, AtFlags::SYMLINK_NOFOLLOW).map_err(problem)?;
    let own = rustix::fs::fstat(opened).map_err(problem)?;
    let is_same = (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino);
    if is_same { Ok(place) } else { Err(StoreError::NotFound) }
}

/// What the refusals of the system, and of the crate that stands in for it, mean.
fn outside(error: io::Error) -> StoreError {
    match error.raw_os_error() {
        Some(code) => match Errno::from_raw_os_error(code) {
            // The crate found a link, and something else when it read where the link leads.
            Errno::INVAL | Errno::AGAIN | Errno::INTR => StoreError::Unsteady,
            error => problem(error),
        },
        // The crate's own word for a path that leaves.
        None if error.kind() == io::ErrorKind::PermissionDenied => StoreError::Escapes,
        None if error.kind() == io::ErrorKind::InvalidInput => StoreError::Unsteady,
        None => StoreError::Io(error),
    }
}

fn open_portably(dir: &Dir, text: &str, flags: OFlags) -> Result<OwnedFd, StoreError> {
    if flags.contains(OFlags::DIRECTORY) {
        // What the crate gives can only be a starting point; it is to be read and locked, too.
        let found = dir.open_dir(text).map_err(outside)?;
        return rustix::fs::openat(&found, ".", FOLDER, Mode::empty()).map_err(problem);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = dir.open_with(text, OpenOptions::new().read(true).custom_flags(flags)).map_err(outside)?;
    Ok(file.into_std().into())
}

fn refuse_reserved(path: &WorkspacePath) -> Result<(), StoreError> {
    if is_reserved(path) { Err(StoreError::NotFound) } else { Ok(()) }
}

/// Whether a name on the way is kept for temporary files.
pub(super) fn is_reserved(path: &WorkspacePath) -> bool {
    path.as_str().split('/').any(temporary::is_temporary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Resolves what is no folder until the `good`th look, while parts change until the `steady`th; gives whether it was
    /// found, the error, and how often it was looked.
    fn resolve(good: usize, steady: usize) -> (Option<StoreError>, usize) {
        let (looks, stamps) = (Cell::new(0), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            if looks.get() >= good { Ok(()) } else { Err(StoreError::NotFolder) }
        };
        let stamp = || {
            stamps.set(stamps.get() + 1);
            stamps.get().min(steady)
        };
        (settled(look, stamp).err(), looks.get())
    }

    #[test]
    fn a_part_that_is_a_link_at_one_look_and_a_folder_at_the_next_is_looked_at_again() {
        assert!(matches!(resolve(1, 1), (None, 1)));
        assert!(matches!(resolve(4, 1), (None, 4)));
        // As long as something changes, what was found may never have been there.
        assert!(matches!(resolve(100, usize::MAX), (None, 100)));
        assert!(matches!(resolve(usize::MAX, usize::MAX), (Some(StoreError::Unsteady), _)));
        // What is no folder each time, while nothing changes, is none.
        assert!(matches!(resolve(usize::MAX, 1), (Some(StoreError::NotFolder), 24)));
    }
}

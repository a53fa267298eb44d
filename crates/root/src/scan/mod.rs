//! What an index needs of a root: its files with their stamps, a version of one of them to be read, and what has
//! changed.
//!
//! All of it stands in the methods of [`Root`] below and of [`Watcher`], and none of them takes or returns a handle of
//! the root. Paths are bytes, relative to the root, with `/` between names: a file whose name is no text is indexed as
//! well. No link is followed, as in ripgrep: a path that leads through one by now names something else. Stamps have no
//! device, so that an index can keep them.

mod passed_over;
mod walk;
mod watcher;
mod within;

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

pub use self::{
    passed_over::{Passed, PassedOver},
    walk::{FoundFile, Listing, Walk, is_rule},
    watcher::{Events, Watcher},
    within::Within,
};
use crate::{beneath::READ, root::Root, stamp::Stamp};

/// A version of a file, open to be read.
pub struct OpenVersion {
    /// The file.
    pub file: File,
    /// What it was when it was opened.
    pub stamp: Stamp,
}

impl OpenVersion {
    /// The stamp that the file has by now.
    pub fn stamp_now(&self) -> io::Result<Stamp> {
        Stamp::of_file(&self.file).map(Stamp::without_device)
    }

    /// Whether the file still is what it was when it was opened.
    pub fn is_unchanged(&self) -> bool {
        self.stamp_now().is_ok_and(|now| now == self.stamp)
    }
}

impl Root {
    /// Walks the root for its files and their stamps. `within` narrows it to some files and folders. `enter` is called
    /// for each folder before it is read, and `found` with the size of each file. An error of kind `Interrupted` says
    /// that `has_ended` did.
    pub fn walk(
        &self,
        within: Option<&Within>,
        threads: usize,
        enter: &(dyn Fn(&[u8]) + Sync),
        found: &(dyn Fn(u64) + Sync),
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Walk> {
        let threads = if within.is_some() { 1 } else { threads };
        let stamp = |path: &Path| {
            let stamp = Stamp::of_path(path).ok().flatten()?.without_device();
            found(stamp.size);
            Some(stamp)
        };
        let (files, folders) = walk::visit(self.path(), within, threads, enter, &stamp, has_ended)?;
        let files = files.into_iter().map(|(path, stamp)| FoundFile { path, stamp }).collect();
        Ok(Walk { files, folders })
    }

    /// Walks the root, or some files and folders in it, for the paths of files alone.
    pub fn list(
        &self,
        within: Option<Within>,
        threads: usize,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Listing> {
        let (files, folders) =
            walk::visit(self.path(), within.as_ref(), threads, &|_| {}, &|_| Some(()), has_ended)?;
        Ok(Listing { files: files.into_iter().map(|(path, ())| path).collect(), folders, within })
    }

    /// Counts what a walk did not yield, folder by folder.
    pub fn passed_over(&self, walk: &Walk, has_ended: &dyn Fn() -> bool) -> PassedOver {
        let found = walk.files.iter().map(|file| file.path.as_slice()).collect();
        passed_over::count(self.path(), &found, walk.folders.clone(), has_ended)
    }

    /// Counts what a walk for paths did not yield, folder by folder.
    pub fn passed_over_by(&self, listing: &Listing, has_ended: &dyn Fn() -> bool) -> PassedOver {
        let found = listing.files.iter().map(Vec::as_slice).collect();
        // On the way to what the walk was narrowed to, other things were passed by.
        let is_covered =
            |folder: &&Vec<u8>| listing.within.as_ref().is_none_or(|within| within.covers(folder));
        let folders = listing.folders.iter().filter(is_covered).cloned().collect();
        passed_over::count(self.path(), &found, folders, has_ended)
    }

    /// Opens a regular file. An error of kind `NotFound` says that there is none at that path any more.
    pub fn open_version(&self, path: &[u8]) -> io::Result<OpenVersion> {
        // A link, a folder or something else may have its name by now, or the name of a folder on its way.
        let opened = self.directory.open_without_links(path, READ).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO => Errno::NOENT,
            error => error,
        })?;
        let file = File::from(opened);
        let stamp = match Stamp::of_file(&file) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(io::ErrorKind::NotFound.into()),
            stamp => stamp.map(Stamp::without_device),
        }?;
        Ok(OpenVersion { file, stamp })
    }

    /// The stamp of what stands at a path; `None` if that is not a regular file. An error if nothing is there.
    pub fn stamp_of(&self, path: &[u8]) -> io::Result<Option<Stamp>> {
        Ok(Stamp::of_path(&absolute(self.path(), path))?.map(Stamp::without_device))
    }

    /// A watcher of folders of this root, which watches none yet.
    pub fn watcher(&self) -> io::Result<Watcher> {
        Watcher::new(self.path())
    }
}

/// A path below the root as the system takes it.
fn absolute(root: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { root.to_owned() } else { root.join(OsStr::from_bytes(path)) }
}

/// The path of a name in a folder.
fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_longer_one_is_not_found_and_one_that_changes_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "one").expect("writes");
        std::fs::create_dir(folder.path().join("folder")).expect("made");
        std::os::unix::fs::symlink("file", folder.path().join("link")).expect("linked");
        for open in [Root::open, Root::open_portably] {
            let root = open(folder.path()).expect("opens");
            for path in ["none", "folder", "link", "file/none", "../file"] {
                let kind = root.open_version(path.as_bytes()).map(drop).map_err(|error| error.kind());
                assert_eq!(kind, Err(io::ErrorKind::NotFound), "{path}");
            }
            let version = root.open_version(b"file").expect("opens");
            assert_eq!(root.stamp_of(b"file").expect("there"), Some(version.stamp));
            assert_eq!(root.stamp_of(b"link").expect("there"), None);
            assert!(version.is_unchanged());
            std::fs::write(folder.path().join("file"), "one and two").expect("writes");
            assert!(!version.is_unchanged());
            std::fs::write(folder.path().join("file"), "one").expect("writes");
        }
    }
}

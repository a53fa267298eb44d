//! What has changed, by the kernel's events: inotify.
//!
//! One watch for each folder that a walk enters, so what is ignored costs nothing. Opening a file is no event: a
//! search that opens thousands must not flood the queue. Nobody waits for events: they are taken when a search needs
//! to know. If the queue has overflowed by then, the whole root is walked once.

use std::{
    collections::HashMap,
    io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::{
    fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};

use super::{absolute, joined};
use crate::root::is_reserved_name;

/// Watches the folders of a root.
pub struct Watcher {
    root: PathBuf,
    queue: OwnedFd,
    /// The folder of each watch.
    folders: Mutex<HashMap<i32, Vec<u8>>>,
}

/// What has happened since it was last asked.
#[derive(Debug, Default)]
pub struct Events {
    /// Files and folders that came, went or changed.
    pub paths: Vec<Vec<u8>>,
    /// There were more than could be kept.
    pub are_lost: bool,
}

impl Watcher {
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { root: root.to_owned(), queue, folders: Mutex::default() })
    }

    /// Watches a folder, and git's rules in it. To be called before the folder is read, so that nothing is missed in
    /// between.
    pub fn add(&self, folder: &[u8]) -> io::Result<()> {
        // The last two are folders that no walk enters.
        let mut folders =
            [folder.to_vec(), joined(folder, b".git"), joined(folder, b".git/info")].into_iter();
        folders.try_for_each(|folder| self.add_one(folder))
    }

    /// Watches a folder. One that is gone by now needs no watch.
    fn add_one(&self, folder: Vec<u8>) -> io::Result<()> {
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::EXCL_UNLINK;
        match add_watch(&self.queue, absolute(&self.root, &folder), changes) {
            Ok(watch) => {
                // A folder that was moved keeps its watch, and has another path from now on.
                self.folders.lock().insert(watch, folder);
                Ok(())
            }
            // One that may not be read shows its files to nobody; but the root may be readable again.
            Err(Errno::ACCESS) if folder.is_empty() => Err(Errno::ACCESS.into()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes all events that have happened.
    pub fn take(&self) -> io::Result<Events> {
        let mut events = Events::default();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(events),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                events.are_lost = true;
                continue;
            }
            let mut folders = self.folders.lock();
            if event.events().contains(ReadFlags::IGNORED) {
                folders.remove(&event.wd());
                continue;
            }
            let Some(folder) = folders.get(&event.wd()) else { continue };
            let Some(name) = event.file_name() else {
                // An event on a folder itself also arrives through the watch of its parent, except for the root.
                events.are_lost |= folder.is_empty();
                continue;
            };
            // What is being changed is no part of the workspace.
            if is_reserved_name(name.to_bytes()) {
                continue;
            }
            let path = joined(folder, name.to_bytes());
            // A file that is written to gives many events in a row.
            if events.paths.last() != Some(&path) {
                events.paths.push(path);
            }
        }
    }
}

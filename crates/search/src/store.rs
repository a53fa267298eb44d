//! The index on disk: a folder in the state folder, one for each root.
//!
//! All files are immutable except the **manifest**, which names the files of the current generation and is replaced
//! atomically, by a rename. Builders hold the **lock**. Readers need no lock: a file that the manifest names is
//! complete; a file that is missing when it is opened belongs to a generation that has been replaced, so the reader
//! starts again with the new manifest; and a file that is open stays readable after it was removed.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::{
    index::Index,
    plain_file::{create_private, create_private_folder, open_plain},
};
use pintle_root::Stamp;

const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";
/// The version of the format and of what the stored values mean. An index of another version is rebuilt.
const VERSION: u32 = 5;

/// The folder of one root's index.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    root: Vec<u8>,
}

/// The segments of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    root: Vec<u8>,
    pub(crate) generation: u64,
    /// In milliseconds since 1970.
    pub(crate) built_at: u64,
    /// Files over this size were not indexed.
    pub(crate) limit: u64,
    pub(crate) segments: Vec<SegmentFiles>,
}

/// The files of one segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentFiles {
    pub(crate) text: SealedFile,
    /// Words and symbols, once these phases of the build are done.
    pub(crate) words: Option<SealedFile>,
    pub(crate) names: Option<SealedFile>,
}

/// The name of an immutable file, and the seal (checksum) that identifies its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedFile {
    pub(crate) name: String,
    pub(crate) seal: u64,
}

impl Manifest {
    /// A manifest without segments.
    pub(crate) fn empty(root: Vec<u8>, limit: u64) -> Self {
        Self { version: VERSION, root, generation: 0, built_at: 0, limit, segments: Vec::new() }
    }

    /// Whether all segments have words, and whether all have symbols.
    pub(crate) fn has_ranked(&self) -> (bool, bool) {
        let all = |has: fn(&SegmentFiles) -> bool| self.segments.iter().all(has);
        (all(|parts| parts.words.is_some()), all(|parts| parts.names.is_some()))
    }
}

impl SegmentFiles {
    fn files(&self) -> impl Iterator<Item = &str> {
        [Some(&self.text), self.words.as_ref(), self.names.as_ref()]
            .into_iter()
            .flatten()
            .map(|part| part.name.as_str())
    }
}

/// A generation with all of its files open.
pub(crate) struct Generation {
    pub(crate) index: Index,
    pub(crate) manifest: Manifest,
    pub(crate) source: ManifestFile,
}

/// The file that a manifest was read from. While it is open, no other file can get its inode, so the stamp shows
/// whether the manifest was replaced, however coarse the file system's times are.
pub(crate) struct ManifestFile {
    stamp: Stamp,
    _file: File,
}

/// The exclusive right to build, released when dropped.
pub(crate) struct BuildLock(File);

impl Store {
    /// The folder for a root. Nothing is created yet.
    pub(crate) fn new(state: &Path, root: &Path) -> Self {
        let root = root.as_os_str().as_bytes().to_vec();
        let key = format!("{:032x}", xxh3_128(&root));
        Self { folder: state.join("index").join(key), root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn empty_manifest(&self, limit: u64) -> Manifest {
        Manifest::empty(self.root.clone(), limit)
    }

    /// The current manifest; `None` if there is none. An error of kind `InvalidData` means that it is torn or
    /// foreign.
    pub(crate) fn manifest(&self) -> io::Result<Option<Manifest>> {
        Ok(self.read_manifest()?.map(|(manifest, _)| manifest))
    }

    fn read_manifest(&self) -> io::Result<Option<(Manifest, ManifestFile)>> {
        let torn = || io::Error::new(io::ErrorKind::InvalidData, "the manifest is torn or foreign");
        let mut file = match open_plain(&self.path(MANIFEST), OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let stamp = Stamp::of_file(&file)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (checksum, body) = bytes.split_first_chunk::<8>().ok_or_else(torn)?;
        if *checksum != xxh3_64(body).to_le_bytes() {
            return Err(torn());
        }
        let manifest: Manifest = serde_json::from_slice(body).map_err(|_| torn())?;
        if manifest.version != VERSION || manifest.root != self.root {
            return Err(torn());
        }
        Ok(Some((manifest, ManifestFile { stamp, _file: file })))
    }

    /// Whether a manifest that was read is still the current one.
    pub(crate) fn is_current(&self, source: &ManifestFile) -> bool {
        Stamp::of_path(&self.path(MANIFEST)).is_ok_and(|stamp| stamp == Some(source.stamp))
    }

    /// Opens the current generation; `None` if there is none.
    pub(crate) fn open(&self) -> io::Result<Option<Generation>> {
        loop {
            let Some((manifest, source)) = self.read_manifest()? else { return Ok(None) };
            match Index::open(self, &manifest) {
                Ok(index) => return Ok(Some(Generation { index, manifest, source })),
                // If the manifest has changed meanwhile, another process has replaced these files: try again. If not,
                // they are damaged.
                Err(error) if is_missing_or_torn(&error) && !self.is_current(&source) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a part of the index is missing"));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a file that a manifest names.
    pub(crate) fn open_sealed(&self, part: &SealedFile) -> io::Result<Arc<File>> {
        open_plain(&self.path(&part.name), OFlags::RDONLY).map(Arc::new)
    }

    /// Takes the lock, waiting for it until `has_ended`.
    pub(crate) fn lock(&self, has_ended: &dyn Fn() -> bool) -> io::Result<BuildLock> {
        create_private_folder(&self.folder)?;
        // Another process may hold this file as its lock, so it must not be removed.
        let file =
            open_plain(&self.path(LOCK), OFlags::RDWR | OFlags::CREATE).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::InvalidData => {
                        io::Error::new(io::ErrorKind::AlreadyExists, format!("{error}; remove it"))
                    }
                    _ => error,
                }
            })?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(BuildLock(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if !has_ended() => {
                    // Another process is building. A blocking `flock` could not be interrupted, so this polls.
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::ErrorKind::Interrupted.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Publishes a manifest as the current one, and removes the files that it does not name.
    pub(crate) fn publish(&self, lock: &BuildLock, manifest: &mut Manifest) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        manifest.built_at = now.as_millis() as u64;
        let body = serde_json::to_vec(manifest)?;
        let new = self.path("manifest.new");
        let mut file = create_private(&new)?;
        file.write_all(&xxh3_64(&body).to_le_bytes())?;
        file.write_all(&body)?;
        drop(file);
        fs::rename(new, self.path(MANIFEST))?;
        self.clean(lock, Some(manifest))
    }

    /// Removes all files that a manifest does not name: older generations, and leftovers of builds that were killed.
    pub(crate) fn clean(&self, _: &BuildLock, manifest: Option<&Manifest>) -> io::Result<()> {
        let is_named = |name: &str| {
            let has = |parts: &SegmentFiles| parts.files().any(|file| file == name);
            manifest.is_some_and(|manifest| name == MANIFEST || manifest.segments.iter().any(has))
        };
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == LOCK || name.to_str().is_some_and(is_named) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// An empty folder for the temporary files of a build. The next `clean` removes it.
    pub(crate) fn scratch(&self, _: &BuildLock) -> io::Result<PathBuf> {
        let scratch = self.path("scratch");
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        create_private_folder(&scratch)?;
        Ok(scratch)
    }
}

/// Whether an error means that a file is missing or not the one that the manifest names, rather than that it could
/// not be opened or read just now.
fn is_missing_or_torn(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData)
}

impl Drop for BuildLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process may have inherited the descriptor, and would keep the lock.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

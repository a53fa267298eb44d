//! The installed packs: a folder in the state folder, with a folder for each pack.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pintle_contract::{ErrorCode, Fault, nearest};
use pintle_root::storage_failed;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    ArchiveError, Limits, Manifest, PackName, Sha256Sum, Spooled, Staging,
    archive::read,
    error::not_stored,
    layout::{EXAMPLES, Layout, SCHEMAS},
    staging::remove_left_over,
    tree,
};

/// The installed packs.
#[derive(Clone, Debug)]
pub struct Packs {
    folder: PathBuf,
}

/// What is to be installed.
pub struct Request {
    /// By which name.
    pub name: PackName,
    /// Where it came from, for the list.
    pub source: String,
    /// Whether a pack that has the name already is replaced.
    pub replace: bool,
}

/// How an installation ended.
#[derive(Debug)]
pub enum Added {
    /// The pack is new.
    Installed(Manifest),
    /// Another pack had the name.
    Replaced(Manifest),
    /// The same archive was installed by this name already, so nothing was done.
    Unchanged(Manifest),
}

impl Packs {
    /// The packs of a state folder.
    pub fn of_state(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("packs") }
    }

    /// The folder of a pack's schemas. It exists if the pack is installed.
    pub fn schemas_of(&self, name: &PackName) -> PathBuf {
        self.path(name).join(SCHEMAS)
    }

    /// The folder of a pack's examples. It exists if the pack is installed, and may be empty.
    pub fn examples_of(&self, name: &PackName) -> PathBuf {
        self.path(name).join(EXAMPLES)
    }

    /// The packs, sorted by name, and what is there besides and cannot be read.
    pub fn list(&self) -> Result<(Vec<Manifest>, Vec<String>), Fault> {
        self.clean_up()?;
        let (mut packs, mut problems) = (Vec::new(), Vec::new());
        for name in self.names()? {
            match Manifest::read(&self.path(&name)) {
                Ok(manifest) => packs.push(manifest),
                Err(error) => problems.push(format!(
                    "the pack `{name}` cannot be read: {error}; remove it with `pintle pack remove {name}`"
                )),
            }
        }
        Ok((packs, problems))
    }

    /// The names of the packs, sorted.
    pub fn names(&self) -> Result<Vec<PackName>, Fault> {
        let failed = |error: io::Error| not_stored("the packs cannot be listed", &error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse().ok()));
        }
        names.sort();
        Ok(names)
    }

    /// Makes a folder in which a pack is prepared.
    pub fn stage(&self) -> Result<Staging, Fault> {
        self.clean_up()?;
        Staging::create(&self.folder)
    }

    /// Says before anything is downloaded whether a pack can be installed: it is there already with the same archive, or
    /// there is another of its name.
    pub fn check_before(
        &self,
        request: &Request,
        sha256: Option<Sha256Sum>,
    ) -> Result<Option<Manifest>, Fault> {
        let pack = self.path(&request.name);
        if fs::symlink_metadata(&pack).is_err() {
            return Ok(None);
        }
        let same = Manifest::read(&pack)
            .ok()
            .filter(|manifest| sha256.is_some_and(|sha256| manifest.sha256 == sha256.to_string()));
        match (same, sha256, request.replace) {
            (Some(manifest), _, _) => Ok(Some(manifest)),
            // Whether the archive is the same is not known yet.
            (None, None, _) | (None, _, true) => Ok(None),
            (None, Some(_), false) => Err(exists(&request.name)),
        }
    }

    /// Checks an archive, unpacks it and installs it as one step. If that fails, nothing has changed.
    pub fn install(&self, staging: &Staging, archive: Spooled, request: Request) -> Result<Added, Fault> {
        if let Some(manifest) = self.check_before(&request, Some(archive.sha256))? {
            return Ok(Added::Unchanged(manifest));
        }
        let pack = staging.pack();
        let manifest = unpack(archive, &pack, &request)?;
        let failed = |error: io::Error| not_stored("the pack cannot be written", &error);
        manifest.write(&pack).and_then(|()| tree::sync_folders(&pack)).map_err(failed)?;
        let added = match self.put_in_place(&pack, &request).map_err(failed)? {
            None => return Err(exists(&request.name)),
            Some(false) => Added::Installed(manifest),
            Some(true) => Added::Replaced(manifest),
        };
        self.sync("installed")?;
        Ok(added)
    }

    /// Renames a pack to its name. Says whether another one was there, which has then taken the place of the new one;
    /// none if it must not be replaced.
    fn put_in_place(&self, pack: &Path, request: &Request) -> io::Result<Option<bool>> {
        let target = self.path(&request.name);
        loop {
            match renameat_with(CWD, pack, CWD, &target, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(Some(false)),
                Err(Errno::EXIST) if request.replace => {}
                Err(Errno::EXIST) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            match renameat_with(CWD, pack, CWD, &target, RenameFlags::EXCHANGE) {
                Ok(()) => return Ok(Some(true)),
                // It was removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes a pack: by one rename, so that never a part of it is left.
    pub fn remove(&self, name: &PackName) -> Result<(), Fault> {
        self.clean_up()?;
        if fs::symlink_metadata(self.path(name)).is_err() {
            return Err(self.unknown(name.as_str()));
        }
        let staging = Staging::create(&self.folder)?;
        match renameat_with(CWD, self.path(name), CWD, staging.pack(), RenameFlags::NOREPLACE) {
            Err(Errno::NOENT) => Err(self.unknown(name.as_str())),
            renamed => {
                renamed.map_err(|error| not_stored("the pack cannot be removed", &error.into()))?;
                self.sync("removed")
            }
        }
    }

    /// Writes the names of the packs to the disk, after one was changed.
    fn sync(&self, what: &str) -> Result<(), Fault> {
        // The folder of packs itself may be new, too.
        let mut folders = self.folder.ancestors().take(2);
        folders.try_for_each(tree::sync_folder).map_err(|error| {
            let message = format!("the pack is {what}, but the disk has not confirmed it: {error}");
            storage_failed(message, &error)
                .hint("check the disk; after a power failure the change may be lost")
        })
    }

    /// The fault of a pack that is not there.
    pub fn unknown(&self, name: &str) -> Fault {
        let names = self.names().unwrap_or_default();
        let hint = match (nearest(name, names.iter().map(PackName::as_str)), names.is_empty()) {
            (Some(near), _) => format!("the nearest is `{near}`"),
            (None, true) => "there are no packs; `pintle pack add FILE` installs one".into(),
            (None, false) => "`pintle pack list` shows those that there are".into(),
        };
        Fault::new(ErrorCode::NotFound, format!("there is no pack `{name}`")).hint(hint)
    }

    /// Whether a pack is installed.
    pub fn has(&self, name: &PackName) -> bool {
        self.schemas_of(name).is_dir()
    }

    fn clean_up(&self) -> Result<(), Fault> {
        remove_left_over(&self.folder)
            .map_err(|error| not_stored("what an interrupted command left cannot be removed", &error))
    }

    fn path(&self, name: &PackName) -> PathBuf {
        self.folder.join(name.as_str())
    }
}

fn exists(name: &PackName) -> Fault {
    Fault::new(ErrorCode::Conflict, format!("there is already another pack `{name}`; nothing was changed"))
        .hint("add --replace to replace it, or --name to install this one by another name")
}

/// Unpacks an archive into a new folder. It is read twice: once to check all of it, and once to write its files.
fn unpack(mut archive: Spooled, pack: &Path, request: &Request) -> Result<Manifest, Fault> {
    let mut paths = Vec::new();
    read(&mut archive.file, &Limits::PACK, &mut |path, _| {
        paths.push(path.to_owned());
        Ok(())
    })?;
    let layout = Layout::of(&paths)?;
    let mut manifest = Manifest {
        name: request.name.to_string(),
        source: request.source.clone(),
        sha256: archive.sha256.to_string(),
        added: jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string(),
        schemas: 0,
        examples: 0,
        bytes: 0,
    };
    let written = |result: io::Result<()>| result.map_err(ArchiveError::NotWritten);
    for folder in [SCHEMAS, EXAMPLES] {
        written(tree::create_folders(&pack.join(folder)))?;
    }
    read(&mut archive.file, &Limits::PACK, &mut |path, contents| {
        let Some(installed) = layout.place(path) else { return Ok(()) };
        let target = pack.join(installed.folder).join(installed.path);
        written(target.parent().map_or(Ok(()), tree::create_folders))?;
        let mut file = tree::create_file(&target).map_err(ArchiveError::NotWritten)?;
        manifest.bytes += contents.copy_to(&mut file)?;
        match installed.folder {
            SCHEMAS => manifest.schemas += 1,
            _ => manifest.examples += 1,
        }
        written(file.sync_all())
    })?;
    Ok(manifest)
}

//! The secret in the state folder, which signs local tokens, and the tokens that were revoked.
//!
//! Whoever can read the secret can make any token, so the file is made for its owner alone (0600), and a file that
//! others can read is not used. It is replaced by a rename: a server that reads it meanwhile gets the old secret or the
//! new one.

use std::{
    collections::HashSet,
    fs::OpenOptions,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use pintle_auth::{LocalSecret, SecretError};
use rustix::{
    fs::{OFlags, RenameFlags},
    io::Errno,
};
use thiserror::Error;

use crate::replace_file::replace_file;

const SECRET: &str = "secret";
const REVOKED: &str = "revoked";
const AUDIT_KEY: &str = "audit-key";
const OWNER_ONLY: u32 = 0o600;
const FOR_OTHERS: u32 = 0o077;
/// The largest file that is read: the ids of half a million tokens.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Why the secret, or the list of revoked tokens, cannot be used.
#[derive(Debug, Error)]
pub enum SecretFileError {
    #[error("there is no state folder for the secret; name one with --state-dir (PINTLE_STATE_DIR)")]
    NoStateFolder,
    #[error(
        "there is no {}; `pintle token mint` creates the secret, `pintle serve --audit-log` the key of the audit log",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{}: {error}", file.display())]
    Io { file: PathBuf, error: io::Error },
    #[error("{} is not a regular file; remove it, then `pintle token rotate` creates a new secret", .0.display())]
    NotRegular(PathBuf),
    #[error("{} belongs to another user; name a state folder of your own with --state-dir", .0.display())]
    OfAnotherUser(PathBuf),
    #[error(
        "{} can be read by others (mode {mode:03o}), who could make tokens; run `pintle token rotate` for a new secret, \
         or `chmod 600` if nobody has read it",
        file.display()
    )]
    Readable { file: PathBuf, mode: u32 },
    #[error(
        "{} can be read or changed by others (mode {mode:03o}), who could take tokens off the list; look whether all \
         revoked tokens are in it, then `chmod 600`",
        file.display()
    )]
    RevokedReadable { file: PathBuf, mode: u32 },
    #[error("{} is too large", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not a secret ({error}); `pintle token rotate` creates a new one", file.display())]
    NotASecret { file: PathBuf, error: SecretError },
}

/// The folder that has the secret.
#[derive(Clone, Debug)]
pub struct SecretFolder(PathBuf);

/// What a file was when it was read. It changes when the file does, and when its mode or owner does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp(Option<[i128; 8]>);

impl SecretFolder {
    /// The secret of a state folder.
    pub fn new(state_dir: Option<&Path>) -> Result<Self, SecretFileError> {
        state_dir.map(|folder| Self(folder.to_owned())).ok_or(SecretFileError::NoStateFolder)
    }

    /// The secret that there is.
    pub fn load(&self) -> Result<LocalSecret, SecretFileError> {
        self.key(SECRET)
    }

    fn key(&self, name: &str) -> Result<LocalSecret, SecretFileError> {
        let file = self.path(name);
        let text = read_private(&file)?.ok_or(SecretFileError::Missing(file.clone()))?;
        LocalSecret::parse(&text).map_err(|error| SecretFileError::NotASecret { file, error })
    }

    fn key_or_create(&self, name: &str) -> Result<LocalSecret, SecretFileError> {
        match self.key(name) {
            Err(SecretFileError::Missing(_)) => {}
            key => return key,
        }
        match self.write(name, new_secret()?.as_bytes(), RenameFlags::NOREPLACE) {
            Err(SecretFileError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written?,
        }
        self.key(name)
    }

    /// The secret that there is, or a new one. If several programs create it at once, all get the same.
    pub fn load_or_create(&self) -> Result<LocalSecret, SecretFileError> {
        self.key_or_create(SECRET)
    }

    /// Replaces the secret: all tokens of the old one end. So do the revocations, which were about these.
    pub fn rotate(&self) -> Result<LocalSecret, SecretFileError> {
        self.write(SECRET, new_secret()?.as_bytes(), RenameFlags::empty())?;
        match std::fs::remove_file(self.path(REVOKED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(REVOKED, error)),
            _ => self.load(),
        }
    }

    /// Revokes a token, by its id.
    pub fn revoke(&self, token_id: &str) -> Result<(), SecretFileError> {
        let failed = |error| self.failed(REVOKED, error);
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(OWNER_ONLY);
        let mut file = options
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.path(REVOKED))
            .map_err(failed)?;
        // One short write at the end: several programs can revoke at once.
        file.write_all(format!("{token_id}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }

    /// The ids of the tokens that were revoked.
    pub fn revoked(&self) -> Result<HashSet<String>, SecretFileError> {
        let text = read_private(&self.path(REVOKED)).map_err(|error| match error {
            SecretFileError::Readable { file, mode } => SecretFileError::RevokedReadable { file, mode },
            error => error,
        })?;
        let text = text.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    /// The key of audit logs, or a new one. It is not rotated: older lines must stay verifiable.
    pub fn audit_key_or_create(&self) -> Result<Vec<u8>, SecretFileError> {
        Ok(self.key_or_create(AUDIT_KEY)?.as_bytes().to_vec())
    }

    /// The key of audit logs.
    pub fn audit_key(&self) -> Result<Vec<u8>, SecretFileError> {
        Ok(self.key(AUDIT_KEY)?.as_bytes().to_vec())
    }

    /// Says, without reading them, whether secret or revocations have changed.
    pub fn stamps(&self) -> [FileStamp; 2] {
        [SECRET, REVOKED].map(|name| {
            let about = std::fs::symlink_metadata(self.path(name)).ok();
            FileStamp(about.map(|about| {
                [
                    about.ino().into(),
                    about.size().into(),
                    about.mode().into(),
                    about.uid().into(),
                    about.mtime().into(),
                    about.mtime_nsec().into(),
                    about.ctime().into(),
                    about.ctime_nsec().into(),
                ]
            }))
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn failed(&self, name: &str, error: io::Error) -> SecretFileError {
        SecretFileError::Io { file: self.path(name), error }
    }

    /// Writes a file for its owner alone, and puts it in its place at once.
    fn write(&self, name: &str, content: &[u8], flags: RenameFlags) -> Result<(), SecretFileError> {
        let failed = |error| self.failed(name, error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(failed)?;
        replace_file(&self.path(name), content, OWNER_ONLY, flags).map_err(failed)
    }
}

/// Reads a file that only its owner may read. `None` if there is none.
fn read_private(path: &Path) -> Result<Option<Vec<u8>>, SecretFileError> {
    let failed = |error| SecretFileError::Io { file: path.to_owned(), error };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(SecretFileError::NotRegular(path.to_owned()));
        }
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(SecretFileError::NotRegular(path.to_owned()));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(SecretFileError::OfAnotherUser(path.to_owned()));
    }
    let mode = about.mode() & 0o777;
    if mode & FOR_OTHERS != 0 {
        return Err(SecretFileError::Readable { file: path.to_owned(), mode });
    }
    if about.len() > LARGEST {
        return Err(SecretFileError::TooLarge(path.to_owned()));
    }
    let mut content = Vec::new();
    file.take(LARGEST).read_to_end(&mut content).map_err(failed)?;
    Ok(Some(content))
}

fn new_secret() -> Result<LocalSecret, SecretFileError> {
    random().map(LocalSecret::new)
}

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> Result<[u8; N], SecretFileError> {
    let mut bytes = [0; N];
    let failed = |error: getrandom::Error| SecretFileError::Io {
        file: PathBuf::from("the system's random numbers"),
        error: io::Error::other(error.to_string()),
    };
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

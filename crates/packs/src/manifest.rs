//! What is recorded about an installed pack, in a small JSON file in its folder.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

const FILE: &str = "pack.json";
const LARGEST: u64 = 64 << 10;

/// What is recorded about an installed pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// The file or address that it came from.
    pub source: String,
    /// The checksum of its archive.
    pub sha256: String,
    /// When it was installed, in UTC (RFC 3339).
    pub added: String,
    /// How many files with schemas it has.
    pub schemas: usize,
    /// How many files with examples it has.
    pub examples: usize,
    /// The size of these files.
    pub bytes: u64,
}

impl Manifest {
    pub(crate) fn read(pack: &Path) -> io::Result<Self> {
        let mut text = Vec::new();
        File::open(pack.join(FILE))?.take(LARGEST).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub(crate) fn write(&self, pack: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(pack.join(FILE))?;
        file.write_all(format!("{:#}\n", serde_json::to_value(self)?).as_bytes())?;
        file.sync_all()
    }
}

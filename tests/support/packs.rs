//! A state folder with packs, and `pintle pack` on it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{archives::Zip, pintle, run};

/// A folder with a state folder in it, which need not exist yet.
pub struct World(TempDir);

impl Default for World {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }
}

impl World {
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Writes a file beside the state folder.
    pub fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        fs::write(self.path(name), content).expect("writes");
        self.path(name)
    }

    /// `pintle pack` with these arguments.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = pintle();
        command.arg("pack").args(arguments).current_dir(self.0.path());
        command.env("PINTLE_STATE_DIR", self.state());
        command
    }

    /// Runs `pintle pack`, and returns its exit code and its errors.
    pub fn pack<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> (Option<i32>, String) {
        let (code, _, errors) = run(&mut self.command(arguments), b"");
        (code, errors)
    }

    /// Installs an archive.
    pub fn add(&self, name: &str, archive: &[u8]) {
        let file = self.write("archive", archive);
        let (code, errors) = self.pack([OsStr::new("add"), file.as_ref(), "--name".as_ref(), name.as_ref()]);
        assert_eq!(code, Some(0), "{errors}");
    }

    /// The list of packs, as programs get it.
    pub fn list(&self) -> Vec<Value> {
        let (code, output, errors) = run(&mut self.command(["list", "--json"]), b"");
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        let list: Value = serde_json::from_str(&output).expect("JSON");
        list["packs"].as_array().expect("a list").clone()
    }

    /// Everything below the state folder: each path, with its mode and, for a file, its content.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let mut found = BTreeMap::new();
        gather(&self.state(), &mut found);
        found
    }

    /// The staging folders that there are.
    pub fn staging(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("packs")).into_iter().flatten().flatten();
        let is_staging =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        entries.map(|entry| entry.path()).filter(is_staging).collect()
    }
}

fn gather(folder: &Path, found: &mut BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let about = fs::symlink_metadata(&path).expect("it is there");
        assert!(!about.is_symlink(), "{} is a link", path.display());
        let content = about.is_file().then(|| fs::read(&path).expect("reads"));
        if about.is_dir() {
            gather(&path, found);
        }
        found.insert(path, (about.permissions().mode() & 0o777, content));
    }
}

/// A small archive with a schema and an example of it, whose title tells it from others.
pub fn lamps(title: &str) -> Vec<u8> {
    let schema = format!(
        r#"{{"$id": "https://schemas.example.org/1.0.0/lamp.schema.json", "title": "{title}", "type": "object",
            "properties": {{"watts": {{"type": "number"}}}}}}"#
    );
    Zip::default()
        .file("jsonschema/lamp.schema.json", schema.as_bytes())
        .file("examples/Lamp_Desk.json", br#"{"watts": 5}"#)
        .bytes()
}

/// The checksum of an archive.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

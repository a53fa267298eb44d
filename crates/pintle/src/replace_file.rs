//! Writes a file and puts it in its place at once: readers see the old content or the new one.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::secret::random;

/// Writes `content` and a newline to `path`. `flags` say what to do if there is a file already. Nothing is left if it fails.
pub fn replace_file(path: &Path, content: &[u8], mode: u32, flags: RenameFlags) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = u64::from_le_bytes(random().map_err(io::Error::other)?);
    let temporary = folder.join(format!(".{name}.{number:016x}"));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(content)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        renameat_with(CWD, &temporary, CWD, path, flags)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

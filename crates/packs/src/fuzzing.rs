//! What must hold of archives whatever bytes come: the properties that the fuzz targets assert.

use std::{
    collections::HashSet,
    io::{Cursor, Write},
};

use flate2::{Compression, write::GzEncoder};

use crate::{Limits, layout::Layout, read};

/// Reads an archive as it came, and as a tar archive that is compressed here: the fuzzer does not find the checksum of a
/// `.gz`.
pub fn archive(bytes: &[u8]) {
    read_archive(bytes);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = compressed.write_all(bytes);
    read_archive(&compressed.finish().unwrap_or_default());
}

/// Whatever is accepted has safe and different paths and is within the limits, also if it is read again; its files are
/// installed at different paths.
fn read_archive(bytes: &[u8]) {
    let limits = Limits { entries: 100, total_bytes: 4 << 20, file_bytes: 2 << 20, ..Limits::PACK };
    let mut files = Vec::new();
    let mut total = 0;
    let accepted = read(&mut Cursor::new(bytes), &limits, &mut |path, contents| {
        let mut content = Vec::new();
        let size = contents.copy_to(&mut content)?;
        assert_eq!(size, content.len() as u64);
        assert!(size <= limits.file_bytes);
        total += size;
        files.push((path.to_owned(), content));
        Ok(())
    });
    assert!(files.len() <= limits.entries && total <= limits.total_bytes);
    for (path, _) in &files {
        assert!(!path.starts_with('/') && !path.contains(['\\', ':', '\0']), "{path}");
        assert!(path.split('/').all(|name| !["", ".", ".."].contains(&name)), "{path}");
        assert!(path.split('/').count() <= limits.depth, "{path}");
    }
    let folded: HashSet<String> = files.iter().map(|(path, _)| path.to_lowercase()).collect();
    assert_eq!(folded.len(), files.len());
    if accepted.is_err() {
        return;
    }
    let mut again = Vec::new();
    let second = read(&mut Cursor::new(bytes), &limits, &mut |path, contents| {
        let mut content = Vec::new();
        contents.copy_to(&mut content)?;
        again.push((path.to_owned(), content));
        Ok(())
    });
    assert!(second.is_ok() && again == files);
    let paths: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
    if let Ok(layout) = Layout::of(&paths) {
        let installed = paths.iter().filter_map(|path| layout.place(path));
        let mut targets = HashSet::new();
        assert!(installed.into_iter().all(|target| targets.insert((target.folder, target.path))));
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("archive", archive);
    }
}

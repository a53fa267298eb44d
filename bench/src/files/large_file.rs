//! A generated large text file, of which any line can be computed.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
};

use super::workspace::Workspace;

pub struct LargeFile {
    /// Its path in the root.
    pub name: &'static str,
    pub path: PathBuf,
    pub mebibytes: usize,
    pub lines: u64,
}

/// Makes the file in the root of a workspace of its own.
pub fn make(mebibytes: usize) -> (Workspace, LargeFile) {
    let workspace = Workspace::new();
    let name = "large.txt";
    let path = workspace.root().join(name);
    let size = mebibytes << 20;
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).expect("a file"));
    let (mut written, mut lines) = (0, 0);
    while written < size {
        lines += 1;
        let line = line(lines);
        file.write_all(line.as_bytes()).expect("enough disk space");
        written += line.len();
    }
    // Pending writes would slow down the first rounds.
    file.into_inner().expect("enough disk space").sync_all().expect("a disk");
    eprintln!("{mebibytes} MiB in {lines} lines, beside the built binaries");
    (workspace, LargeFile { name, path, mebibytes, lines })
}

/// A line, with its end: some 60 bytes.
pub fn line(number: u64) -> String {
    let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("line {number:>9} of the file, and some noise: {noise:016x}\n")
}

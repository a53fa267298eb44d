//! A generated tree, the same in every run, of build artefacts rather than sources: minified scripts in one line, JSON
//! records in long lines, text, and binary files.

use std::{fs, path::Path};

use super::{
    groups::{Group, PLANTED},
    tree::{self, Tree},
};

/// The words of the generated text.
const WORDS: [&str; 24] = [
    "return",
    "function",
    "value",
    "index",
    "length",
    "this",
    "prototype",
    "call",
    "apply",
    "push",
    "map",
    "filter",
    "typeof",
    "undefined",
    "null",
    "window",
    "document",
    "module",
    "exports",
    "require",
    "state",
    "props",
    "render",
    "key",
];

pub fn make(quick: bool) -> Result<Tree, String> {
    let workspace = tree::workspace();
    let (root, scale) = (workspace.root(), if quick { 1 } else { 5 });
    let mut random = Random(fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15));
    for number in 0..scale {
        let folder = root.join(format!("part-{number}"));
        fs::create_dir(&folder).expect("a folder");
        let write = |name: &str, content: Vec<u8>| write(&folder, name, content);
        write("bundle.min.js", minified(&mut random, 6 << 20));
        write("vendor.min.js", minified(&mut random, 3 << 20));
        write("style.min.css", minified(&mut random, 1 << 20));
        write("records.jsonl", records(&mut random, 6 << 20, 200 << 10));
        write("events.jsonl", records(&mut random, 4 << 20, 8 << 10));
        write("data.json", records(&mut random, 3 << 20, 3 << 20));
        for part in 0..200 {
            write(&format!("module-{part:03}.js"), lines(&mut random, 8 << 10));
        }
        for part in 0..8 {
            write(&format!("image-{part}.bin"), noise(&mut random, 256 << 10));
        }
    }
    Ok(Tree {
        name: "long lines",
        workspace,
        has_bar: false,
        suits_codesearch: false,
        groups: Group::of_planted(&["return"]),
        common: &["return", "function", "prototype"],
        renamed: None,
    })
}

fn write(folder: &Path, name: &str, content: Vec<u8>) {
    fs::write(folder.join(name), content).expect("enough disk space");
}

/// One line without a newline.
fn minified(random: &mut Random, size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 64);
    while text.len() < size {
        text.extend_from_slice(random.word().as_bytes());
        text.push(b"().,;{}=+!:?"[random.below(12)]);
        if random.below(4) == 0 {
            text.extend_from_slice(format!("{:x}", random.next() >> 44).as_bytes());
        }
        random.plant(&mut text);
    }
    text
}

/// Lines of JSON objects of about a given length.
fn records(random: &mut Random, size: usize, length: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + length);
    while text.len() < size {
        let end = text.len() + length;
        text.extend_from_slice(b"{\"id\":0");
        while text.len() < end {
            let (key, value) = (random.word(), random.next() >> 32);
            text.extend_from_slice(format!(",\"{key}_{}\":\"{value:x}\"", random.below(1000)).as_bytes());
            random.plant(&mut text);
        }
        text.extend_from_slice(b"}\n");
    }
    text
}

/// Lines like those of source code.
fn lines(random: &mut Random, size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 128);
    while text.len() < size {
        text.extend_from_slice(&b"        "[..2 * random.below(5)]);
        for _ in 0..=random.below(8) {
            text.extend_from_slice(random.word().as_bytes());
            text.push(b' ');
        }
        random.plant(&mut text);
        text.extend_from_slice(b";\n");
    }
    text
}

/// Binary content, recognizable by its first byte.
fn noise(random: &mut Random, size: usize) -> Vec<u8> {
    let mut bytes = vec![0];
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes
}

/// A seeded generator: the same tree in every run.
struct Random(fastrand::Rng);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// Rarely inserts a planted literal.
    fn plant(&mut self, text: &mut Vec<u8>) {
        if self.below(100_000) == 0 {
            text.extend_from_slice(format!(" {PLANTED}{} ", self.below(4)).as_bytes());
        }
    }
}

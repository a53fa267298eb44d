//! The searched trees: real ones, and one that is difficult in every way.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::support::random::Random;
use crate::support::rounds;

/// The size of a block of the index.
const BLOCK: usize = 8192;
/// How much of a file is read at once.
const WINDOW: usize = 1 << 20;

/// A root, with a folder for the state of the search.
pub struct Tree {
    folder: TempDir,
    /// The content of the files without a NUL.
    pub texts: Vec<Vec<u8>>,
    /// The files with a NUL.
    pub with_nul: BTreeSet<Vec<u8>>,
}

impl Tree {
    /// A tree with the files that `fill` writes into a folder.
    pub fn new(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tree = Self { folder, texts: Vec::new(), with_nul: BTreeSet::new() };
        fs::create_dir(tree.root()).expect("a root");
        fill(&tree.root());
        let root = tree.root();
        for path in files_in(&root) {
            // Only the superuser can read everything.
            let Ok(text) = fs::read(&path) else { continue };
            if text.contains(&0) {
                let path = path.strip_prefix(&root).expect("below the root");
                tree.with_nul.insert(path.as_os_str().as_bytes().to_owned());
            } else {
                tree.texts.push(text);
            }
        }
        assert!(!tree.texts.is_empty(), "there is nothing to search");
        tree
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The sources of some of the crates that this test was built from.
    pub fn of_crates() -> Self {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).expect("a home");
        let sources = home.join("registry/src");
        let registries =
            fs::read_dir(&sources).unwrap_or_else(|error| panic!("{}: {error}", sources.display()));
        let mut crates: Vec<PathBuf> = registries
            .flatten()
            .flat_map(|registry| fs::read_dir(registry.path()).expect("a registry"))
            .map(|entry| entry.expect("a crate").path())
            .collect();
        crates.sort();
        let mut random = Random::new(7);
        let mut left = rounds(2 << 20, 40 << 20);
        Self::new(|root| {
            while left > 0 && !crates.is_empty() {
                let taken = crates.swap_remove(random.below(crates.len()));
                let files = files_in(&taken);
                let size: u64 = files.iter().map(|file| file.metadata().map_or(0, |file| file.len())).sum();
                // A large crate would take all the space.
                if size < 1 << 20 {
                    let name = taken.file_name().expect("a name");
                    copy(&taken, &root.join(name), &files);
                    left = left.saturating_sub(size as usize);
                }
            }
        })
    }

    /// This project's own sources, as if they had just been cloned.
    pub fn of_project() -> Self {
        let project =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project");
        Self::new(|root| {
            for entry in fs::read_dir(&project).expect("the project") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name");
                // In a linked work tree `.git` is a file.
                if [".git", ".cache", "target", "fuzz"].map(OsStr::new).contains(&name) {
                    continue;
                }
                if path.is_file() {
                    fs::copy(&path, root.join(name)).expect("copies");
                } else {
                    copy(&path, &root.join(name), &files_in(&path));
                }
            }
            fs::create_dir(root.join(".git")).expect("a folder");
            // A folder that the rules of the project ignore.
            fs::create_dir(root.join("target")).expect("a folder");
            fs::write(root.join("target/ignored"), "fn ignored() {}\n").expect("writes");
        })
    }

    /// Everything that is difficult to walk, to read, or to split into lines and, if it `has_blocks`, into blocks.
    pub fn difficult(is_repository: bool, has_blocks: bool) -> Self {
        Self::new(|root| {
            let mut random = Random::new(11);
            write_lines(root);
            if has_blocks {
                write_borders(root, &mut random);
            }
            write_encodings(root);
            write_binaries(root, &mut random);
            write_names(root);
            write_links_and_special_files(root);
            write_rules(root, is_repository);
        })
    }
}

/// All regular files below a folder, in order; links are not followed.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path, files: &[PathBuf]) {
    for file in files {
        let target = to.join(file.strip_prefix(from).expect("below the folder"));
        fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        fs::copy(file, target).expect("copies");
    }
}

fn write(root: &Path, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
    let path = root.join(Path::new(path.as_ref()));
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content).expect("writes");
}

/// Words that differ at every position, in lines of all lengths.
fn filler(random: &mut Random, length: usize) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < length {
        for _ in 0..2 + random.below(7) {
            text.push(random.pick(b"abcdefghijklmnoprstuvwxyzEKS_0123456789"));
        }
        let end: &[u8] = match random.below(30) {
            0 => b";\n",
            1 => b")\n\n",
            2 => b" = ",
            3 => b"(",
            4 => b".",
            _ => b" ",
        };
        text.extend(end);
    }
    text.truncate(length);
    text
}

/// The same text in one line.
fn long_line(random: &mut Random, length: usize) -> Vec<u8> {
    filler(random, length).into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect()
}

fn write_lines(root: &Path) {
    for (name, content) in [
        ("crlf", "one needle\r\ntwo\r\n\r\nneedle\r\nlast needle\r\n"),
        ("crlf-open", "one\r\nneedle\r\nneedle"),
        ("cr-only", "one\rneedle\rneedle\r"),
        ("mixed", "needle\nneedle\r\n\r\n\nneedle\r\r\nneedle\n\rneedle"),
        ("open", "first\nneedle"),
        ("one-line", "needle\n"),
        ("one-word", "needle"),
        ("one-byte", "n"),
        ("empty", ""),
        ("newline", "\n"),
        ("newlines", "\n\n\n\n"),
        ("crlfs", "\r\n\r\n\r\n"),
        ("blank-end", "needle\n\n"),
        ("blank-start", "\n\nneedle\n"),
        ("spaces", "  \n\t\n \t needle \t \n"),
        ("form-feed", "needle\u{c}needle\n\u{b}needle\u{85}needle\u{2028}needle\n"),
        ("twice", "needleneedle needles NEEDLE Needle\nxneedlex\nneedle needle\n"),
    ] {
        write(root, format!("lines/{name}"), content);
    }
    write(root, "lines/newlines-only", "\n".repeat(rounds(99, BLOCK)));
    for count in [BLOCK, BLOCK - 1, BLOCK + 1].into_iter().take(rounds(1, 3)) {
        write(root, format!("lines/newlines-then-{count}"), "\n".repeat(count) + "needle");
    }
}

/// Overwrites the text from an offset on.
fn put(text: &mut [u8], offset: usize, what: &[u8]) {
    text[offset..offset + what.len()].copy_from_slice(what);
}

fn write_borders(root: &Path, random: &mut Random) {
    let shifts = [-7, -6, -5, -1, 0, 1, 2, -9, -3, -2, 6];
    for block in [1, 3] {
        for shift in shifts.into_iter().take(rounds(6, 11)) {
            let offset = (block * BLOCK).wrapping_add_signed(shift);
            let mut lines = filler(random, (block + 1) * BLOCK);
            put(&mut lines, offset, b"needle");
            write(root, format!("borders/match-{block}-{shift}"), &lines);
            let mut start = filler(random, (block + 1) * BLOCK + 77);
            put(&mut start, offset - 1, b"\nneedle Start");
            write(root, format!("borders/line-{block}-{shift}"), &start);
            let mut end = filler(random, block * BLOCK + 100);
            put(&mut end, offset - 7, b"needle\r\n");
            write(root, format!("borders/crlf-{block}-{shift}"), &end);
            let mut long = long_line(random, (block + 2) * BLOCK);
            put(&mut long, offset, b"needle");
            put(&mut long, 5, b"needle");
            write(root, format!("borders/long-{block}-{shift}"), &long);
            let mut multi = filler(random, block * BLOCK + 40);
            put(&mut multi, offset, "日本é".as_bytes());
            write(root, format!("borders/multi-{block}-{shift}"), &multi);
        }
    }
    for size in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 3 * BLOCK, 3 * BLOCK + 1] {
        let mut text = filler(random, size);
        write(root, format!("borders/size-{size}"), &text);
        put(&mut text, size - 7, b"\nneedle");
        write(root, format!("borders/size-open-{size}"), &text);
        put(&mut text, size - 7, b"needle\n");
        write(root, format!("borders/size-closed-{size}"), &text);
        let mut line = long_line(random, size);
        line[size - 1] = b'\n';
        write(root, format!("borders/size-line-{size}"), &line);
    }
    // Lines that are exactly as long as blocks, or nearly.
    for length in [BLOCK - 1, BLOCK, BLOCK + 1] {
        let mut text = Vec::new();
        for _ in 0..4 {
            let mut line = long_line(random, length - 1);
            put(&mut line, length - 7, b"needle");
            text.extend(line);
            text.push(b'\n');
        }
        write(root, format!("borders/lines-of-{length}"), &text);
    }
    // Files that are read in several parts.
    let mut window = filler(random, WINDOW + 3 * BLOCK);
    put(&mut window, WINDOW - 3, b"needle");
    put(&mut window, WINDOW + BLOCK - 1, b"\nneedle");
    write(root, "borders/window", &window);
    if rounds(0, 1) == 1 {
        put(&mut window, WINDOW - 1, b"\nneedle\r\n");
        window.truncate(WINDOW + 8);
        write(root, "borders/window-line", &window);
        window.truncate(WINDOW);
        write(root, "borders/window-exact", &window);
    }
    let length = rounds(100_000, 3 << 20) + 5;
    let mut line = long_line(random, length);
    put(&mut line, 0, b"firstneedle");
    put(&mut line, 70_001, b"NeedleInTheMiddle");
    put(&mut line, length - 10, b"needlelast");
    write(root, "borders/one-long-line", [b"before\n", &line[..], b"\nafter needle\n"].concat());
}

fn utf_16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(to_bytes).collect()
}

fn write_encodings(root: &Path) {
    let folding = "kelvin Kelvin \u{212a}elvin KELVIN\n\u{212a}\nk\nK\nſtraſſe strasse STRASSE Straße STRAẞE\nß\nẞ\n\
                   ſ\nISTANBUL istanbul İstanbul ıstanbul\nİ\nı\ni\u{307}\nόσος ΌΣΟΣ όσοσ\nσ\nΣ\nς\nå\n\u{212b}\nÅ\n\
                   café CAFÉ cafe\u{301}\nµ μ Μ\nǆ ǅ Ǆ\nﬀ ff\n日本語 needle\n😀 needle 😂\n\u{fffd}\n";
    write(root, "encodings/folding", folding);
    write(root, "encodings/bom", [b"\xef\xbb\xbf", folding.as_bytes()].concat());
    write(root, "encodings/bom-only", b"\xef\xbb\xbf");
    write(root, "encodings/bom-needle", "\u{feff}needle\nneedle\r\n\u{feff}needle");
    write(root, "encodings/bom-twice", "\u{feff}\u{feff}needle\n");
    write(root, "encodings/bom-later", "needle\n\u{feff}needle\n");
    write(root, "encodings/bom-half", b"\xef\xbbneedle\n");
    write(root, "encodings/bom-large", "\u{feff}".to_owned() + &"a line with needle\n".repeat(2000));
    // No NUL in these: all letters are beyond U+00FF, and there is no end of line.
    write(root, "encodings/utf-16-le-without-nul", utf_16("日本όσος\u{212a}ſ", u16::to_le_bytes));
    write(root, "encodings/utf-16-be-without-nul", utf_16("日本όσος\u{212a}ſ", u16::to_be_bytes));
    write(root, "encodings/utf-16-lone", b"\xff\xfe\x42\xd8\x43\x44\x45");
    write(root, "encodings/utf-16-mark", b"\xff\xfe");
    write(root, "encodings/latin", b"caf\xe9\nneedle \xe9\n\xff\n\xe9needle\nna\xefve caf\xe9\r\n");
    write(
        root,
        "encodings/invalid",
        b"needle\xff\n\xffneedle\n\xc3\nneedle\xc3\n\xe6\x97needle\n\xed\xa0\x80needle\n\xf8\n",
    );
    write(root, "encodings/invalid-open", b"\x80\x81needle\xfe");
    write(root, "encodings/all-bytes", (1..=255).collect::<Vec<u8>>());
    write(root, "encodings/controls", b"\x01needle\x02\n\x1b[31mneedle\x1b[0m\n\x7f\n");
}

fn write_binaries(root: &Path, random: &mut Random) {
    write(root, "binary/first", b"\0needle\nneedle\n");
    write(root, "binary/middle", b"needle\nneedle\0needle\nneedle\n");
    write(root, "binary/last", b"needle\nneedle\n\0");
    write(root, "binary/only", b"\0");
    write(root, "binary/utf-16-le", utf_16("needle\nmore needle\n", u16::to_le_bytes));
    write(root, "binary/utf-16-be", utf_16("needle\r\nmore needle", u16::to_be_bytes));
    write(root, "binary/bom", b"\xef\xbb\xbfneedle\n\0needle\n");
    for size in [BLOCK, 64 << 10, WINDOW, WINDOW + 1, 2 << 20] {
        let mut large = filler(random, size);
        put(&mut large, 100, b"\nneedle\n");
        large[size - 1] = 0;
        write(root, format!("binary/large-{size}"), &large);
    }
}

fn write_names(root: &Path) {
    for name in [
        &b"sp ace"[..],
        b" lead",
        b"trail ",
        b"new\nline",
        b"cr\rname",
        b"tab\tname",
        b"quo\"te'",
        b"colon:1:2:x",
        b"back\\slash",
        b"-dash",
        b"--",
        b"*star?",
        b"[set]{a,b}",
        b"!not",
        b"#hash",
        b"%41",
        b"~",
        b"...",
        b"non-\xff-text",
        b"non-\xfe\xff",
        b"\xe9",
        b"\x01control",
        "ünï".as_bytes(),
        "u\u{308}ni\u{308}".as_bytes(),
        "日本".as_bytes(),
        b".hidden",
        b".hidden-folder/.hidden",
        b".hidden-folder/seen",
        b".github/workflow.yml",
        // Paths are sorted by bytes, not by name.
        b"order/a",
        b"order/a/b",
        b"order/a-b",
        b"order/a.b",
        b"order/a b",
        b"order/ab",
        b"order/B",
        b"order/a0/b",
        b"order/a!/b",
    ] {
        let path = [b"names/", name].concat();
        let path = OsStr::from_bytes(&path);
        if name == b"order/a" {
            continue;
        }
        write(root, path, [b"needle in ", &name.replace_newlines()[..], b"\n"].concat());
    }
    let mut deep = OsString::from("deep");
    for _ in 0..16 {
        deep.push("/");
        deep.push("d".repeat(200));
    }
    deep.push("/file");
    write(root, deep, "needle far down\n");
    let narrow = "n/".repeat(300);
    write(root, format!("narrow/{narrow}file"), "needle further down\n");
    fs::create_dir_all(root.join("nothing/in/here")).expect("a folder");
}

trait ReplaceNewlines {
    fn replace_newlines(&self) -> Vec<u8>;
}

impl ReplaceNewlines for [u8] {
    fn replace_newlines(&self) -> Vec<u8> {
        self.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect()
    }
}

fn write_links_and_special_files(root: &Path) {
    let outside = root.parent().expect("a folder").join("outside");
    write(&outside, "file", "needle outside\n");
    write(root, "links/real/file", "needle here\n");
    for (target, name) in [
        ("real/file", "links/file"),
        ("real", "links/folder"),
        (".", "links/loop"),
        ("..", "links/upwards"),
        ("itself", "links/itself"),
        ("nowhere", "links/broken"),
        ("../../outside/file", "links/outside-file"),
        ("../../outside", "links/outside-folder"),
    ] {
        symlink(target, root.join(name)).expect("a link");
    }
    symlink(&outside, root.join("links/outside-absolute")).expect("a link");
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, root.join("links/fifo"), fifo, mode, 0).expect("a FIFO");
    drop(UnixListener::bind(root.join("links/socket")).expect("a socket"));
    // Nothing is unreadable to the superuser.
    if !rustix::process::geteuid().is_root() {
        write(root, "links/unreadable", "needle that cannot be read\n");
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(root.join("links/unreadable"), closed).expect("closes");
    }
    write(root, "links/program", "#!/bin/sh\necho needle\n");
    fs::set_permissions(root.join("links/program"), fs::Permissions::from_mode(0o755)).expect("opens");
}

fn write_rules(root: &Path, is_repository: bool) {
    // Rules above the root do not apply.
    write(root.parent().expect("a folder"), ".gitignore", "*\n");
    write(root.parent().expect("a folder"), ".ignore", "*\n");
    let rules = "# a remark\n*.log\n!keep.log\n/rules/top\n/rules/build/\n!/rules/build/never.txt\nrules/**/deep.txt\n\
                 rules/half/*\n!rules/half/kept\n\\#hash\ntrailing \nescaped\\ \n[ab].set\nrules/{x,y}\nwindows\r\n**/any/where\n";
    write(root, ".gitignore", rules);
    write(root, "rules/sub/.gitignore", "*\n!.gitignore\n!*.txt\n!inner/\n/anchored.txt\n");
    write(root, "rules/sub/inner/.gitignore", "!*.log\n");
    write(root, "rules/ignore/.ignore", "*.txt\n!yes.txt\n");
    write(root, "rules/ignore/.gitignore", "!no.txt\nyes.txt\n");
    write(root, "rules/rgignore/.rgignore", "*.txt\n!yes.txt\n");
    write(root, "rules/rgignore/.ignore", "!no.txt\nyes.txt\n");
    write(root, "rules/bad/.gitignore", b"[unclosed\n{a\n\xff\xfe\nfine.txt\n");
    write(root, "rules/bom/.gitignore", "\u{feff}first.txt\nsecond.txt\n");
    write(root, "rules/repository/.gitignore", "no.txt\n");
    write(root, "rules/repository/.git/config", "needle\n");
    write(root, "rules/repository/.git/info/exclude", "excluded.txt\n");
    write(root, "rules/worktree/.gitignore", "no.txt\n");
    write(root, "rules/worktree/.git", "gitdir: ../repository/.git needle\n");
    fs::create_dir_all(root.join("rules/folder-as-rules/.gitignore")).expect("a folder");
    for path in [
        "a.log",
        "keep.log",
        "rules/a.log",
        "rules/keep.log",
        "rules/top",
        "rules/x",
        "rules/y",
        "rules/{x,y}",
        "rules/sub/top",
        "rules/build/a.txt",
        "rules/build/never.txt",
        "rules/p/q/deep.txt",
        "rules/half/kept",
        "rules/half/gone",
        "rules/#hash",
        "rules/trailing",
        "rules/escaped ",
        "rules/a.set",
        "rules/c.set",
        "rules/windows",
        "rules/m/any/where",
        "rules/any/where/file",
        "rules/sub/a.txt",
        "rules/sub/anchored.txt",
        "rules/sub/a.c",
        "rules/sub/a.log",
        "rules/sub/inner/a.log",
        "rules/sub/inner/a.txt",
        "rules/sub/inner/anchored.txt",
        "rules/ignore/no.txt",
        "rules/ignore/yes.txt",
        "rules/ignore/a.c",
        "rules/rgignore/no.txt",
        "rules/rgignore/yes.txt",
        "rules/rgignore/a.c",
        "rules/bad/fine.txt",
        "rules/bad/a",
        "rules/bom/first.txt",
        "rules/bom/second.txt",
        "rules/repository/no.txt",
        "rules/repository/yes.txt",
        "rules/repository/a.log",
        "rules/repository/excluded.txt",
        "rules/worktree/no.txt",
        "rules/worktree/yes.txt",
        "rules/folder-as-rules/file",
        "rules/folder-as-rules/.gitignore/file",
        "excluded/file",
        "git/.gitx",
        "git/x.git/file",
        "git/.GIT/file",
    ] {
        write(root, path, format!("needle in {path}\n"));
    }
    if is_repository {
        write(root, ".git/info/exclude", "/excluded/\n");
        write(root, ".git/HEAD", "ref: refs/heads/needle\n");
    }
}

//! Searches see the current files (read-your-writes): each edit through the tools when its reply arrives, each edit
//! from outside soon after, and the changes that were made while no server was running.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    search_tools::{World, paths, positions, search},
    support::{Server, hash, random::Random, rounds, wait_until},
};

const LIMIT: usize = 20_000;

/// The expected content of a file: a function in each line, some with a long comment.
#[derive(Clone, Default)]
struct Model {
    lines: Vec<(String, bool)>,
    is_binary: bool,
}

impl Model {
    fn line(word: &str, is_long: bool) -> String {
        let much = if is_long { "x".repeat(LIMIT) } else { String::new() };
        format!("fn {word}() {{}} //{much}")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (word, is_long) in &self.lines {
            bytes.extend_from_slice(Self::line(word, *is_long).as_bytes());
            bytes.push(b'\n');
        }
        if self.is_binary {
            bytes.extend(b"\0\xff\n");
        }
        bytes
    }
}

/// The expected files, and a server that edits them.
struct Edits {
    world: World,
    server: Server,
    random: Random,
    files: BTreeMap<String, Model>,
}

impl Edits {
    fn new(seed: u64) -> Self {
        let world =
            World::of(&[(".ignore", "ignored/\n*.skip\n"), ("src/first.rs", ""), ("ignored/x.rs", "")]);
        symlink("src", world.at("link")).expect("a link");
        symlink("../src", world.at("ignored/link")).expect("a link");
        let mut server = world.setup().args(["--max-file-bytes", "20000", "--no-fsync"]).start();
        server.result("index_build", json!({}));
        let files = [("src/first.rs".to_owned(), Model::default())].into();
        Self { world, server, random: Random::new(seed), files }
    }

    fn is_searched(&self, path: &str) -> bool {
        let file = &self.files[path];
        let is_ignored = path.starts_with("ignored/") || path.ends_with(".skip");
        !is_ignored && !file.is_binary && file.bytes().len() <= LIMIT
    }

    /// A path at which no file exists, as given to the server, and its resolved path.
    fn new_path(&mut self) -> (String, String) {
        let word = self.random.word();
        let (given, real) = match self.random.below(8) {
            0 => (format!("{word}.rs"), format!("{word}.rs")),
            1 => (format!("src/{word}.rs"), format!("src/{word}.rs")),
            2 => (format!("link/{word}.rs"), format!("src/{word}.rs")),
            3 => (format!("new/{word}/deep/er.rs"), format!("new/{word}/deep/er.rs")),
            4 => (format!("link/{word}/x.rs"), format!("src/{word}/x.rs")),
            5 => (format!("ignored/{word}.rs"), format!("ignored/{word}.rs")),
            6 => (format!("ignored/link/{word}.rs"), format!("src/{word}.rs")),
            _ => (format!("src/{word}.skip"), format!("src/{word}.skip")),
        };
        (given, real)
    }

    /// An existing file, by one of its paths, and its resolved path.
    fn some_file(&mut self) -> (String, String) {
        let number = self.random.below(self.files.len());
        let real = self.files.keys().nth(number).expect("a file").clone();
        let given = match real.strip_prefix("src/") {
            Some(rest) if self.random.below(2) == 0 => format!("link/{rest}"),
            _ => real.clone(),
        };
        (given, real)
    }

    fn hash_of(&self, path: &str) -> String {
        hash(self.files[path].bytes())
    }

    /// Asserts that a search finds the word at exactly this line, or nowhere, in all modes.
    fn check(&mut self, word: &str, at: Option<(&str, usize)>, what: &str) {
        let at = at.filter(|(path, _)| self.is_searched(path));
        for (how, query) in [
            ("literal", word.to_owned()),
            ("regex", format!("fn {}[{}]", &word[..13], &word[13..])),
            ("words", word.to_owned()),
            ("symbol", word.to_owned()),
        ] {
            let answer = search(&mut self.server, how, &query);
            let hits = answer["hits"].as_array().expect("hits").iter();
            // A search for a symbol also finds similar names.
            let hits: Vec<&Value> =
                hits.filter(|hit| how != "symbol" || hit["name"] == json!(word)).collect();
            match at {
                None => assert!(hits.is_empty(), "{what}: {word} is still found ({how}): {answer}"),
                Some((path, line)) => {
                    assert_eq!(hits.len(), 1, "{what}: {word} at {path}:{line} ({how}): {answer}");
                    let found = (&hits[0]["path"], &hits[0]["line"], &hits[0]["hash"]);
                    let expected = (&json!(path), &json!(line), &json!(self.hash_of(path)));
                    assert_eq!(found, expected, "{what} ({how})");
                }
            }
        }
    }

    /// Makes an edit of some kind and searches at once.
    fn edit(&mut self, round: usize) {
        let word = self.random.word();
        let is_long = self.random.below(6) == 0;
        let kind = if self.files.len() < 3 { 0 } else { self.random.below(7) };
        match kind {
            0 | 1 => {
                let (given, real) = self.new_path();
                let mut model = Model { lines: vec![(word.clone(), is_long)], is_binary: false };
                model.is_binary = kind == 1 && self.random.below(3) == 0;
                let bytes = model.bytes();
                let arguments = if kind == 0 {
                    json!({"path": given, "content": String::from_utf8(bytes).expect("text")})
                } else {
                    json!({"path": given, "content": base64(&bytes), "encoding": "base64"})
                };
                self.files.insert(real.clone(), model);
                let made = self.server.result("file.create", arguments);
                assert_eq!(made["hash"], json!(self.hash_of(&real)));
                self.check(&word, Some((&real, 1)), &format!("round {round}: create {given}"));
            }
            2 => {
                let (given, real) = self.some_file();
                if self.files[&real].is_binary {
                    return;
                }
                let arguments = json!({"path": given, "hash": self.hash_of(&real), "content": Model::line(&word, is_long)});
                let reported = self.server.result("text.append", arguments);
                let model = self.files.get_mut(&real).expect("a file");
                model.lines.push((word.clone(), is_long));
                let count = model.lines.len();
                assert_eq!(reported["hash"], json!(self.hash_of(&real)));
                self.check(&word, Some((&real, count)), &format!("round {round}: append to {given}"));
            }
            3 | 4 => {
                let (given, real) = self.some_file();
                let model = self.files[&real].clone();
                if model.is_binary || model.lines.is_empty() {
                    return;
                }
                let number = self.random.below(model.lines.len());
                let (old, was_long) = model.lines[number].clone();
                // The hash is taken from a search, where a search finds the file.
                let hit = search(&mut self.server, "literal", &old)["hits"][0]["hash"].clone();
                let guard = if hit.is_null() { json!(self.hash_of(&real)) } else { hit };
                let (old_line, new_line) = (Model::line(&old, was_long), Model::line(&word, is_long));
                let line = number + 1;
                if kind == 3 {
                    let arguments = json!({
                        "path": given, "hash": guard, "lines": [line, line + 1], "old": old_line, "new": new_line,
                    });
                    let reported = self.server.result("text.replace", arguments);
                    self.files.get_mut(&real).expect("a file").lines[number] = (word.clone(), is_long);
                    assert_eq!(reported["hash"], json!(self.hash_of(&real)));
                    self.check(&old, None, &format!("round {round}: replace in {given}, the old"));
                } else {
                    let arguments = json!({
                        "path": given, "hash": guard, "line": line, "anchor": old_line, "content": new_line,
                    });
                    let reported = self.server.result("text.insert", arguments);
                    self.files.get_mut(&real).expect("a file").lines.insert(number, (word.clone(), is_long));
                    assert_eq!(reported["hash"], json!(self.hash_of(&real)));
                    self.check(
                        &old,
                        Some((&real, line + 1)),
                        &format!("round {round}: insert into {given}, the old"),
                    );
                }
                self.check(&word, Some((&real, line)), &format!("round {round}: edit {given}"));
            }
            5 => {
                let (given, real) = self.some_file();
                let (to_given, to) = self.new_path();
                let arguments = json!({"path": given, "hash": self.hash_of(&real), "to": to_given});
                let reported = self.server.result("file.move", arguments);
                let model = self.files.remove(&real).expect("a file");
                let first = model.lines.first().map(|(word, _)| word.clone());
                self.files.insert(to.clone(), model);
                assert_eq!(reported["hash"], json!(self.hash_of(&to)));
                if let Some(first) = first {
                    self.check(&first, Some((&to, 1)), &format!("round {round}: move {given} to {to_given}"));
                }
            }
            _ => {
                let (given, real) = self.some_file();
                let arguments = json!({"path": given, "hash": self.hash_of(&real)});
                self.server.result("file.remove", arguments);
                let model = self.files.remove(&real).expect("a file");
                if let Some((last, _)) = model.lines.last() {
                    self.check(last, None, &format!("round {round}: remove {given}"));
                }
            }
        }
    }

    /// Asserts that all files and all hits are as expected.
    fn check_all(&mut self) {
        let mut expected = Vec::new();
        for (path, file) in &self.files {
            if self.is_searched(path) {
                expected.extend((1..=file.lines.len() as u64).map(|line| (path.clone(), line)));
            }
        }
        let answer = search(&mut self.server, "literal", "fn ");
        let found = positions(&answer);
        assert_eq!(found, expected[..expected.len().min(1000)]);
        for (path, file) in &self.files {
            assert!(fs::read(self.world.at(path)).expect("there") == file.bytes(), "{path}");
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            (0..3).fold(0, |sum, position| sum << 8 | u32::from(three.get(position).copied().unwrap_or(0)));
        for position in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[test]
fn every_edit_through_the_tools_is_searchable_when_its_reply_arrives() {
    let mut edits = Edits::new(11);
    for round in 0..rounds(100, 1000) {
        edits.edit(round);
        // An occasional refresh merges the overlay into the index.
        if round % 37 == 36 {
            edits.server.result("index_build", json!({}));
            edits.check_all();
        }
    }
    edits.check_all();
    edits.server.result("index_build", json!({"mode": "full"}));
    edits.check_all();
    edits.server.finish();
}

#[test]
fn edits_are_also_seen_when_another_process_refreshes_the_index_in_between() {
    let mut edits = Edits::new(12);
    for round in 0..rounds(20, 300) {
        edits.edit(round);
        if round % 5 == 0 {
            let (code, _, errors) = edits.world.run(&["index", "--max-file-bytes", "20000"]);
            assert_eq!(code, Some(0), "{errors}");
        }
    }
    edits.check_all();
    edits.server.finish();
}

#[test]
fn a_file_that_becomes_binary_or_too_large_is_no_longer_found_until_it_changes_back() {
    let world = World::of(&[("a.rs", "fn needle() {}\n"), ("b.rs", "fn needle() {}\n")]);
    let mut server = world.setup().args(["--max-file-bytes", "20000"]).start();
    server.result("index_build", json!({}));
    let text = b"fn needle() {}\n".to_vec();
    let mut now = text.clone();
    for (bytes, is_searched) in [
        ([&text[..], b"\0"].concat(), false),
        (text.clone(), true),
        ([&text[..], &b"x".repeat(LIMIT)].concat(), false),
        ([&b"\xf0 is no text, but no NUL\n"[..], &text].concat(), true),
        (b"\0".to_vec(), false),
        (Vec::new(), false),
        (text.clone(), true),
    ] {
        server.result("file.remove", json!({"path": "a.rs", "hash": hash(&now)}));
        for how in ["literal", "regex", "words", "symbol"] {
            assert_eq!(paths(&search(&mut server, how, "needle")), ["b.rs"], "{how}: removed");
        }
        let create = json!({"path": "a.rs", "content": base64(&bytes), "encoding": "base64"});
        let made = server.result("file.create", create);
        now = bytes;
        for how in ["literal", "regex", "words", "symbol"] {
            let answer = search(&mut server, how, "needle");
            let hit = answer["hits"].as_array().expect("hits").iter().find(|hit| hit["path"] == "a.rs");
            assert_eq!(hit.map(|hit| &hit["hash"]), is_searched.then_some(&made["hash"]), "{how}: {answer}");
        }
    }
    server.finish();
}

#[test]
fn rules_written_through_the_tools_apply_at_once() {
    let world = World::of(&[("a.txt", "needle\n"), ("b.txt", "needle\n"), ("sub/c.txt", "needle\n")]);
    let mut server = world.built();
    let made = server.result("file.create", json!({"path": ".ignore", "content": "b.txt\n"}));
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a.txt", "sub/c.txt"]);
    let edit = json!({"path": ".ignore", "hash": made["hash"], "content": "sub"});
    let made = server.result("text.append", edit);
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a.txt"]);
    let moved = json!({"path": ".ignore", "hash": made["hash"], "to": "sub/.ignore"});
    let made = server.result("file.move", moved);
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a.txt", "b.txt", "sub/c.txt"]);
    let edit = json!({"path": "sub/.ignore", "hash": made["hash"], "content": "*.txt"});
    let made = server.result("text.append", edit);
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a.txt", "b.txt"]);
    server.result("file.remove", json!({"path": "sub/.ignore", "hash": made["hash"]}));
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a.txt", "b.txt", "sub/c.txt"]);
    server.finish();
}

/// The promise is one second; a busy machine may take longer.
const SOON: Duration = Duration::from_secs(10);

/// Waits until a look returns the expected value.
fn seen_soon<T: PartialEq + Debug>(expected: &T, what: &str, mut look: impl FnMut() -> T) {
    let deadline = Instant::now() + SOON;
    loop {
        let seen = look();
        if seen == *expected {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {seen:?} is seen, not {expected:?}");
    }
}

/// Waits until a search finds the word at exactly these positions.
fn sees(server: &mut Server, word: &str, expected: &[(&str, u64)], what: &str) {
    let expected: Vec<(String, u64)> =
        expected.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect();
    seen_soon(&expected, &format!("{what}: {word}"), || positions(&search(server, "literal", word)));
    // What one search has seen, all later searches see.
    let (start, end) = word.split_at(word.len() - 1);
    assert_eq!(positions(&search(server, "regex", &format!("{start}[{end}]"))), expected, "{what}: regex");
    let files: BTreeSet<String> = expected.into_iter().map(|(path, _)| path).collect();
    let found: BTreeSet<String> = paths(&search(server, "words", word)).into_iter().collect();
    assert_eq!(found, files, "{what}: words");
}

/// Saves a file as editors do.
fn save_by_rename(path: &Path, content: &str) {
    let beside = path.with_extension("swp~");
    fs::write(&beside, content).expect("writes");
    fs::rename(beside, path).expect("saves");
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).expect("there").modified().expect("a time")
}

fn set_modified(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).expect("opens").set_modified(time).expect("sets");
}

#[test]
fn edits_from_outside_are_seen() {
    let world =
        World::of(&[("a.txt", "old word\n"), ("sub/deep/b.txt", "lower\n"), ("sub/c.txt", "middle\n")]);
    let mut server = world.built();
    sees(&mut server, "old", &[("a.txt", 1)], "at first");

    world.write("a.txt", "line\nsecond\n");
    sees(&mut server, "second", &[("a.txt", 2)], "written in place");
    sees(&mut server, "old", &[], "written in place");
    save_by_rename(&world.at("a.txt"), "line\nline\nthird\n");
    sees(&mut server, "third", &[("a.txt", 3)], "saved by a rename");
    sees(&mut server, "second", &[], "saved by a rename");
    fs::remove_file(world.at("a.txt")).expect("removes");
    sees(&mut server, "third", &[], "removed");

    fs::create_dir_all(world.at("new/er/folder")).expect("folders");
    world.write("new/er/folder/x.txt", "fresh\n");
    sees(&mut server, "fresh", &[("new/er/folder/x.txt", 1)], "in new folders");
    fs::rename(world.at("sub"), world.at("renamed")).expect("renames");
    sees(&mut server, "lower", &[("renamed/deep/b.txt", 1)], "a folder renamed");
    world.write("renamed/deep/b.txt", "lowest\n");
    sees(&mut server, "lowest", &[("renamed/deep/b.txt", 1)], "written after its folder was renamed");
    sees(&mut server, "lower", &[], "written after its folder was renamed");
    world.write("renamed/deep/new.txt", "newest\n");
    sees(&mut server, "newest", &[("renamed/deep/new.txt", 1)], "new in a folder that was renamed");

    world.write("turn", "filelike\n");
    sees(&mut server, "filelike", &[("turn", 1)], "a file");
    fs::remove_file(world.at("turn")).expect("removes");
    world.write("turn/inside.txt", "folderlike\n");
    sees(&mut server, "folderlike", &[("turn/inside.txt", 1)], "turned into a folder");
    sees(&mut server, "filelike", &[], "turned into a folder");
    fs::remove_dir_all(world.at("turn")).expect("removes");
    world.write("turn", "filelike again\n");
    sees(&mut server, "filelike", &[("turn", 1)], "turned back");
    sees(&mut server, "folderlike", &[], "turned back");
    fs::remove_file(world.at("turn")).expect("removes");
    symlink("renamed/c.txt", world.at("turn")).expect("a link");
    sees(&mut server, "filelike", &[], "turned into a link");

    fs::rename(world.at("renamed"), world.path("away")).expect("renames");
    sees(&mut server, "middle", &[], "moved out of the root");
    fs::write(world.path("away/c.txt"), "outside\n").expect("writes");
    fs::write(world.path("away/deep/more.txt"), "outside\n").expect("writes");
    sees(&mut server, "outside", &[], "written outside the watched files");
    fs::rename(world.path("away"), world.at("back")).expect("renames");
    sees(&mut server, "outside", &[("back/c.txt", 1), ("back/deep/more.txt", 1)], "moved into the root");
    world.write("back/deep/more.txt", "inside\n");
    sees(&mut server, "inside", &[("back/deep/more.txt", 1)], "written after it was moved in");

    fs::write(world.path("one.txt"), "hardly\n").expect("writes");
    fs::hard_link(world.path("one.txt"), world.at("one.txt")).expect("a link");
    sees(&mut server, "hardly", &[("one.txt", 1)], "a second name");
    world.write("a.txt", b"binary\0binary\n");
    sees(&mut server, "binary", &[], "a file with a NUL byte");
    world.write("a.txt", "binary no more\n");
    sees(&mut server, "binary", &[("a.txt", 1)], "without it");
    server.finish();
}

#[test]
fn a_watching_server_sees_a_change_that_keeps_size_and_time_and_does_not_lose_it() {
    let world = World::of(&[("a.txt", "first words\n"), ("b.txt", "other\n")]);
    // The time is long enough ago to identify the version.
    let then = SystemTime::now() - Duration::from_secs(1000);
    set_modified(&world.at("a.txt"), then);
    let mut server = world.built();
    sees(&mut server, "first", &[("a.txt", 1)], "at first");
    let time = modified(&world.at("a.txt"));
    world.write("a.txt", "later words\n");
    set_modified(&world.at("a.txt"), time);
    assert_eq!(modified(&world.at("a.txt")), time);
    sees(&mut server, "later", &[("a.txt", 1)], "the time set back");
    sees(&mut server, "first", &[], "the time set back");
    // New rules make the server check the complete root again.
    world.write(".ignore", "b.txt\n");
    sees(&mut server, "other", &[], "new rules");
    sees(&mut server, "later", &[("a.txt", 1)], "the time set back, and then new rules");
    server.result("index_build", json!({}));
    sees(&mut server, "later", &[("a.txt", 1)], "the time set back, and then a refresh");
    sees(&mut server, "first", &[], "the time set back, and then a refresh");
    server.finish();
}

/// A word of letters for each number. None is a prefix of another.
fn unique(number: usize) -> String {
    let letters = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    format!("unique{letters}x")
}

#[test]
fn thousands_of_files_at_once_are_seen() {
    let world = World::of(&[("a.txt", "common\n")]);
    let mut server = world.built();
    let count = rounds(3_000, 30_000);
    for number in 0..count {
        world.write(&format!("many/{}/{number}.txt", number % 50), format!("common\n{}\n", unique(number)));
    }
    wait_until("all are seen", || {
        let answer = server.result("search", json!({"query": "common", "match": "words", "top": 1}));
        answer["coverage"]["files"] == json!(count + 1) && answer["total"] == json!(count + 1)
    });
    for number in [0, 1, count / 2, count - 1] {
        let path = format!("many/{}/{number}.txt", number % 50);
        sees(&mut server, &unique(number), &[(&path, 2)], "one of many");
    }
    fs::rename(world.at("many"), world.at("moved")).expect("renames");
    let last = format!("moved/{}/{}.txt", (count - 1) % 50, count - 1);
    sees(&mut server, &unique(count - 1), &[(&last, 2)], "many moved");
    fs::remove_dir_all(world.at("moved")).expect("removes");
    sees(&mut server, "common", &[("a.txt", 1)], "many removed");
    assert_eq!(search(&mut server, "literal", "common")["coverage"]["files"], json!(1));
    server.finish();
}

/// Waits until exactly these files are searchable.
fn searched(server: &mut Server, expected: &[&str], what: &str) {
    let expected: Vec<String> = expected.iter().map(|path| (*path).to_owned()).collect();
    seen_soon(&expected, what, || paths(&search(server, "literal", "needle")));
}

#[test]
fn what_is_ignored_follows_the_rules_whenever_they_change() {
    let world = World::new();
    let all = [".hidden.txt", "a.txt", "b.log", "deep/er/e.log", "sub/c.log", "sub/d.txt"];
    for path in all {
        world.write(path, "needle\n");
    }
    let mut server = world.built();
    searched(&mut server, &all, "no rules");
    world.write(".gitignore", "*.log\n");
    searched(&mut server, &all, "git's rules without git");
    world.write(".ignore", "sub/\n");
    searched(&mut server, &[".hidden.txt", "a.txt", "b.log", "deep/er/e.log"], ".ignore is there");
    fs::remove_file(world.at(".ignore")).expect("removes");
    searched(&mut server, &all, ".ignore is removed");
    let init = Command::new("git").args(["init", "-q"]).arg(world.root()).output();
    if !init.is_ok_and(|init| init.status.success()) {
        fs::create_dir_all(world.at(".git/info")).expect("a folder");
    }
    searched(&mut server, &[".hidden.txt", "a.txt", "sub/d.txt"], "git init");
    world.write(".git/info/exclude", "d.txt\n");
    searched(&mut server, &[".hidden.txt", "a.txt"], ".git/info/exclude");
    world.write(".gitignore", "a.txt\n");
    searched(&mut server, &[".hidden.txt", "b.log", "deep/er/e.log", "sub/c.log"], ".gitignore changed");
    world.write("sub/.gitignore", "!d.txt\n");
    let expected = [".hidden.txt", "b.log", "deep/er/e.log", "sub/c.log", "sub/d.txt"];
    searched(&mut server, &expected, "a rule below that says otherwise");
    save_by_rename(&world.at(".rgignore"), "b.log\n");
    searched(&mut server, &[".hidden.txt", "deep/er/e.log", "sub/c.log", "sub/d.txt"], ".rgignore");
    fs::remove_file(world.at(".gitignore")).expect("removes");
    searched(
        &mut server,
        &[".hidden.txt", "a.txt", "deep/er/e.log", "sub/c.log", "sub/d.txt"],
        ".gitignore removed",
    );
    fs::remove_file(world.at("sub/.gitignore")).expect("removes");
    searched(&mut server, &[".hidden.txt", "a.txt", "deep/er/e.log", "sub/c.log"], "sub/.gitignore removed");
    fs::remove_dir_all(world.at(".git")).expect("removes");
    searched(
        &mut server,
        &[".hidden.txt", "a.txt", "deep/er/e.log", "sub/c.log", "sub/d.txt"],
        "no git any more",
    );
    save_by_rename(&world.at(".rgignore"), "deep\n");
    searched(
        &mut server,
        &[".hidden.txt", "a.txt", "b.log", "sub/c.log", "sub/d.txt"],
        ".rgignore saved again",
    );
    // Changes in an ignored folder are seen once it is no longer ignored.
    world.write("deep/new.txt", "needle\n");
    fs::remove_dir_all(world.at("deep/er")).expect("removes");
    searched(
        &mut server,
        &[".hidden.txt", "a.txt", "b.log", "sub/c.log", "sub/d.txt"],
        "in an ignored folder",
    );
    fs::remove_file(world.at(".rgignore")).expect("removes");
    let expected = [".hidden.txt", "a.txt", "b.log", "deep/new.txt", "sub/c.log", "sub/d.txt"];
    searched(&mut server, &expected, ".rgignore removed");
    world.write("deep/late.txt", "needle\n");
    let expected =
        [".hidden.txt", "a.txt", "b.log", "deep/late.txt", "deep/new.txt", "sub/c.log", "sub/d.txt"];
    searched(&mut server, &expected, "in a folder that was ignored");
    server.finish();
}

#[test]
fn the_rules_of_git_apply_however_slowly_they_are_created() {
    let world = World::of(&[("a.txt", "needle\n"), ("b.txt", "needle\n")]);
    let mut server = world.built();
    searched(&mut server, &["a.txt", "b.txt"], "no rules");
    fs::create_dir(world.at(".git")).expect("a folder");
    searched(&mut server, &["a.txt", "b.txt"], "an empty .git");
    fs::create_dir(world.at(".git/info")).expect("a folder");
    searched(&mut server, &["a.txt", "b.txt"], "an empty .git/info");
    world.write(".git/info/exclude", "a.txt\n");
    searched(&mut server, &["b.txt"], "an exclude");
    world.write(".git/info/exclude", "b.txt\n");
    searched(&mut server, &["a.txt"], "another exclude");
    server.finish();
}

#[test]
fn the_rules_of_a_nested_repository_apply_whenever_they_change() {
    let world =
        World::of(&[("in/a.txt", "needle\n"), ("in/b.txt", "needle\n"), ("in/.gitignore", "b.txt\n")]);
    let mut server = world.built();
    searched(&mut server, &["in/a.txt", "in/b.txt"], "no repository");
    fs::create_dir_all(world.at("in/.git/info")).expect("a folder");
    searched(&mut server, &["in/a.txt"], "a repository");
    world.write("in/.git/info/exclude", "a.txt\n");
    searched(&mut server, &[], "an exclude");
    fs::remove_file(world.at("in/.git/info/exclude")).expect("removes");
    searched(&mut server, &["in/a.txt"], "no exclude");
    fs::remove_dir_all(world.at("in/.git")).expect("removes");
    searched(&mut server, &["in/a.txt", "in/b.txt"], "no repository any more");
    server.finish();
}

#[test]
fn a_server_that_starts_sees_what_has_changed_while_none_was_running() {
    let world = World::of(&[
        ("same.txt", "stays needle\n"),
        ("changed.txt", "old needle\n"),
        ("removed.txt", "gone needle\n"),
        ("folder/x.txt", "moved needle\n"),
        ("hidden/y.txt", "hidden needle\n"),
        ("turn/z.txt", "turned needle\n"),
    ]);
    world.built().finish();
    world.write("changed.txt", "line\nnew needle\n");
    fs::remove_file(world.at("removed.txt")).expect("removes");
    fs::rename(world.at("folder"), world.at("elsewhere")).expect("renames");
    world.write(".ignore", "hidden\n");
    fs::remove_dir_all(world.at("turn")).expect("removes");
    world.write("turn", "turned needle\n");
    world.write("new/n.txt", "new needle\n");
    let expected =
        [("changed.txt", 2), ("elsewhere/x.txt", 1), ("new/n.txt", 1), ("same.txt", 1), ("turn", 1)];
    // The first search sees the changes, since nothing has happened after the start.
    let mut server = world.start();
    for (how, query) in [("literal", "needle"), ("regex", "nee.le")] {
        let expected: Vec<_> =
            expected.iter().map(|(path, line)| ((*path).to_owned(), *line as u64)).collect();
        assert_eq!(positions(&search(&mut server, how, query)), expected, "{how}");
    }
    assert_eq!(search(&mut server, "words", "needle")["total"], json!(5));
    assert_eq!(search(&mut server, "words", "gone")["total"], json!(0));
    let status = server.result("index_status", json!({}));
    assert!(status["pending"].as_u64().is_some_and(|pending| pending > 0), "{status}");
    let built = server.result("index_build", json!({}));
    // The files that changed, are new or changed their type, and the rules themselves.
    assert_eq!((&built["read"], &built["removed"]), (&json!(5), &json!(4)), "{built}");
    let status = server.result("index_status", json!({}));
    assert_eq!(status["pending"], json!(0), "{status}");
    assert_eq!(search(&mut server, "literal", "needle")["total"], json!(5));
    server.finish();
}

#[test]
fn an_edit_through_one_server_is_found_through_another() {
    let world = World::of(&[("a.txt", "begin\n")]);
    let (mut one, mut other) = (world.built(), world.start());
    let mut random = Random::new(5);
    for round in 0..rounds(20, 200) {
        let word = random.word();
        let path = format!("new/{}/{round}.txt", round % 3);
        let made = one.result("file.create", json!({"path": path, "content": format!("{word}\n")}));
        sees(&mut other, &word, &[(&path, 1)], "created");
        let hit = search(&mut other, "literal", &word)["hits"][0].clone();
        assert_eq!(hit["hash"], made["hash"]);
        let next = random.word();
        let edit = json!({"path": path, "hash": hit["hash"], "lines": [1, 2], "old": word, "new": next});
        other.result("text.replace", edit);
        sees(&mut one, &next, &[(&path, 1)], "replaced");
        sees(&mut one, &word, &[], "replaced");
        if round % 7 == 3 {
            one.result("index_build", json!({}));
        }
        std::mem::swap(&mut one, &mut other);
    }
    one.finish();
    other.finish();
}

#[test]
fn one_server_answers_while_another_builds() {
    let world = World::new();
    for number in 0..200 {
        let lines: String = (0..40).map(|line| format!("fn function_{number}_{line}() {{}}\n")).collect();
        world.write(&format!("{}/{number}.rs", number % 7), format!("{lines}// needle\n"));
    }
    let (mut builder, mut seeker) = (world.built(), world.start());
    let complete = search(&mut seeker, "literal", "needle")["hits"].clone();
    assert_eq!(complete.as_array().map(Vec::len), Some(200));
    let is_done = AtomicBool::new(false);
    let mut searches = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for mode in ["full", "full", "incremental", "full"].iter().cycle().take(rounds(3, 40)) {
                builder.result("index_build", json!({"mode": mode}));
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            assert_eq!(search(&mut seeker, "literal", "needle")["hits"], complete);
            let made = format!("made_{searches}");
            seeker.result("file.create", json!({"path": format!("made/{searches}.txt"), "content": made}));
            assert_eq!(
                positions(&search(&mut seeker, "literal", &made)),
                [(format!("made/{searches}.txt"), 1)]
            );
            let answer = search(&mut seeker, "symbol", "function_7_7");
            assert_eq!(answer["hits"][0]["path"], json!("0/7.rs"), "{answer}");
            searches += 1;
        }
    });
    assert!(searches > 0, "no search was made");
    println!("{searches} searches while builds went on");
    let made = search(&mut builder, "literal", "made_");
    assert_eq!(made["total"], json!(searches));
    builder.finish();
    seeker.finish();
}

#[test]
fn an_index_that_another_process_refreshes_is_never_called_damaged() {
    let world = World::new();
    for number in 0..30 {
        world.write(
            &format!("{}/{number}.rs", number % 3),
            format!("fn function_{number}() {{}} // needle\n"),
        );
    }
    // The files that have changed since the build are read between opening the index and searching it for words: the
    // longer that takes, the more refreshes happen in between.
    let lines = (0..rounds(12_000, 60_000)).map(|line| format!("changed line number {line}\n"));
    world.write("large.txt", lines.collect::<String>());
    world.built().finish();
    // The short form makes enough refreshes to merge segments several times; the long form makes them for ten minutes.
    let until = Instant::now() + Duration::from_secs(if rounds(0, 1) == 1 { 600 } else { 0 });
    let (is_done, refreshes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut searches = 0_u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                let count = refreshes.load(Ordering::Acquire);
                world.write("small/a.rs", format!("fn refreshed_{count}() {{}}\n"));
                let (code, _, errors) = world.run(&["index", "small"]);
                assert_eq!(code, Some(0), "{errors}");
                refreshes.fetch_add(1, Ordering::Release);
            }
        });
        let _stop = Stop(&is_done);
        let mut seeker = world.start();
        while refreshes.load(Ordering::Acquire) < 40 || Instant::now() < until {
            for (how, query, total) in [
                ("words", "needle", 30),
                ("symbol", "function_7", 1),
                ("literal", "needle", 30),
                ("regex", "need.e", 30),
            ] {
                let file = fs::File::options().write(true).open(world.at("large.txt")).expect("opens");
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(searches))
                    .expect("sets the time");
                let frame = seeker.call("search", json!({"query": query, "match": how, "top": 1000}));
                let found = frame["result"]["hits"].as_array().map(Vec::len);
                assert!(found >= Some(total), "search {searches} for {how}: {frame}");
                searches += 1;
            }
        }
        seeker.finish();
    });
    println!("{searches} searches, {} refreshes", refreshes.into_inner());
}

/// Sets the flag when it is dropped, also after a failure.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn git_rules_apply_as_soon_as_there_is_a_repository_of_jujutsu() {
    let world = World::of(&[(".gitignore", "b\n"), ("a", "needle\n"), ("b", "needle\n")]);
    let mut server = world.built();
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a", "b"]);
    fs::create_dir(world.at(".jj")).expect("a folder");
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a"]);
    server.finish();
}

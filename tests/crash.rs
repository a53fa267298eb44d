//! Writes that are interrupted: by a kill, by a full disk, by a cancel. The file has its old content or its new
//! content, and no other file stays behind.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup, TEST_TIMEOUT, hash, pintle, random::Random, request, rounds, run, skip, trace::traced,
    wait_until,
};

/// A text of about this many bytes whose first line is `head`.
fn text(head: &str, size: usize) -> Vec<u8> {
    let mut text = format!("{head}\n").into_bytes();
    while text.len() < size {
        text.extend_from_slice(format!("line {} of a file that is long enough\n", text.len()).as_bytes());
    }
    text
}

/// The names in a folder on the disk.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
}

/// The names in a folder as the server lists them.
fn listed(server: &mut Server, folder: &str) -> BTreeSet<String> {
    let listing = server.result("file.list", json!({"path": folder}));
    let entries = listing["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
}

fn server_on(root: &Path) -> Server {
    Setup::new().arg("--root").arg(root).start()
}

/// A write of one of the kinds, with the files in the folder `work` before and after it.
struct Write {
    tool: &'static str,
    params: Value,
    before: Vec<(&'static str, Vec<u8>)>,
    after: Vec<(&'static str, Vec<u8>)>,
}

impl Write {
    fn new(kind: usize, size: usize, round: usize) -> Self {
        let old = text(&format!("old {round}"), size);
        let new_line = format!("new {round}");
        let rest = &old[old.iter().position(|byte| *byte == b'\n').expect("a line") + 1..];
        match kind {
            0 => Self {
                tool: "text.replace",
                params: json!({
                    "path": "work/a.txt", "hash": hash(&old), "lines": [1, 2],
                    "old": format!("old {round}"), "new": new_line,
                }),
                after: vec![("a.txt", [format!("{new_line}\n").as_bytes(), rest].concat())],
                before: vec![("a.txt", old)],
            },
            1 => Self {
                tool: "text.append",
                params: json!({"path": "work/a.txt", "hash": hash(&old), "content": new_line}),
                after: vec![("a.txt", [&old[..], format!("{new_line}\n").as_bytes()].concat())],
                before: vec![("a.txt", old)],
            },
            2 => {
                // A request may have at most one mebibyte.
                let new = text(&new_line, size.min(800 << 10));
                let content = String::from_utf8(new.clone()).expect("text");
                Self {
                    tool: "file.create",
                    params: json!({"path": "work/a.txt", "content": content}),
                    before: Vec::new(),
                    after: vec![("a.txt", new)],
                }
            }
            _ => Self {
                tool: "file.move",
                params: json!({"path": "work/a.txt", "hash": hash(&old), "to": "work/b.txt"}),
                after: vec![("b.txt", old.clone())],
                before: vec![("a.txt", old)],
            },
        }
    }

    /// Prepares the folder for the write.
    fn prepare(&self, folder: &Path) {
        for name in ["a.txt", "b.txt"] {
            let _ = fs::remove_file(folder.join(name));
        }
        for (name, bytes) in &self.before {
            fs::write(folder.join(name), bytes).expect("writes");
        }
    }

    /// How long an undisturbed write takes, from the last byte of the request to the reply.
    fn time(&self, server: &mut Server, folder: &Path) -> Duration {
        self.prepare(folder);
        server.request(json!("timed"), self.tool, self.params.clone());
        let start = Instant::now();
        let reply = server.frame();
        assert!(reply.get("result").is_some(), "{reply}");
        start.elapsed()
    }
}

/// Whether `a.txt` and `b.txt` are exactly these files. Other files are ignored.
fn holds(folder: &Path, files: &[(&'static str, Vec<u8>)]) -> bool {
    ["a.txt", "b.txt"].iter().all(|name| {
        let expected = files.iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes);
        fs::read(folder.join(name)).ok().as_ref() == expected
    })
}

#[test]
fn a_kill_at_any_instant_of_a_write_leaves_the_old_bytes_or_the_new() {
    const SIZES: [usize; 6] = [0, 100, 5_000, 100_000, 1 << 20, 2 << 20];
    let rounds = rounds(25, 500);
    let root = tempfile::tempdir().expect("a folder");
    let work = root.path().join("work");
    fs::create_dir(&work).expect("a folder");
    let mut random = Random::new(4);
    let (mut olds, mut news, mut leftovers) = (0, 0, 0);
    let mut server = server_on(root.path());
    for round in 0..rounds {
        let write = Write::new(round % 4, random.pick(&SIZES), round);
        let usual = write.time(&mut server, &work);
        write.prepare(&work);
        // The delays range from before the write to well after it; the golden ratio spreads them evenly.
        let spread = (round as f64 * 0.618_034 + random.fraction() / 8.0).fract();
        let delay = usual.mul_f64(2.5 * spread);
        server.request(json!("cut"), write.tool, write.params.clone());
        let start = Instant::now();
        while start.elapsed() < delay {
            std::hint::spin_loop();
        }
        server.signal(rustix::process::Signal::KILL);
        server.wait();
        let what = format!("round {round}, {} after {delay:?} of {usual:?}", write.tool);

        // The file has its old or its new content, and there is at most one unfinished file beside it.
        let is_new = holds(&work, &write.after);
        assert!(is_new || holds(&work, &write.before), "neither old nor new: {what}: {:?}", names(&work));
        let left: Vec<String> =
            names(&work).into_iter().filter(|name| !matches!(name.as_str(), "a.txt" | "b.txt")).collect();
        assert!(left.len() <= 1, "{what}: {left:?}");
        olds += usize::from(!is_new);
        news += usize::from(is_new);
        leftovers += left.len();

        // The next server does not list the unfinished file and removes it, and the next edit works.
        server = server_on(root.path());
        let now = if is_new { &write.after } else { &write.before };
        let expected: BTreeSet<String> = now.iter().map(|(name, _)| (*name).to_owned()).collect();
        if round % 2 == 0 {
            assert_eq!(listed(&mut server, "work"), expected, "{what}");
            assert_eq!(names(&work), expected, "listing has not removed it: {what}");
        }
        match now.first() {
            Some((name, bytes)) => {
                let params = json!({"path": format!("work/{name}"), "hash": hash(bytes), "content": "after the crash"});
                let edited = server.result("text.append", params);
                let bytes = [bytes, &b"after the crash\n"[..]].concat();
                assert_eq!(edited["hash"], json!(hash(&bytes)), "{what}");
                assert!(fs::read(work.join(name)).expect("there") == bytes, "{what}");
            }
            None => {
                let made = server.result(write.tool, write.params.clone());
                assert_eq!(made["hash"], json!(hash(&write.after[0].1)), "{what}");
            }
        }
        assert!(names(&work).iter().all(|name| matches!(name.as_str(), "a.txt" | "b.txt")), "{what}");
        assert_eq!(listed(&mut server, "work"), names(&work), "{what}");
    }
    server.finish();
    println!("{rounds} kills: {olds} left the old bytes, {news} the new, {leftovers} an unfinished file");
    assert!(olds > 0 && news > 0, "the kills came all before or all after: {olds} old, {news} new");
}

/// Leaves an unfinished file as a killed server leaves it. Returns its name.
fn leave_unfinished_file(root: &Path, folder: &str) -> String {
    let path = format!("{folder}/big.txt");
    let old = text("old", 4 << 20);
    let guard = hash(&old);
    fs::write(root.join(&path), &old).expect("writes");
    let before = names(&root.join(folder));
    let mut server = server_on(root);
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let params = json!({"path": path, "hash": guard, "content": "x"});
        server.request(json!(1), "text.append", params);
        let unfinished = loop {
            if let Some(name) = names(&root.join(folder)).difference(&before).next() {
                break Some(name.clone());
            }
            if fs::metadata(root.join(&path)).expect("there").len() != old.len() as u64 {
                break None;
            }
        };
        if let Some(name) = unfinished {
            server.signal(rustix::process::Signal::KILL);
            server.wait();
            if root.join(folder).join(&name).exists() {
                return name;
            }
            server = server_on(root);
        }
        assert!(Instant::now() < deadline, "no kill came in the middle of a write");
        fs::write(root.join(&path), &old).expect("writes");
    }
}

#[test]
fn a_killed_writers_file_is_removed_when_its_folder_is_next_read_or_written() {
    let small = b"small\n";
    type Use = fn(&mut Server, String) -> Value;
    let uses: [(&str, Use); 7] = [
        ("file.list", |server, folder| server.result("file.list", json!({"path": folder}))),
        ("file.create", |server, folder| {
            server.result("file.create", json!({"path": format!("{folder}/new.txt"), "content": ""}))
        }),
        ("text.replace", |server, folder| {
            let (path, hash) = (format!("{folder}/small.txt"), hash(b"small\n"));
            let params = json!({"path": path, "hash": hash, "lines": [1, 0], "old": "small", "new": "x"});
            server.result("text.replace", params)
        }),
        ("file.remove", |server, folder| {
            let path = format!("{folder}/small.txt");
            server.result("file.remove", json!({"path": path, "hash": hash(b"small\n")}))
        }),
        ("file.move within", |server, folder| {
            let (path, to) = (format!("{folder}/small.txt"), format!("{folder}/moved.txt"));
            server.result("file.move", json!({"path": path, "hash": hash(b"small\n"), "to": to}))
        }),
        ("file.move away", |server, folder| {
            let params =
                json!({"path": format!("{folder}/small.txt"), "hash": hash(b"small\n"), "to": "away.txt"});
            server.result("file.move", params)
        }),
        ("file.move into", |server, folder| {
            let to = format!("{folder}/arrived.txt");
            server.result("file.move", json!({"path": "outside.txt", "hash": hash(b"small\n"), "to": to}))
        }),
    ];
    for (what, use_folder) in uses {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("dead");
        fs::create_dir(&folder).expect("a folder");
        let name = leave_unfinished_file(root.path(), "dead");
        fs::write(folder.join("small.txt"), small).expect("writes");
        fs::write(root.path().join("outside.txt"), small).expect("writes");
        let mut server = server_on(root.path());
        use_folder(&mut server, "dead".into());
        assert!(!folder.join(&name).exists(), "{what} has left it there");
        let kept: Vec<String> =
            names(&folder).into_iter().filter(|name| name.contains("recovered")).collect();
        assert!(kept.is_empty(), "{what} takes it for another program's: {kept:?}");
        server.finish();
    }
}

#[test]
fn a_copy_of_a_killed_writers_file_is_kept_under_a_visible_name() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("dead")).expect("a folder");
    let unfinished = root.path().join("dead").join(leave_unfinished_file(root.path(), "dead"));
    let copy = root.path().join(unfinished.file_name().expect("a name"));
    // The copy has the file's attributes, as a backup would.
    let copied = Command::new("cp").arg("-a").args([&unfinished, &copy]).status().expect("copies");
    assert!(copied.success());
    // The writer may have been killed before it wrote anything.
    let mut opened = fs::OpenOptions::new().append(true).open(&copy).expect("opens");
    std::io::Write::write_all(&mut opened, b"more\n").expect("writes");
    drop(opened);
    let bytes = fs::read(&copy).expect("there");
    let mut server = server_on(root.path());
    assert_eq!(listed(&mut server, ""), ["dead", "pintle-tmp.recovered-1"].map(String::from).into());
    assert!(fs::read(root.path().join("pintle-tmp.recovered-1")).expect("kept") == bytes);
    assert!(!copy.exists());
    server.finish();
}

#[test]
fn an_unfinished_file_cannot_be_named_by_any_tool() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("dead")).expect("a folder");
    let name = leave_unfinished_file(root.path(), "dead");
    let path = format!("dead/{name}");
    let bytes = fs::read(root.path().join(&path)).expect("there");
    let mut server = server_on(root.path());
    let guard = hash(&bytes);
    for (tool, params) in [
        ("file.read", json!({"path": path})),
        ("text.read", json!({"path": path})),
        ("text.append", json!({"path": path, "hash": guard, "content": "x"})),
        ("file.move", json!({"path": path, "hash": guard, "to": "x"})),
        ("file.remove", json!({"path": path, "hash": guard})),
    ] {
        assert_eq!(server.error(tool, params)["code"], json!("NOT_FOUND"), "{tool}");
    }
    let error = server.error("file.create", json!({"path": path, "content": "x"}));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    server.finish();
}

#[test]
fn an_unfinished_file_of_a_running_writer_is_neither_listed_nor_removed() {
    let big = Big::new();
    let mut writer = server_on(big.folder());
    let mut reader = server_on(big.folder());
    big.begin(&mut writer);
    assert!(big.sees_unfinished(0), "it was written before anybody could look");
    let mut looks = 0;
    while names(big.folder()).len() > 1 {
        assert_eq!(listed(&mut reader, ""), ["big.txt".to_owned()].into());
        looks += 1;
    }
    assert!(looks > 0, "no look was made");
    assert_eq!(writer.frame()["result"]["hash"], json!(hash(&big.new)), "the write was disturbed");
    assert!(fs::read(big.folder().join("big.txt")).expect("there") == big.new);
    reader.finish();
    writer.finish();
}

/// The replies of a server that has ended.
fn replies(output: &str) -> Vec<Value> {
    let frames = output.lines().filter(|line| line.starts_with('{'));
    frames.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn requests(requests: &[(&str, Value)]) -> Vec<u8> {
    let lines = requests
        .iter()
        .enumerate()
        .map(|(id, (tool, params))| format!("{}\n", request(json!(id), tool, params.clone())));
    lines.collect::<String>().into_bytes()
}

/// Requests of a client where there is no disk space left. Before them, the folder has only `a.txt`.
fn no_space_requests(old: &[u8]) -> Vec<u8> {
    let guard = hash(old);
    let much = "x".repeat(600_000);
    requests(&[
        ("text.append", json!({"path": "a.txt", "hash": guard, "content": much})),
        ("text.replace", json!({"path": "a.txt", "hash": guard, "lines": [1, 2], "old": "old", "new": much})),
        ("file.create", json!({"path": "b.txt", "content": much})),
        ("file.list", json!({})),
        ("text.read", json!({"path": "a.txt", "lines": [1, 2]})),
        ("file.create", json!({"path": "c.txt", "content": "small"})),
    ])
}

fn assert_no_space_was_reported(replies: &[Value], old: &[u8], reason: &str, wanted: &str) {
    assert_eq!(replies.len(), 6, "{replies:?}");
    for (reply, file) in replies.iter().zip(["a.txt", "a.txt", "b.txt"]) {
        let error = &reply["error"]["data"];
        assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{reply}");
        assert_eq!(error["details"]["reason"], json!(reason), "{reply}");
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(
            message.contains(file) && message.contains(wanted),
            "it does not say what is missing: {message}"
        );
        assert!(error["hint"].is_string(), "it does not say what to do: {reply}");
    }
    let entries = json!([{"name": "a.txt", "type": "file", "size": old.len()}]);
    assert_eq!(replies[3]["result"]["entries"], entries);
    assert_eq!(replies[4]["result"]["content"], json!("old\n"));
    assert_eq!(replies[4]["result"]["hash"], json!(hash(old)));
    assert_eq!(replies[5]["result"]["hash"], json!(hash(b"small")), "{}", replies[5]);
}

#[test]
fn a_file_that_may_not_grow_is_refused_and_nothing_has_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a folder");
    let old = text("old", 100_000);
    fs::write(root.join("a.txt"), &old).expect("writes");
    // The limit is 512 blocks of 512 bytes, or of 1,024 in some shells. With SIGXFSZ ignored, a larger write fails
    // instead of killing the process.
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 512; exec "$0" serve --root "$1""#])
        .arg(pintle().get_program())
        .arg(&root)
        .env("PINTLE_STATE_DIR", folder.path().join("state"))
        .env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, output, errors) = run(&mut command, &no_space_requests(&old));
    assert_eq!(code, Some(0), "{errors}");
    assert_no_space_was_reported(&replies(&output), &old, "io", "File too large");
    assert!(fs::read(root.join("a.txt")).expect("there") == old);
    assert_eq!(names(&root), ["a.txt", "c.txt"].map(String::from).into());
}

#[test]
fn a_full_disk_is_reported_and_nothing_has_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a folder");
    // A small disk, where the system lets users mount one.
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(&root);
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        return skip("this system gives users no disk of their own");
    }
    let old = text("old", 100_000);
    let source = folder.path().join("a.txt");
    fs::write(&source, &old).expect("writes");
    let script = r#"mount -t tmpfs -o size=512k tmpfs "$1" && cp "$2" "$1/a.txt" || exit 9
        "$0" serve --root "$1" || exit 8
        cmp "$2" "$1/a.txt" && ls -A "$1""#;
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", script])
        .arg(pintle().get_program())
        .args([&root, &source])
        .env("PINTLE_STATE_DIR", folder.path().join("state"))
        .env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, output, errors) = run(&mut command, &no_space_requests(&old));
    assert_eq!(code, Some(0), "{errors}");
    assert_no_space_was_reported(&replies(&output), &old, "no_space", "no space left");
    assert!(output.ends_with("}\na.txt\nc.txt\n"), "something is left: {output}");
}

/// A server in whose root or state folder there is no space left is asked to change two files at once.
fn edit_of_two_files_without_space(is_state_full: bool) -> Option<(tempfile::TempDir, Vec<Value>, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let [root, state] = ["root", "state"].map(|name| folder.path().join(name));
    fs::create_dir(&root).expect("a folder");
    fs::create_dir(&state).expect("a folder");
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(&root);
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        skip("this system gives users no disk of their own");
        return None;
    }
    let script = r#"mount -t tmpfs -o size=512k tmpfs "$3" || exit 9
        echo old > "$1/a.txt"; echo old > "$1/b.txt"
        head -c "$4" /dev/zero > "$3/filling"
        "$0" serve --root "$1" --state-dir "$2" || exit 8
        cat "$1/a.txt" "$1/b.txt"; ls -A "$1""#;
    let (full, filling) = if is_state_full { (&state, "1000000") } else { (&root, "100000") };
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script]).arg(pintle().get_program());
    command.args([&root, &state, full]).arg(filling).env("MCP_READY_FILE", folder.path().join("ready"));
    let edit = |path: &str, content: &str| json!({"path": path, "hash": hash("old\n"), "content": content});
    let much = "x".repeat(600_000);
    let requests = requests(&[
        ("text.edit", json!({"edits": [edit("a.txt", "small"), edit("b.txt", &much)]})),
        ("text.edit", json!({"edits": [edit("a.txt", "small")]})),
        ("text.edit", json!({"edits": [edit("a.txt", "again"), edit("b.txt", "small")]})),
    ]);
    let (code, output, errors) = run(&mut command, &requests);
    assert_eq!(code, Some(0), "{errors}");
    let (replies, rest): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with('{'));
    let replies = replies.iter().map(|reply| serde_json::from_str(reply).expect("JSON")).collect();
    Some((folder, replies, rest.join(" ")))
}

#[test]
fn an_edit_of_several_files_that_do_not_fit_on_the_disk_changes_none() {
    let Some((_folder, replies, rest)) = edit_of_two_files_without_space(false) else { return };
    let error = &replies[0]["error"]["data"];
    assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{error}");
    assert_eq!(error["details"]["errors"][0]["entry"], json!(1), "{error}");
    assert_eq!(error["details"]["errors"][0]["details"]["reason"], json!("no_space"), "{error}");
    // The disk has space for the other edits, because nothing is left of the first.
    assert!(replies[1].get("result").is_some(), "{}", replies[1]);
    let error = &replies[2]["error"]["data"];
    assert_eq!(error["code"], json!("CONFLICT"), "{error}");
    assert_eq!(rest, "old small old a.txt b.txt filling");
}

#[test]
fn with_a_full_state_folder_several_files_cannot_be_changed_and_one_can() {
    let Some((_folder, replies, rest)) = edit_of_two_files_without_space(true) else { return };
    let error = &replies[0]["error"]["data"];
    assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{error}");
    assert_eq!(error["details"]["reason"], json!("no_space"), "{error}");
    assert!(error["hint"].is_string(), "{error}");
    assert!(replies[1].get("result").is_some(), "{}", replies[1]);
    assert_eq!(rest, "old small old a.txt b.txt");
}

#[test]
fn a_failing_disk_is_reported_and_the_next_edit_works() {
    let setup = Setup::new();
    let file = setup.path("root/a.txt");
    fs::write(&file, "old\n").expect("writes");
    for (failure, reason) in [("EIO", "io"), ("EDQUOT", "no_space")] {
        let setup = Setup::new().arg("--root").arg(file.parent().expect("a folder"));
        let Some(mut traced) = traced(setup, "fsync", &[&format!("fsync:error={failure}:when=1")]) else {
            return;
        };
        let params = json!({"path": "a.txt", "hash": hash("old\n"), "content": "new"});
        let error = traced.server.error("text.append", params.clone());
        assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{error}");
        assert_eq!(error["details"]["reason"], json!(reason), "{error}");
        assert!(error["hint"].is_string(), "{error}");
        assert_eq!(fs::read_to_string(&file).expect("there"), "old\n");
        assert_eq!(names(file.parent().expect("a folder")), ["a.txt".to_owned()].into());
        traced.server.result("text.append", params);
        fs::write(&file, "old\n").expect("writes");
        traced.server.finish();
    }
}

#[test]
fn a_change_that_may_not_be_on_the_disk_is_reported_as_made() {
    let setup = Setup::new();
    let file = setup.path("root/a.txt");
    fs::write(&file, "old\n").expect("writes");
    // The first fsync is that of the file, the second that of the folder.
    let Some(mut traced) = traced(setup, "fsync", &["fsync:error=EIO:when=2"]) else { return };
    let params = json!({"path": "a.txt", "hash": hash("old\n"), "content": "new"});
    let error = traced.server.error("text.append", params);
    assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{error}");
    assert_eq!(error["details"]["reason"], json!("io"), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("was changed")), "{error}");
    assert_eq!(fs::read_to_string(&file).expect("there"), "old\nnew\n");
    assert_eq!(names(file.parent().expect("a folder")), ["a.txt".to_owned()].into());
    traced.server.finish();
}

/// A file that takes a while to be written, in its own root.
struct Big {
    root: tempfile::TempDir,
    old: Vec<u8>,
    new: Vec<u8>,
    hash: String,
}

impl Big {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let old = text("old", 8 << 20);
        let big = Self { root, new: [&old[..], b"new\n"].concat(), hash: hash(&old), old };
        big.restore();
        big
    }

    fn folder(&self) -> &Path {
        self.root.path()
    }

    /// Restores the old content of the file.
    fn restore(&self) {
        fs::write(self.folder().join("big.txt"), &self.old).expect("writes");
    }

    /// Sends the request for the edit.
    fn begin(&self, server: &mut Server) {
        let params = json!({"path": "big.txt", "hash": self.hash, "content": "new"});
        server.request(json!("big"), "text.append", params);
    }

    /// Polls without a pause until an unfinished file of at least this size exists. Returns false if the write was
    /// faster.
    fn sees_unfinished(&self, size: usize) -> bool {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while Instant::now() < deadline {
            for entry in fs::read_dir(self.folder()).expect("a folder").flatten() {
                let Ok(found) = entry.metadata() else { continue };
                let is_unfinished = entry.file_name() != "big.txt";
                if is_unfinished && found.len() >= size as u64 {
                    return true;
                }
                if !is_unfinished && found.len() != self.old.len() as u64 {
                    return false;
                }
            }
        }
        panic!("nothing is ever written");
    }

    /// Waits for the reply to an edit that was cancelled and checks that it is true: a cancelled edit has not happened,
    /// not even later, and a completed one has. Returns whether it was cancelled.
    fn assert_true_reply(&self, server: &mut Server, when: &str) -> bool {
        let reply = server.frame();
        let is_cancelled = reply["error"]["data"]["code"] == json!("CANCELLED");
        assert!(is_cancelled || reply.get("result").is_some(), "{when}: {reply}");
        wait_until("no unfinished file is left", || names(self.folder()).len() == 1);
        let found = fs::read(self.folder().join("big.txt")).expect("there");
        let is_old = found == self.old;
        assert!(is_old || found == self.new, "{when}: neither old nor new");
        assert_eq!(
            is_cancelled, is_old,
            "{when}: the reply is {reply}, but that the file is old is {is_old}"
        );
        is_cancelled
    }
}

fn send_cancel(server: &mut Server) {
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "big"}}));
}

#[test]
fn an_edit_that_is_cancelled_in_the_middle_leaves_the_old_bytes_and_nothing_else() {
    let big = Big::new();
    let mut server = server_on(big.folder());
    big.begin(&mut server);
    assert!(big.sees_unfinished(0), "it was written before anybody could look");
    send_cancel(&mut server);
    assert!(big.assert_true_reply(&mut server, "in the middle"), "it was not cancelled");
    // The next edit succeeds.
    big.begin(&mut server);
    assert_eq!(server.frame()["result"]["hash"], json!(hash(&big.new)));
    server.finish();
}

#[test]
fn an_edit_that_is_cancelled_at_its_very_end_has_happened_or_is_reported_as_cancelled_never_both() {
    let big = Big::new();
    let mut server = server_on(big.folder());
    let old_size = big.old.len();
    for round in 0..rounds(8, 100) {
        // The cancel comes when almost all bytes are written, when all old bytes are, and when the new ones are as
        // well.
        let seen = [old_size - old_size / 10, old_size, big.new.len()][round % 3];
        big.begin(&mut server);
        if big.sees_unfinished(seen) {
            send_cancel(&mut server);
        }
        let when = format!("round {round}, cancelled when {seen} of {} bytes were there", big.new.len());
        big.assert_true_reply(&mut server, &when);
        big.restore();
    }
    server.finish();
}

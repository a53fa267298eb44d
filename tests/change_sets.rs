//! Edits of several files in one call: all happen, or none, through races, cancels and timeouts, and searches see which.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup, hash, request, rounds,
    trace::{Traced, traced},
    wait_until,
};

/// Several files in one folder and in others.
const FILES: [&str; 6] = ["a.txt", "b.txt", "c.txt", "src/a.txt", "src/deep/b.txt", "docs/c.txt"];

fn content(name: &str, round: usize, line: &str) -> String {
    format!("{line} {round} of {name}\n{}", "a line like any other\n".repeat(50))
}

fn prepare(root: &Path, round: usize) {
    let _ = fs::remove_dir_all(root.join("made"));
    for name in FILES {
        let file = root.join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(file, content(name, round, "old")).expect("written");
    }
}

/// An edit of one line in each file, and a new file in a new folder.
fn change_all(round: usize) -> Value {
    let mut edits: Vec<Value> = FILES
        .iter()
        .map(|name| {
            let tag = &hash(content(name, round, "old"))[..8];
            json!({"path": name, "hash": tag, "lines": [1, 2], "new": format!("new {round} of {name}")})
        })
        .collect();
    edits.push(json!({"path": "made/here/d.txt", "content": format!("new {round}")}));
    json!({ "edits": edits })
}

/// Whether all files are new (true) or all are old.
fn state(root: &Path, round: usize) -> Option<bool> {
    let is = |line: &str| {
        FILES.iter().all(|name| fs::read_to_string(root.join(name)).ok() == Some(content(name, round, line)))
    };
    let is_made = fs::read_to_string(root.join("made/here/d.txt")).ok() == Some(format!("new {round}"));
    match (is("old"), is("new")) {
        (true, false) if !root.join("made").exists() => Some(false),
        (false, true) if is_made => Some(true),
        _ => None,
    }
}

/// All names below a folder that a user did not put there.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".pintle") || name.contains("recovered") {
            found.push(entry.path());
        } else if entry.path().is_dir() {
            found.extend(leftovers(&entry.path()));
        }
    }
    found
}

fn server_on(root: &Path, state: &Path) -> Server {
    Setup::new().arg("--root").arg(root).arg("--state-dir").arg(state).start()
}

#[test]
fn of_several_servers_with_the_same_versions_one_changes_all_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a folder");
    // They share only the root.
    let mut servers: Vec<Server> = (0..3).map(|_| Setup::new().arg("--root").arg(&root).start()).collect();
    for round in 0..rounds(20, 700) {
        prepare(&root, round);
        let replies: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> = servers
                .iter_mut()
                .enumerate()
                .map(|(number, server)| {
                    scope.spawn(move || match number {
                        // One of them edits a single file.
                        0 => {
                            let tag = &hash(content("src/a.txt", round, "old"))[..8];
                            server.call("text.replace", json!({
                                "path": "src/a.txt", "hash": tag, "lines": [1, 2], "new": format!("new {round} of src/a.txt"),
                            }))
                        }
                        _ => server.call("text.edit", change_all(round)),
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a reply")).collect()
        });
        let won: Vec<usize> = (0..3).filter(|number| replies[*number].get("result").is_some()).collect();
        assert_eq!(won.len(), 1, "round {round}: {replies:?}");
        if won[0] == 0 {
            let is_old =
                |name: &&&str| fs::read_to_string(root.join(name)).ok() == Some(content(name, round, "old"));
            assert_eq!(FILES.iter().filter(is_old).count(), FILES.len() - 1);
            assert!(!root.join("made").exists());
        } else {
            assert_eq!(state(&root, round), Some(true));
        }
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new(), "round {round}");
    }
}

#[test]
fn a_cancelled_edit_of_many_files_is_whole_or_nothing_and_never_reported_wrongly() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state_dir) = (folder.path().join("root"), folder.path().join("state"));
    fs::create_dir(&root).expect("a folder");
    let mut server = server_on(&root, &state_dir);
    let (mut cancelled, mut done, mut usual) = (0, 0, Duration::ZERO);
    for round in 0..rounds(40, 1000) {
        prepare(&root, round);
        if round % 20 == 0 {
            let start = Instant::now();
            server.result("text.edit", change_all(round));
            usual = start.elapsed();
            prepare(&root, round);
        }
        server.request(json!(round), "text.edit", change_all(round));
        let start = Instant::now();
        while start.elapsed() < usual.mul_f64((round % 20) as f64 / 14.0) {
            std::hint::spin_loop();
        }
        server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": round}}));
        let reply = server.frame();
        let is_cancelled = reply.pointer("/error/data/code") == Some(&json!("CANCELLED"));
        assert!(is_cancelled || reply.get("result").is_some(), "{reply}");
        assert_eq!(state(&root, round), Some(!is_cancelled), "round {round}: {reply}");
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new(), "round {round}");
        cancelled += usize::from(is_cancelled);
        done += usize::from(!is_cancelled);
    }
    println!("{cancelled} were cancelled, {done} happened");
    assert!(cancelled > 0 && done > 0, "{cancelled} were cancelled, {done} happened");
}

/// An edit that has begun and is slow at a system call.
struct SlowEdit {
    folder: tempfile::TempDir,
    traced: Traced,
}

impl SlowEdit {
    /// None where system calls cannot be delayed.
    fn begin(call: &str, timeout: Option<&str>) -> Option<Self> {
        Self::begin_with(call, timeout, None)
    }

    /// With a key for idempotency.
    fn begin_with(call: &str, timeout: Option<&str>, key: Option<&str>) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        fs::create_dir(&root).expect("a folder");
        prepare(&root, 0);
        let setup = Setup::new().arg("--root").arg(&root).arg("--state-dir").arg(folder.path().join("state"));
        let setup =
            timeout.iter().fold(setup, |setup, timeout| setup.arg(format!("--timeout=text.edit={timeout}")));
        let traced = traced(setup, call, &[&format!("{call}:delay_enter=600000")])?;
        let mut edit = Self { folder, traced };
        edit.send(key);
        Some(edit)
    }

    fn send(&mut self, key: Option<&str>) {
        let mut message = request(json!(1), "text.edit", change_all(0));
        if let Some(key) = key {
            message["idempotencyKey"] = json!(key);
        }
        self.traced.server.send(&message);
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }
}

fn cancel(server: &mut Server) {
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}));
}

/// Whether the first file that is exchanged is new.
fn has_begun(root: &Path) -> bool {
    FILES.iter().any(|name| fs::read_to_string(root.join(name)).ok() == Some(content(name, 0, "new")))
}

#[test]
fn before_the_first_exchange_a_cancel_or_a_timeout_undoes_all_before_the_reply() {
    for (timeout, code) in [(None, "CANCELLED"), (Some("3s"), "TOOL_TIMEOUT")] {
        // The new contents are synced before the first exchange, one after the other.
        let Some(mut edit) = SlowEdit::begin("fsync", timeout) else { return };
        let (root, server) = (edit.root(), &mut edit.traced.server);
        if timeout.is_none() {
            wait_until("files are staged", || !leftovers(&root).is_empty());
            cancel(server);
        }
        let reply = server.frame();
        assert_eq!(reply["error"]["data"]["code"], json!(code), "{reply}");
        assert_eq!(state(&root, 0), Some(false), "{reply}");
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
        edit.traced.server.finish();
    }
}

#[test]
fn after_the_first_exchange_an_edit_is_neither_cancelled_nor_timed_out() {
    for timeout in [None, Some("3s")] {
        let Some(mut edit) = SlowEdit::begin("renameat2", timeout) else { return };
        let (root, server) = (edit.root(), &mut edit.traced.server);
        if timeout.is_none() {
            wait_until("a file is exchanged", || has_begun(&root));
            cancel(server);
        }
        let reply = server.frame();
        assert!(reply.get("result").is_some(), "{reply}");
        assert_eq!(state(&root, 0), Some(true));
        edit.traced.server.finish();
    }
}

/// The files with a word, each with its hash, as a search finds them.
fn found(server: &mut Server, word: &str) -> BTreeMap<String, String> {
    let result = server.result("search", json!({"query": word}));
    let hits = result["hits"].as_array().expect("hits").iter();
    let text = |hit: &Value, name: &str| hit[name].as_str().expect("text").to_owned();
    hits.map(|hit| (text(hit, "path"), text(hit, "hash"))).collect()
}

/// All files as they were or are, each with its hash.
fn expected(round: usize, line: &str) -> BTreeMap<String, String> {
    let files = FILES.iter().map(|name| ((*name).to_owned(), hash(content(name, round, line))));
    let made = Some(("made/here/d.txt".to_owned(), hash(format!("new {round}")))).filter(|_| line == "new");
    files.chain(made).collect()
}

#[test]
fn a_search_after_the_reply_sees_all_files_new_and_after_an_undo_all_files_old() {
    let setup = Setup::new();
    let root = setup.path("root");
    prepare(&root, 0);
    let mut server = setup.start();
    assert_eq!(found(&mut server, "old"), expected(0, "old"));
    server.result("text.edit", change_all(0));
    assert_eq!(found(&mut server, "new"), expected(0, "new"));
    assert_eq!(found(&mut server, "old"), BTreeMap::new());
    server.finish();

    let setup = Setup::new();
    let root = setup.path("root");
    prepare(&root, 1);
    // The third exchange fails, the first two are undone.
    let Some(mut traced) = traced(setup, "renameat2", &["renameat2:error=EIO:when=3"]) else { return };
    let server = &mut traced.server;
    assert_eq!(found(server, "old"), expected(1, "old"));
    let error = server.error("text.edit", change_all(1));
    assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{error}");
    assert_eq!(state(&root, 1), Some(false), "{error}");
    assert_eq!(found(server, "old"), expected(1, "old"));
    assert_eq!(found(server, "new"), BTreeMap::new());
}

#[test]
fn a_search_that_saw_a_change_in_the_middle_sees_the_old_state_after_recovery() {
    let Some(SlowEdit { folder, traced }) = SlowEdit::begin("renameat2", None) else { return };
    let root = folder.path().join("root");
    let mut other = server_on(&root, &folder.path().join("state"));
    wait_until("the index has a new file", || !found(&mut other, "new").is_empty());
    let [old, new] = ["old", "new"].map(|word| found(&mut other, word));
    assert!(old.len() + new.len() >= FILES.len(), "{old:?} {new:?}");
    for (word, found) in [("old", &old), ("new", &new)] {
        let all = expected(0, word);
        assert!(found.iter().all(|(path, hash)| all.get(path) == Some(hash)), "{found:?}");
    }
    traced.kill();
    assert_eq!(state(&root, 0), None, "it was not killed in the middle");
    // Recovery comes before the call, although searching writes no file.
    assert_eq!(found(&mut other, "old"), expected(0, "old"));
    assert_eq!(found(&mut other, "new"), BTreeMap::new());
    assert_eq!(state(&root, 0), Some(false));
    other.finish();
}

/// Saves a file by a rename, as most editors do.
fn save(file: &Path, content: &str) {
    let beside = file.with_extension("swp");
    fs::write(&beside, content).expect("written");
    fs::rename(&beside, file).expect("saved");
}

#[test]
fn an_undo_that_cannot_restore_a_file_says_which_and_the_error_is_kept_for_its_key() {
    let Some(mut edit) = SlowEdit::begin_with("renameat2", None, Some("key")) else { return };
    let root = edit.root();
    wait_until("a file is exchanged", || has_begun(&root));
    let is_new = |name: &&&str| fs::read_to_string(root.join(name)).ok() == Some(content(name, 0, "new"));
    let first = *FILES.iter().find(is_new).expect("a new file");
    let last = *FILES.iter().rev().find(|name| !is_new(name)).expect("an old file");
    // The one stands in the way of the edit, the other in the way of undoing it.
    save(&root.join(last), "saved\n");
    save(&root.join(first), "saved, too\n");
    let reply = edit.traced.server.frame();
    let error = &reply["error"]["data"];
    assert_eq!(error["code"], json!("CONFLICT"), "{error}");
    assert_eq!(error["details"]["kept"][0]["path"], json!(first), "{error}");
    assert!(error["details"]["kept"][0]["reason"].is_string(), "{error}");
    let undone = error["details"]["undone"].as_array().expect("a list");
    assert!(!undone.contains(&json!(first)) && undone.contains(&json!("made/here/d.txt")), "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(first) && !message.contains("nothing was done"), "{message}");
    for name in FILES {
        let expected = match name {
            _ if name == first => "saved, too\n".to_owned(),
            _ if name == last => "saved\n".to_owned(),
            _ => content(name, 0, "old"),
        };
        assert_eq!(fs::read_to_string(root.join(name)).expect("text"), expected, "{name}");
    }
    assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
    edit.send(Some("key"));
    assert_eq!(edit.traced.server.frame()["error"]["data"], *error);
    edit.traced.server.finish();
}

#[test]
fn what_cannot_be_undone_yet_is_reported_and_only_its_files_cannot_be_edited() {
    let Some(SlowEdit { folder, traced }) = SlowEdit::begin("renameat2", None) else { return };
    let root = folder.path().join("root");
    wait_until("a file is exchanged", || has_begun(&root));
    traced.kill();
    let foreign = fs::File::open(root.join("src/deep")).expect("a folder");
    rustix::fs::flock(&foreign, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    // It waits for the lock in vain, and starts.
    let mut server = server_on(&root, &folder.path().join("state"));
    let warnings = |server: &mut Server| server.result("check_status", json!({}))["warnings"].to_string();
    let shown = warnings(&mut server);
    let holder = format!("process {} holds the lock", std::process::id());
    assert!(shown.contains("src/deep/b.txt") && shown.contains(&holder), "{shown}");
    assert!(shown.contains("end the program that holds the lock"), "{shown}");
    server.result("text.read", json!({"path": "a.txt"}));
    let now = fs::read(root.join("docs/c.txt")).expect("read");
    // The one is in the folder that is locked, the other in another one.
    for (path, now) in [("docs/c.txt", now), ("src/deep/b.txt", Vec::new())] {
        let error = server.error("text.append", json!({"path": path, "hash": hash(now), "content": "x"}));
        assert_eq!(error["code"], json!("CONFLICT"), "{error}");
        assert_eq!(error["details"]["reason"], json!("unfinished_change"), "{error}");
    }
    server.result("file.create", json!({"path": "docs/other.txt", "content": "x"}));
    drop(foreign);
    wait_until("it is undone", || !warnings(&mut server).contains("src/deep/b.txt"));
    assert_eq!(state(&root, 0), Some(false));
    server.finish();
}

#[test]
fn something_else_with_the_name_of_staged_files_stops_edits_of_several_files_in_its_folder_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a folder");
    prepare(&root, 0);
    let blocked = root.join("src/.pintle-staged");
    let make: [fn(&Path); 3] = [
        |path| fs::write(path, "of a repository\n").expect("written"),
        |path| std::os::unix::fs::symlink("deep", path).expect("linked"),
        |path| std::os::unix::fs::symlink("nowhere", path).expect("linked"),
    ];
    let mut server = server_on(&root, &folder.path().join("state"));
    for (round, make) in make.into_iter().enumerate() {
        prepare(&root, round);
        make(&blocked);
        let kind = blocked.symlink_metadata().expect("there").file_type();
        for dry_run in [true, false] {
            let mut arguments = change_all(round);
            arguments["dry_run"] = json!(dry_run);
            let error = server.error("text.edit", arguments);
            assert_eq!(error["code"], json!("FORBIDDEN"), "{error}");
            let entries: Vec<_> = error["details"]["errors"].as_array().expect("errors").iter().collect();
            assert!(matches!(entries[..], [one] if one["path"] == "src/a.txt"), "{error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains(".pintle-staged")), "{error}");
        }
        assert_eq!(state(&root, round), Some(false));
        let tag = hash(content("src/a.txt", round, "old"));
        let alone = json!({"path": "src/a.txt", "hash": tag, "lines": [1, 2], "new": "alone"});
        server.result("text.edit", json!({"edits": [alone], "dry_run": true}));
        server.result("text.edit", json!({ "edits": [alone] }));
        assert_eq!(blocked.symlink_metadata().expect("there").file_type(), kind);
        fs::remove_file(&blocked).expect("removed");
        prepare(&root, round);
        server.result("text.edit", change_all(round));
    }
    server.finish();
}

#[test]
fn the_folder_of_the_journals_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state_dir) = (folder.path().join("root"), folder.path().join("state"));
    fs::create_dir(&root).expect("a folder");
    prepare(&root, 0);
    let mut server = server_on(&root, &state_dir);
    server.result("text.edit", change_all(0));
    for folder in [state_dir.join("changes"), state_dir] {
        let mode = fs::metadata(&folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
    server.finish();
}

#[test]
fn without_a_state_folder_one_file_can_be_edited_and_several_cannot() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state_dir) = (folder.path().join("root"), folder.path().join("state"));
    fs::create_dir(&root).expect("a folder");
    prepare(&root, 0);
    let mut server = server_on(&root, &state_dir);
    // A file where the folder of the journals would be.
    fs::create_dir_all(&state_dir).expect("made");
    fs::write(state_dir.join("changes"), "").expect("written");
    let error = server.error("text.edit", change_all(0));
    assert_eq!(error["code"], json!("CAPABILITY_MISSING"), "{error}");
    assert_eq!(state(&root, 0), Some(false));
    let warnings = |server: &mut Server| server.result("check_status", json!({}))["warnings"].to_string();
    assert!(warnings(&mut server).contains("several files cannot be changed"));
    let tag = &hash(content("a.txt", 0, "old"))[..8];
    let one = json!({"edits": [{"path": "a.txt", "hash": tag, "lines": [1, 2], "new": "x"}]});
    server.result("text.edit", one);
    assert!(fs::read_to_string(root.join("a.txt")).expect("text").starts_with("x\n"));
    fs::remove_file(state_dir.join("changes")).expect("removed");
    assert!(!warnings(&mut server).contains("several files"));
}

//! Many writers, one file: of those with the same version exactly one wins, and the others get a conflict.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::Barrier,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Server, Setup, hash, request, rounds, trace::traced};

const WRITERS: usize = 8;

/// Servers that share only the root.
fn servers_on(root: &Path) -> Vec<Server> {
    (0..WRITERS).map(|_| Setup::new().arg("--root").arg(root).start()).collect()
}

/// Makes all servers send their calls at the same time.
fn all_at_once(servers: &mut [Server], call: impl Fn(usize) -> (&'static str, Value) + Sync) -> Vec<Value> {
    let (start, call) = (Barrier::new(servers.len()), &call);
    std::thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter_mut()
            .enumerate()
            .map(|(writer, server)| {
                let start = &start;
                scope.spawn(move || {
                    let (tool, params) = call(writer);
                    let line = format!("{}\n", request(json!(writer), tool, params));
                    start.wait();
                    server.write(line.as_bytes());
                    let reply = server.frame();
                    assert_eq!(reply["id"], json!(writer), "{reply}");
                    reply
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a reply")).collect()
    })
}

/// The writer that won.
fn winner(replies: &[Value]) -> usize {
    let won: Vec<usize> =
        (0..replies.len()).filter(|writer| replies[*writer].get("result").is_some()).collect();
    assert_eq!(won.len(), 1, "not one winner: {replies:?}");
    won[0]
}

/// The error objects of all other writers.
fn losers(replies: &[Value], winner: usize) -> impl Iterator<Item = &Value> {
    let others = replies.iter().enumerate().filter(move |(writer, _)| *writer != winner);
    others.map(|(_, reply)| reply.pointer("/error/data").unwrap_or_else(|| panic!("no error: {reply}")))
}

/// The expected content of a file, as a list of lines.
struct Model(Vec<String>);

impl Model {
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }
}

fn line_of(round: usize, writer: usize) -> String {
    format!("round {round} was won by writer {writer}")
}

/// Whether this round replaces the last line; the others append one.
fn replaces(round: usize) -> bool {
    !round.is_multiple_of(4)
}

fn edit(round: usize, writer: usize, last_line: &str, guard: &str) -> (&'static str, Value) {
    let content = line_of(round, writer);
    if replaces(round) {
        let params =
            json!({"path": "a.txt", "hash": guard, "lines": [-1, 0], "old": last_line, "new": content});
        ("text.replace", params)
    } else {
        ("text.append", json!({"path": "a.txt", "hash": guard, "content": content}))
    }
}

/// Applies the winner's edit to the model and checks all replies.
fn settle<'a>(
    model: &mut Model,
    round: usize,
    winner: usize,
    reported: &Value,
    losers: impl Iterator<Item = &'a Value>,
) -> String {
    if replaces(round) {
        model.0.pop();
    }
    model.0.push(line_of(round, winner));
    let now = hash(model.bytes());
    assert_eq!(
        reported["hash"],
        json!(now),
        "round {round}: the winner's hash is not that of the replayed file"
    );
    assert_eq!(reported["total_lines"], json!(model.0.len()), "round {round}");
    for error in losers {
        assert_eq!(error["code"], json!("CONFLICT"), "round {round}: {error}");
        let current = error.pointer("/details/currentHash");
        // What they wanted to replace is gone, and an append has no other guard: they have to read again.
        assert_eq!(current, None, "round {round}: {error}");
    }
    now
}

#[test]
fn of_eight_processes_with_the_same_hash_one_wins_and_the_others_have_to_read_again() {
    let rounds = rounds(50, 1000);
    let root = tempfile::tempdir().expect("a folder");
    let mut model = Model(vec!["the first line".into(), "the last line".into()]);
    fs::write(root.path().join("a.txt"), model.bytes()).expect("writes");
    let mut servers = servers_on(root.path());
    let mut guard = hash(model.bytes());
    let mut wins = [0; WRITERS];
    for round in 0..rounds {
        let last = model.0.last().expect("a line").clone();
        let replies = all_at_once(&mut servers, |writer| edit(round, writer, &last, &guard));
        let winner = winner(&replies);
        wins[winner] += 1;
        let reported = &replies[winner]["result"];
        guard = settle(&mut model, round, winner, reported, losers(&replies, winner));
    }
    assert!(
        fs::read(root.path().join("a.txt")).expect("there") == model.bytes(),
        "another end than replayed"
    );
    println!("{rounds} rounds of {WRITERS} processes, won by {wins:?}");
    servers.into_iter().for_each(|server| drop(server.finish()));
}

#[test]
fn of_64_calls_in_one_process_with_the_same_hash_one_wins_and_the_others_get_its_hash() {
    const CALLS: usize = 64;
    let rounds = rounds(12, 200);
    let mut server = Setup::new().start();
    let file = server.path("root/a.txt");
    let mut model = Model(vec!["the first line".into(), "the last line".into()]);
    fs::write(&file, model.bytes()).expect("writes");
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    server.request(json!("init"), "initialize", params);
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut guard = hash(model.bytes());
    for round in 0..rounds {
        let last = model.0.last().expect("a line").clone();
        let calls = (0..CALLS).map(|writer| {
            let (tool, params) = edit(round, writer, &last, &guard);
            format!("{}\n", request(json!(writer), "tools/call", json!({"name": tool, "arguments": params})))
        });
        server.write(calls.collect::<String>().as_bytes());
        let replies: Vec<Value> = (0..CALLS).map(|_| server.frame()).collect();
        let ids: BTreeSet<u64> = replies.iter().filter_map(|reply| reply["id"].as_u64()).collect();
        assert_eq!(ids.len(), CALLS, "one reply each");
        let (lost, won): (Vec<&Value>, Vec<&Value>) =
            replies.iter().partition(|reply| reply["result"]["isError"] == json!(true));
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        let winner = usize::try_from(won[0]["id"].as_u64().expect("an id")).expect("small");
        let errors: Vec<Value> = lost
            .iter()
            .map(|reply| {
                let text = reply["result"]["content"][0]["text"].as_str().expect("a text");
                serde_json::from_str(text).expect("JSON")
            })
            .collect();
        let reported = &won[0]["result"]["structuredContent"];
        guard = settle(&mut model, round, winner, reported, errors.iter());
    }
    assert!(fs::read(file).expect("there") == model.bytes(), "another end than replayed");
    println!("{rounds} rounds of {CALLS} calls in one process");
    server.finish();
}

#[test]
fn of_eight_processes_that_create_the_same_file_one_wins() {
    let root = tempfile::tempdir().expect("a folder");
    let mut servers = servers_on(root.path());
    for round in 0..rounds(20, 500) {
        // All writers create the folders as well.
        let path = format!("made/{round}/deep/a.txt");
        let replies = all_at_once(&mut servers, |writer| {
            ("file.create", json!({"path": path, "content": line_of(round, writer)}))
        });
        let winner = winner(&replies);
        let content = line_of(round, winner);
        assert_eq!(fs::read_to_string(root.path().join(&path)).expect("there"), content);
        assert_eq!(replies[winner]["result"]["hash"], json!(hash(content.as_bytes())));
        for error in losers(&replies, winner) {
            assert_eq!(error["code"], json!("CONFLICT"), "{error}");
        }
    }
}

/// Asserts that the writers that were too late did not find the file.
fn assert_not_found<'a>(errors: impl Iterator<Item = &'a Value>) {
    for error in errors {
        assert_eq!(error["code"], json!("NOT_FOUND"), "{error}");
    }
}

#[test]
fn of_eight_processes_that_remove_the_same_file_one_wins() {
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("a.txt");
    let mut servers = servers_on(root.path());
    for _ in 0..rounds(20, 500) {
        fs::write(&file, "here").expect("writes");
        let replies =
            all_at_once(&mut servers, |_| ("file.remove", json!({"path": "a.txt", "hash": hash(b"here")})));
        assert_not_found(losers(&replies, winner(&replies)));
        assert!(!file.exists());
    }
}

#[test]
fn of_eight_processes_that_move_the_same_file_one_wins() {
    let root = tempfile::tempdir().expect("a folder");
    let mut servers = servers_on(root.path());
    for round in 0..rounds(20, 500) {
        fs::write(root.path().join("a.txt"), "here").expect("writes");
        let path_of = |writer: usize| format!("moved/{round}/{writer}.txt");
        let replies = all_at_once(&mut servers, |writer| {
            ("file.move", json!({"path": "a.txt", "hash": hash(b"here"), "to": path_of(writer)}))
        });
        let winner = winner(&replies);
        assert_not_found(losers(&replies, winner));
        for writer in 0..WRITERS {
            let found = fs::read_to_string(root.path().join(path_of(writer))).ok();
            assert_eq!(found.as_deref(), (writer == winner).then_some("here"), "{writer} of {winner}");
        }
        assert!(!root.path().join("a.txt").exists());
    }
}

#[test]
fn of_eight_files_that_are_moved_to_the_same_path_one_is_moved_and_the_others_stay() {
    let root = tempfile::tempdir().expect("a folder");
    let mut servers = servers_on(root.path());
    for round in 0..rounds(20, 500) {
        let path_of = |writer: usize| format!("from/{writer}/{round}.txt");
        for writer in 0..WRITERS {
            fs::create_dir_all(root.path().join(format!("from/{writer}"))).expect("a folder");
            fs::write(root.path().join(path_of(writer)), line_of(round, writer)).expect("writes");
        }
        let to = format!("to/{round}.txt");
        let replies = all_at_once(&mut servers, |writer| {
            let guard = hash(line_of(round, writer).as_bytes());
            ("file.move", json!({"path": path_of(writer), "hash": guard, "to": to}))
        });
        let winner = winner(&replies);
        for error in losers(&replies, winner) {
            assert_eq!(error["code"], json!("CONFLICT"), "{error}");
        }
        assert_eq!(fs::read_to_string(root.path().join(&to)).expect("there"), line_of(round, winner));
        for writer in 0..WRITERS {
            let found = fs::read_to_string(root.path().join(path_of(writer))).ok();
            assert_eq!(found, (writer != winner).then(|| line_of(round, writer)), "{writer} of {winner}");
        }
    }
}

#[test]
fn of_eight_processes_that_do_different_things_to_a_file_one_wins() {
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("a.txt");
    let mut servers = servers_on(root.path());
    for _ in 0..rounds(30, 500) {
        fs::write(&file, "here\n").expect("writes");
        let _ = fs::remove_file(root.path().join("b.txt"));
        let guard = hash(b"here\n");
        let replies = all_at_once(&mut servers, |writer| match writer % 4 {
            0 => ("file.remove", json!({"path": "a.txt", "hash": guard})),
            1 => ("file.move", json!({"path": "a.txt", "hash": guard, "to": "b.txt"})),
            2 => (
                "text.insert",
                json!({"path": "a.txt", "hash": guard, "line": 1, "anchor": "here", "content": "x"}),
            ),
            _ => ("text.append", json!({"path": "a.txt", "hash": guard, "content": "x"})),
        });
        let winner = winner(&replies);
        let expected = match winner % 4 {
            0 => (None, None),
            1 => (None, Some("here\n")),
            2 => (Some("x\nhere\n"), None),
            _ => (Some("here\nx\n"), None),
        };
        let found = ["a.txt", "b.txt"].map(|name| fs::read_to_string(root.path().join(name)).ok());
        assert_eq!((found[0].as_deref(), found[1].as_deref()), expected, "{winner} has won");
        let reported = if expected.0.is_some() { "CONFLICT" } else { "NOT_FOUND" };
        for error in losers(&replies, winner) {
            assert_eq!(error["code"], json!(reported), "{error}");
        }
    }
}

#[test]
fn an_edit_that_comes_too_late_does_not_follow_a_file_to_where_it_was_moved() {
    let rounds = rounds(300, 3000);
    let root = tempfile::tempdir().expect("a folder");
    let mut servers = servers_on(root.path());
    let guard = hash(b"here\n");
    let mut followed = 0;
    for _ in 0..rounds {
        fs::write(root.path().join("a.txt"), "here\n").expect("writes");
        let _ = fs::remove_file(root.path().join("b.txt"));
        let replies = all_at_once(&mut servers, |writer| match writer {
            0 => ("file.move", json!({"path": "a.txt", "hash": guard, "to": "b.txt"})),
            _ => ("text.append", json!({"path": "a.txt", "hash": guard, "content": "late"})),
        });
        // A writer that moves the file finds the version that it knows, so no edit has happened before, and none may
        // happen after.
        let is_moved = replies[0].get("result").is_some();
        followed += usize::from(is_moved && fs::read(root.path().join("b.txt")).expect("moved") != b"here\n");
    }
    assert_eq!(followed, 0, "in {followed} of {rounds} rounds an edit of a.txt has changed b.txt");
}

/// How another program saves a file without locks.
#[derive(Clone, Copy, Debug)]
enum Save {
    /// Writes a new file and renames it to the name.
    Rename,
    /// Writes into the file, as many bytes as there were.
    InPlace,
}

/// How long an edit takes on this machine under its present load.
pub fn usual_time(server: &mut Server, root: &Path) -> Duration {
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            fs::write(root.join("c.txt"), "x\n").expect("writes");
            let start = Instant::now();
            server.result("text.append", json!({"path": "c.txt", "hash": hash("x\n"), "content": "y"}));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Makes a call and another program's save overlap, with another delay in each round, and checks that the save is not
/// lost.
fn nothing_saved_is_lost(save: Save, tool: &'static str, extra: Value) {
    let root = tempfile::tempdir().expect("a folder");
    let (file, beside) = (root.path().join("a.txt"), root.path().join("a.swp"));
    let mut server = Setup::new().arg("--no-fsync").arg("--root").arg(root.path()).start();
    let (mut succeeded, mut conflicts) = (0, 0);
    let usual = usual_time(&mut server, root.path());
    for round in 0..rounds(300, 5000) {
        let _ = fs::remove_file(root.path().join("b.txt"));
        let old = format!("{round:08} old\n").repeat(80);
        let new = format!("{round:08} new\n").repeat(80);
        fs::write(&file, &old).expect("writes");
        let mut params = json!({"path": "a.txt", "hash": hash(&old)});
        params.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        fs::write(&beside, &new).expect("writes");
        let line = format!("{}\n", request(json!(round), tool, params));
        let start = Instant::now();
        server.write(line.as_bytes());
        // The save comes before, during or after the call.
        let distance = usual.mul_f64((round % 100) as f64 / 50.0);
        while start.elapsed() < distance {
            std::hint::spin_loop();
        }
        match save {
            Save::Rename => fs::rename(&beside, &file).expect("saves"),
            Save::InPlace => {
                // Only an existing file can be written in place, and then it is the right one.
                let opened = fs::OpenOptions::new().write(true).open(&file);
                if let Ok(mut opened) = opened {
                    std::io::Write::write_all(&mut opened, new.as_bytes()).expect("writes");
                }
            }
        }
        let reply = server.frame();
        match reply.get("result") {
            Some(_) => succeeded += 1,
            None => {
                assert_eq!(reply["error"]["data"]["code"], json!("CONFLICT"), "{reply}");
                conflicts += 1;
            }
        }
        if let Save::Rename = save {
            assert_eq!(
                fs::read_to_string(&file).expect("saved"),
                new,
                "round {round}: the save is lost: {reply}"
            );
            if let Ok(moved) = fs::read_to_string(root.path().join("b.txt")) {
                assert_eq!(moved, old, "round {round}: another file has moved: {reply}");
            }
        } else if reply.get("result").is_none() {
            assert_eq!(fs::read_to_string(&file).expect("saved"), new, "round {round}: {reply}");
        }
    }
    println!("{save:?} and {tool}: {succeeded} done, {conflicts} refused");
    assert!(
        succeeded > 0 && conflicts > 0,
        "the call and the save never overlapped: {succeeded} done, {conflicts} refused"
    );
    server.finish();
}

#[test]
fn a_save_by_another_program_is_never_lost_to_an_edit() {
    nothing_saved_is_lost(Save::Rename, "text.append", json!({"content": "x"}));
}

#[test]
fn a_save_by_another_program_is_never_lost_to_a_removal() {
    nothing_saved_is_lost(Save::Rename, "file.remove", json!({}));
}

#[test]
fn a_save_by_another_program_is_never_lost_to_a_move() {
    nothing_saved_is_lost(Save::Rename, "file.move", json!({"to": "b.txt"}));
}

#[test]
fn a_write_in_place_is_never_mistaken_for_the_version_that_was_read() {
    nothing_saved_is_lost(Save::InPlace, "text.append", json!({"content": "x"}));
}

/// Locks a folder as another program might.
fn lock(folder: &Path) -> fs::File {
    let held = fs::File::open(folder).expect("opens");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("locks");
    held
}

#[test]
fn a_call_waits_for_another_program_s_lock_for_a_limited_time_and_names_its_holder() {
    let mut server = Setup::new().start();
    let root = server.path("root");
    fs::write(root.join("a.txt"), "old\n").expect("writes");
    let held = lock(&root);
    let params = json!({"path": "a.txt", "hash": hash("old\n"), "content": "x"});
    let error = server.error("text.append", params.clone());
    assert_eq!(error["code"], json!("CONFLICT"), "{error}");
    assert_eq!(error["details"]["reason"], json!("locked"), "{error}");
    assert_eq!(error["details"]["pid"], json!(std::process::id()), "{error}");
    assert_eq!(fs::read_to_string(root.join("a.txt")).expect("there"), "old\n");
    drop(held);
    server.result("text.append", params);
    server.finish();
}

#[test]
fn a_call_that_waits_for_a_lock_can_be_cancelled() {
    let mut server = Setup::new().start();
    let root = server.path("root");
    fs::write(root.join("a.txt"), "old\n").expect("writes");
    let held = lock(&root);
    let params = json!({"path": "a.txt", "hash": hash("old\n"), "content": "x"});
    server.request(json!("waits"), "text.append", params);
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "waits"}}));
    let reply = server.frame();
    assert_eq!(reply["error"]["data"]["code"], json!("CANCELLED"), "{reply}");
    drop(held);
    server.finish();
}

#[test]
fn a_file_is_not_moved_over_another_one_where_a_rename_can_only_replace() {
    let setup = Setup::new();
    let root = setup.path("root");
    fs::create_dir(root.join("other")).expect("a folder");
    let slow = "renameat,linkat:delay_enter=400000";
    let calls = "renameat2,renameat,linkat";
    let Some(mut traced) = traced(setup, calls, &["renameat2:error=EINVAL", slow]) else { return };
    traced.server.result("file.create", json!({"path": "a.txt", "content": "one\n"}));
    let guard = hash("one\n");
    let before = traced.count("renameat2");
    let params = json!({"path": "a.txt", "hash": guard, "to": "other/b.txt"});
    traced.server.request(json!("move"), "file.move", params.clone());
    // At this point the server has seen that the name is free, and is about to move the file.
    traced.wait_for_another("renameat2", before);
    fs::write(root.join("other/b.txt"), "made meanwhile").expect("writes");
    let reply = traced.server.frame();
    assert_eq!(fs::read(root.join("other/b.txt")).expect("there"), b"made meanwhile", "{reply}");
    assert_eq!(fs::read(root.join("a.txt")).expect("there"), b"one\n", "{reply}");
    assert_eq!(reply["error"]["data"]["code"], json!("CONFLICT"), "{reply}");
    // The move succeeds once the name is free.
    fs::remove_file(root.join("other/b.txt")).expect("removes");
    let mut server = traced.server;
    server.result("file.move", params);
    assert!(!root.join("a.txt").exists());
    let params = json!({"path": "other/b.txt", "hash": guard, "content": "two"});
    let edited = server.result("text.append", params);
    assert_eq!(fs::read(root.join("other/b.txt")).expect("there"), b"one\ntwo\n");
    server.result("file.remove", json!({"path": "other/b.txt", "hash": edited["hash"]}));
    let left: Vec<_> = fs::read_dir(root.join("other")).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    server.finish();
}

//! Edits of several files in one call: all happen, or none, through kills, races and other servers.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Server, Setup, hash, random::Random, rounds, wait_until};

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
fn a_kill_at_any_instant_leaves_all_files_old_or_all_new() {
    let rounds = rounds(25, 2000);
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state_dir) = (folder.path().join("root"), folder.path().join("state"));
    fs::create_dir(&root).expect("a folder");
    let mut random = Random::new(11);
    let (mut olds, mut news) = (0, 0);
    let mut server = server_on(&root, &state_dir);
    for round in 0..rounds {
        prepare(&root, round);
        let start = Instant::now();
        server.result("text.edit", change_all(round));
        let usual = start.elapsed();
        assert_eq!(state(&root, round), Some(true));

        prepare(&root, round);
        // The delays range from before the change to well after it; the golden ratio spreads them evenly.
        let spread = (round as f64 * 0.618_034 + random.fraction() / 8.0).fract();
        let delay = usual.mul_f64(1.6 * spread);
        server.request(json!("cut"), "text.edit", change_all(round));
        let start = Instant::now();
        while start.elapsed() < delay {
            std::hint::spin_loop();
        }
        server.signal(rustix::process::Signal::KILL);
        server.wait();

        // The first reply of the next server comes after recovery.
        server = server_on(&root, &state_dir);
        let read = server.result("text.read", json!({"path": FILES[round % FILES.len()], "lines": [1, 2]}));
        let is_new = state(&root, round)
            .unwrap_or_else(|| panic!("round {round}: neither old nor new, {delay:?} of {usual:?}"));
        let first = if is_new { "new" } else { "old" };
        assert!(read["content"].as_str().is_some_and(|line| line.starts_with(first)), "{read}");
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new(), "round {round}");
        let journals = fs::read_dir(state_dir.join("changes")).map_or(0, Iterator::count);
        assert_eq!(journals, 0, "round {round}");
        olds += usize::from(!is_new);
        news += usize::from(is_new);
    }
    server.finish();
    println!("{rounds} kills: {olds} left all files old, {news} all new");
    assert!(olds > 0 && news > 0, "the kills came all before or all after: {olds} old, {news} new");
}

#[test]
fn servers_that_run_beside_it_recover_what_a_killed_one_has_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state_dir) = (folder.path().join("root"), folder.path().join("state"));
    fs::create_dir(&root).expect("a folder");
    let mut other = server_on(&root, &state_dir);
    let mut was_cut = 0;
    for round in 0..rounds(10, 200) {
        prepare(&root, round);
        let mut server = server_on(&root, &state_dir);
        server.request(json!("cut"), "text.edit", change_all(round));
        // As soon as there is something to recover, or all is over.
        let staged = root.join("src/.pintle-staged");
        wait_until("files are staged", || staged.exists() || state(&root, round) == Some(true));
        server.signal(rustix::process::Signal::KILL);
        server.wait();
        was_cut += usize::from(staged.exists());
        let read = other.result("text.read", json!({"path": "b.txt", "lines": [1, 2]}));
        let is_new = state(&root, round).unwrap_or_else(|| panic!("round {round}: neither old nor new"));
        let first = if is_new { "new" } else { "old" };
        assert!(read["content"].as_str().is_some_and(|line| line.starts_with(first)), "{read}");
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new(), "round {round}");
    }
    assert!(was_cut > 0, "no server was killed in the middle");
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
    let (mut cancelled, mut done) = (0, 0);
    for round in 0..rounds(40, 1000) {
        prepare(&root, round);
        server.request(json!(round), "text.edit", change_all(round));
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(150 * (round as u64 % 40)) {
            std::hint::spin_loop();
        }
        server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": round}}));
        let reply = server.frame();
        let is_cancelled = reply.pointer("/error/data/code") == Some(&json!("CANCELLED"));
        assert!(is_cancelled || reply.get("result").is_some(), "{reply}");
        // The reply to a cancel does not wait for the folders that were already made to be removed again.
        wait_until("all is as the reply says", || state(&root, round) == Some(!is_cancelled));
        cancelled += usize::from(is_cancelled);
        done += usize::from(!is_cancelled);
    }
    println!("{cancelled} were cancelled, {done} happened");
    assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
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
    let tag = &hash(content("a.txt", 0, "old"))[..8];
    let one = json!({"edits": [{"path": "a.txt", "hash": tag, "lines": [1, 2], "new": "x"}]});
    server.result("text.edit", one);
    assert!(fs::read_to_string(root.join("a.txt")).expect("text").starts_with("x\n"));
}

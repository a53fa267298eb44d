//! A folder and a link out of the root exchange their names while calls use that name: no call reaches the outside.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::{
    paths::world::{Tree, tree},
    support::{Server, Setup, http::initialize, rounds, trace::traced},
};

/// How many calls are in flight at a time.
const WINDOW: usize = 48;

/// What no reply may contain: the content of a file, the same in Base64, and a name.
const SECRETS: [&str; 3] = ["outside secret", "b3V0c2lkZSBzZWNyZXQK", "secret-name"];

/// The kinds of calls.
const KINDS: usize = 10;

/// How the folder and the link exchange their names.
#[derive(Clone, Copy)]
enum Swap {
    /// Atomically.
    Exchange,
    /// One is removed before the other is created.
    Replace,
}

impl Swap {
    fn run(self, root: &Path, target: &Path, is_over: &AtomicBool) {
        let (door, away) = (root.join("door"), root.join("away"));
        if let Self::Exchange = self {
            symlink(target, &away).expect("a link");
        }
        let mut renamed = 0;
        while !is_over.load(Ordering::Relaxed) {
            match self {
                Self::Exchange => {
                    renameat_with(CWD, &door, CWD, &away, RenameFlags::EXCHANGE)
                        .expect("exchanges the names");
                }
                Self::Replace => {
                    fs::rename(&door, &away).expect("moves");
                    // While the name is free, a call may create a folder of that name. That folder is renamed.
                    let _ = symlink(target, &door);
                    hold_state(&door, 16);
                    let mut free_name = || {
                        if fs::remove_file(&door).is_err() {
                            renamed += 1;
                            let _ = fs::rename(&door, root.join(format!("aside-{renamed}")));
                        }
                    };
                    free_name();
                    while fs::rename(&away, &door).is_err() {
                        free_name();
                    }
                    hold_state(&door, 64);
                }
            }
        }
    }
}

/// Waits for the time of some stat calls, so that each state lasts long enough for a call to find it.
fn hold_state(path: &Path, looks: usize) {
    for _ in 0..looks {
        let _ = fs::symlink_metadata(path);
    }
}

/// Fills a folder so that every call would succeed in it.
fn fill(folder: &Path, secret: &str, calls: usize) {
    fs::create_dir_all(folder.join("many")).expect("a folder");
    fs::create_dir_all(folder.join("few")).expect("a folder");
    fs::write(folder.join("file.txt"), secret).expect("writes");
    for number in 0..calls / KINDS + 1 {
        for name in ["edited", "removed", "moved"] {
            fs::write(folder.join(format!("many/{name}-{number}")), "text\n").expect("writes");
        }
    }
}

/// The call with a number: its tool and its arguments.
fn call(number: usize, below: &str, hash: &str) -> (&'static str, Value) {
    let (round, path) = (number / KINDS, |rest: &str| format!("door/{below}{rest}"));
    let many = |name: &str| path(&format!("many/{name}-{round}"));
    match number % KINDS {
        0 => ("text.read", json!({"path": path("file.txt")})),
        1 => ("file.read", json!({"path": path("file.txt")})),
        2 => ("file.list", json!({"path": path("few")})),
        3 => ("file.create", json!({"path": many("new"), "content": "new"})),
        4 => ("file.create", json!({"path": path(&format!("made/{round}/new")), "content": "new"})),
        5 => ("text.append", json!({"path": many("edited"), "hash": hash, "content": "more"})),
        6 => ("file.remove", json!({"path": many("removed"), "hash": hash})),
        7 => ("file.move", json!({"path": many("moved"), "hash": hash, "to": format!("landed/{round}")})),
        8 => ("file.list", json!({"glob": "*-name", "ignored": true})),
        _ => ("file.move", json!({"path": format!("waiting/{round}"), "hash": hash, "to": many("arrived")})),
    }
}

/// Makes the calls, many at a time. Returns how often each kind succeeded and how often it was refused.
fn make_calls(server: &mut Server, calls: usize, below: &str, hash: &str) -> [(usize, usize); KINDS] {
    let mut counts = [(0, 0); KINDS];
    let mut refusals = BTreeMap::new();
    let (mut sent, mut received) = (0, 0);
    while received < calls {
        while sent < calls && sent - received < WINDOW {
            let (tool, arguments) = call(sent, below, hash);
            server.request(json!(sent), "tools/call", json!({"name": tool, "arguments": arguments}));
            sent += 1;
        }
        let line = server.line();
        received += 1;
        assert!(!SECRETS.iter().any(|secret| line.contains(secret)), "it got out: {line}");
        let frame: Value = serde_json::from_str(&line).expect("JSON");
        let number = usize::try_from(frame["id"].as_u64().expect("an id")).expect("small");
        let count = &mut counts[number % KINDS];
        if frame["result"].get("structuredContent").is_some() {
            count.0 += 1;
            continue;
        }
        count.1 += 1;
        let text = frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{line}"));
        let error: Value = serde_json::from_str(text).expect("JSON");
        let code = error["code"].as_str().expect("a code").to_owned();
        refusals.entry(code).or_insert(error);
    }
    for (code, error) in refusals {
        assert!(matches!(code.as_str(), "NOT_FOUND" | "INVALID_REQUEST" | "CONFLICT"), "{error}");
    }
    counts
}

/// `through` is the target of the link; `below` is the path from there to the folder outside.
fn no_call_gets_out(swap: Swap, through: impl Fn(&Path) -> (PathBuf, String)) {
    no_call_gets_out_with(swap, through, |setup| Some(setup.start()));
}

fn no_call_gets_out_with(
    swap: Swap,
    through: impl Fn(&Path) -> (PathBuf, String),
    start: impl FnOnce(Setup) -> Option<Server>,
) {
    let calls = rounds(1000, 50_000);
    let setup = Setup::new();
    let (root, outside) = (setup.path("root"), setup.path("outside"));
    let (target, below) = through(&outside);
    fill(&outside, "outside secret\n", calls);
    fill(&root.join("door").join(&below), "inside\n", calls);
    fs::write(outside.join("few/secret-name"), "").expect("writes");
    fs::write(root.join("door").join(&below).join("few/inside-name"), "").expect("writes");
    fs::create_dir(root.join("waiting")).expect("a folder");
    for number in 0..calls / KINDS + 1 {
        fs::write(root.join(format!("waiting/{number}")), "text\n").expect("writes");
    }
    let before: Tree = tree(&outside);
    let Some(mut server) = start(setup.args(["--log-level", "off", "--no-fsync"])) else { return };
    let hash = server.result("text.read", json!({"path": "waiting/0"}))["hash"].clone();
    let hash = hash.as_str().expect("a hash").to_owned();
    server.send(&initialize("2025-11-25"));
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let is_over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        // The other thread has to end also when an assertion in this one fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        scope.spawn(|| swap.run(&root, &target, &is_over));
        let _over = Over(&is_over);
        make_calls(&mut server, calls, &below, &hash)
    });
    assert!(tree(&outside) == before, "the outside has changed");
    // The test shows something only if many calls succeed and many are refused.
    let (done, refused) =
        counts.iter().fold((0, 0), |(done, refused), count| (done + count.0, refused + count.1));
    assert!(counts.iter().all(|count| count.0 > 0), "each kind succeeds at least once: {counts:?}");
    assert!(done >= calls / 20 && refused >= calls / 20, "{counts:?}");
    server.finish();
}

#[test]
fn no_call_gets_out_while_a_folder_and_a_link_to_the_outside_are_exchanged() {
    no_call_gets_out(Swap::Exchange, |outside| (outside.to_owned(), String::new()));
}

#[test]
fn no_call_gets_out_while_a_folder_is_replaced_by_a_link_to_the_file_system_root() {
    no_call_gets_out(Swap::Replace, |outside| {
        let way = outside.strip_prefix("/").expect("an absolute path").to_str().expect("text");
        (PathBuf::from("/"), format!("{way}/"))
    });
}

#[test]
fn no_call_gets_out_while_a_folder_and_a_relative_link_are_exchanged() {
    no_call_gets_out(Swap::Exchange, |_| (PathBuf::from("../outside"), String::new()));
}

#[test]
fn no_call_gets_out_or_fails_internally_where_the_kernel_cannot_confine_paths() {
    no_call_gets_out_with(
        Swap::Exchange,
        |outside| (outside.to_owned(), String::new()),
        |setup| Some(traced(setup, "openat2", &["openat2:error=ENOSYS"])?.server),
    );
}

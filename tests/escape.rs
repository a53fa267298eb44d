//! A folder and a link out of the root change places under one name, while that name is used: nothing gets out.

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

/// How many calls are under way at a time.
const WINDOW: usize = 48;

/// What nobody may ever see: the content of a file, the same in Base64, and a name.
const SECRETS: [&str; 3] = ["outside secret", "b3V0c2lkZSBzZWNyZXQK", "secret-name"];

/// The kinds of calls.
const KINDS: usize = 10;

/// How the folder and the link change places.
#[derive(Clone, Copy)]
enum Swap {
    /// In one step.
    Exchange,
    /// One is taken away before the other is there.
    Replace,
}

impl Swap {
    fn run(self, root: &Path, target: &Path, is_over: &AtomicBool) {
        let (door, away) = (root.join("door"), root.join("away"));
        if let Self::Exchange = self {
            symlink(target, &away).expect("a link");
        }
        let mut put_aside = 0;
        while !is_over.load(Ordering::Relaxed) {
            match self {
                Self::Exchange => {
                    renameat_with(CWD, &door, CWD, &away, RenameFlags::EXCHANGE).expect("they change places");
                }
                Self::Replace => {
                    fs::rename(&door, &away).expect("moves");
                    // Where nothing is, a call may make a folder of that name; it is put aside.
                    let _ = symlink(target, &door);
                    linger(&door, 16);
                    let mut make_room = || {
                        if fs::remove_file(&door).is_err() {
                            put_aside += 1;
                            let _ = fs::rename(&door, root.join(format!("aside-{put_aside}")));
                        }
                    };
                    make_room();
                    while fs::rename(&away, &door).is_err() {
                        make_room();
                    }
                    linger(&door, 64);
                }
            }
        }
    }
}

/// Leaves things as they are for the time of some looks at them, so that each is there often enough to be met.
fn linger(path: &Path, looks: usize) {
    for _ in 0..looks {
        let _ = fs::symlink_metadata(path);
    }
}

/// Fills a folder so that every call that is made would succeed in it.
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

/// Makes the calls, many at a time; gives how often each kind was done and how often it was refused.
fn storm(server: &mut Server, calls: usize, below: &str, hash: &str) -> [(usize, usize); KINDS] {
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

/// `through` is where the link leads; `below` the way from there to the folder outside.
fn nothing_gets_out(swap: Swap, through: impl Fn(&Path) -> (PathBuf, String)) {
    nothing_gets_out_of(swap, through, |setup| Some(setup.start()));
}

fn nothing_gets_out_of(
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
        // Also when a call gives what it must not, the other thread has to end.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        scope.spawn(|| swap.run(&root, &target, &is_over));
        let _over = Over(&is_over);
        storm(&mut server, calls, &below, &hash)
    });
    assert!(tree(&outside) == before, "the outside has changed");
    // Unless much is done and much is refused, nothing was shown.
    let (done, refused) =
        counts.iter().fold((0, 0), |(done, refused), count| (done + count.0, refused + count.1));
    assert!(counts.iter().all(|count| count.0 > 0), "each kind is done now and then: {counts:?}");
    assert!(done >= calls / 20 && refused >= calls / 20, "{counts:?}");
    server.finish();
}

#[test]
fn nothing_gets_out_while_a_folder_and_a_link_to_the_outside_are_exchanged() {
    nothing_gets_out(Swap::Exchange, |outside| (outside.to_owned(), String::new()));
}

#[test]
fn nothing_gets_out_while_a_folder_is_replaced_by_a_link_to_everything() {
    nothing_gets_out(Swap::Replace, |outside| {
        let way = outside.strip_prefix("/").expect("an absolute path").to_str().expect("text");
        (PathBuf::from("/"), format!("{way}/"))
    });
}

#[test]
fn nothing_gets_out_while_a_folder_and_a_relative_link_are_exchanged() {
    nothing_gets_out(Swap::Exchange, |_| (PathBuf::from("../outside"), String::new()));
}

#[test]
fn nothing_gets_out_and_nothing_is_a_bug_where_the_kernel_does_not_keep_paths_inside() {
    nothing_gets_out_of(
        Swap::Exchange,
        |outside| (outside.to_owned(), String::new()),
        |setup| Some(traced(setup, "openat2", &["openat2:error=ENOSYS"])?.server),
    );
}

//! Servers that are killed in the middle of edits of several files, or whose system calls fail: afterwards all files are
//! old, or all are new.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    process::Signal,
};
use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    folder::{Tree, tree},
    hash, pintle,
    random::Random,
    request, rounds, run, skip,
};

/// The folders that are there before; some files stand in the same one, others in another.
const FOLDERS: [&str; 5] = ["", "src/", "src/deep/", "docs/", "a folder/"];
/// Where files are created, in folders that are there and in ones that are not.
const CREATED: [&str; 5] = ["made", "src/made", "docs/new/made", "new/made", "new/deep/made"];
const MODES: [u32; 4] = [0o644, 0o600, 0o755, 0o640];

/// The names that differ.
fn differences(now: &Tree, other: &Tree) -> Vec<String> {
    let names = now.keys().chain(other.keys()).filter(|name| now.get(*name) != other.get(*name));
    names.cloned().collect()
}

/// A random edit of several files, and what it makes of the root.
struct Edit {
    before: Tree,
    after: Tree,
    /// The existing files that it changes.
    changed: Vec<String>,
    arguments: Value,
}

impl Edit {
    /// Makes the files that the edit is about, and removes all others.
    fn prepare(root: &Path, random: &mut Random, round: usize) -> Self {
        for entry in fs::read_dir(root).expect("a folder") {
            let entry = entry.expect("an entry").path();
            if entry.is_dir() { fs::remove_dir_all(entry) } else { fs::remove_file(entry) }.expect("removed");
        }
        let (mut edits, mut changed, mut contents) = (Vec::new(), Vec::new(), BTreeMap::new());
        for folder in FOLDERS {
            fs::create_dir_all(root.join(folder)).expect("made");
            fs::write(root.join(format!("{folder}bystander")), "").expect("written");
        }
        for number in 0..2 + random.below(8) {
            let name = format!("{}{number}.txt", random.pick(&FOLDERS));
            let mut lines: Vec<String> =
                (0..1 + random.below(120)).map(|line| format!("line {line} of {name}, {round}")).collect();
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let old = text(&lines);
            fs::write(root.join(&name), &old).expect("written");
            let mode = fs::Permissions::from_mode(random.pick(&MODES));
            fs::set_permissions(root.join(&name), mode).expect("set");

            let place = random.below(lines.len());
            lines[place] = format!("replaced in {round}");
            edits.push(json!({
                "path": name, "hash": &hash(&old)[..8], "lines": [place + 1, place + 2], "new": lines[place],
            }));
            if random.below(2) == 0 {
                lines.push(format!("appended in {round}"));
                edits.push(json!({"path": name, "content": lines.last()}));
            }
            contents.insert(name.clone(), text(&lines));
            changed.push(name);
        }
        let before = tree(root);
        let mut after = before.clone();
        for (name, content) in contents {
            after.get_mut(&name).expect("there").1 = content.into_bytes();
        }
        let usual_mode = before["bystander"].0;
        for name in CREATED {
            if random.below(3) == 0 {
                let content = format!("created in {round}\n");
                edits.push(json!({"path": name, "content": content}));
                for (end, _) in name.match_indices('/') {
                    after.insert(name[..end].to_owned(), before["docs"].clone());
                }
                after.insert(name.to_owned(), (usual_mode, content.into_bytes()));
            }
        }
        Self { before, after, changed, arguments: json!({ "edits": edits }) }
    }

    /// Whether a tree is the new one (true) or the old one.
    fn state_of(&self, now: &Tree, what: &str) -> bool {
        if *now != self.before && *now != self.after {
            panic!(
                "{what}: neither old nor new; it differs from the old state in {:?}, from the new one in {:?}",
                differences(now, &self.before),
                differences(now, &self.after)
            );
        }
        *now == self.after
    }
}

fn server_on(root: &Path, state: &Path) -> Server {
    Setup::new().args(["--log-level=off", "--root"]).arg(root).arg("--state-dir").arg(state).start()
}

/// What makes an edit fail, or a path lead elsewhere.
enum Obstacle {
    None,
    /// A file that nobody may change, root included.
    Immutable(PathBuf),
    /// A folder whose name becomes a link for a moment.
    Link(&'static str),
}

impl Obstacle {
    fn random(random: &mut Random, root: &Path, edit: &Edit, can_make_immutable: bool) -> Self {
        match random.below(5) {
            0 if can_make_immutable => {
                let file = root.join(&edit.changed[random.below(edit.changed.len())]);
                set_immutable(&file, true);
                Self::Immutable(file)
            }
            1 => Self::Link(random.pick(&["src", "src/deep", "docs"])),
            _ => Self::None,
        }
    }
}

fn set_immutable(file: &Path, is_immutable: bool) -> bool {
    let mut command = Command::new("chattr");
    command.arg(if is_immutable { "+i" } else { "-i" }).arg(file);
    command.output().is_ok_and(|output| output.status.success())
}

fn can_make_immutable(folder: &Path) -> bool {
    let file = folder.join("immutable");
    fs::write(&file, "").expect("written");
    let is_possible = set_immutable(&file, true) && fs::write(&file, "x").is_err();
    set_immutable(&file, false);
    if !is_possible {
        skip("no file can be made immutable here; the other cases are tried");
    }
    is_possible
}

fn pause(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Whether a change of several files is going on, or was cut off.
fn is_staging(root: &Path) -> bool {
    FOLDERS.iter().any(|folder| root.join(folder).join(".pintle-staged").exists())
}

/// Recovers in one of the ways in which it happens. All of them answer after it.
fn recover(random: &mut Random, sharing: &mut Server, root: &Path, state: &Path) {
    let look = |server: &mut Server, random: &mut Random| match random.below(4) {
        0 => server.result("check_status", json!({})),
        1 => server.result("search", json!({"query": "replaced"})),
        2 => server.result("file.list", json!({"depth": 5})),
        _ => server.result("text.read", json!({"path": "bystander"})),
    };
    match random.below(3) {
        0 => drop(look(sharing, random)),
        1 => drop(look(&mut server_on(root, state), random)),
        _ => {
            let mut search = pintle();
            search.args(["search", "replaced", "--root"]).arg(root).arg("--state-dir").arg(state);
            let (code, _, errors) = run(&mut search, b"");
            assert!(matches!(code, Some(0 | 1)), "{errors}");
        }
    }
}

/// In one of ten rounds the kill comes at once, in another one after the reply, so that both ends are always among them.
const AT_ONCE: usize = 0;
const AFTER_THE_REPLY: usize = 2;

/// Kills a server at a random instant of a random edit, again and again. One server shares its state folder, another has
/// its own, and works in the same folders before there is a recovery.
fn kills_are_survived(place: &Path, seed: u64) {
    let rounds = rounds(30, 5000);
    let folder = tempfile::tempdir_in(place).expect("a folder");
    let [root, outside, state, other_state] =
        ["root", "outside", "state", "other"].map(|name| folder.path().join(name));
    fs::create_dir(&root).expect("a folder");
    fs::create_dir(&outside).expect("a folder");
    let can_make_immutable = can_make_immutable(folder.path());
    let mut random = Random::new(seed);
    let (mut sharing, mut foreign) = (server_on(&root, &state), server_on(&root, &other_state));
    let (mut olds, mut news, mut cut, mut usual) = (0, 0, 0, Duration::ZERO);
    for round in 0..rounds {
        if round % 20 == 0 {
            let edit = Edit::prepare(&root, &mut random, round);
            let start = Instant::now();
            sharing.result("text.edit", edit.arguments.clone());
            usual = start.elapsed() / u32::try_from(edit.after.len()).expect("small");
            assert!(edit.state_of(&tree(&root), "without a kill"));
        }
        let mut edit = Edit::prepare(&root, &mut random, round);
        let obstacle = match round % 10 {
            AFTER_THE_REPLY => Obstacle::None,
            _ => Obstacle::random(&mut random, &root, &edit, can_make_immutable),
        };
        let mut server = server_on(&root, &state);
        let what = format!("round {round} on {}", place.display());
        let usual = usual * u32::try_from(edit.after.len()).expect("small");
        let delay = usual.mul_f64(2.0 * (round as f64 * 0.618_034 + random.fraction() / 8.0).fract());
        let link = match &obstacle {
            Obstacle::Link(name) => {
                let (name, link) = (root.join(name), folder.path().join("link"));
                let _ = fs::remove_file(&link);
                symlink(&outside, &link).expect("linked");
                let (start, length) =
                    (usual.mul_f64(random.fraction()), usual.mul_f64(random.fraction() / 4.0));
                Some((name, link, start, length))
            }
            _ => None,
        };
        server.request(json!("cut"), "text.edit", edit.arguments.clone());
        let mut replies = Vec::new();
        std::thread::scope(|scope| {
            if let Some((name, link, start, length)) = &link {
                scope.spawn(move || {
                    pause(*start);
                    let swap =
                        || renameat_with(CWD, name, CWD, link, RenameFlags::EXCHANGE).expect("exchanged");
                    swap();
                    pause(*length);
                    swap();
                });
            }
            match round % 10 {
                AFTER_THE_REPLY => replies.push(server.frame()),
                AT_ONCE => {}
                // As soon as files are staged, or some time after that.
                number if number % 2 == 1 => {
                    while !is_staging(&root) && replies.is_empty() {
                        replies.extend(server.frame_at_once());
                    }
                    if number > 3 {
                        pause(usual.mul_f64(random.fraction().powi(3) / 2.0));
                    }
                }
                _ => pause(delay),
            }
            server.signal(Signal::KILL);
            server.wait();
        });
        let remaining = server.remaining_frames();
        replies.extend(remaining.iter().map(|line| serde_json::from_str(line).expect("whole replies only")));
        drop(server);
        if let Obstacle::Immutable(file) = &obstacle {
            set_immutable(file, false);
        }
        cut += usize::from(is_staging(&root));

        // Who has another state folder can use the folders, and leaves the staged files alone.
        if random.below(2) == 0 {
            let name = format!("{}bystander", random.pick(&FOLDERS));
            let append = json!({"path": name, "hash": hash(""), "content": "appended"});
            foreign.result("text.append", append);
            for tree in [&mut edit.before, &mut edit.after] {
                tree.get_mut(&name).expect("there").1 = b"appended\n".to_vec();
            }
            let listing = foreign.result("file.list", json!({"depth": 5})).to_string();
            assert!(!listing.contains(".pintle"), "{what}: {listing}");
        }
        recover(&mut random, &mut sharing, &root, &state);
        let is_new = edit.state_of(&tree(&root), &what);
        for reply in replies {
            assert_eq!(is_new, reply.get("result").is_some(), "{what}: {reply}");
        }
        assert!(!(is_new && matches!(obstacle, Obstacle::Immutable(_))), "{what}");
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0, "{what}");
        let journals = fs::read_dir(state.join("changes")).map_or(0, Iterator::count);
        assert_eq!(journals, 0, "{what}");
        olds += usize::from(!is_new);
        news += usize::from(is_new);
    }
    println!(
        "{}: {rounds} kills: {cut} in the middle; {olds} left all files old, {news} all new",
        place.display()
    );
    assert!(cut > 0 && olds > 0 && news > 0, "{cut} were in the middle; {olds} old, {news} new");
}

#[test]
fn a_kill_at_any_instant_leaves_all_files_old_or_all_new_on_a_disk() {
    kills_are_survived(&std::env::temp_dir(), 11);
}

#[test]
fn a_kill_at_any_instant_leaves_all_files_old_or_all_new_in_memory() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return skip("there is no /dev/shm");
    }
    kills_are_survived(memory, 12);
}

/// An edit by a server under `strace`, one of whose system calls ends it or fails.
struct Tampered {
    folder: tempfile::TempDir,
    edit: Edit,
}

/// How a tampered server has ended.
struct Ended {
    was_killed: bool,
    /// How often the system call was made by the thread that made it most often.
    calls: usize,
    reply: Option<Value>,
}

impl Tampered {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        fs::create_dir(&root).expect("a folder");
        let edit = Edit::prepare(&root, &mut Random::new(seed), 0);
        Self { folder, edit }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn run(&self, call: &str, tampering: &str) -> Ended {
        self.run_with(call, &[&format!("{call}:{tampering}")])
    }

    /// With several system calls tampered with; the first one is counted.
    fn run_with(&self, call: &str, tampering: &[&str]) -> Ended {
        let log = self.folder.path().join("trace");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-e"])
            .arg("trace=fdatasync,fsync,mkdirat,openat,flock,write,renameat2,unlinkat,fsetxattr,fchmod")
            .arg("-o")
            .arg(&log);
        for tampering in tampering {
            command.arg("-e").arg(format!("inject={tampering}"));
        }
        command.arg(pintle().get_program()).args(["serve", "--log-level=off", "--root"]).arg(self.root());
        command.arg("--state-dir").arg(self.state());
        let line = format!("{}\n", request(json!(1), "text.edit", self.edit.arguments.clone()));
        let (code, output, errors) = run(&mut command, line.as_bytes());
        let log = fs::read_to_string(log).expect("a trace");
        assert!(log.contains("openat("), "nothing was traced: {errors}");
        let mut by_thread: BTreeMap<&str, usize> = BTreeMap::new();
        for line in log.lines().filter(|line| line.contains(&format!(" {call}("))) {
            *by_thread.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        let calls = by_thread.into_values().max().unwrap_or(0);
        let reply = output.lines().next().and_then(|line| serde_json::from_str(line).ok());
        Ended { was_killed: code != Some(0), calls, reply }
    }

    /// The state after the next server has answered.
    fn is_new_after_recovery(&self, what: &str) -> bool {
        let mut server = server_on(&self.root(), &self.state());
        server.result("check_status", json!({}));
        server.finish();
        let journals = fs::read_dir(self.state().join("changes")).map_or(0, Iterator::count);
        assert_eq!(journals, 0, "{what}");
        self.edit.state_of(&tree(&self.root()), what)
    }
}

fn has_strace() -> bool {
    let mut probe = Command::new("strace");
    probe.args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"]);
    let has_strace = probe.output().is_ok_and(|probe| probe.status.success());
    if !has_strace {
        skip("there is no strace that can tamper with system calls here");
    }
    has_strace
}

/// Every how manieth step is tried.
fn stride(random: &mut Random) -> usize {
    if rounds(0, 1) == 1 { 1 } else { 1 + random.below(16) }
}

#[test]
fn killed_at_any_system_call_all_files_are_old_or_all_are_new() {
    if !has_strace() {
        return;
    }
    let mut random = Random::new(13);
    let (mut olds, mut news) = (0, 0);
    for call in [
        "openat",
        "flock",
        "mkdirat",
        "write",
        "fsync",
        "fdatasync",
        "renameat2",
        "unlinkat",
        "fsetxattr",
        "fchmod",
    ] {
        let mut step = 1 + random.below(rounds(8, 1));
        loop {
            let world = Tampered::new(random.next());
            let ended = world.run(call, &format!("signal=KILL:when={step}"));
            let is_new = world.is_new_after_recovery(&format!("killed at {call} {step}"));
            if let Some(reply) = ended.reply {
                assert_eq!(is_new, reply.get("result").is_some(), "{call} {step}: {reply}");
            }
            if !ended.was_killed {
                assert!(is_new, "{call} {step}");
                break;
            }
            olds += usize::from(!is_new);
            news += usize::from(is_new);
            step += stride(&mut random);
        }
    }
    println!("killed at {} system calls: {olds} left all files old, {news} all new", olds + news);
    assert!(olds > 10, "{olds} old, {news} new");
}

/// Once the disk is full, only what makes new entries or new content fails.
#[test]
fn whichever_system_call_finds_the_disk_full_all_files_are_as_the_reply_says() {
    if !has_strace() {
        return;
    }
    let mut random = Random::new(14);
    let (mut failed, mut done) = (0, 0);
    for call in ["mkdirat", "fsync", "fdatasync", "renameat2", "unlinkat", "fsetxattr", "fchmod"] {
        for lasting in ["", "+"] {
            let mut step = 1 + random.below(rounds(4, 1));
            loop {
                let what = format!("{call} {step}{lasting}");
                let world = Tampered::new(random.next());
                let ended = world.run(call, &format!("error=ENOSPC:when={step}{lasting}"));
                let reply = ended.reply.unwrap_or_else(|| panic!("{what}: no reply"));
                let error = &reply["error"]["data"];
                // Otherwise something is left for recovery.
                if error["details"]["kept"].is_null() && call != "unlinkat" {
                    let is_new = world.edit.state_of(&tree(&world.root()), &what);
                    assert_eq!(is_new, reply.get("result").is_some(), "{what}: {reply}");
                }
                let is_new = world.is_new_after_recovery(&what);
                assert_eq!(is_new, reply.get("result").is_some(), "{what}: {reply}");
                if !is_new {
                    assert_eq!(error["code"], json!("UPSTREAM_FAILED"), "{what}: {reply}");
                }
                failed += usize::from(!is_new);
                done += usize::from(is_new);
                if ended.calls < step {
                    assert!(is_new, "{what}: {reply}");
                    break;
                }
                step += stride(&mut random);
            }
        }
    }
    println!("{failed} edits failed and changed nothing, {done} were made");
    assert!(failed > 0, "nothing failed");
}

#[test]
fn where_files_cannot_be_exchanged_several_are_refused_and_none_is_created() {
    if !has_strace() {
        return;
    }
    let mut random = Random::new(16);
    for _ in 0..rounds(3, 30) {
        let mut world = Tampered::new(random.next());
        // Created files come first here, which a file system could do without an exchange.
        let edits = world.edit.arguments["edits"].as_array_mut().expect("edits");
        edits.insert(0, json!({"path": "first", "content": "created"}));
        let ended = world.run("renameat2", "error=EINVAL");
        let reply = ended.reply.expect("a reply");
        assert_eq!(reply["error"]["data"]["code"], json!("CAPABILITY_MISSING"), "{reply}");
        assert!(!world.edit.state_of(&tree(&world.root()), "without an exchange"));
        assert!(!world.is_new_after_recovery("without an exchange"));
    }
}

/// The second `fdatasync` is that of the journal after all files are exchanged.
#[test]
fn a_change_that_could_not_be_noted_as_done_is_undone_as_a_whole_even_if_that_is_cut_off() {
    if !has_strace() {
        return;
    }
    let mut random = Random::new(15);
    for (failing, second) in [
        ("2", "renameat2:error=EIO"),
        ("2", "renameat2:signal=KILL"),
        ("2", "unlinkat:signal=KILL"),
        ("2+", "unlinkat:signal=KILL"),
    ] {
        for step in 1.. {
            let what = format!("{second}:when={step}");
            let world = Tampered::new(random.next());
            let call = second.split(':').next().expect("a call");
            let first = format!("fdatasync:error=EIO:when={failing}");
            let ended = world.run_with(call, &[&first, &what]);
            assert!(!world.is_new_after_recovery(&what), "{what}");
            if let Some(reply) = &ended.reply {
                assert_eq!(reply["error"]["data"]["code"], json!("UPSTREAM_FAILED"), "{what}: {reply}");
            }
            if !ended.was_killed && ended.calls < step {
                break;
            }
        }
    }
}

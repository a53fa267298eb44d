//! How paths are resolved, by a table: a file inside the root is reached by each of its names, and nothing else is.

pub mod world;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use self::world::{Case, Expected, Node, Operation, SECRET, Tree, after, build, cases, restore, tree};
use crate::support::{Server, Setup, pintle, skip};

/// The content that is written.
const NEW: &str = "more\n";

/// A server whose root has the files of the table.
struct World {
    server: Server,
    root: PathBuf,
    outside: PathBuf,
    /// The files before a case.
    inside_before: Tree,
    outside_before: Tree,
    /// Hashes with which a change would succeed if it could reach a file that has one of them.
    hashes: Vec<String>,
}

impl World {
    fn new() -> Self {
        let setup = Setup::new();
        let (root, outside) = (setup.path("root"), setup.path("outside"));
        fs::create_dir(&outside).expect("a folder");
        build(&root, &outside);
        let (inside_before, outside_before) = (tree(&root), tree(&outside));
        let mut server = setup.args(["--log-level", "off", "--no-fsync"]).start();
        let hashes = ["copy", "a/file.txt"].map(|path| hash(&mut server, path)).into();
        Self { server, root, outside, inside_before, outside_before, hashes }
    }

    fn rebuild(&mut self) {
        build(&self.root, &self.outside);
    }

    /// The calls for an operation.
    fn calls(operation: Operation, path: &str, hash: &str, moved: &str) -> Vec<(&'static str, Value)> {
        match operation {
            Operation::Read => {
                vec![("text.read", json!({"path": path})), ("file.read", json!({"path": path}))]
            }
            Operation::List => vec![("file.list", json!({"path": path}))],
            Operation::Create => vec![("file.create", json!({"path": path, "content": NEW}))],
            Operation::Edit => vec![
                ("text.append", json!({"path": path, "hash": hash, "content": NEW})),
                (
                    "text.replace",
                    json!({"path": path, "hash": hash, "lines": [1, 0], "old": SECRET.trim_end(), "new": NEW}),
                ),
                (
                    "text.insert",
                    json!({"path": path, "hash": hash, "line": 1, "anchor": SECRET.trim_end(), "content": NEW}),
                ),
            ],
            Operation::Remove => vec![("file.remove", json!({"path": path, "hash": hash}))],
            Operation::MoveFrom => vec![("file.move", json!({"path": path, "hash": hash, "to": moved}))],
            Operation::MoveTo => vec![("file.move", json!({"path": moved, "hash": hash, "to": path}))],
        }
    }

    /// Adds the problems of one case; none if everything is as in the table.
    fn check(&mut self, case: &Case, problems: &mut Vec<String>) {
        let mut note = |world: &mut Self, operation: &dyn std::fmt::Debug, problem: String| {
            let path: String = case.path.chars().take(60).collect();
            problems.push(format!("line {}: {operation:?} {path:?}: {problem}", case.line));
            world.rebuild();
        };
        for operation in &case.operations {
            let checked = match &case.expected {
                Expected::Done(resolved) => self.check_done(*operation, &case.path, resolved),
                Expected::Refused { code, piece } => self.check_refused(*operation, &case.path, code, piece),
            };
            if let Err(problem) = checked {
                note(self, operation, problem);
            }
        }
        if let Err(problem) = same(&tree(&self.root), &self.inside_before) {
            note(self, &case.operations, format!("in the end {problem}"));
        }
        if let Err(problem) = same(&tree(&self.outside), &self.outside_before) {
            note(self, &case.operations, format!("OUTSIDE: {problem}"));
        }
    }

    fn check_refused(
        &mut self,
        operation: Operation,
        path: &str,
        code: &str,
        piece: &str,
    ) -> Result<(), String> {
        for hash in self.hashes.clone() {
            // A move to a wrong path would move the file that has the hash.
            let other = match operation {
                Operation::MoveTo if hash == self.hashes[0] => "copy",
                Operation::MoveTo => "a/file.txt",
                _ => "moved",
            };
            for (tool, arguments) in Self::calls(operation, path, &hash, other) {
                let frame = self.server.call(tool, arguments);
                let error = &frame["error"]["data"];
                let message = error["message"].as_str().unwrap_or_default();
                if error["code"] != json!(code) || !message.contains(piece) {
                    return Err(format!("{tool} is not refused with {code} and \"{piece}\": {frame:.300}"));
                }
                if frame.to_string().contains("outside secret") {
                    return Err(format!("{tool} returns the secret: {frame}"));
                }
            }
            if matches!(operation, Operation::Read | Operation::List) {
                break;
            }
        }
        Ok(())
    }

    fn check_done(&mut self, operation: Operation, path: &str, resolved: &str) -> Result<(), String> {
        if operation == Operation::List {
            return self.check_listed(path, resolved);
        }
        let moved = match operation {
            Operation::MoveTo => "plain".to_owned(),
            _ => Path::new(resolved).with_file_name("moved").to_str().expect("text").to_owned(),
        };
        let hash = match operation {
            Operation::Create => String::new(),
            Operation::MoveTo => hash(&mut self.server, "plain"),
            _ => self.read(path, resolved)?,
        };
        if operation == Operation::Read {
            return Ok(());
        }
        let old = fs::read_to_string(self.root.join(resolved)).unwrap_or_default();
        let names_of_old = fs::metadata(self.root.join(resolved)).map_or(0, |there| there.nlink());
        let calls = Self::calls(operation, path, &hash, &moved);
        for (tool, mut arguments) in calls {
            let mut expected = after(self.inside_before.clone(), operation, resolved, NEW.as_bytes(), &moved);
            match tool {
                // The result is that of an append: one more line at the end.
                "text.replace" => {
                    arguments["old"] = json!(old.trim_end_matches('\n'));
                    arguments["new"] = json!(format!("{old}{NEW}"));
                }
                // One more line at the start.
                "text.insert" => {
                    arguments["anchor"] = json!(old.lines().next().expect("a line"));
                    match expected.get_mut(Path::new(resolved)) {
                        Some(Node::File { content, .. }) => *content = format!("{NEW}{old}").into_bytes(),
                        other => panic!("{resolved} is {other:?}"),
                    }
                }
                _ => {}
            }
            let frame = self.server.call(tool, arguments);
            if frame.get("result").is_none() {
                return Err(format!("{tool} is refused: {frame:.300}"));
            }
            let found = tree(&self.root);
            same(&found, &expected)?;
            same(&tree(&self.outside), &self.outside_before)?;
            // Two names of one file cannot be restored one by one.
            match names_of_old > 1 {
                true => self.rebuild(),
                false => restore(&self.root, &found, &self.inside_before),
            }
        }
        Ok(())
    }

    fn check_listed(&mut self, path: &str, resolved: &str) -> Result<(), String> {
        let frame = self.server.call("file.list", json!({"path": path}));
        let entries = frame["result"]["entries"].as_array().ok_or_else(|| format!("no entries: {frame}"))?;
        let mut listed: Vec<String> =
            entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect();
        listed.sort();
        let there = fs::read_dir(self.root.join(resolved)).expect("a folder");
        let mut there: Vec<String> =
            there.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        there.sort();
        if listed == there { Ok(()) } else { Err(format!("listed are {listed:?}")) }
    }

    /// Reads with both tools and returns the hash.
    fn read(&mut self, path: &str, resolved: &str) -> Result<String, String> {
        let text = self.server.call("text.read", json!({"path": path}));
        let bytes = self.server.call("file.read", json!({"path": path}));
        let there = fs::read_to_string(self.root.join(resolved)).expect("a file");
        if text["result"]["content"] != json!(there) {
            return Err(format!("text.read gives something else: {text:.300}"));
        }
        let (hash, size) = (&text["result"]["hash"], there.len());
        if (&bytes["result"]["hash"], &bytes["result"]["size"]) != (hash, &json!(size)) {
            return Err(format!("file.read gives something else: {bytes:.300}"));
        }
        Ok(hash.as_str().expect("a hash").to_owned())
    }
}

fn hash(server: &mut Server, path: &str) -> String {
    server.result("text.read", json!({"path": path}))["hash"].as_str().expect("a hash").to_owned()
}

/// An error that describes how two trees differ.
fn same(found: &Tree, expected: &Tree) -> Result<(), String> {
    let differ = |one: &Tree, other: &Tree| {
        let differing = one.iter().filter(|(path, node)| other.get(*path) != Some(node));
        differing.take(4).map(|(path, node)| format!("{path:.80?} {node:?}")).collect::<Vec<_>>()
    };
    if found == expected {
        return Ok(());
    }
    Err(format!("the root holds {:?} instead of {:?}", differ(found, expected), differ(expected, found)))
}

/// Runs a part of the table, so that the parts can run in parallel.
fn check_part(part: usize, parts: usize) {
    let mut world = World::new();
    let mut problems = Vec::new();
    for case in cases().iter().skip(part).step_by(parts) {
        world.check(case, &mut problems);
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    world.server.finish();
}

#[test]
fn the_table_has_at_least_200_distinct_cases_and_every_operation_succeeds_and_fails_in_it() {
    let cases = cases();
    let paths: BTreeSet<&str> = cases.iter().map(|case| case.path.as_str()).collect();
    assert!(paths.len() >= 200, "{} paths", paths.len());
    let mut seen = BTreeSet::new();
    for case in &cases {
        for operation in &case.operations {
            assert!(seen.insert((*operation, &case.path)), "line {}: {operation:?} occurs twice", case.line);
        }
    }
    let outcomes: BTreeSet<_> = cases
        .iter()
        .flat_map(|case| {
            case.operations.iter().map(|operation| (*operation, matches!(case.expected, Expected::Done(_))))
        })
        .collect();
    assert_eq!(outcomes.len(), 14, "{outcomes:?}");
}

#[test]
fn every_path_resolves_as_in_the_table_1() {
    check_part(0, 4);
}

#[test]
fn every_path_resolves_as_in_the_table_2() {
    check_part(1, 4);
}

#[test]
fn every_path_resolves_as_in_the_table_3() {
    check_part(2, 4);
}

#[test]
fn every_path_resolves_as_in_the_table_4() {
    check_part(3, 4);
}

#[test]
fn names_that_are_not_utf_8_are_listed_as_such_and_not_as_another_file() {
    let setup = Setup::new();
    let root = setup.path("root");
    let odd = |bytes: &[u8]| root.join(std::ffi::OsStr::from_bytes(bytes));
    fs::write(odd(b"odd\xff"), "1").expect("writes");
    symlink("nowhere", odd(b"link\xff")).expect("a link");
    // A name that is not UTF-8 is shown as a name that a file can also have.
    fs::write(root.join("link\u{fffd}"), "12345").expect("writes");
    let mut server = setup.start();
    let entries = server.result("file.list", json!({}))["entries"].clone();
    let expected = json!([
        {"name": "link\u{fffd}", "type": "file", "size": 5},
        {"name": "link\u{fffd}", "type": "other", "size": 0},
        {"name": "odd\u{fffd}", "type": "file", "size": 1},
    ]);
    let mut entries = entries.as_array().expect("entries").clone();
    // Either of two entries with the same shown name may come first.
    entries.sort_by_key(ToString::to_string);
    assert_eq!(json!(entries), expected);
    for path in ["odd\u{fffd}", "odd", "odd\u{ff}"] {
        assert_eq!(server.error("text.read", json!({"path": path}))["code"], json!("NOT_FOUND"), "{path}");
    }
    // A file that really has the shown name is another file.
    server.result("file.create", json!({"path": "odd\u{fffd}", "content": "2"}));
    assert_eq!(fs::read(odd(b"odd\xff")).expect("reads"), b"1");
    assert_eq!(fs::read(root.join("odd\u{fffd}")).expect("reads"), b"2");
    server.finish();
}

#[test]
fn a_file_that_only_has_the_name_of_an_unfinished_file_gets_a_visible_name() {
    let setup = Setup::new();
    let root = setup.path("root");
    fs::write(root.join("pintle-tmp.recovered-1"), "taken").expect("writes");
    fs::create_dir(root.join(".pintle-tmp")).expect("a folder");
    fs::write(root.join(".pintle-tmp/kept"), "kept").expect("writes");
    let mut server = setup.start();
    server.result("file.create", json!({"path": "file", "content": "x"}));
    assert_eq!(fs::read(root.join("pintle-tmp.recovered-2/kept")).expect("kept"), b"kept");
    fs::write(root.join(".pintle-tmp"), "a person's").expect("writes");
    server.result("file.create", json!({"path": "other", "content": "x"}));
    assert_eq!(fs::read(root.join("pintle-tmp.recovered-3")).expect("kept"), b"a person's");
    symlink("nowhere", root.join(".pintle-tmp")).expect("a link");
    server.result("file.list", json!({}));
    assert_eq!(fs::read_link(root.join("pintle-tmp.recovered-4")).expect("kept"), Path::new("nowhere"));
    assert_eq!(fs::read(root.join("pintle-tmp.recovered-1")).expect("kept"), b"taken");
    let stderr = server.finish();
    for number in 2..=4 {
        let name = format!("pintle-tmp.recovered-{number}");
        assert!(stderr.lines().any(|line| line.starts_with("warning:") && line.contains(&name)), "{stderr}");
    }
}

#[test]
fn an_unfinished_file_is_not_reached_through_a_link_either() {
    let setup = Setup::new();
    fs::write(setup.path("root/.pintle-tmp"), "half\n").expect("writes");
    symlink(".pintle-tmp", setup.path("root/link")).expect("a link");
    let mut server = setup.start();
    let error = server.error("text.read", json!({"path": "link"}));
    assert_eq!(error["code"], json!("NOT_FOUND"), "{error}");
    server.finish();
}

#[test]
fn a_device_in_the_root_is_not_opened() {
    let setup = Setup::new();
    let device = setup.path("root/zero");
    let number = rustix::fs::makedev(1, 5);
    let kind = rustix::fs::FileType::CharacterDevice;
    if rustix::fs::mknodat(rustix::fs::CWD, &device, kind, 0o666.into(), number).is_err() {
        return skip("only a privileged user can make a device");
    }
    let mut server = setup.start();
    let none = "0".repeat(64);
    for (tool, arguments) in [
        ("text.read", json!({"path": "zero"})),
        ("file.read", json!({"path": "zero"})),
        ("text.append", json!({"path": "zero", "hash": none, "content": "x"})),
        ("file.remove", json!({"path": "zero", "hash": none})),
        ("file.move", json!({"path": "zero", "hash": none, "to": "one"})),
    ] {
        let error = server.error(tool, arguments);
        assert_eq!(error["code"], json!("INVALID_REQUEST"), "{tool}: {error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("neither a file nor a folder"), "{tool}: {error}");
    }
    let listed = server.result("file.list", json!({}));
    assert_eq!(listed["entries"], json!([{"name": "zero", "type": "other", "size": 0}]));
    server.finish();
}

/// A server that runs as a user with few permissions.
struct Unprivileged {
    child: Child,
    stdin: ChildStdin,
    stdout: std::io::BufReader<ChildStdout>,
}

impl Unprivileged {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(pintle().get_program());
        if rustix::process::geteuid().is_root() {
            // The program may be in a folder that no other user can enter.
            let program = folder.join("pintle");
            fs::copy(pintle().get_program(), &program).expect("copies");
            command = Command::new(program);
            command.uid(65534).gid(65534);
        }
        command.env_clear().args(["serve", "--log-level", "off"]).current_dir(folder.join("root"));
        command.env("PINTLE_STATE_DIR", folder.join("state")).env("MCP_READY_FILE", folder.join("ready"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let stdin = child.stdin.take().expect("stdin");
        let stdout = std::io::BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, stdin, stdout }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        use std::io::{BufRead, Write};
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments});
        writeln!(self.stdin, "{message}").expect("the server reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a reply");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn files_without_permission_for_the_server_are_forbidden_and_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = |path: &str, mode: u32| {
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    set("", 0o755);
    for path in ["root", "root/closed", "root/fixed"] {
        fs::create_dir(folder.path().join(path)).expect("a folder");
    }
    for path in ["root/unreadable", "root/closed/file", "root/fixed/file"] {
        fs::write(folder.path().join(path), "text\n").expect("writes");
    }
    set("root/unreadable", 0o000);
    set("root/closed", 0o000);
    set("root/fixed", 0o555);
    let mut server = Unprivileged::start(folder.path());
    let hash = server.call("text.read", json!({"path": "fixed/file"}))["result"]["hash"].clone();
    assert!(hash.is_string(), "what may be read is read");
    for (tool, arguments) in [
        ("text.read", json!({"path": "unreadable"})),
        ("file.read", json!({"path": "unreadable"})),
        ("text.append", json!({"path": "unreadable", "hash": hash, "content": "x"})),
        ("text.read", json!({"path": "closed/file"})),
        ("file.list", json!({"path": "closed"})),
        ("file.create", json!({"path": "closed/new", "content": "x"})),
        ("file.create", json!({"path": "fixed/new", "content": "x"})),
        ("file.create", json!({"path": "fixed/new/er", "content": "x"})),
        ("text.append", json!({"path": "fixed/file", "hash": hash, "content": "x"})),
        ("file.remove", json!({"path": "fixed/file", "hash": hash})),
        ("file.move", json!({"path": "fixed/file", "hash": hash, "to": "fixed/other"})),
    ] {
        let frame = server.call(tool, arguments.clone());
        assert_eq!(frame["error"]["data"]["code"], json!("FORBIDDEN"), "{tool} {arguments}: {frame}");
    }
    drop(server);
    set("root/closed", 0o755);
    set("root/unreadable", 0o644);
    for path in ["root/unreadable", "root/closed/file", "root/fixed/file"] {
        assert_eq!(fs::read(folder.path().join(path)).expect("reads"), b"text\n", "{path}");
    }
    assert_eq!(fs::read_dir(folder.path().join("root/fixed")).expect("lists").count(), 1);
}

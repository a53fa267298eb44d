//! Output on a terminal: text from files never controls the terminal.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tempfile::TempDir;

use crate::support::{TEST_TIMEOUT, pintle, run};

/// A text that sets the title, clears the screen, clears it again with the one-byte form, and reorders the rest.
const EVIL: &str = "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}end";
const SHOWN: &str = r"evil\x1b]0;owned\x07\x1b[2J\u{9b}2J\u{202e}end";

/// A terminal and the path by which other processes open it.
fn open_terminal() -> (OwnedFd, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("its name").into_string().expect("UTF-8");
    (ours, name)
}

/// Runs a command with a terminal as its standard output and error. Returns what was written to it.
fn on_terminal(command: &mut Command) -> String {
    let (ours, name) = open_terminal();
    let theirs = || OwnedFd::from(File::options().read(true).write(true).open(&name).expect("opens"));
    let mut child = command.stdin(Stdio::null()).stdout(theirs()).stderr(theirs()).spawn().expect("starts");
    // `Command` would keep these open for another run.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut sent = Vec::new();
    let mut buffer = [0; 4096];
    let mut ours = File::from(ours);
    // A terminal that no other process has open returns an error instead of an end of file.
    while let Ok(count @ 1..) = ours.read(&mut buffer) {
        sent.extend_from_slice(&buffer[..count]);
    }
    child.wait().expect("ends");
    String::from_utf8_lossy(&sent).into_owned()
}

/// A server on its own terminal, which is its standard input, output and error.
struct Watched {
    child: Child,
    terminal: File,
    sent: String,
    _folder: TempDir,
}

impl Watched {
    fn start(folder: TempDir, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let (ours, name) = open_terminal();
        let theirs = || OwnedFd::from(File::options().read(true).write(true).open(&name).expect("opens"));
        let mut command = command(folder.path(), arguments);
        command.env("MCP_READY_FILE", folder.path().join("ready")).envs(environment.iter().copied());
        let child = command.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().expect("starts");
        Self { child, terminal: File::from(ours), sent: String::new(), _folder: folder }
    }

    /// Reads until a text has been written. Returns everything that was written so far.
    fn wait_for(&mut self, text: &str) -> &str {
        let mut buffer = [0; 4096];
        while !self.sent.contains(text) {
            let timeout = Timespec { tv_sec: TEST_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.terminal, PollFlags::IN)], Some(&timeout));
            let count = match ready {
                Ok(1..) => self.terminal.read(&mut buffer).unwrap_or(0),
                _ => 0,
            };
            assert!(count > 0, "`{text}` did not come: {}", self.sent);
            self.sent.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        &self.sent
    }

    /// Types a line.
    fn send(&mut self, line: &str) {
        self.terminal.write_all(format!("{line}\n").as_bytes()).expect("writes");
    }

    /// Sends the signal of Ctrl-C and waits for a clean end.
    fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is there");
        let mut rest = Vec::new();
        // A terminal that no other process has open returns an error instead of an end of file.
        let _ = self.terminal.read_to_end(&mut rest);
        assert_eq!(self.child.wait().expect("ends").code(), Some(0), "{}", self.sent);
        format!("{}{}", self.sent, String::from_utf8_lossy(&rest))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text without the colours that Pintle adds.
fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("\u{1b}[") {
        let end =
            start + 2 + rest[start + 2..].find(|c: char| !c.is_ascii_digit() && c != ';').expect("an end");
        plain.push_str(&rest[..start]);
        if rest[end..].starts_with('m') {
            rest = &rest[end + 1..];
        } else {
            plain.push_str(&rest[start..end]);
            rest = &rest[end..];
        }
    }
    plain + rest
}

fn assert_harmless(text: &str, what: &str) {
    let plain = without_colors(text);
    let is_harmful =
        |c: char| (c.is_control() && !"\r\n\t".contains(c)) || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!plain.contains(is_harmful), "{what}: {plain:?}");
}

/// A root with a file whose name and content have control sequences, and its index.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a root");
    fs::write(root.join(format!("{EVIL}.rs")), format!("fn needle() {{}} // {EVIL}\r\n\tneedle {EVIL}\n"))
        .expect("a file");
    fs::write(root.join(format!("{EVIL}.json")), format!("{{\"{EVIL}")).expect("a file");
    let (code, _, stderr) = run(&mut command(folder.path(), &["index"]), b"");
    assert_eq!(code, Some(0), "{stderr}");
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = pintle();
    command.args(arguments).current_dir(folder.join("root")).env("PINTLE_STATE_DIR", folder.join("state"));
    command.env("TERM", "xterm");
    command
}

#[test]
fn names_and_lines_are_escaped_on_a_terminal_and_unchanged_in_a_pipe() {
    let folder = workspace();
    let searches: [&[&str]; 4] = [
        &["search", "needle"],
        &["search", "--color=never", "--no-heading", "-C1", "-e", "need.e.*"],
        &["search", "--match=words", "-C1", "needle"],
        &["search", "--match=symbol", "needle"],
    ];
    for arguments in searches {
        let terminal = on_terminal(&mut command(folder.path(), arguments));
        assert_harmless(&terminal, &format!("{arguments:?}"));
        assert!(without_colors(&terminal).contains(&format!("{SHOWN}.rs")), "{arguments:?}: {terminal:?}");
        assert!(without_colors(&terminal).contains(&format!("// {SHOWN}\r")), "{arguments:?}: {terminal:?}");
        let (code, piped, stderr) = run(&mut command(folder.path(), arguments), b"");
        assert_eq!(code, Some(0), "{stderr}");
        assert!(piped.contains(&format!("{EVIL}.rs")) && piped.contains(&format!("// {EVIL}")), "{piped:?}");
    }
}

#[test]
fn verdicts_json_and_errors_are_escaped_on_a_terminal_and_unchanged_in_a_pipe() {
    let folder = workspace();
    let file = format!("{EVIL}.json");
    let call = format!(r#"{{"path":"{}"}}"#, "no\u{9b}2Jsuch\u{202e}file");
    let commands: [&[&str]; 7] = [
        &["validate", &file],
        &["validate", "--json", &file],
        &["validate", "no-such-file\u{1b}[2J"],
        &["search", "--json", "needle"],
        &["call", "text.read", &call],
        &["tools", "--root", EVIL],
        &["search", "--match", EVIL, "needle"],
    ];
    for arguments in commands {
        let terminal = on_terminal(&mut command(folder.path(), arguments));
        assert_harmless(&terminal, &format!("{arguments:?}"));
        let shows_escape =
            [r"\x1b", r"\u001b", r"\u{9b}", r"\u009b"].iter().any(|text| terminal.contains(text));
        assert!(shows_escape, "{arguments:?}: {terminal:?}");
    }
    let (_, piped, _) = run(&mut command(folder.path(), &["validate", &file]), b"");
    assert!(piped.starts_with(&format!("{file}: not JSON")), "{piped:?}");
    let (_, _, stderr) = run(&mut command(folder.path(), &["tools", "--root", EVIL]), b"");
    assert!(stderr.contains(EVIL), "{stderr:?}");
    let json = on_terminal(&mut command(folder.path(), &["search", "--json", "needle"]));
    let json = json.split("answered from").next().expect("a part");
    let answer: serde_json::Value = serde_json::from_str(json).expect("JSON on a terminal, too");
    assert_eq!(answer["hits"][0]["path"], serde_json::json!(format!("{EVIL}.rs")));
}

/// A root whose name is hard to quote.
fn named_root() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("root")).expect("a root");
    fs::create_dir(folder.path().join(format!("it's {EVIL}"))).expect("a root");
    folder
}

/// The JSON object in a text.
fn configuration(text: &str) -> serde_json::Value {
    let start = text.find("{\r\n").expect("an object");
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter();
    values.next().expect("an object").expect("JSON")
}

#[test]
fn a_server_on_a_terminal_says_what_it_serves_and_how_to_connect_a_client() {
    let folder = named_root();
    let root = folder.path().canonicalize().expect("a path").join(format!("it's {EVIL}"));
    let root = root.to_str().expect("text").to_owned();
    let arguments = ["serve", "--root", root.as_str(), "--scope", "read:/"];
    let mut server = Watched::start(folder, &arguments, &[]);
    let sent = server.wait_for("mcp:ready mode=stdio\r\n").to_owned();
    assert_harmless(&sent, "the panel");
    assert!(sent.contains('\u{1b}'), "it has colours");
    let plain = without_colors(&sent);
    let (pintle, shown) = (env!("CARGO_BIN_EXE_pintle"), format!("it's {SHOWN}"));
    for (name, fact) in
        [("root", shown.as_str()), ("tools", "8 ("), ("index", "not built yet"), ("limits", "120 s")]
    {
        let line = plain.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some_and(|line| line.contains(fact)), "{name}: {plain}");
    }
    let server_of = &configuration(&plain)["mcpServers"]["pintle"];
    let given = server_of["args"].as_array().expect("arguments");
    let given: Vec<&str> = given.iter().filter_map(|word| word.as_str()).collect();
    assert_eq!(given[..3], ["serve", "--root", root.as_str()]);
    assert_eq!(given[5..], ["--scope", "read:/"], "with no more rights than here");
    let program = Path::new(server_of["command"].as_str().expect("a program"));
    assert_eq!(program, Path::new(pintle).canonicalize().expect("a path"));
    assert!(plain.contains("claude mcp add pintle -- /"), "{plain}");
    assert!(plain.contains("it'\\''s "), "quoted for a shell: {plain}");
    server.end();
}

#[test]
fn calls_are_logged_for_people_on_a_terminal_and_names_cannot_control_it() {
    let mut server = Watched::start(named_root(), &["serve"], &[]);
    server.wait_for("mcp:ready mode=stdio");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"file.list","params":{}}"#);
    server.wait_for("\"entries\"");
    server.send(r#"{"jsonrpc":"2.0","id":2,"method":"text.read","params":{"path":"missing"}}"#);
    server.send(r#"{"jsonrpc":"2.0","id":3,"method":"\u001b[2J\u009b2J","params":{}}"#);
    server.wait_for("x1b[2J");
    let sent = server.end();
    let plain = without_colors(&sent);
    let line = |name: &str| {
        let is_it = |line: &&str| line.contains(&format!("  {name} ")) && !line.contains("jsonrpc");
        plain.lines().find(is_it).unwrap_or_else(|| panic!("no line of {name}: {plain}")).to_owned()
    };
    let (list, read) = (line("file.list"), line("text.read"));
    assert!(list.contains("  ok ") && list.trim_end().ends_with("ms"), "{list}");
    assert!(read.contains("  NOT_FOUND ") && read.trim_end().ends_with("ms"), "{read}");
    assert_eq!(list.find("  ok "), read.find("  NOT_FOUND "), "{list}\n{read}");
    assert!(list.as_bytes()[2] == b':' && list.as_bytes()[5] == b':', "a time: {list}");
    assert!(!plain.contains("\"traceId\""), "{plain}");
    assert_harmless(&sent, "the log");
}

#[test]
fn an_http_server_on_a_terminal_shows_its_address() {
    let arguments = ["serve", "--http", "127.0.0.1:0", "--auth", "none"];
    let mut server = Watched::start(named_root(), &arguments, &[]);
    server.wait_for("mcp:ready mode=http addr=127.0.0.1:");
    let plain = without_colors(&server.end());
    let port = plain.split("mcp:ready mode=http addr=127.0.0.1:").nth(1).expect("a port").trim_end();
    let url = format!("http://127.0.0.1:{port}/mcp");
    assert_eq!(
        configuration(&plain)["mcpServers"]["pintle"],
        serde_json::json!({"type": "http", "url": url})
    );
    assert!(plain.contains(&format!("claude mcp add --transport http pintle {url}\r\n")), "{plain}");
}

#[test]
fn there_are_no_colours_if_a_setting_disables_them() {
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut server = Watched::start(named_root(), &["serve"], &[environment]);
        let sent = server.wait_for("mcp:ready mode=stdio").to_owned();
        assert!(sent.contains("mcpServers") && !sent.contains('\u{1b}'), "{environment:?}: {sent}");
        server.end();
        let mut alone = command(named_root().path(), &[]);
        alone.current_dir("/").env(environment.0, environment.1);
        let sent = on_terminal(&mut alone);
        assert!(sent.contains("pintle serve") && !sent.contains('\u{1b}'), "{environment:?}: {sent}");
    }
}

#[test]
fn a_client_that_shows_standard_error_on_a_terminal_gets_the_plain_log() {
    let folder = named_root();
    let mut serve = command(folder.path(), &["serve"]);
    serve.env("MCP_READY_FILE", folder.path().join("ready"));
    // Standard input is not a terminal, and ends at once.
    let sent = on_terminal(&mut serve);
    assert_eq!(sent, "mcp:ready mode=stdio\r\n");
    let (code, output, errors) =
        run(&mut serve, br#"{"jsonrpc":"2.0","id":1,"method":"file.list","params":{}}"#);
    assert_eq!((code, output.lines().count()), (Some(0), 1));
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines[0], "mcp:ready mode=stdio");
    let record: serde_json::Value = serde_json::from_str(lines[1]).expect("a record");
    assert_eq!((lines.len(), &record["method"]), (2, &serde_json::json!("file.list")));
}

#[test]
fn the_list_of_tools_breaks_between_words() {
    let folder = named_root();
    let sent = on_terminal(&mut command(folder.path(), &["tools"]));
    let lines: Vec<&str> = sent.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{sent}");
    assert!(lines.iter().any(|line| line.trim_start().starts_with("text.replace ")), "{sent}");
    // When its lines are joined, each description is the one that a pipe gets.
    let joined = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, piped, _) = run(&mut command(folder.path(), &["tools"]), b"");
    let first = piped.lines().find(|line| line.starts_with("check_status")).expect("a line");
    let description = first.split('\t').nth(2).expect("a description");
    assert!(joined.contains(description.split_whitespace().next().expect("a word")), "{joined}");
    let words: Vec<&str> = piped.split_whitespace().collect();
    for word in joined.split_whitespace() {
        assert!(words.contains(&word) || ["tool", "version", "what", "it", "does"].contains(&word), "{word}");
    }
}

//! What people see on a terminal: text from files never controls it.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::support::{pintle, run};

/// Sets the title, clears the screen; the same with the one-byte form; reorders the rest.
const EVIL: &str = "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}end";
const SHOWN: &str = r"evil\x1b]0;owned\x07\x1b[2J\u{9b}2J\u{202e}end";

/// Runs a command with a terminal as its standard output and error, and gives what that was sent.
fn on_terminal(command: &mut Command) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("its name").into_string().expect("UTF-8");
    let theirs = || OwnedFd::from(File::options().read(true).write(true).open(&name).expect("opens"));
    let mut child = command.stdin(Stdio::null()).stdout(theirs()).stderr(theirs()).spawn().expect("starts");
    // The command keeps these open for another run.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut sent = Vec::new();
    let mut buffer = [0; 4096];
    let mut ours = File::from(ours);
    // A terminal that nobody else has open gives an error instead of an end.
    while let Ok(count @ 1..) = ours.read(&mut buffer) {
        sent.extend_from_slice(&buffer[..count]);
    }
    child.wait().expect("ends");
    String::from_utf8_lossy(&sent).into_owned()
}

/// The text without the colours that Pintle itself puts in.
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

/// A root with a file whose name and content are evil, and its index.
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

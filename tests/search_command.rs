//! `pintle index` and `pintle search`: their output and their exit codes.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{hash, pintle};

/// A folder with a root and a state folder next to it.
struct Workspace(TempDir);

/// The exit code and the output of a command.
struct Ended {
    code: Option<i32>,
    output: Vec<u8>,
    errors: String,
}

impl Ended {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.output).expect("text")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.output).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A part of the note that a search prints if it has not looked for new files.
const NOTE: &str = "--fresh";

const FILES: [(&str, &str); 4] = [
    ("a.txt", "one\nneedle two\nthree\nfour\nfive\nsix needle, needle\nseven\n"),
    ("b/deep.rs", "// Needle\nfn thread() {}\n"),
    ("c.md", "nothing here\n"),
    ("d.txt", "a needle\n"),
];

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("root")).expect("a root");
        Self(folder)
    }

    /// A workspace with the files of these tests, indexed.
    fn indexed() -> Self {
        let workspace = Self::new();
        for (path, text) in FILES {
            workspace.write(path, text);
        }
        workspace.index();
        workspace
    }

    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.path().join("root").join(name.as_ref())
    }

    fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, content).expect("writes");
        // A file that was just written could be treated as one that is still being written.
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(10)).expect("a time");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pintle();
        command.args(arguments).current_dir(self.path(""));
        command.env("PINTLE_STATE_DIR", self.0.path().join("state"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        end(&mut self.command(arguments))
    }

    fn index(&self) -> Value {
        let ended = self.run(&["index", "--json"]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        ended.json()
    }

    /// The output of a search that finds something.
    fn found(&self, arguments: &[&str]) -> String {
        let ended = self.run(&[&["search"], arguments].concat());
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}{}", ended.text(), ended.errors);
        ended.text().to_owned()
    }

    /// The error output of a search that is refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(&[&["search"], arguments].concat());
        assert_eq!((ended.code, ended.text()), (Some(2), ""), "{arguments:?}: {}", ended.errors);
        ended.errors
    }

    /// The answer of a tool to the same user.
    fn call(&self, tool: &str, arguments: Value) -> Value {
        let ended = self.run(&["call", tool, &arguments.to_string()]);
        assert_eq!(ended.code, Some(0), "{tool} {arguments}: {}", ended.errors);
        ended.json()
    }
}

fn end(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().expect("runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    Ended { code: output.status.code(), output: output.stdout, errors }
}

const MAGENTA: &str = "\u{1b}[35m";
const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[1m\u{1b}[31m";
const PLAIN: &str = "\u{1b}[0m";

#[test]
fn index_prints_files_sizes_and_skipped_files_as_plain_text_in_a_pipe() {
    let workspace = Workspace::new();
    workspace.write("one.txt", "one\n");
    workspace.write("two.txt", "twenty\n");
    workspace.write("binary", b"a\0b");
    workspace.write("large.txt", "x".repeat(2_000));
    workspace.write(".ignore", "*.log\n");
    workspace.write("a.log", "ignored\n");
    std::os::unix::fs::symlink("one.txt", workspace.path("link")).expect("a link");
    let ended = workspace.run(&["index", "--max-file-bytes", "1000"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    assert!(!ended.text().contains('\u{1b}') && !ended.text().contains('\r'), "{:?}", ended.text());
    let lines: Vec<_> = ended.text().lines().collect();
    // 4, 7 and the 6 of `.ignore`.
    assert!(lines[0].starts_with("3 files, 17 B; index "), "{lines:?}");
    assert!(lines[0].contains("generation 1") && lines[0].contains("0 removed"), "{lines:?}");
    let skipped: Vec<_> = lines[1..].iter().map(|line| line.trim()).collect();
    assert_eq!(skipped.len(), 4, "{lines:?}");
    for reason in ["1 binary", "1 ignored by a rule", "1 symbolic link", "1 too large (see --max-file-bytes)"]
    {
        let reported = format!("not searched: {reason}");
        assert!(skipped.iter().any(|line| line.starts_with(&reported)), "{reason}: {lines:?}");
    }
}

#[test]
fn index_prints_json_that_agrees_with_the_tools() {
    let workspace = Workspace::new();
    workspace.write("one.txt", "one\n");
    workspace.write("binary", b"a\0b");
    let reported = workspace.index();
    let status = workspace.call("index_status", json!({}));
    for (name, value) in [("generation", json!(1)), ("files", json!(1)), ("bytes", json!(4))] {
        assert_eq!((&reported[name], &status[name]), (&value, &value), "{name}: {reported} {status}");
    }
    assert_eq!(reported["skipped"], json!({"binary": 1}));
    assert_eq!(status["skipped"], reported["skipped"]);
    assert_eq!((&status["size"], &status["textSize"]), (&reported["size"], &reported["textSize"]));
    assert!(reported["size"].as_u64() > Some(0), "{reported}");
    assert_eq!(reported["removed"], json!(0));
}

#[test]
fn an_index_is_refreshed_with_the_changes_or_completely_on_request() {
    let workspace = Workspace::indexed();
    let read = |arguments: &[&str]| {
        let reported = workspace.run(&[&["index", "--json"], arguments].concat()).json();
        (reported["read"].as_u64().expect("a count"), reported["removed"].as_u64().expect("a count"))
    };
    assert_eq!(read(&[]), (0, 0));
    workspace.write("a.txt", "now another\n");
    workspace.write("b/new.txt", "new\n");
    fs::remove_file(workspace.path("d.txt")).expect("removes");
    assert_eq!(read(&["b"]), (1, 0), "only what lies there");
    assert_eq!(read(&[]), (1, 1));
    assert_eq!(read(&["--full"]).0, 4);
    assert_eq!(workspace.found(&["another"]), "a.txt:now another\n");
}

#[test]
fn an_index_that_cannot_be_built_ends_with_2_and_says_what_to_do() {
    let workspace = Workspace::indexed();
    let refused = |arguments: &[&str], reported: &[&str]| {
        let ended = workspace.run(arguments);
        assert_eq!((ended.code, ended.text()), (Some(2), ""), "{arguments:?}: {}", ended.errors);
        let all = reported.iter().all(|reported| ended.errors.contains(reported));
        assert!(all && !ended.errors.contains('\u{1b}'), "{arguments:?}: {}", ended.errors);
    };
    for command in [&["index"][..], &["search", "needle"]] {
        for state in ["state", ".", "b/../state", "../root/x"] {
            refused(&[command, &["--state-dir", state]].concat(), &["inside the root", "--state-dir"]);
        }
        refused(&[command, &["--root", "no/such"]].concat(), &["no/such"]);
    }
    // The index folder cannot be created here.
    refused(&["index", "--state-dir", "/proc/no/such"], &["CAPABILITY_MISSING", "--state-dir"]);
    assert!(!workspace.path("state").exists());
    refused(&["index", "../x"], &["leaves the root"]);
    refused(&["index", "--max-file-bytes", "0"], &["--max-file-bytes is 0", "from 1 to"]);
    refused(&["index", "--fulll"], &["--full"]);
}

#[test]
fn files_over_the_limit_are_skipped_wherever_it_is_set() {
    let workspace = Workspace::new();
    workspace.write("short.txt", "needle\n");
    workspace.write("long.txt", "needle".repeat(10));
    let skipped = |command: &mut Command| {
        let ended = end(command);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        ended.json()["skipped"].clone()
    };
    let index = || workspace.command(&["index", "--json"]);
    assert_eq!(skipped(&mut index()), json!({}));
    assert_eq!(skipped(index().args(["--max-file-bytes", "50"])), json!({"too_large": 1}));
    assert_eq!(workspace.run(&["search", "needle", "--max-file-bytes=50"]).text(), "short.txt:needle\n");
    assert_eq!(skipped(&mut index()), json!({}), "the default lets it in again");
    assert_eq!(skipped(index().env("PINTLE_MAX_FILE_BYTES", "50")), json!({"too_large": 1}));
    let config = workspace.0.path().join("pintle.toml");
    fs::write(&config, "max_file_bytes = 5\n").expect("writes");
    assert_eq!(skipped(index().arg("--config").arg(&config)), json!({"too_large": 2}));
    let both = skipped(index().arg("--config").arg(&config).env("PINTLE_MAX_FILE_BYTES", "50"));
    assert_eq!(both, json!({"too_large": 1}), "the environment beats the file");
    let all = skipped(index().args(["--max-file-bytes", "60"]).env("PINTLE_MAX_FILE_BYTES", "50"));
    assert_eq!(all, json!({}), "flags beat the environment");
}

#[test]
fn a_search_reports_if_the_index_was_built_for_another_limit() {
    let workspace = Workspace::indexed();
    let reported = ["of up to 134217728 bytes, but the limit is set to 50", "`pintle index`"];
    for how in [&[][..], &["--fresh"], &["--json"], &["--match=words"], &["-C1"]] {
        let ended = workspace.run(&[&["search", "needle", "--max-file-bytes=50"], how].concat());
        assert_eq!(ended.code, Some(0), "{how:?}: {}", ended.errors);
        assert!(reported.iter().all(|reported| ended.errors.contains(reported)), "{how:?}: {}", ended.errors);
        let ended = workspace.run(&[&["search", "needle"], how].concat());
        assert!(!ended.errors.contains("the limit is set to"), "{how:?}: {}", ended.errors);
    }
    let ended = workspace.run(&["index", "--max-file-bytes=50"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let ended = workspace.run(&["search", "needle", "--max-file-bytes=50"]);
    assert!(!ended.errors.contains("the limit is set to"), "{}", ended.errors);
}

#[test]
fn hits_are_printed_as_ripgrep_prints_them() {
    let workspace = Workspace::indexed();
    for (arguments, expected) in [
        (
            &["needle"][..],
            "a.txt:needle two\na.txt:six needle, needle\nb/deep.rs:// Needle\nd.txt:a needle\n",
        ),
        (
            &["needle", "-n"],
            "a.txt:2:needle two\na.txt:6:six needle, needle\nb/deep.rs:1:// Needle\nd.txt:1:a needle\n",
        ),
        (
            &["needle", "--column"],
            "a.txt:2:1:needle two\na.txt:6:5:six needle, needle\nb/deep.rs:1:4:// Needle\nd.txt:1:3:a needle\n",
        ),
        (
            &["needle", "--heading"],
            "a.txt\nneedle two\nsix needle, needle\n\nb/deep.rs\n// Needle\n\nd.txt\na needle\n",
        ),
        (
            &["needle", "--heading", "-n"],
            "a.txt\n2:needle two\n6:six needle, needle\n\nb/deep.rs\n1:// Needle\n\nd.txt\n1:a needle\n",
        ),
        (&["Needle"], "b/deep.rs:// Needle\n"),
        (&["NEEDLE", "-i", "-g", "*.rs"], "b/deep.rs:// Needle\n"),
        (&["needle", "-s", "-g", "!*.txt", "--fresh", "-m9", "--no-heading"], ""),
        (&["-e", "^a n.+e$"], "d.txt:a needle\n"),
        (&["--match", "regex", "t(wo|hree)$"], "a.txt:needle two\na.txt:three\n"),
        (&["^a"], ""),
        (&["needle", "-g", "b"], "b/deep.rs:// Needle\n"),
        (&["needle", "-g", "*.txt", "-g", "!a*"], "d.txt:a needle\n"),
        (&["needle", "--glob", "**/*.rs"], "b/deep.rs:// Needle\n"),
        (&["needle", "--lang", "rust"], "b/deep.rs:// Needle\n"),
        (&["needle", "-m", "1"], "a.txt:needle two\n"),
        (
            &["needle", "-m", "3", "-N", "-n"],
            "a.txt:2:needle two\na.txt:6:six needle, needle\nb/deep.rs:1:// Needle\n",
        ),
        (&["needle", "-n", "-N", "--heading", "--no-heading", "-m", "1"], "a.txt:needle two\n"),
    ] {
        let is_cased = arguments.iter().any(|argument| ["-i", "-s"].contains(argument));
        let smart = if is_cased { &[][..] } else { &["--case=smart"] };
        let ended = workspace.run(&[&["search"], smart, arguments].concat());
        let code = if expected.is_empty() { 1 } else { 0 };
        assert_eq!((ended.code, ended.text()), (Some(code), expected), "{arguments:?}: {}", ended.errors);
    }
}

#[test]
fn lines_around_hits_are_marked_and_gaps_are_shown() {
    let workspace = Workspace::indexed();
    for (arguments, expected) in [
        (
            &["needle", "-C", "1"][..],
            "a.txt-one\na.txt:needle two\na.txt-three\n--\na.txt-five\na.txt:six needle, needle\na.txt-seven\n--\n\
             b/deep.rs:// Needle\nb/deep.rs-fn thread() {}\n--\nd.txt:a needle\n",
        ),
        // Lines that belong to two hits are printed once.
        (
            &["needle", "-C2", "-n", "-g", "a.txt"],
            "a.txt-1-one\na.txt:2:needle two\na.txt-3-three\na.txt-4-four\na.txt-5-five\n\
             a.txt:6:six needle, needle\na.txt-7-seven\n",
        ),
        (
            &["needle", "--context=1", "-n", "--heading", "-g", "!d.txt"],
            "a.txt\n1-one\n2:needle two\n3-three\n--\n5-five\n6:six needle, needle\n7-seven\n\n\
             b/deep.rs\n1:// Needle\n2-fn thread() {}\n",
        ),
        (&["needle", "-C1", "-m1"], "a.txt-one\na.txt:needle two\na.txt-three\n"),
    ] {
        assert_eq!(workspace.found(&[arguments, &["--case=smart"]].concat()), expected, "{arguments:?}");
    }
}

#[test]
fn case_sensitivity_and_whole_words_follow_the_flags() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "Needle\nneedle\nneedles\n");
    for is_indexed in [false, true] {
        if is_indexed {
            workspace.index();
        }
        assert_eq!(workspace.found(&["needle"]), "a.txt:needle\na.txt:needles\n");
        assert_eq!(workspace.found(&["needle", "-w"]), "a.txt:needle\n");
        assert_eq!(workspace.found(&["needle", "-w", "-i"]), "a.txt:Needle\na.txt:needle\n");
        assert_eq!(workspace.found(&["-e", "needles?", "--word"]), "a.txt:needle\na.txt:needles\n");
        assert_eq!(workspace.run(&["search", "needle", "-w", "--json"]).json()["total"], json!(1));
    }
}

#[test]
fn columns_are_shown_with_context_too() {
    let workspace = Workspace::indexed();
    let expected = "a.txt-5-five\na.txt:6:5:six needle, needle\na.txt-7-seven\n";
    assert_eq!(workspace.found(&["-e", "six.*", "-C1", "--column"]), expected.replace(":5:", ":1:"));
    assert_eq!(workspace.found(&["needle, needle", "-C1", "--column"]), expected);
}

#[test]
fn paths_lines_and_matches_are_coloured_when_asked_and_only_then() {
    let workspace = Workspace::indexed();
    let query = ["needle", "-n", "-g", "*.txt"];
    let colored = format!(
        "{MAGENTA}a.txt{PLAIN}:{GREEN}2{PLAIN}:{RED}needle{PLAIN} two\n\
         {MAGENTA}a.txt{PLAIN}:{GREEN}6{PLAIN}:six {RED}needle{PLAIN}, {RED}needle{PLAIN}\n\
         {MAGENTA}d.txt{PLAIN}:{GREEN}1{PLAIN}:a {RED}needle{PLAIN}\n"
    );
    assert_eq!(workspace.found(&[&query[..], &["--color", "always"]].concat()), colored);
    let heading = workspace.found(&["two", "--heading", "--color=always"]);
    assert_eq!(heading, format!("{MAGENTA}a.txt{PLAIN}\nneedle {RED}two{PLAIN}\n"));
    for how in [&[][..], &["--color", "auto"], &["--color", "never"]] {
        let plain = workspace.found(&[&query[..], how].concat());
        assert!(!plain.contains('\u{1b}'), "{how:?}: {plain:?}");
    }
    let mut command = workspace.command(&["search", "two", "--color", "always"]);
    let forced = end(command.env("NO_COLOR", "1"));
    assert!(forced.text().contains(MAGENTA), "a flag beats the environment: {}", forced.text());
}

#[test]
fn matches_are_coloured_with_context_too() {
    let workspace = Workspace::indexed();
    let colored = workspace.found(&["seven", "-C1", "-n", "--color", "always"]);
    let expected = format!(
        "{MAGENTA}a.txt{PLAIN}-{GREEN}6{PLAIN}-six needle, needle\n\
         {MAGENTA}a.txt{PLAIN}:{GREEN}7{PLAIN}:{RED}seven{PLAIN}\n"
    );
    assert_eq!(colored, expected);
}

#[test]
fn words_and_symbols_are_printed_with_their_lines_the_best_first() {
    let workspace = Workspace::indexed();
    assert_eq!(workspace.found(&["thread", "--match", "symbol"]), "b/deep.rs:2:fn thread() {}\n");
    assert_eq!(
        workspace.found(&["thread", "--match=symbol", "--kind=function", "-m", "1"]),
        "b/deep.rs:2:fn thread() {}\n"
    );
    assert_eq!(workspace.run(&["search", "thread", "--match=symbol", "--kind=struct"]).code, Some(1));
    let words = workspace.found(&["needle", "--match", "words"]);
    assert!(words.lines().any(|line| line == "d.txt:1:a needle"), "{words}");
    let reported = workspace.refused(&["thread", "--match=symbol", "--kind=funktion"]);
    assert!(reported.contains("funktion") && reported.contains("function"), "{reported}");
}

#[test]
fn json_output_equals_the_answer_of_the_tool() {
    let workspace = Workspace::indexed();
    for (arguments, question) in [
        (&["needle"][..], json!({"query": "needle"})),
        (&["-e", "need.e", "-C", "2"], json!({"query": "need.e", "match": "regex", "context": 2})),
        (&["NEEDLE", "-i", "-g", "b"], json!({"query": "NEEDLE", "case": "insensitive", "path": ["b"]})),
        (
            &["needle", "-s", "--lang", "rust"],
            json!({"query": "needle", "case": "sensitive", "lang": "rust"}),
        ),
        (&["needle", "--match=words"], json!({"query": "needle", "match": "words"})),
        (
            &["thread", "--match=symbol", "--kind=function"],
            json!({"query": "thread", "match": "symbol", "kind": "function"}),
        ),
        (&["nowhere at all"], json!({"query": "nowhere at all"})),
    ] {
        let ended = workspace.run(&[&["search", "--json"], arguments].concat());
        // The hint has a time limit, so a busy machine may omit it from either answer.
        let without_hint = |mut answer: Value| {
            answer.as_object_mut().map(|answer| answer.remove("hint"));
            answer
        };
        let answer = without_hint(workspace.call("search", question.clone()));
        assert_eq!(without_hint(ended.json()), answer, "{question}");
        let code = if answer["hits"] == json!([]) { 1 } else { 0 };
        assert_eq!(ended.code, Some(code), "{question}");
        assert_eq!(ended.text().lines().count(), 1, "compact in a pipe");
    }
    let first = workspace.run(&["search", "--json", "two"]).json()["hits"][0].clone();
    assert_eq!(first["hash"], json!(hash(FILES[0].1)));
    assert_eq!((&first["path"], &first["line"], &first["column"]), (&json!("a.txt"), &json!(2), &json!(8)));
}

#[test]
fn truncated_json_has_a_cursor_that_the_tool_accepts() {
    let workspace = Workspace::indexed();
    let reported = workspace.run(&["search", "--json", "needle", "-m", "1"]).json();
    let mut question = json!({"query": "needle", "top": 1});
    let mut answer = workspace.call("search", question.clone());
    assert_eq!((&reported["hits"], &reported["truncated"]), (&answer["hits"], &json!(true)));
    question["cursor"] = reported["cursor"].clone();
    answer = workspace.call("search", question);
    assert_eq!(answer["hits"][0]["line"], json!(6), "{answer}");
}

#[test]
fn a_search_exits_with_0_for_hits_1_for_none_and_2_for_an_error() {
    let workspace = Workspace::indexed();
    assert_eq!(workspace.run(&["search", "needle"]).code, Some(0));
    for arguments in
        [&["nowhere"][..], &["nowhere", "-C1"], &["nowhere", "--fresh"], &["needle", "-g", "c.md"]]
    {
        let ended = workspace.run(&[&["search"], arguments].concat());
        assert_eq!((ended.code, ended.text()), (Some(1), ""), "{arguments:?}: {}", ended.errors);
    }
    for (arguments, reported) in [
        (&["-e", "("][..], "unclosed group"),
        (&["-e", "(", "--json"], "unclosed group"),
        (&["one\nneedle"], "line"),
        (&["needle", "--lang", "rusd"], "`rust`"),
        (&["needle", "-g", "{a"], "glob"),
        (&["needle", "-C", "51"], "51"),
        (&["needle", "-m", "0"], "0"),
        (&["needle", "--color", "sometimes"], "sometimes"),
        (&["needle", "-e", "--match", "words"], "--match"),
        (&["needle", "-i", "-s"], "-s"),
        (&["needle", "--colour", "always"], "--color"),
        (&[], "<QUERY>"),
    ] {
        let errors = workspace.refused(arguments);
        assert!(errors.contains(reported), "{arguments:?}: {errors}");
    }
}

/// The same query has the same answer in every form of the output.
#[test]
fn what_the_tool_refuses_is_refused_in_every_form() {
    let workspace = Workspace::indexed();
    for arguments in
        [&["", "--match=words"][..], &["needle", "--kind", "function"], &["needle", "--match=words", "-i"]]
    {
        for form in [&["--json"][..], &["-C1"], &[]] {
            let errors = workspace.refused(&[arguments, form].concat());
            assert!(errors.contains("INVALID_REQUEST"), "{arguments:?} {form:?}: {errors}");
        }
    }
}

#[test]
fn standard_error_notes_what_the_index_may_miss_unless_the_root_was_walked() {
    let workspace = Workspace::indexed();
    for arguments in [&["needle"][..], &["needle", "--json"], &["needle", "-C1"], &["nowhere"]] {
        let ended = workspace.run(&[&["search"], arguments].concat());
        assert!(ended.errors.contains(NOTE) && ended.errors.lines().count() == 1, "{}", ended.errors);
        let ended = workspace.run(&[&["search", "--fresh"], arguments].concat());
        assert_eq!(ended.errors, "", "{arguments:?}");
    }
}

#[test]
fn a_new_file_is_found_after_a_walk() {
    let workspace = Workspace::indexed();
    workspace.write("e.txt", "a brand-new line\n");
    let ended = workspace.run(&["search", "brand-new"]);
    assert_eq!((ended.code, ended.text()), (Some(1), ""));
    assert!(ended.errors.contains(NOTE), "{}", ended.errors);
    assert_eq!(workspace.found(&["brand-new", "--fresh"]), "e.txt:a brand-new line\n");
    workspace.index();
    assert_eq!(workspace.found(&["brand-new"]), "e.txt:a brand-new line\n");
}

#[test]
fn a_changed_file_is_shown_as_it_is_now_and_a_removed_one_not_at_all() {
    let workspace = Workspace::indexed();
    workspace.write("a.txt", "zero\nanother needle\n");
    workspace.write("b/deep.rs", "nothing of it is left\n");
    fs::remove_file(workspace.path("d.txt")).expect("removes");
    for how in [&["-n"][..], &["-n", "--fresh"]] {
        assert_eq!(workspace.found(&[&["needle"], how].concat()), "a.txt:2:another needle\n", "{how:?}");
        let context = workspace.found(&[&["needle", "-C1"], how].concat());
        assert_eq!(context, "a.txt-1-zero\na.txt:2:another needle\n", "{how:?}");
        let reported = workspace.run(&[&["search", "needle", "--json"], how].concat()).json();
        assert_eq!(reported["hits"].as_array().map(Vec::len), Some(1), "{reported}");
        assert_eq!(
            (&reported["total"], &reported["hits"][0]["hash"]),
            (&json!(1), &json!(hash("zero\nanother needle\n")))
        );
    }
    assert_eq!(workspace.run(&["search", "thread"]).code, Some(1));
    // A folder and then a link replace the file.
    fs::remove_file(workspace.path("a.txt")).expect("removes");
    fs::create_dir(workspace.path("a.txt")).expect("a folder");
    assert_eq!(workspace.run(&["search", "needle"]).code, Some(1));
    fs::remove_dir(workspace.path("a.txt")).expect("removes");
    fs::write(workspace.0.path().join("outside"), "needle outside\n").expect("writes");
    std::os::unix::fs::symlink("../outside", workspace.path("a.txt")).expect("a link");
    assert_eq!(workspace.run(&["search", "needle"]).code, Some(1));
}

#[test]
fn a_removed_definition_is_not_found() {
    let workspace = Workspace::indexed();
    workspace.write("b/deep.rs", "nothing of it is left\n");
    for how in [&["--fresh"][..], &[], &["--json"]] {
        let ended = workspace.run(&[&["search", "thread", "--match=symbol"], how].concat());
        assert_eq!(ended.code, Some(1), "{how:?}: {}", ended.text());
    }
}

/// A line that was added to a file after the build is either found, or the note says how to find it.
#[test]
fn a_line_that_is_new_in_an_old_file_is_found_or_the_note_says_how() {
    let workspace = Workspace::indexed();
    workspace.write("c.md", "a zebra came by\n");
    assert_eq!(workspace.found(&["zebra", "--fresh"]), "c.md:a zebra came by\n");
    let ended = workspace.run(&["search", "zebra"]);
    let is_noted = ended.errors.contains(NOTE) && ended.errors.contains("changed");
    assert!(ended.code == Some(0) || is_noted, "{:?} {}", ended.code, ended.errors);
}

#[test]
fn without_an_index_a_search_reads_the_files_and_says_how_to_get_one() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "needle\n");
    for arguments in [&["needle"][..], &["needle", "-C1"], &["needle", "--fresh"]] {
        let ended = workspace.run(&[&["search"], arguments].concat());
        assert_eq!((ended.code, ended.text()), (Some(0), "a.txt:needle\n"), "{arguments:?}");
        let lines: Vec<_> = ended.errors.lines().collect();
        assert!(lines.len() == 1 && lines[0].contains("`pintle index`"), "{arguments:?}: {lines:?}");
        assert!(!ended.errors.contains(NOTE), "{arguments:?}: {}", ended.errors);
    }
    let reported = workspace.run(&["search", "needle", "--json"]).json();
    assert_eq!(
        (&reported["indexed"], &reported["generation"], &reported["total"]),
        (&json!(false), &json!(0), &json!(1))
    );
    assert_eq!(workspace.run(&["search", "absent"]).code, Some(1));
    assert!(!workspace.0.path().join("state").exists(), "a search builds nothing");
    for how in ["words", "symbol"] {
        let errors = workspace.refused(&["needle", "--match", how]);
        assert!(errors.contains("NO_INDEX") && errors.contains("`pintle index`"), "{how}: {errors}");
    }
    let errors = workspace.refused(&["needle", "--index", "manual"]);
    assert!(errors.contains("NO_INDEX") && errors.contains("`pintle index`"), "{errors}");
    workspace.index();
    assert_eq!(workspace.found(&["needle"]), "a.txt:needle\n");
}

#[test]
fn one_call_of_search_reads_the_files_and_writes_no_files() {
    let workspace = Workspace::new();
    workspace.write("a.rs", "fn needle() {}\n");
    let ended = workspace.run(&["call", "search", r#"{"query": "needle"}"#]);
    assert_eq!((ended.code, &ended.json()["total"]), (Some(0), &json!(1)), "{}", ended.errors);
    let ended = workspace.run(&["call", "search", r#"{"query": "needle", "match": "symbol"}"#]);
    assert!(ended.code == Some(1) && ended.errors.contains("NO_INDEX"), "{}", ended.errors);
    assert!(!workspace.0.path().join("state").exists(), "one call builds nothing");
}

#[test]
fn a_damaged_index_is_not_used_until_it_is_rebuilt() {
    let workspace = Workspace::indexed();
    let mut folders = vec![workspace.0.path().join("state")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(entry.path()),
                false => fs::write(entry.path(), "nonsense").expect("writes"),
            }
        }
    }
    let ended = workspace.run(&["search", "two"]);
    assert_eq!(ended.text(), "a.txt:needle two\n");
    assert!(ended.errors.contains("`pintle index`") && !ended.errors.contains(NOTE), "{}", ended.errors);
    let errors = workspace.refused(&["needle", "--index=manual"]);
    assert!(errors.contains("NO_INDEX") && errors.contains("`pintle index`"), "{errors}");
    let ended = workspace.run(&["index"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(workspace.found(&["two"]), "a.txt:needle two\n");
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_no_failure() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "a needle in a line that is repeated\n".repeat(20_000));
    workspace.index();
    for how in [&[][..], &["-C1"], &["--json"]] {
        let mut command = workspace.command(&[&["search", "needle", "--fresh"], how].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut stdout = child.stdout.take().expect("stdout");
        stdout.read_exact(&mut [0; 2]).expect("the beginning");
        drop(stdout);
        let ended = child.wait_with_output().expect("ends");
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), errors.as_str()), (Some(0), ""), "{how:?}");
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_printed_as_it_is() {
    let workspace = Workspace::new();
    let name = OsStr::from_bytes(b"bad\xff.txt");
    workspace.write(name, "a needle\n");
    workspace.index();
    assert_eq!(workspace.run(&["search", "needle"]).output, b"bad\xff.txt:a needle\n");
    let colored = workspace.run(&["search", "needle", "--color=always"]).output;
    assert!(colored.windows(8).any(|bytes| bytes == b"bad\xff.txt"), "{colored:?}");
    assert_eq!(workspace.run(&["search", "needle", "--heading"]).output, b"bad\xff.txt\na needle\n");
    // JSON cannot represent such a text.
    let reported = workspace.run(&["search", "needle", "--json"]).json();
    assert_eq!(reported["hits"][0]["path"], json!("bad\u{fffd}.txt"));
}

#[test]
fn a_path_that_is_not_utf_8_is_printed_as_it_is_with_context() {
    let workspace = Workspace::new();
    workspace.write(OsStr::from_bytes(b"bad\xff.txt"), "a needle\n");
    workspace.index();
    assert_eq!(workspace.run(&["search", "needle", "-C1"]).output, b"bad\xff.txt:a needle\n");
}

#[test]
fn lines_are_printed_byte_for_byte() {
    let workspace = Workspace::new();
    workspace.write("a.txt", b"needle \xff\xfe\nneedle\r\nlast needle");
    workspace.index();
    let lines = b"a.txt:needle \xff\xfe\na.txt:needle\r\na.txt:last needle\n";
    assert_eq!(workspace.run(&["search", "needle"]).output, lines);
}

#[test]
fn help_begins_with_what_a_command_does() {
    let help = |arguments: &[&str]| crate::support::run(pintle().args(arguments), b"").1;
    let all = help(&["--help"]);
    for command in ["serve", "validate", "tools", "index", "search", "call"] {
        let first = help(&[command, "--help"]).lines().next().unwrap_or_default().to_owned();
        let line = all.lines().find(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert!(
            line.is_some_and(|line| line.ends_with(&first) && first.len() > 10),
            "{command}: {first} {all}"
        );
    }
}

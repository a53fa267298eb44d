//! Errors that say what to do. Each test is a conversation: a call fails, the error says what was found and what to do,
//! and the next call, made only from what the error said, succeeds.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::support::{Server, Setup};

const PROGRAM: &str = "fn main() {\n    let x = 1;\n    let y = 2;\n    let x = 1;\n}\n";

/// An agent that works on one file whose hash it knows.
struct Agent {
    server: Server,
    path: &'static str,
    hash: String,
}

impl Agent {
    fn with(path: &'static str, content: impl AsRef<[u8]>) -> Self {
        let server = Setup::new().start();
        let file = server.path("root").join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, &content).expect("writes");
        let hash = pintle_files::Hash::of(content.as_ref()).to_string();
        Self { server, path, hash }
    }

    /// Arguments for the file, with its hash.
    fn about(&self, more: Value) -> Value {
        let mut arguments = json!({"path": self.path, "hash": self.hash});
        for (name, value) in more.as_object().expect("an object") {
            arguments[name] = value.clone();
        }
        arguments
    }

    /// A call that fails with the expected code.
    fn error(&mut self, code: &str, tool: &str, arguments: Value) -> Refusal {
        let error = self.server.error(tool, arguments);
        assert_eq!(error["code"], json!(code), "{error}");
        Refusal(error)
    }

    /// A call that succeeds.
    fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.server.result(tool, arguments)
    }

    fn replace(&mut self, lines: [u64; 2], old: &str, new: &str) -> Value {
        let arguments = self.about(json!({"lines": lines, "old": old, "new": new}));
        self.ok("text.replace", arguments)
    }

    fn replace_wrongly(&mut self, lines: [i64; 2], old: &str) -> Refusal {
        let arguments = self.about(json!({"lines": lines, "old": old, "new": "new"}));
        self.error("INVALID_REQUEST", "text.replace", arguments)
    }

    fn insert_wrongly(&mut self, line: i64, anchor: &str) -> Refusal {
        let arguments = self.about(json!({"line": line, "anchor": anchor, "content": "new"}));
        self.error("INVALID_REQUEST", "text.insert", arguments)
    }

    /// The content of the file on the disk.
    fn content(&self) -> String {
        fs::read_to_string(self.server.path("root").join(self.path)).expect("text")
    }
}

/// The error object of a failed call.
struct Refusal(Value);

impl Refusal {
    /// The text that a model reads.
    fn text(&self) -> String {
        format!(
            "{} {}",
            self.0["message"].as_str().expect("a message"),
            self.0["hint"].as_str().unwrap_or_default()
        )
    }

    #[track_caller]
    fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.text().contains(part), "{part:?} is missing: {}", self.0);
        }
        self
    }

    #[track_caller]
    fn never_says(&self, part: &str) -> &Self {
        assert!(!self.text().contains(part), "it should not say {part:?}: {}", self.0);
        self
    }

    #[track_caller]
    fn detail(&self, pointer: &str) -> Value {
        let detail = self.0["details"].pointer(pointer).cloned();
        detail.unwrap_or_else(|| panic!("no {pointer} in the details: {}", self.0))
    }

    #[track_caller]
    fn line(&self, pointer: &str) -> u64 {
        self.detail(pointer).as_u64().expect("a line")
    }

    /// The text that the message quotes after some words.
    #[track_caller]
    fn quoted_after(&self, words: &str) -> String {
        let text = self.text();
        let rest = text.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {text}")).1;
        let rest = rest.split_once('`').unwrap_or_else(|| panic!("nothing quoted: {text}")).1;
        rest.split_once('`').expect("an end").0.to_owned()
    }
}

#[test]
fn a_stale_hash_gives_the_current_one_and_says_to_read_again() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    // Another program edits the same file.
    fs::write(agent.server.path("root/main.rs"), format!("{PROGRAM}\n// more\n")).expect("writes");
    let edit = json!({"lines": [1, 0], "old": "    let y = 2;", "new": "    let y = 3;"});
    let refusal = agent.error("CONFLICT", "text.replace", agent.about(edit.clone()));
    refusal.says(&["changed", "nothing was done", "read it again", "current hash"]);
    assert_eq!(agent.content(), format!("{PROGRAM}\n// more\n"), "nothing was done");
    agent.hash = refusal.detail("/currentHash").as_str().expect("a hash").to_owned();
    agent.ok("text.replace", agent.about(edit));
    assert_eq!(agent.content(), format!("{PROGRAM}\n// more\n").replace("y = 2", "y = 3"));

    let mut agent = Agent::with("main.rs", PROGRAM);
    agent.hash = "0".repeat(64);
    let insert = json!({"line": 5, "anchor": "}", "content": "    done();"});
    let refusal = agent.error("CONFLICT", "text.insert", agent.about(insert.clone()));
    agent.hash = refusal.detail("/currentHash").as_str().expect("a hash").to_owned();
    agent.ok("text.insert", agent.about(insert));
}

#[test]
fn a_stale_hash_without_another_guard_only_says_to_read_again() {
    for (tool, more) in [
        ("text.append", json!({"content": "x"})),
        ("file.remove", json!({})),
        ("file.move", json!({"to": "b.rs"})),
    ] {
        let mut agent = Agent::with("main.rs", PROGRAM);
        agent.hash = "0".repeat(64);
        let refusal = agent.error("CONFLICT", tool, agent.about(more.clone()));
        refusal.says(&["changed", "nothing was done", "read it again"]);
        let current = pintle_files::Hash::of(PROGRAM.as_bytes()).to_string();
        assert!(!refusal.0.to_string().contains(&current), "{tool} gives the hash away: {}", refusal.0);
        agent.hash =
            agent.ok("text.read", json!({"path": "main.rs"}))["hash"].as_str().expect("a hash").into();
        agent.ok(tool, agent.about(more));
    }
}

#[test]
fn old_text_found_elsewhere_is_refused_with_the_line_s_content_and_its_position() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([1, 2], "    let y = 2;");
    refusal.says(&["line 1 is `fn main() {`, not `    let y = 2;`", "line 3"]);
    let line = refusal.line("/found/0");
    agent.replace([line, line + 1], "    let y = 2;", "    let y = 3;");
    assert_eq!(agent.content(), PROGRAM.replace("y = 2", "y = 3"));
}

#[test]
fn old_text_with_other_whitespace_or_case_is_refused_with_the_nearest_line_and_the_difference() {
    for (old, difference) in [
        ("let y = 2;", "indentation"),
        ("\tlet y = 2;", "indentation"),
        ("    let  y = 2;", "whitespace"),
        ("    let y = 2; ", "whitespace"),
        ("    let y=2;", "whitespace"),
        ("    Let Y = 2;", "upper and lower case"),
        ("let Y = 2;", "case or whitespace"),
    ] {
        let mut agent = Agent::with("main.rs", PROGRAM);
        let refusal = agent.replace_wrongly([1, 0], old);
        refusal.says(&["nearest", difference]);
        let line = refusal.line("/nearest");
        let right = refusal.quoted_after("the nearest is line 3, ");
        agent.replace([line, line + 1], &right, "    let y = 3;");
        assert_eq!(agent.content(), PROGRAM.replace("y = 2", "y = 3"), "{old:?}");
    }
}

#[test]
fn of_several_near_lines_the_one_in_the_range_is_reported() {
    // Lines 2 and 4 are the same. The agent means the second one and omits the indentation.
    let expected = "fn main() {\n    let x = 1;\n    let y = 2;\n    let z = 1;\n}\n";
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([4, 5], "let x = 1;");
    refusal.says(&["indentation"]);
    let line = refusal.line("/nearest");
    agent.replace([line, line + 1], "    let x = 1;", "    let z = 1;");
    assert_eq!(agent.content(), expected, "the error has led to another line: {}", refusal.0);

    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.insert_wrongly(4, "let x = 1;");
    assert_eq!(refusal.line("/nearest"), 4, "the error leads to another line: {}", refusal.0);
}

#[test]
fn old_text_found_elsewhere_more_than_once_is_refused_with_all_positions() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([1, 2], "    let x = 1;");
    assert_eq!(refusal.detail("/found"), json!([2, 4]));
    refusal.says(&["lines 2 and 4"]);
    let line = refusal.line("/found/1");
    agent.replace([line, line + 1], "    let x = 1;", "x");
}

#[test]
fn old_text_that_is_a_part_of_a_line_is_refused_with_the_whole_line() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([1, 0], "y = 2");
    refusal.says(&["line 3", "`    let y = 2;`", "whole line"]);
    agent.replace([3, 4], "    let y = 2;", "    let y = 3;");
}

#[test]
fn old_text_that_begins_right_and_then_differs_is_refused_with_the_line_that_differs() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let given = ["    let y = 2;", "    let z = 1;", "}"];
    let refusal = agent.replace_wrongly([1, 0], &given.join("\n"));
    refusal.says(&["begin at line 3", "line 4 is `    let x = 1;`, not `    let z = 1;`"]);
    let right = refusal.quoted_after("line 4 is ");
    let old = [given[0], &right, given[2]].join("\n");
    agent.replace([1, 0], &old, "}");
    assert_eq!(agent.content(), "fn main() {\n    let x = 1;\n}\n");
}

#[test]
fn old_text_that_goes_on_past_the_end_of_the_file_is_refused_with_that_reason() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([1, 0], "    let x = 1;\n}\n\nfn more() {}");
    // The text matches up to line 5, where the file ends.
    refusal.says(&["line 5", "end"]);
    agent.replace([4, 0], "    let x = 1;\n}", "}");
}

#[test]
fn old_text_longer_than_the_range_is_refused_with_the_range_that_it_needs() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    // The agent means lines 2 to 3, but the end of a range is exclusive.
    let refusal = agent.replace_wrongly([2, 3], "    let x = 1;\n    let y = 2;");
    refusal.never_says("`    let x = 1;`, not `    let x = 1;`");
    refusal.says(&["[2, 4]"]);
    agent.replace([2, 4], "    let x = 1;\n    let y = 2;", "    let x = 3;");
    assert_eq!(agent.content(), "fn main() {\n    let x = 3;\n    let x = 1;\n}\n");
}

#[test]
fn old_text_that_ends_with_a_newline_is_refused_and_the_error_says_to_omit_it() {
    for (lines, old) in [([3, 4], "    let y = 2;\n"), ([1, 0], "    let y = 2;\n"), ([1, 0], "}\n")] {
        let mut agent = Agent::with("main.rs", PROGRAM);
        let refusal = agent.replace_wrongly(lines, old);
        refusal.says(&["newline"]);
        agent.replace([1, 0], old.strip_suffix('\n').expect("a newline"), "x");
    }
}

#[test]
fn old_text_found_nowhere_is_refused_with_the_line_s_content() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([3, 4], "    print();");
    refusal.says(&["line 3 is `    let y = 2;`, not `    print();`", "read"]);
    let right = refusal.quoted_after("line 3 is ");
    let line = refusal.line("/line");
    agent.replace([line, line + 1], &right, "    print();");
}

#[test]
fn a_wrong_anchor_is_refused_with_the_line_s_content_and_the_anchor_s_position() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.insert_wrongly(2, "    let y = 2;");
    refusal.says(&["line 2 is `    let x = 1;`, not `    let y = 2;`", "line 3"]);
    let line = refusal.line("/found/0");
    agent.ok(
        "text.insert",
        agent.about(json!({"line": line, "anchor": "    let y = 2;", "content": "    // two"})),
    );
    assert_eq!(agent.content(), PROGRAM.replace("    let y", "    // two\n    let y"));

    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.insert_wrongly(-1, "");
    let (line, anchor) = (refusal.line("/line"), refusal.quoted_after("line 5 is "));
    agent.ok("text.insert", agent.about(json!({"line": line, "anchor": anchor, "content": "    // end"})));
    assert_eq!(agent.content(), PROGRAM.replace("}\n", "    // end\n}\n"));
}

#[test]
fn an_anchor_of_more_than_one_line_is_refused_and_the_error_asks_for_one_line() {
    // With its newline, before an empty line; and with the line that follows.
    for anchor in ["b\n", "b\n\nc"] {
        let mut agent = Agent::with("a.txt", "a\nb\n\nc\n");
        let refusal = agent.insert_wrongly(2, anchor);
        refusal.never_says("line 2 is `b`, not `b`");
        refusal.says(&["one line"]);
        agent.ok("text.insert", agent.about(json!({"line": 2, "anchor": "b", "content": "x"})));
    }
}

#[test]
fn a_range_outside_the_file_is_refused_with_the_number_of_lines() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([9, 0], "}");
    refusal.says(&["line 9", "past the last", "5 lines"]);
    agent.replace([5, 0], "}", "} // end");

    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": "main.rs", "lines": [-9, 0]}));
    refusal.says(&["line -9", "before the first", "5 lines"]);
    agent.ok("text.read", json!({"path": "main.rs", "lines": [-5, 0]}));
    let refusal = agent.insert_wrongly(6, "");
    refusal.says(&["line 6", "past the last", "5 lines"]);
    // An insert goes before a line. Text after the last line is appended.
    agent.ok("text.insert", agent.about(json!({"line": 5, "anchor": "}", "content": "x"})));
}

#[test]
fn an_empty_range_is_refused_and_the_error_says_that_its_end_is_exclusive() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([3, 3], "    let y = 2;");
    refusal.says(&["[3, 3]", "no line", "exclusive"]);
    agent.replace([3, 4], "    let y = 2;", "x");
    let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": "main.rs", "lines": [-1, -1]}));
    refusal.says(&["no line", "exclusive", "0 means to the end of the file"]);
    assert_eq!(agent.ok("text.read", json!({"path": "main.rs", "lines": [-1, 0]}))["content"], json!("}\n"));
}

#[test]
fn old_text_that_occurs_more_than_once_is_refused_with_all_positions() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.replace_wrongly([1, 0], "    let x = 1;");
    refusal.says(&["2 times", "lines 2 and 4", "narrow `lines`"]);
    assert_eq!(refusal.detail("/lines"), json!([2, 4]));
    let line = refusal.line("/lines/1");
    agent.replace([line, line + 1], "    let x = 1;", "    let z = 1;");
    assert_eq!(agent.content(), "fn main() {\n    let x = 1;\n    let y = 2;\n    let z = 1;\n}\n");
}

#[test]
fn creating_an_existing_file_is_refused_and_the_error_says_to_read_and_edit_it() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.error("CONFLICT", "file.create", json!({"path": "/main.rs", "content": "x"}));
    refusal.says(&["main.rs already exists", "nothing was done", "read it and edit it", "another name"]);
    assert_eq!(agent.content(), PROGRAM);
    let read = agent.ok("text.read", json!({"path": "main.rs"}));
    assert_eq!(read["hash"], json!(agent.hash));
    agent.ok("file.create", json!({"path": "main2.rs", "content": "x"}));
}

#[test]
fn a_move_onto_an_existing_file_is_refused_and_names_that_file() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    fs::write(agent.server.path("root/taken.rs"), "x").expect("writes");
    let refusal = agent.error("CONFLICT", "file.move", agent.about(json!({"to": "taken.rs"})));
    refusal.says(&["taken.rs already exists", "nothing was done", "another name"]);
    agent.ok("file.move", agent.about(json!({"to": "free.rs"})));
}

#[test]
fn a_move_below_a_file_is_refused_and_names_the_path() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    fs::write(agent.server.path("root/file"), "x").expect("writes");
    let refusal = agent.error("INVALID_REQUEST", "file.move", agent.about(json!({"to": "file/main.rs"})));
    refusal.says(&["file/main.rs", "not a folder"]);
    agent.ok("file.move", agent.about(json!({"to": "folder/main.rs"})));
}

#[test]
fn reading_a_file_that_is_not_text_names_file_read() {
    let mut agent = Agent::with("a.bin", b"ab\xff\n");
    for (tool, more) in [
        ("text.append", json!({"content": "x"})),
        ("text.replace", json!({"lines": [1, 0], "old": "ab", "new": "x"})),
        ("text.insert", json!({"line": 1, "anchor": "ab", "content": "x"})),
    ] {
        agent.error("INVALID_REQUEST", tool, agent.about(more)).says(&["not UTF-8", "byte 3", "file.read"]);
    }
    let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": "a.bin"}));
    refusal.says(&["not UTF-8", "byte 3", "file.read", "Base64"]);
    let read = agent.ok("file.read", json!({"path": "a.bin"}));
    assert_eq!(read, json!({"content": "YWL/Cg==", "hash": agent.hash, "size": 4}));
}

#[test]
fn reading_a_folder_names_file_list() {
    let mut agent = Agent::with("src/main.rs", PROGRAM);
    let guard = agent.hash.clone();
    for (tool, arguments) in [
        ("text.read", json!({"path": "src"})),
        ("file.read", json!({"path": "src"})),
        ("text.append", json!({"path": "src", "hash": guard, "content": "x"})),
        ("file.remove", json!({"path": "src", "hash": guard})),
        ("file.move", json!({"path": "src", "hash": guard, "to": "lib"})),
        ("text.read", json!({"path": "/"})),
    ] {
        agent.error("INVALID_REQUEST", tool, arguments).says(&["is a folder", "file.list"]);
    }
    let listing = agent.ok("file.list", json!({"path": "src"}));
    assert_eq!(listing["entries"], json!([{"name": "main.rs", "type": "file", "size": PROGRAM.len()}]));
}

#[test]
fn listing_a_file_says_that_it_is_a_file() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.error("INVALID_REQUEST", "file.list", json!({"path": "main.rs"}));
    refusal.says(&["main.rs is a file", "text.read"]);
    agent.ok("text.read", json!({"path": "main.rs"}));
}

#[test]
fn a_path_that_leaves_the_root_is_refused_and_the_error_says_how_paths_are_written() {
    let mut agent = Agent::with("src/main.rs", PROGRAM);
    for (path, wanted) in [
        ("../src/main.rs", "leaves the root"),
        ("src/../../src/main.rs", "leaves the root"),
        ("src\\main.rs", "separate folders by `/`"),
        ("C:/src/main.rs", "drive"),
    ] {
        let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": path}));
        refusal.says(&[wanted, "relative to the root", "`src/main.rs`"]);
    }
    agent.ok("text.read", json!({"path": "src/main.rs"}));
    agent.ok("text.read", json!({"path": "/src/main.rs"}));
}

#[test]
fn a_link_that_leaves_the_root_is_refused_with_that_reason() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    fs::write(agent.server.path("outside.txt"), "secret").expect("writes");
    symlink("../outside.txt", agent.server.path("root/out.txt")).expect("a link");
    symlink("loop", agent.server.path("root/loop")).expect("a link");
    for path in ["out.txt", "loop", "loop/x"] {
        let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": path}));
        refusal.says(&[path, "link", "leaves the root"]).never_says("secret");
    }
}

#[test]
fn a_missing_file_is_refused_and_the_error_says_how_to_list_files() {
    let mut agent = Agent::with("src/main.rs", PROGRAM);
    let refusal = agent.error("NOT_FOUND", "text.read", json!({"path": "src/mian.rs"}));
    refusal.says(&["src/mian.rs", "file.list"]);
    let listing = agent.ok("file.list", json!({"path": "src"}));
    let name = listing["entries"][0]["name"].as_str().expect("a name");
    agent.ok("text.read", json!({"path": format!("src/{name}")}));
}

#[test]
fn a_missing_hash_is_refused_by_all_five_tools_that_need_it_and_the_error_says_how_to_get_it() {
    for (tool, more) in [
        ("text.replace", json!({"lines": [1, 2], "old": "fn main() {", "new": "fn other() {"})),
        ("text.insert", json!({"line": 1, "anchor": "fn main() {", "content": "// main"})),
        ("text.append", json!({"content": "// end"})),
        ("file.move", json!({"to": "lib.rs"})),
        ("file.remove", json!({})),
    ] {
        let mut agent = Agent::with("main.rs", PROGRAM);
        let mut arguments = agent.about(more);
        arguments.as_object_mut().expect("an object").remove("hash");
        let refusal = agent.error("INVALID_REQUEST", tool, arguments.clone());
        refusal.says(&["`hash` is missing", "text.read", "file.read"]);
        assert_eq!(agent.content(), PROGRAM, "{tool} has done something");
        arguments["hash"] = agent.ok("text.read", json!({"path": "main.rs"}))["hash"].clone();
        agent.ok(tool, arguments);
    }
}

#[test]
fn a_malformed_hash_is_refused_with_its_format_and_its_source() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let right = agent.hash.clone();
    for wrong in ["", "latest", &right[..7], &format!("sha256:{right}"), &right.replace(|_| true, "g")] {
        agent.hash = wrong.to_owned();
        let refusal = agent.error("INVALID_REQUEST", "text.append", agent.about(json!({"content": "x"})));
        refusal.says(&["`hash`", "64 hexadecimal digits", "text.read"]);
    }
    agent.hash = agent.ok("text.read", json!({"path": "main.rs"}))["hash"].as_str().expect("a hash").into();
    agent.ok("text.append", agent.about(json!({"content": "x"})));
}

#[test]
fn line_0_is_refused_and_the_error_says_how_lines_are_counted() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.insert_wrongly(0, "fn main() {");
    refusal.says(&["no line 0", "count lines from 1"]);
    agent.ok("text.insert", agent.about(json!({"line": 1, "anchor": "fn main() {", "content": "// main"})));
    assert_eq!(agent.content(), format!("// main\n{PROGRAM}"));
}

#[test]
fn an_edit_of_an_empty_file_is_refused_and_the_error_names_append() {
    let mut agent = Agent::with("new.txt", "");
    agent.insert_wrongly(1, "").says(&["empty", "text.append"]);
    agent.replace_wrongly([1, 0], "").says(&["empty", "text.append"]);
    agent.ok("text.append", agent.about(json!({"content": "the first"})));
    assert_eq!(agent.content(), "the first\n");
}

#[test]
fn text_too_large_to_be_read_at_once_is_refused_and_the_error_says_to_read_parts() {
    let line = format!("{}\n", "x".repeat(99));
    let mut agent = Agent::with("big.txt", line.repeat(90_000));
    let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": "big.txt"}));
    refusal.says(&["8 MiB", "90000 lines", "fewer lines"]);
    let (lines, size) = (refusal.line("/totalLines"), refusal.line("/size"));
    let fit = lines * (1 << 20) / size;
    let read = agent.ok("text.read", json!({"path": "big.txt", "lines": [1, 1 + fit]}));
    assert_eq!(read["content"], json!(line.repeat(usize::try_from(fit).expect("small"))));
    // It is too large as bytes as well, and the error names text.read.
    let refusal = agent.error("INVALID_REQUEST", "file.read", json!({"path": "big.txt"}));
    refusal.says(&["9000000 bytes", "text.read", "lines"]);
}

#[test]
fn text_too_large_once_it_is_escaped_is_refused_and_the_error_says_to_read_parts() {
    // Each quote takes two bytes in a reply.
    let line = format!("{}\n", "\"".repeat(99));
    let mut agent = Agent::with("quotes.txt", line.repeat(45_000));
    let refusal = agent.error("INVALID_REQUEST", "text.read", json!({"path": "quotes.txt"}));
    refusal.says(&["less at a time"]);
    agent.ok("text.read", json!({"path": "quotes.txt", "lines": [1, 10_000]}));
}

#[test]
fn an_unknown_argument_names_the_nearest_one_and_a_wrong_argument_its_pointer() {
    let mut agent = Agent::with("main.rs", PROGRAM);
    let refusal = agent.error(
        "INVALID_REQUEST",
        "text.replace",
        agent.about(json!({"line": [1, 2], "old": "fn main() {", "new": "x"})),
    );
    refusal.says(&["`line`", "`lines`"]);
    for lines in [json!([1]), json!([1, 2, 3]), json!("1-2"), json!([1.5, 2])] {
        let arguments = agent.about(json!({"lines": lines, "old": "fn main() {", "new": "x"}));
        agent.error("INVALID_REQUEST", "text.replace", arguments).says(&["/lines"]);
    }
    agent.replace([1, 2], "fn main() {", "x");
}

/// One edit and the expected content of the file.
struct Row(&'static str, &'static str, Value, &'static str);

#[test]
fn lines_and_their_ends_are_what_the_contract_says_byte_for_byte() {
    let replace = |lines: [i64; 2], old: &str, new: &str| json!({"lines": lines, "old": old, "new": new});
    let insert =
        |line: i64, anchor: &str, content: &str| json!({"line": line, "anchor": anchor, "content": content});
    let append = |content: &str| json!({"content": content});
    let (replaces, inserts, appends) = ("text.replace", "text.insert", "text.append");
    let rows = [
        // Newlines.
        Row("a\nb\nc\n", replaces, replace([2, 3], "b", "x"), "a\nx\nc\n"),
        Row("a\nb\nc\n", replaces, replace([2, 3], "b", "x\ny\n"), "a\nx\ny\nc\n"),
        Row("a\nb\nc\n", replaces, replace([1, 0], "a\nb", "x"), "x\nc\n"),
        Row("a\nb\nc\n", replaces, replace([2, 3], "b", ""), "a\nc\n"),
        Row("a\nb\nc\n", replaces, replace([2, 3], "b", "\n"), "a\n\nc\n"),
        Row("a\nb\nc\n", replaces, replace([2, 3], "b", "x\n\n"), "a\nx\n\nc\n"),
        Row("a\n\nc\n", replaces, replace([2, 3], "", "x"), "a\nx\nc\n"),
        Row("a\nb\n", inserts, insert(2, "b", "x\ny"), "a\nx\ny\nb\n"),
        Row("a\nb\n", inserts, insert(1, "a", "x\n"), "x\na\nb\n"),
        Row("a\nb\n", inserts, insert(1, "a", "\n"), "\na\nb\n"),
        Row("a\n", appends, append("x"), "a\nx\n"),
        Row("a\n", appends, append("x\ny\n"), "a\nx\ny\n"),
        Row("a\n", appends, append("\n"), "a\n\n"),
        // CRLF: line ends may be given as newlines or as CRLF, and are written as CRLF.
        Row("a\r\nb\r\nc\r\n", replaces, replace([1, 0], "a\nb", "x\ny"), "x\r\ny\r\nc\r\n"),
        Row("a\r\nb\r\nc\r\n", replaces, replace([1, 0], "a\r\nb", "x\r\ny\r\n"), "x\r\ny\r\nc\r\n"),
        Row("a\r\nb\r\n", replaces, replace([2, 3], "b", "\n"), "a\r\n\r\n"),
        Row("a\r\nb\r\n", inserts, insert(2, "b", "x\ny\n"), "a\r\nx\r\ny\r\nb\r\n"),
        Row("a\r\nb\r\n", appends, append("x\ny"), "a\r\nb\r\nx\r\ny\r\n"),
        // Mixed: nothing outside the lines changes.
        Row("a\nb\r\nc\nd", replaces, replace([2, 3], "b", "x"), "a\nx\r\nc\nd"),
        Row("a\r\nb\nc\r\n", replaces, replace([2, 3], "b", ""), "a\r\nc\r\n"),
        Row("a\r\nb\nc\r\nd\n", replaces, replace([1, 0], "b\nc", "x\ny"), "a\r\nx\ny\r\nd\n"),
        // No last newline: the file still has none after the edit.
        Row("a\nb", replaces, replace([2, 0], "b", "x"), "a\nx"),
        Row("a\nb", replaces, replace([2, 0], "b", "x\ny\n"), "a\nx\ny"),
        Row("a\nb", replaces, replace([1, 2], "a", "x"), "x\nb"),
        Row("a\nb", replaces, replace([1, 2], "a", ""), "b"),
        Row("a\nb", inserts, insert(-1, "b", "x"), "a\nx\nb"),
        Row("a\nb", appends, append("x"), "a\nb\nx"),
        Row("a\nb", appends, append("x\n"), "a\nb\nx"),
        Row("a\r\nb", appends, append("x\ny"), "a\r\nb\r\nx\r\ny"),
        // An empty file, and a file of one line.
        Row("", appends, append("x"), "x\n"),
        Row("", appends, append("x\ny\n"), "x\ny\n"),
        Row("", appends, append("\n"), "\n"),
        Row("a", replaces, replace([1, 0], "a", "x"), "x"),
        Row("a", replaces, replace([1, 0], "a", ""), ""),
        Row("a\n", replaces, replace([1, 0], "a", ""), ""),
        Row("a", inserts, insert(1, "a", "x"), "x\na"),
        Row("a", appends, append("x"), "a\nx"),
        Row("\n", replaces, replace([1, 0], "", "x"), "x\n"),
        // Negative and open ranges; a range that ends past the end.
        Row("a\nb\na\n", replaces, replace([-1, 0], "a", "x"), "a\nb\nx\n"),
        Row("a\nb\na\n", replaces, replace([-3, -2], "a", "x"), "x\nb\na\n"),
        Row("a\nb\na\n", replaces, replace([0, 2], "a", "x"), "x\nb\na\n"),
        Row("a\nb\na\n", replaces, replace([2, 99], "a", "x"), "a\nb\nx\n"),
        Row("a\nb\na\n", replaces, replace([1, -1], "a", "x"), "x\nb\na\n"),
        Row("a\nb\na\n", replaces, replace([0, 0], "b", "x"), "a\nx\na\n"),
        Row("a\nb\na\n", inserts, insert(-3, "a", "x"), "x\na\nb\na\n"),
        // A carriage return that ends no line is content.
        Row("a\rb\nc\n", replaces, replace([1, 2], "a\rb", "x\ry"), "x\ry\nc\n"),
    ];
    let mut server = Setup::new().start();
    for (number, Row(before, tool, arguments, after)) in rows.into_iter().enumerate() {
        let path = format!("{number}.txt");
        let what = format!("{before:?} {tool} {arguments}");
        let hash = server.result("file.create", json!({"path": path, "content": before}))["hash"].clone();
        let mut given = json!({"path": path, "hash": hash});
        for (name, value) in arguments.as_object().expect("an object") {
            given[name] = value.clone();
        }
        let edited = server.result(tool, given);
        let found = fs::read_to_string(server.path("root").join(&path)).expect("text");
        assert_eq!(found, after, "{what}");
        assert_eq!(edited["hash"], json!(pintle_files::Hash::of(after.as_bytes()).to_string()), "{what}");
        assert_eq!(edited["total_lines"], json!(after.split_inclusive('\n').count()), "{what}");
    }
    server.finish();
}

#[test]
fn a_return_at_the_end_of_a_file_without_a_last_newline_is_content() {
    // No newline follows it, so it belongs to no line end.
    let mut agent = Agent::with("a.txt", "a\nb\r");
    let arguments = agent.about(json!({"lines": [2, 3], "old": "b\r", "new": "x"}));
    agent.ok("text.replace", arguments);
    assert_eq!(agent.content(), "a\nx");
}

#[test]
fn lines_are_read_as_they_are_by_every_kind_of_range() {
    let mut server = Setup::new().start();
    for (number, (before, lines, content)) in [
        ("a\nb\nc\n", json!([1, 2]), "a\n"),
        ("a\nb\nc\n", json!([1, 0]), "a\nb\nc\n"),
        ("a\nb\nc\n", json!([0, 0]), "a\nb\nc\n"),
        ("a\nb\nc\n", json!([-2, 0]), "b\nc\n"),
        ("a\nb\nc\n", json!([-2, -1]), "b\n"),
        ("a\nb\nc\n", json!([2, 99]), "b\nc\n"),
        ("a\r\nb\nc", json!([1, 3]), "a\r\nb\n"),
        ("a\r\nb\nc", json!([-1, 0]), "c"),
        ("a\n\n", json!([-1, 0]), "\n"),
        ("", json!([1, 0]), ""),
        ("", json!([-1, 0]), ""),
        ("", json!([5, 9]), ""),
        ("\u{feff}a\n", json!([1, 2]), "\u{feff}a\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{number}.txt");
        let hash = server.result("file.create", json!({"path": path, "content": before}))["hash"].clone();
        let read = server.result("text.read", json!({"path": path, "lines": lines}));
        let total = before.split_inclusive('\n').count();
        assert_eq!(
            read,
            json!({"content": content, "hash": hash, "total_lines": total}),
            "{before:?} {lines}"
        );
    }
    server.finish();
}

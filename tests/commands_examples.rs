//! The examples in `examples/tools` work as documented, and so do the commands that help to write manifests.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{Setup, http::modern, pintle, run, wait_until};

fn examples() -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tools");
    PathBuf::from(folder).canonicalize().expect("the examples")
}

/// A server with the examples, and a workspace with something to lint and to test.
fn with_examples() -> Setup {
    let setup = Setup::new().arg("--tools").arg(examples());
    fs::write(setup.path("root/text.txt"), "good\nbad \n\ttab\n").expect("writes");
    fs::create_dir(setup.path("root/tests")).expect("a folder");
    let tests = "import os, time, unittest\n\
                 class Example(unittest.TestCase):\n\
                 \x20   def test_first(self): pass\n\
                 \x20   def test_second(self):\n\
                 \x20       while os.path.exists('wait'): time.sleep(0.01)\n\
                 \x20       self.assertFalse(os.path.exists('fail'))\n";
    fs::write(setup.path("root/tests/test_example.py"), tests).expect("writes");
    setup
}

/// Calls with their expected results.
fn calls() -> [(&'static str, Value, Value); 3] {
    let problem = |line: u32, message: &str| json!({"path": "text.txt", "line": line, "message": message});
    let fields = json!([{"name": "x", "type": "int"}, {"name": "label", "type": "str"}]);
    [
        (
            "lint",
            json!({"paths": ["text.txt"]}),
            json!({"problems": [problem(2, "trailing blanks"), problem(3, "a tab")]}),
        ),
        (
            "generate_record",
            json!({"name": "Point", "fields": fields}),
            json!({"path": "generated/point.py", "fields": 2}),
        ),
        ("run_tests", json!({"folder": "tests"}), Value::Null),
    ]
}

#[test]
fn the_examples_work_on_standard_input_and_output_in_both_dialects() {
    let mut server = with_examples().start();
    server.result("index_build", json!({}));
    for (tool, arguments, expected) in calls() {
        let result = server.result(tool, arguments.clone());
        assert!(expected.is_null() || result == expected, "{tool}: {result}");
        let message = modern(json!(7), "tools/call", json!({"name": tool, "arguments": arguments}));
        server.send(&message);
        let frame = server.frame();
        let result = &frame["result"]["structuredContent"];
        assert!(result.is_object() && (expected.is_null() || *result == expected), "{tool}: {frame}");
    }
    let found = server.result("search", json!({"query": "class Point"}));
    assert_eq!(found["hits"][0]["path"], json!("generated/point.py"), "{found}");
    let error = server.error("lint", json!({"paths": ["../../../../etc/passwd"]}));
    assert_eq!(
        error["stderr"].as_str().map(|text| text.contains("is not in the workspace")),
        Some(true),
        "{error}"
    );
    // A value that the schema does not allow never reaches the program.
    let error = server.error("generate_record", json!({"name": "../x", "fields": []}));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    server.finish();
}

#[test]
fn the_examples_work_over_http() {
    let server = with_examples().http().start();
    let mut client = server.connect();
    for (tool, arguments, expected) in calls() {
        let answer = client.modern(json!(1), "tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer.result()["structuredContent"];
        assert!(result.is_object() && (expected.is_null() || *result == expected), "{tool}: {result}");
    }
}

#[test]
fn the_test_runner_reports_its_progress_and_can_be_cancelled() {
    let mut server = with_examples().start();
    fs::write(server.path("root/wait"), "").expect("writes");
    let arguments =
        json!({"name": "run_tests", "arguments": {"folder": "tests"}, "_meta": {"progressToken": "t"}});
    let mut message = modern(json!(1), "tools/call", arguments);
    message["params"]["_meta"]["progressToken"] = json!("t");
    server.send(&message);
    let frame = server.frame();
    assert_eq!(frame["method"], json!("notifications/progress"), "{frame}");
    assert!(frame["params"]["message"].as_str().is_some_and(|text| text.contains("test_")), "{frame}");
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    // Only one call may run at a time, so this one waits until the other has ended completely.
    fs::write(server.path("root/fail"), "").expect("writes");
    fs::remove_file(server.path("root/wait")).expect("removes");
    let error = server.error("run_tests", json!({"folder": "tests"}));
    assert_eq!(
        (&error["code"], &error["details"]["exitCode"]),
        (&json!("UPSTREAM_FAILED"), &json!(1)),
        "{error}"
    );
    assert!(error["stderr"].as_str().is_some_and(|text| text.contains("FAILED (failures=1)")), "{error}");
    wait_until("both are logged", || server.stderr().matches("\"method\":\"run_tests\"").count() == 2);
    assert!(server.finish().contains("CANCELLED"));
}

#[test]
fn the_examples_are_valid_and_check_shows_the_tools_that_they_make() {
    let files = ["generate.tool.toml", "lint.tool.toml", "test.tool.toml"].map(|name| examples().join(name));
    let (code, output, errors) = run(pintle().args(["tool", "check", "--json"]).args(&files), b"");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let shown: Value = serde_json::from_str(&output).expect("JSON");
    let names: Vec<_> = shown["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["generate_record", "lint", "run_tests"]);
    assert_eq!(shown["tools"][1]["outputSchema"]["required"], json!(["problems"]));
    assert_eq!(fs::read_dir(examples()).expect("a folder").count(), files.len(), "every example is tested");
}

#[test]
fn a_new_manifest_is_valid_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hello.tool.toml");
    let (code, output, _) = run(pintle().args(["tool", "new", "hello", "--dir"]).arg(folder.path()), b"");
    assert_eq!((code, output), (Some(0), format!("{}\n", file.display())));
    let (code, output, errors) = run(pintle().args(["tool", "check"]).arg(&file), b"");
    assert_eq!(code, Some(0), "{errors}");
    let shown: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((&shown["name"], &shown["inputSchema"]["required"]), (&json!("hello"), &json!(["text"])));
    let setup = Setup::new().arg("--tools").arg(folder.path());
    assert_eq!(setup.start().result("hello", json!({"text": "\"a\" $HOME"}))["stdout"], json!("\"a\" $HOME"));
    let (code, _, errors) = run(pintle().args(["tool", "new", "hello", "--dir"]).arg(folder.path()), b"");
    assert!(code == Some(2) && errors.contains("cannot write"), "{code:?}: {errors}");
    let (code, _, errors) = run(pintle().args(["tool", "new", "a b", "--dir"]).arg(folder.path()), b"");
    assert!(code == Some(2) && errors.contains("`a b` is not a valid tool name"), "{code:?}: {errors}");
}

#[test]
fn a_wrong_manifest_is_reported_with_file_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.tool.toml");
    fs::write(&file, "name = \"x\"\ndescription = \"x\"\ncommand = [\"/bin/echo\", \"{text}\"]\n")
        .expect("writes");
    let (code, output, errors) = run(pintle().args(["tool", "check"]).arg(&file), b"");
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(errors.contains("x.tool.toml: line 3, column 25: `text` is no property of [input]"), "{errors}");
}

#[test]
fn check_and_new_refuse_what_a_server_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::new();
    let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/schemas");
    let mut list = pintle();
    list.args(["tools", "--json", "--schemas-dir", schemas, "--root"]).arg(setup.path("root"));
    list.env("PINTLE_STATE_DIR", setup.path("state"));
    let (_, output, errors) = run(&mut list, b"");
    let listed: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{errors}"));
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.len() > 20, "{listed}");
    for tool in tools {
        let name = tool["name"].as_str().expect("a name");
        for name in [name.to_owned(), name.replace('.', "_")] {
            let file = folder.path().join("taken.tool.toml");
            let text = format!("name = \"{name}\"\ndescription = \"x\"\ncommand = [\"true\"]\n");
            fs::write(&file, text).expect("writes");
            let (code, _, errors) = run(pintle().args(["tool", "check"]).arg(&file), b"");
            assert!(
                code == Some(1) && errors.contains("is the name of a tool that Pintle has"),
                "{name}: {errors}"
            );
            let (code, _, errors) =
                run(pintle().args(["tool", "new", &name, "--dir"]).arg(folder.path()), b"");
            assert!(
                code == Some(2) && errors.contains("is the name of a tool that Pintle has"),
                "{name}: {errors}"
            );
        }
    }
    let twice = ["one", "two"].map(|file| folder.path().join(file));
    for (file, name) in twice.iter().zip(["my.tool", "my_tool"]) {
        let text = format!("name = \"{name}\"\ndescription = \"x\"\ncommand = [\"true\"]\n");
        fs::write(file, text).expect("writes");
    }
    let (code, _, errors) = run(pintle().args(["tool", "check"]).args(&twice), b"");
    assert!(
        code == Some(1) && errors.contains("`my_tool` is the name of another manifest's tool"),
        "{errors}"
    );
}

#[test]
fn the_new_command_creates_the_folder_of_its_manifest() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = folder.path().join("some/tools");
    let (code, output, errors) = run(pintle().args(["tool", "new", "lint", "--dir"]).arg(&tools), b"");
    assert_eq!(
        (code, output),
        (Some(0), format!("{}\n", tools.join("lint.tool.toml").display())),
        "{errors}"
    );
}

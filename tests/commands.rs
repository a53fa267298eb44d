//! Programs as tools, defined by manifests.

use std::{collections::HashSet, fs, os::unix::fs::PermissionsExt, path::Path};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Server, Setup, pintle, request, rounds, run};

/// A server with these manifests: the name of each tool and the rest of its manifest.
pub fn with_tools<const N: usize>(manifests: [(&str, &str); N]) -> Setup {
    let setup = Setup::new();
    write_tools(&setup.path("tools"), manifests);
    let tools = setup.path("tools");
    setup.arg("--tools").arg(tools)
}

fn write_tools<const N: usize>(folder: &Path, manifests: [(&str, &str); N]) {
    fs::create_dir_all(folder).expect("a folder");
    for (name, rest) in manifests {
        let text = format!("name = \"{name}\"\ndescription = \"A test.\"\n{rest}");
        fs::write(folder.join(format!("{name}.tool.toml")), text).expect("writes");
    }
}

/// A manifest's line for a shell script.
pub fn shell(script: &str) -> String {
    format!("command = [\"/bin/sh\", \"-c\", '''{script}''']\n")
}

const ANY_TEXT: &str = "[input]\nrequired = [\"text\"]\n[input.properties.text]\ntype = \"string\"\n";

/// Sends an MCP request in the stateless form.
fn mcp(server: &mut Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    server.call(method, params)
}

#[test]
fn a_manifest_makes_a_program_a_tool_in_both_dialects() {
    let mut server = with_tools([(
        "demo.greet",
        "command = [\"printf\", \"%s and %s\", \"{who}\", \"{times}\"]\n\
         [input]\nrequired = [\"who\"]\n\
         [input.properties.who]\ntype = \"string\"\n\
         [input.properties.times]\ntype = \"integer\"\ndefault = 2\n",
    )])
    .start();
    let expected = json!({"stdout": "a b; $(id) and 2", "stderr": "", "exitCode": 0, "truncated": false});
    let who = "a b; $(id)";
    assert_eq!(server.result("demo.greet", json!({"who": who})), expected);
    let reply = mcp(&mut server, "tools/call", json!({"name": "demo_greet", "arguments": {"who": who}}));
    assert_eq!(reply["result"]["structuredContent"], expected, "{reply}");
    let listed = mcp(&mut server, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "demo_greet").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false));
    assert_eq!(tool["annotations"]["readOnlyHint"], json!(false));
    let error = server.error("demo.greet", json!({"who": who, "tims": 3}));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`times`")), "{error}");
    server.finish();
}

#[test]
fn arguments_come_as_json_on_standard_input_and_output_is_checked_json() {
    let script = "import json, sys; given = json.load(sys.stdin); \
                  print(json.dumps({\"sum\": sum(given[\"numbers\"])}))";
    let manifest = format!(
        "command = [\"python3\", \"-c\", '''{script}''']\nstdin = \"json\"\n\
         [input]\nrequired = [\"numbers\"]\n\
         [input.properties.numbers]\ntype = \"array\"\nitems = {{ type = \"integer\" }}\n\
         [output]\nrequired = [\"sum\"]\nadditionalProperties = false\n\
         [output.properties.sum]\ntype = \"integer\"\n"
    );
    let mut server = with_tools([("sum", &manifest)]).start();
    assert_eq!(server.result("sum", json!({"numbers": [1, 2, 39]})), json!({"sum": 42}));
    server.finish();
}

#[test]
fn each_way_to_fail_has_an_error_of_its_own() {
    let output = "[output]\nrequired = [\"a\"]\n[output.properties.a]\ntype = \"integer\"\n";
    let with_output = |script: &str| shell(script) + output;
    let setup = with_tools([
        ("code", &shell("echo out; echo why >&2; exit 3")),
        ("signal", &shell("kill -SEGV $$")),
        ("not_json", &with_output("echo nonsense")),
        ("other_shape", &with_output("echo \"{}\"")),
        ("too_much", &with_output("head -c 9000000 /dev/zero")),
        ("rounded", &with_output("echo \"{\\\"a\\\": 123456789012345678901234567890}\"")),
        ("user_signal", &shell("kill -USR1 $$")),
        ("missing", "command = [\"/no/such/program\"]\n"),
        ("file_cwd", "command = [\"/bin/true\"]\ncwd = \"file\"\n"),
        ("folder", "command = [\"/usr\"]\n"),
        ("no_cwd", "command = [\"/bin/true\"]\ncwd = \"none\"\n"),
    ]);
    fs::write(setup.path("root/file"), "").expect("writes");
    let plain = setup.path("plain");
    fs::write(&plain, "#!/bin/sh\n").expect("writes");
    fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).expect("a mode");
    write_tools(&setup.path("tools"), [("not_executable", &format!("command = [{plain:?}]\n"))]);
    let mut server = setup.start();
    for (tool, code, reason, extra) in [
        ("code", "UPSTREAM_FAILED", "exit_code", ("exitCode", json!(3))),
        ("signal", "UPSTREAM_FAILED", "signal", ("signal", json!("SIGSEGV"))),
        ("not_json", "INVALID_OUTPUT", "not_json", ("line", json!(1))),
        ("other_shape", "INVALID_OUTPUT", "output_schema", ("none", Value::Null)),
        ("too_much", "INVALID_OUTPUT", "too_large", ("bytes", json!(9_000_000))),
        ("rounded", "INVALID_OUTPUT", "inexact_number", ("offset", json!(6))),
        ("user_signal", "UPSTREAM_FAILED", "signal", ("signal", json!("SIGUSR1"))),
        ("missing", "UPSTREAM_FAILED", "missing", ("none", Value::Null)),
        ("file_cwd", "UPSTREAM_FAILED", "no_folder", ("none", Value::Null)),
        ("folder", "UPSTREAM_FAILED", "folder", ("none", Value::Null)),
        ("not_executable", "UPSTREAM_FAILED", "not_executable", ("none", Value::Null)),
        ("no_cwd", "UPSTREAM_FAILED", "no_folder", ("none", Value::Null)),
    ] {
        let error = server.error(tool, json!({}));
        assert_eq!(error["code"], json!(code), "{tool}: {error}");
        assert_eq!(error["details"]["reason"], json!(reason), "{tool}: {error}");
        assert_eq!(error["details"][extra.0], extra.1, "{tool}: {error}");
    }
    let error = server.error("code", json!({}));
    assert_eq!((&error["stdout"], &error["stderr"]), (&json!("out"), &json!("why")));
    assert_eq!(error["message"], json!("`code` failed with exit code 3: why"));
    server.finish();
}

#[test]
fn whatever_a_caller_sends_is_one_argument_or_is_refused() {
    let setup = with_tools([
        ("free", &format!("command = [\"printf\", \"<%s>\", \"--\", \"{{text}}\"]\n{ANY_TEXT}")),
        ("guarded", &format!("command = [\"printf\", \"<%s>\", \"{{text}}\"]\n{ANY_TEXT}")),
    ]);
    let server = std::cell::RefCell::new(setup.start());
    let config = proptest::test_runner::Config {
        cases: rounds(30, 2000) as u32,
        failure_persistence: None,
        ..Default::default()
    };
    let given = proptest::prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            proptest::sample::select(vec![
                "'", "\"", "$(id)", "`id`", "\n", "-", "--", "\0", ";", "|", " ", "*", "\\"
            ]),
            0..6
        )
        .prop_map(|parts| parts.concat()),
    ];
    proptest::test_runner::TestRunner::new(config)
        .run(&given, |text| {
            let mut server = server.borrow_mut();
            for (tool, prefix) in [("free", "<--><"), ("guarded", "<")] {
                let frame = server.call(tool, json!({"text": text}));
                let is_refused = text.contains('\0') || tool == "guarded" && text.starts_with('-');
                if is_refused {
                    prop_assert_eq!(&frame["error"]["data"]["code"], &json!("INVALID_REQUEST"), "{}", frame);
                } else {
                    prop_assert_eq!(
                        &frame["result"]["stdout"],
                        &json!(format!("{prefix}{text}>")),
                        "{}",
                        frame
                    );
                }
            }
            Ok(())
        })
        .expect("holds for all");
    server.into_inner().finish();
}

#[test]
fn a_list_adds_no_option_and_an_option_without_a_value_is_left_out() {
    let input = "[input]\nrequired = [\"a\"]\n[input.properties.a]\n\
                 type = [\"array\", \"null\"]\nitems = { type = \"string\" }\n";
    let manifest = format!("command = [\"printf\", \"<%s>\", \"x\", \"-e\", \"{{a}}\", \"end\"]\n{input}");
    let mut server = with_tools([("list", &manifest)]).start();
    for (given, expected) in
        [(json!(["-a", "b"]), "<x><-e><-a><b><end>"), (json!([]), "<x><end>"), (Value::Null, "<x><end>")]
    {
        assert_eq!(server.result("list", json!({ "a": given }))["stdout"], json!(expected));
    }
    let error = server.error("list", json!({"a": ["a", "--evil"]}));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    server.finish();
}

#[test]
fn a_command_sees_its_folder_and_no_settings_of_the_server() {
    let setup = with_tools([
        ("env", "command = [\"env\"]\nenv = [\"WANTED\"]\n"),
        ("pwd", "command = [\"/bin/pwd\"]\ncwd = \"sub\"\n"),
    ]);
    fs::create_dir(setup.path("root/sub")).expect("a folder");
    let expected = setup.path("root/sub").canonicalize().expect("a path");
    let variables = [
        ("WANTED", "1"),
        ("SECRET", "2"),
        ("PINTLE_PROGRESS", "always"),
        ("SYN_BACKEND_URL", ""),
        ("LC_ALL", "C"),
    ];
    let setup = variables.into_iter().fold(setup, |setup, (name, value)| setup.env(name, value));
    let mut server = setup.start();
    let result = server.result("env", json!({}));
    let names: HashSet<_> =
        result["stdout"].as_str().expect("text").lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.is_superset(&HashSet::from(["PATH", "WANTED", "LC_ALL", "NO_COLOR"])), "{names:?}");
    let allowed = ["PATH", "WANTED", "LC_ALL", "NO_COLOR", "HOME", "LANG", "TMPDIR"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    let mut frame = server.call("pwd", json!({}));
    assert_eq!(frame["result"]["stdout"].take(), json!(format!("{}\n", expected.display())));
    fs::remove_dir(&expected).expect("removes");
    std::os::unix::fs::symlink("/usr", &expected).expect("a link");
    assert_eq!(server.error("pwd", json!({}))["details"]["reason"], json!("folder_outside"));
    server.finish();
}

#[test]
fn lines_of_error_output_are_progress() {
    // The script continues when the test has received its first line.
    let mut server =
        with_tools([("steps", &shell("echo one >&2; while [ ! -e go ]; do sleep 0.01; done; echo two >&2"))])
            .start();
    let mut message = request(json!(1), "steps", json!({}));
    message["meta"] = json!({"progressToken": "t"});
    server.send(&message);
    let frame = server.frame();
    assert_eq!(frame["params"]["message"], json!("one"), "{frame}");
    assert_eq!((&frame["params"]["stream"], &frame["params"]["tool"]), (&json!("stderr"), &json!("steps")));
    fs::write(server.path("root/go"), "").expect("writes");
    let frame = server.frame();
    assert_eq!(frame["params"]["message"], json!("two"), "{frame}");
    assert_eq!(server.frame()["result"]["stderr"], json!("one\ntwo\n"));
    server.finish();
}

#[test]
fn of_long_output_both_ends_are_kept() {
    let mut server = with_tools([(
        "long",
        &(shell("echo first; head -c 3000000 /dev/zero; echo last") + "max_output = 1000\n"),
    )])
    .start();
    let result = server.result("long", json!({}));
    assert_eq!(result["truncated"], json!(true));
    let text = result["stdout"].as_str().expect("text");
    assert!(
        text.starts_with("first\n") && text.ends_with("last\n") && text.contains("bytes left out]"),
        "{text}"
    );
    server.finish();
}

#[test]
fn what_a_command_writes_is_found_by_the_next_search() {
    let setup = with_tools([("make", &shell("mkdir -p new && echo needle-in-a-file > new/file.txt"))]);
    fs::write(setup.path("root/old.txt"), "old needle-in-a-file\n").expect("writes");
    let mut server = setup.start();
    server.result("index_build", json!({}));
    let found = |server: &mut Server| {
        let result = server.result("search", json!({"query": "needle-in-a-file"}));
        assert_eq!(result["generation"], json!(1), "{result}");
        let hits = result["hits"].as_array().expect("hits").iter().map(|hit| hit["path"].clone());
        hits.collect::<Vec<_>>()
    };
    assert_eq!(found(&mut server), [json!("old.txt")]);
    server.result("make", json!({}));
    assert_eq!(found(&mut server), [json!("new/file.txt"), json!("old.txt")]);
    server.finish();
}

#[test]
fn a_command_needs_its_own_scope() {
    let manifests = [("one", "command = [\"true\"]\n"), ("two", "command = [\"true\"]\n")];
    let mut server = with_tools(manifests).args(["--scope", "read:/,run:one"]).start();
    assert_eq!(server.result("one", json!({}))["exitCode"], json!(0));
    let error = server.error("two", json!({}));
    assert_eq!((&error["code"], &error["details"]["scope"]), (&json!("FORBIDDEN"), &json!("run:two")));
    let listed = mcp(&mut server, "tools/list", json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("one")) && !names.contains(&&json!("two")), "{names:?}");
    server.finish();
}

#[test]
fn sixty_four_calls_at_once_respect_the_limits_and_get_one_reply_each() {
    // Each run counts how many run at the same time.
    let script = "mkdir running-$$; ls -d running-* | wc -l; sleep 0.02; rmdir running-$$";
    let manifest = shell(script) + "max_parallel = 2\n";
    let mut server = with_tools([("count", &manifest)]).args(["--running", "8"]).start();
    for id in 0..64 {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        server.request(json!(id), "tools/call", json!({"name": "count", "arguments": {}, "_meta": meta}));
    }
    let mut ids = HashSet::new();
    let mut most = 0;
    for _ in 0..64 {
        let frame = server.frame();
        assert!(ids.insert(frame["id"].as_u64()), "{frame}");
        let text =
            frame["result"]["structuredContent"]["stdout"].as_str().unwrap_or_else(|| panic!("{frame}"));
        most = most.max(text.trim().parse::<u32>().expect("a number"));
    }
    assert!(ids.len() == 64 && (1..=2).contains(&most), "{most} at once");
    server.close_stdin();
    assert_eq!(server.remaining_frames(), [""; 0]);
}

#[test]
fn a_bad_manifest_stops_the_start_with_file_line_and_column() {
    for (name, rest, expected) in [
        ("bad", "comand = [\"true\"]\n", "bad.tool.toml: line 3, column 1: unknown key `comand`"),
        (
            "search",
            "command = [\"true\"]\n",
            "search.tool.toml: line 1, column 8: `search` is the name of a tool",
        ),
        (
            "text_read",
            "command = [\"true\"]\n",
            "text_read.tool.toml: line 1, column 8: `text_read` is the name of",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write_tools(&folder.path().join("tools"), [(name, rest)]);
        fs::create_dir(folder.path().join("root")).expect("a folder");
        let mut command = pintle();
        command
            .arg("serve")
            .arg("--root")
            .arg(folder.path().join("root"))
            .arg("--tools")
            .arg(folder.path().join("tools"));
        command.env("PINTLE_STATE_DIR", folder.path().join("state"));
        command.env("MCP_READY_FILE", folder.path().join("ready"));
        let (code, _, stderr) = run(&mut command, b"");
        assert!(code == Some(2) && stderr.contains(expected), "{code:?}: {stderr}");
    }
}

#[test]
fn a_tools_folder_that_the_tools_could_write_to_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_tools(&path("root/tools"), [("inside", "command = [\"true\"]\n")]);
    fs::create_dir(path("outside")).expect("a folder");
    let manifest = path("root/tools/inside.tool.toml");
    std::os::unix::fs::symlink(manifest, path("outside/inside.tool.toml")).expect("a link");
    std::os::unix::fs::symlink(path("root/tools"), path("link")).expect("a link");
    for tools in ["root", "root/tools", "link", "outside", "none"] {
        let mut command = pintle();
        command.arg("serve").arg("--root").arg(path("root")).arg("--tools").arg(path(tools));
        command.env("PINTLE_STATE_DIR", path("state")).env("MCP_READY_FILE", path("ready"));
        let (code, _, stderr) = run(&mut command, b"");
        assert_eq!(code, Some(2), "{tools}: {stderr}");
        assert!(stderr.contains("inside the root") || tools == "none", "{tools}: {stderr}");
    }
}

#[test]
fn a_discovered_configuration_cannot_define_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_tools(&path("repository/tools"), [("brought", "command = [\"true\"]\n")]);
    write_tools(&path("tools"), [("own", "command = [\"true\"]\n")]);
    fs::create_dir_all(path("repository/src")).expect("a folder");
    let serve = |tools: &str, arguments: &[&str]| {
        let text = format!("root = \"src\"\ntools = \"{tools}\"\n");
        fs::write(path("repository/pintle.toml"), text).expect("writes");
        let mut command = pintle();
        command.arg("serve").args(arguments).current_dir(path("repository"));
        command.env("PINTLE_STATE_DIR", path("state")).env("MCP_READY_FILE", path("ready"));
        let (code, _, stderr) = run(&mut command, b"");
        (code, stderr)
    };
    let (code, errors) = serve("tools", &[]);
    let expected = "pintle.toml: line 2, column 9: the tools folder tools lies beside pintle.toml";
    assert!(code == Some(2) && errors.contains(expected), "{code:?}: {errors}");
    assert!(errors.contains("--tools tools"), "{errors}");
    for (tools, arguments) in
        [("tools", &["--config", "pintle.toml"][..]), ("tools", &["--tools", "tools"]), ("../tools", &[])]
    {
        let (code, errors) = serve(tools, arguments);
        assert_eq!(code, Some(0), "{tools} {arguments:?}: {errors}");
    }
}

#[test]
fn a_tools_folder_that_is_a_mount_of_a_part_of_the_root_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_tools(&path("root/tools"), [("inside", "command = [\"true\"]\n")]);
    fs::create_dir(path("mounted")).expect("a folder");
    let script = "mount --bind \"$1/root/tools\" \"$1/mounted\" || exit 77; shift; exec \"$@\"";
    // The mount is made in its own namespace, so that nothing stays mounted. Not every system allows one.
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(folder.path());
    command.arg(env!("CARGO_BIN_EXE_pintle")).arg("serve").arg("--root").arg(path("root"));
    command.arg("--tools").arg(path("mounted"));
    command.env("PINTLE_STATE_DIR", path("state")).env("MCP_READY_FILE", path("ready"));
    let (code, _, stderr) = run(&mut command, b"");
    if code == Some(77) || stderr.contains("unshare") {
        println!("skipped: mounts are not allowed here: {stderr}");
        return;
    }
    assert!(code == Some(2) && stderr.contains("lies inside the root"), "{code:?}: {stderr}");
}

#[test]
fn a_scope_that_names_no_command_is_a_warning() {
    let manifest = [("one", "command = [\"true\"]\n")];
    let mut server = with_tools(manifest).args(["--scope", "read:/,run:oen"]).start();
    assert_eq!(server.error("one", json!({}))["code"], json!("FORBIDDEN"));
    let errors = server.finish();
    assert!(
        errors.contains("the scope `run:oen` names no tool that there is; the nearest is `one`"),
        "{errors}"
    );
}

#[test]
fn other_tools_do_not_wait_behind_commands_that_run_or_wait_for_their_turn() {
    let slow = shell("exec sleep 600");
    let manifests = [("slow", slow.as_str()), ("alone", &(slow.clone() + "max_parallel = 1\n"))];
    let mut server = with_tools(manifests).args(["--running", "2"]).start();
    fs::write(server.path("root").join("a.txt"), "text\n").expect("writes");
    let call = |id: Value, name: &str| {
        let mut message = request(id, "tools/call", json!({"name": name, "arguments": {}}));
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        message
    };
    for number in 0..3 {
        server.send(&call(json!(format!("alone-{number}")), "alone"));
    }
    server.send(&call(json!("slow"), "slow"));
    let read = mcp(&mut server, "tools/call", json!({"name": "text_read", "arguments": {"path": "a.txt"}}));
    assert_eq!(read["result"]["structuredContent"]["total_lines"], json!(1), "{read}");
    for id in ["alone-0", "alone-1", "alone-2", "slow"] {
        server.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
    }
    server.finish();
}

//! Manifests that change while the server runs.

use std::fs;

use serde_json::{Value, json};

use crate::{
    commands::{shell, with_tools},
    support::{Server, http::modern, pintle, run, wait_until},
};

fn write(server: &Server, name: &str, rest: &str) {
    let text = format!("name = \"{name}\"\ndescription = \"A test.\"\n{rest}");
    fs::write(server.path(&format!("tools/{name}.tool.toml")), text).expect("writes");
}

/// The names of the commands that are listed.
fn listed(server: &mut Server) -> Vec<String> {
    server.send(&modern(json!("list"), "tools/list", json!({})));
    let mut frame = server.frame();
    while frame["id"] != json!("list") {
        frame = server.frame();
    }
    let tools = frame["result"]["tools"].as_array().unwrap_or_else(|| panic!("{frame}")).clone();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned);
    names.filter(|name| name.starts_with("my_")).collect()
}

/// Calls a command, and skips notifications that come before the reply.
fn call(server: &mut Server, tool: &str) -> Value {
    server.request(json!("call"), tool, json!({}));
    let mut frame = server.frame();
    while frame["id"] != json!("call") {
        frame = server.frame();
    }
    frame["result"].take()
}

/// Writes a manifest until the client is notified. The server may not yet know that a client listens when the first
/// change comes.
fn write_until_notified(server: &Server, name: &str, rest: &str) {
    let mut version = 0;
    wait_until("the client is notified", || {
        if version % 100 == 0 {
            write(server, name, &format!("schema_version = {}\n{rest}", 1 + version / 100));
        }
        version += 1;
        let frame = server.frame_at_once();
        frame.is_some_and(|frame| frame["method"] == json!("notifications/tools/list_changed"))
    });
}

#[test]
fn changed_manifests_are_tools_at_once_and_a_session_is_notified() {
    let mut server = with_tools([("my_one", &shell("echo one"))]).start();
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = server.call("initialize", client);
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], json!(true), "{answer}");
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    write_until_notified(&server, "my_two", &shell("echo two"));
    assert_eq!(call(&mut server, "my_two")["stdout"], json!("two\n"));
    assert_eq!(listed(&mut server), ["my_one", "my_two"]);

    write(&server, "my_one", &shell("echo changed"));
    wait_until("it is changed", || call(&mut server, "my_one")["stdout"] == json!("changed\n"));

    fs::remove_file(server.path("tools/my_two.tool.toml")).expect("removes");
    wait_until("it is removed", || call(&mut server, "my_two")["reason"] == json!("unsupported"));
    assert_eq!(listed(&mut server), ["my_one"]);
    server.finish();
}

#[test]
fn a_manifest_that_becomes_invalid_keeps_the_old_one_in_use_and_warns() {
    let mut server = with_tools([("my_one", &shell("echo one"))]).start();
    for (rest, problem) in [
        ("comand = [\"true\"]\n", "my_one.tool.toml: line 3, column 1: unknown key `comand`"),
        ("command = [\"no-such-program\"]\n", "my_one.tool.toml: line 3, column 12: there is no program"),
    ] {
        write(&server, "my_one", rest);
        wait_until("it warns", || server.stderr().contains(problem));
        assert!(server.stderr().contains("warning: a tool stays as it was"), "{}", server.stderr());
        assert_eq!(server.result("my_one", json!({}))["stdout"], json!("one\n"));
    }
    server.finish();
}

#[test]
fn a_manifest_that_becomes_invalid_blocks_no_other_change() {
    let mut server =
        with_tools([("my_one", &shell("echo one")), ("my_danger", &shell("echo danger"))]).start();
    write(&server, "my_one", "comand = [\"true\"]\n");
    wait_until("it warns", || server.stderr().contains("unknown key `comand`"));
    fs::remove_file(server.path("tools/my_danger.tool.toml")).expect("removes");
    write(&server, "my_new", &shell("echo new"));
    write(&server, "search", "command = [\"true\"]\n");
    wait_until("the others are as they are", || listed(&mut server) == ["my_new", "my_one"]);
    wait_until("it warns", || server.stderr().contains("`search` is the name of a tool"));
    assert_eq!(call(&mut server, "my_one")["stdout"], json!("one\n"));
    fs::remove_file(server.path("tools/my_one.tool.toml")).expect("removes");
    wait_until("an invalid one can be removed", || listed(&mut server) == ["my_new"]);
    server.finish();
}

#[test]
fn a_tools_folder_is_followed_by_its_name_and_a_link_to_its_target() {
    let setup = with_tools([("my_one", &shell("echo one"))]);
    let manifest = |text: &str| format!("name = \"my_link\"\ndescription = \"x\"\n{}", shell(text));
    let target = setup.path("target");
    fs::write(&target, manifest("echo first")).expect("writes");
    std::os::unix::fs::symlink(&target, setup.path("tools/link.tool.toml")).expect("a link");
    let mut server = setup.start();
    fs::write(&target, manifest("echo second")).expect("writes");
    wait_until("the target is read again", || call(&mut server, "my_link")["stdout"] == json!("second\n"));
    fs::rename(server.path("tools"), server.path("old-tools")).expect("renames");
    fs::create_dir(server.path("tools")).expect("a folder");
    write(&server, "my_two", &shell("echo two"));
    wait_until("the new folder is read", || listed(&mut server) == ["my_two"]);
    write(&server, "my_three", &shell("echo three"));
    wait_until("it is watched", || listed(&mut server) == ["my_three", "my_two"]);
    server.finish();
}

#[test]
fn a_file_that_cannot_be_a_manifest_stops_neither_the_start_nor_the_reload() {
    let fifo = |path: &std::path::Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    let mut server = with_tools([("my_one", &shell("echo one"))]).start();
    fifo(&server.path("tools/pipe.tool.toml"));
    std::os::unix::fs::symlink("/dev/zero", server.path("tools/zero.tool.toml")).expect("a link");
    write(&server, "my_two", &shell("echo two"));
    wait_until("the others are loaded", || listed(&mut server) == ["my_one", "my_two"]);
    for name in ["pipe", "zero"] {
        wait_until("it warns", || {
            server.stderr().contains(&format!("{name}.tool.toml is not a file; a manifest is a text file"))
        });
    }
    for action in [&["serve", "--tools"][..], &["tool", "check"]] {
        let tools = server.path(if action.len() == 2 && action[0] == "tool" {
            "tools/pipe.tool.toml"
        } else {
            "tools"
        });
        let mut command = pintle();
        command.args(action).arg(tools).env("PINTLE_STATE_DIR", server.path("state-2"));
        command.current_dir(server.path("root"));
        let (code, _, stderr) = run(&mut command, b"");
        assert!(code != Some(0) && stderr.contains("is not a file"), "{action:?}: {code:?} {stderr}");
    }
    server.finish();
}

#[test]
fn many_manifests_written_at_once_are_one_change_or_few_and_no_warning() {
    let mut server = with_tools([("my_000", &shell("echo one"))]).start();
    let name = |number: usize| format!("my_{number:03}");
    (1..200).for_each(|number| write(&server, &name(number), &shell("echo new")));
    wait_until("all are there", || listed(&mut server).len() == 200);
    for number in 1..200 {
        fs::remove_file(server.path(&format!("tools/{}.tool.toml", name(number)))).expect("removes");
    }
    wait_until("all are removed", || listed(&mut server).len() == 1);
    assert!(!server.stderr().contains("warning"), "{}", server.stderr());
    server.finish();
}

#[test]
fn a_stateless_client_that_listens_is_notified() {
    let mut server = with_tools([("my_one", &shell("echo one"))]).start();
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    server.send(&modern(json!("listen"), "subscriptions/listen", wanted));
    let acknowledged = server.frame();
    let accepted = &acknowledged["params"]["notifications"];
    assert_eq!(accepted, &json!({"toolsListChanged": true}), "{acknowledged}");
    write_until_notified(&server, "my_two", &shell("echo two"));
    assert_eq!(listed(&mut server), ["my_one", "my_two"]);
}

#[test]
fn max_parallel_holds_across_a_reload_for_calls_that_run() {
    // Each run counts how many run at the same time.
    let script = "mkdir running-$$; ls -d running-* | wc -l; touch ready; while [ ! -e go ]; do sleep 0.01; done; \
                  rmdir running-$$";
    let alone = shell(script) + "max_parallel = 1\n";
    let mut server = with_tools([("my_alone", &alone)]).start();
    // In this dialect calls run concurrently.
    let start = |server: &mut Server, id: &str, tool: &str| {
        server.send(&modern(json!(id), "tools/call", json!({"name": tool, "arguments": {}})));
    };
    start(&mut server, "first", "my_alone");
    let ready = server.path("root/ready");
    wait_until("the first runs", || ready.exists());
    write(&server, "my_alone", &format!("{alone}title = \"Changed\"\n"));
    write(&server, "my_other", &shell("echo other"));
    wait_until("both are loaded", || listed(&mut server) == ["my_alone", "my_other"]);
    start(&mut server, "second", "my_alone");
    // The second call waits for the first, so later calls are answered earlier. Without the limit it would have begun
    // by now.
    for _ in 0..20 {
        start(&mut server, "other", "my_other");
        assert_eq!(server.frame()["id"], json!("other"));
    }
    fs::write(server.path("root/go"), "").expect("writes");
    for _ in 0..2 {
        let frame = server.frame();
        assert_eq!(frame["result"]["structuredContent"]["stdout"], json!("1\n"), "{frame}");
    }
    server.finish();
}

#[test]
fn the_server_waits_at_its_end_for_the_grace_of_a_tool_that_was_added_later() {
    let quick = shell("echo quick") + "grace = \"0\"\n";
    let mut server = with_tools([("my_quick", &quick)]).args(["--drain", "0"]).start();
    let script = "trap \"touch noticed; sleep 1; touch polite; exit 0\" TERM; touch ready; \
                  while :; do sleep 0.01; done";
    write(&server, "my_slow", &(shell(script) + "grace = \"60s\"\n"));
    let ready = server.path("root/ready");
    wait_until("it is loaded", || listed(&mut server).contains(&"my_slow".to_owned()));
    server.request(json!(1), "my_slow", json!({}));
    wait_until("it runs", || ready.exists());
    server.signal(rustix::process::Signal::TERM);
    server.wait();
    assert!(server.path("root/polite").exists(), "it was killed in its grace");
}

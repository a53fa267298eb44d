//! Old names of a tool: they work, are listed as deprecated, and cannot go unnoticed.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Server, Setup, pintle, run,
    surfaces::{Surfaces, contract, findings, tool, tools},
};

#[test]
fn an_alias_keeps_the_old_name_and_its_removal_is_reported() {
    let surfaces = Surfaces::new();
    let old = tools(&[tool("old_name", json!({"type": "object"}))]);
    let renamed = json!({"tools": [{"name": "new_name", "schemaVersion": 1, "aliases": ["old_name"], "inputSchema": {"type": "object"}}]});
    let removed =
        json!({"tools": [{"name": "new_name", "schemaVersion": 1, "inputSchema": {"type": "object"}}]});
    let (code, printed) = surfaces.diff(&old, &renamed);
    assert_eq!((code, &findings(&printed, "new_name")[0]["rule"]), (0, &json!("tool-renamed")));
    let (code, printed) = surfaces.diff(&renamed, &removed);
    let found = findings(&printed, "new_name");
    assert_eq!(
        (code, &found[0]["rule"], &found[0]["verdict"]),
        (1, &json!("alias-removed"), &json!("breaks"))
    );
    let (code, _) = surfaces.diff(&old, &removed);
    assert_eq!(code, 1, "without the alias the tool is gone");
}

/// Makes a handshake with a server that has the test tools.
fn initialized() -> Server {
    let mut server = Setup::fixtures().start();
    let client = json!({"name": "test", "version": "1"});
    server.call(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    );
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server
}

#[test]
fn an_old_name_is_called_as_the_new_one_is_in_both_spellings_and_dialects() {
    let mut server = initialized();
    for name in ["test_renamed", "test.former", "test_former"] {
        let frame = server.call("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(frame["result"]["structuredContent"], json!({"name": "test_renamed"}), "{frame}");
        assert_eq!(server.result(name, json!({})), json!({"name": "test_renamed"}));
    }
    server.finish();
}

#[test]
fn the_list_has_old_names_and_says_since_when_a_tool_is_deprecated() {
    let mut server = initialized();
    let list = server.call("tools/list", json!({}))["result"]["tools"].clone();
    let all = list.as_array().expect("tools").iter();
    let renamed = all.clone().find(|tool| tool["name"] == "test_renamed").expect("the tool");
    for (name, expected) in [("aliases", json!(["test.former"])), ("deprecated", json!("since 3"))] {
        assert_eq!(renamed[name], expected, "{renamed}");
        assert_eq!(renamed["_meta"][format!("pintle/{name}")], expected, "{renamed}");
    }
    let names: Vec<&str> = all.clone().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        !names.contains(&"test_former") && !names.contains(&"test.former"),
        "an old name is not listed as a tool"
    );
    for other in all.filter(|tool| tool["name"] != "test_renamed") {
        assert!(other.get("aliases").is_none() && other.get("deprecated").is_none(), "{other}");
    }
    let discovered = server.result("mcp.discover", json!({}));
    let all = discovered["tools"].as_array().expect("tools").iter();
    let renamed = all.clone().find(|tool| tool["name"] == "test_renamed").expect("the tool");
    assert_eq!((&renamed["aliases"], &renamed["deprecated"]), (&json!(["test.former"]), &json!("since 3")));
    server.finish();
}

#[test]
fn the_rename_of_a_tool_of_a_server_and_the_end_of_its_old_name_are_reported() {
    let surfaces = Surfaces::new();
    let root = surfaces.path().join("root");
    fs::create_dir(&root).expect("a folder");
    let server =
        format!("{} serve --fixtures --root '{}'", env!("CARGO_BIN_EXE_pintle-conformance"), root.display());
    let (code, lock, errors) = run(pintle().args(["contract", "print", "--server", &server]), b"");
    assert_eq!(code, Some(0), "{errors}");
    let lock: Value = serde_json::from_str(&lock).expect("JSON");
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut lock = lock.clone();
        let all = lock["tools"].as_array_mut().expect("tools");
        edit(all.iter_mut().find(|tool| tool["name"] == "test_renamed").expect("the tool"));
        lock
    };
    let before = edited(&|tool| {
        tool["name"] = json!("test.former");
        tool["schemaVersion"] = json!(2);
        for name in ["aliases", "deprecated"] {
            tool.as_object_mut().expect("an object").shift_remove(name);
        }
    });
    let before = surfaces.write("before.json", &before);
    let (code, printed) =
        contract(&["diff".as_ref(), &before, "--server".as_ref(), server.as_ref(), "--json".as_ref()]);
    let found = findings(&printed, "test_renamed");
    let rules: Vec<_> = found.iter().map(|finding| &finding["rule"]).collect();
    assert_eq!((code, rules), (0, vec![&json!("tool-renamed"), &json!("deprecated")]), "{printed}");

    let present = surfaces.write("present.json", &lock);
    let without = edited(&|tool| drop(tool.as_object_mut().expect("an object").shift_remove("aliases")));
    let without = surfaces.write("without.json", &without);
    let (code, printed) = contract(&["diff".as_ref(), &present, &without, "--json".as_ref()]);
    let found = findings(&printed, "test_renamed");
    assert_eq!((code, found.len()), (1, 1), "{printed}");
    assert_eq!(found[0]["rule"], "alias-removed");
    assert_eq!((&found[0]["old"], &found[0]["verdict"]), (&json!("test.former"), &json!("breaks")));
    assert_eq!(found[0]["bump"], 4);
}

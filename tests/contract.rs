//! `pintle contract`: verdicts, witnesses and locks.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{
    Setup, pintle, run,
    surfaces::{Surfaces, contract, findings, refused, tool, tools},
};

fn pairs() -> Vec<Value> {
    let text = include_str!("contract/pairs.json");
    serde_json::from_str::<Vec<Value>>(text).expect("pairs")
}

fn accepts(schema: &Value, value: &Value) -> bool {
    let validator = jsonschema::options().should_validate_formats(false).build(schema).expect("a schema");
    validator.is_valid(value)
}

#[test]
fn each_pair_of_schemas_has_the_verdict_that_the_rules_require() {
    let pairs = pairs();
    assert!(pairs.len() >= 60);
    let surface = |version: &str| {
        let of = |pair: &Value| {
            let mut tool = tool(pair["name"].as_str().expect("a name"), json!({"type": "object"}));
            let side = if pair["side"] == "input" { "inputSchema" } else { "outputSchema" };
            tool[side] = pair[version].clone();
            tool
        };
        tools(&pairs.iter().map(of).collect::<Vec<_>>())
    };
    let (code, printed) = Surfaces::new().diff(&surface("old"), &surface("new"));
    assert_eq!(code, 1);
    for pair in &pairs {
        let name = pair["name"].as_str().expect("a name");
        let found = findings(&printed, name);
        assert!(!found.is_empty(), "{name}: nothing was found");
        for finding in found {
            assert_eq!(finding["verdict"], pair["verdict"], "{name}: {finding}");
            assert_eq!(finding["rule"], pair["rule"], "{name}: {finding}");
            assert_eq!(!finding["bump"].is_null(), pair["bump"] == true, "{name}: {finding}");
            assert_eq!(finding.get("witness").is_some(), pair["verdict"] == "breaks", "{name}: {finding}");
            let Some(witness) = finding.get("witness") else { continue };
            let (accepted, rejected) = match pair["side"] == "input" {
                true => (&pair["old"], &pair["new"]),
                false => (&pair["new"], &pair["old"]),
            };
            assert!(accepts(accepted, witness), "{name}: {witness} is not accepted");
            assert!(!accepts(rejected, witness), "{name}: {witness} is not rejected");
        }
    }
}

#[test]
fn the_exit_code_says_whether_something_breaks_whether_a_bump_is_missing_and_whether_it_is_known() {
    let surfaces = Surfaces::new();
    let versioned = |version: u64, input: Value| {
        let mut tool = tool("t", input);
        tool["schemaVersion"] = json!(version);
        tools(&[tool])
    };
    let text = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let number = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let defaulted = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}});
    let formatted = json!({"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}});
    let code = |old: &Value, new: &Value| surfaces.diff(old, new).0;
    assert_eq!(code(&versioned(1, text.clone()), &versioned(1, text.clone())), 0);
    assert_eq!(code(&versioned(1, text.clone()), &versioned(1, number.clone())), 1, "a break");
    assert_eq!(code(&versioned(1, text.clone()), &versioned(2, number.clone())), 0, "a declared break");
    assert_eq!(code(&versioned(1, text.clone()), &versioned(1, defaulted.clone())), 1, "a missing bump");
    assert_eq!(code(&versioned(1, text.clone()), &versioned(2, defaulted)), 0);
    assert_eq!(code(&versioned(1, text.clone()), &versioned(1, formatted)), 2, "unknown");
    let mut added = text.clone();
    added["properties"]["b"] = json!({"type": "integer", "minimum": 1e40});
    let unknown = "unknown, by a rule that needs no bump if it is compatible";
    assert_eq!(code(&versioned(1, text.clone()), &versioned(1, added.clone())), 2, "{unknown}");
    assert_eq!(code(&versioned(1, text.clone()), &versioned(2, added)), 0, "declared in doubt");
    assert_eq!(code(&versioned(2, text.clone()), &versioned(1, text.clone())), 1, "a version that falls");
    assert_eq!(code(&versioned(1, text.clone()), &tools(&[])), 1, "a tool that is gone");
    assert_eq!(
        code(&tools(&[tool("t", text.clone())]), &tools(&[tool("t", number)])),
        1,
        "no version at all"
    );
}

#[test]
fn a_finding_names_tool_pointer_rule_values_and_the_version_to_write() {
    let old = json!({"tools": [{"name": "t", "schemaVersion": 4, "inputSchema": {"type": "object", "properties": {"a/b": {"type": "string"}}}}]});
    let new = json!({"tools": [{"name": "t", "schemaVersion": 4, "inputSchema": {"type": "object", "properties": {"a/b": {"type": "string", "maxLength": 2}}}}]});
    let (_, printed) = Surfaces::new().diff(&old, &new);
    let finding = &printed["findings"][0];
    assert_eq!(finding["tool"], "t");
    assert_eq!(finding["pointer"], "/inputSchema/properties/a~1b/maxLength");
    assert_eq!(finding["rule"], "argument-narrowed");
    assert_eq!((&finding["old"], &finding["new"]), (&Value::Null, &json!(2)));
    assert_eq!(finding["bump"], 5);
    assert_eq!(finding["verdict"], "breaks");
    assert_eq!(finding["witness"], json!({"a/b": "aaa"}));
}

#[test]
fn what_no_schema_says_is_reported_too() {
    let with = |extra: Value| {
        let mut tool = tool("t", json!({"type": "object"}));
        tool.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        json!({"tools": [tool], "errorCodes": {"A": {"http": 400}}, "instructions": "before"})
    };
    let before = json!({"annotations": {"readOnlyHint": true}, "timeoutMs": 1000, "description": "before"});
    let after = json!({"annotations": {"readOnlyHint": false}, "timeoutMs": 2000, "description": "after"});
    let mut new = with(after);
    new["errorCodes"] = json!({"B": {"http": 400}});
    new["instructions"] = json!("after");
    let (code, printed) = Surfaces::new().diff(&with(before), &new);
    let rules = |list: &str| -> Vec<&str> {
        let found = printed[list].as_array().expect("a list").iter();
        let mut rules: Vec<&str> = found.map(|finding| finding["rule"].as_str().expect("a rule")).collect();
        rules.sort_unstable();
        rules
    };
    assert_eq!(code, 1);
    let expected = ["annotation-flipped", "error-code-added", "error-code-removed", "timeout-changed"];
    assert_eq!(rules("findings"), expected);
    assert_eq!(rules("texts"), ["description-changed", "instructions-changed"]);
}

#[test]
fn lists_and_snapshots_of_other_programs_are_read() {
    let surfaces = Surfaces::new();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let named = json!({"name": "t", "inputSchema": schema});
    let same = [
        json!([named]),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [named]}}),
        json!({"snapshotVersion": "1.0.0", "tools": {"t": {"description": "", "inputSchema": schema}}}),
        json!({"mcpdiffVersion": "1", "tools": [named]}),
        json!({"version": "2.1.0", "capabilities": {"tools": [named]}}),
    ];
    for other in same {
        let (code, printed) = surfaces.diff(&tools(std::slice::from_ref(&named)), &other);
        assert_eq!((code, &printed["findings"]), (0, &json!([])), "{other}");
    }
    let folder = surfaces.path().join("snaps");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("t.snap"), named.to_string()).expect("writes");
    let list = surfaces.write("list.json", &tools(&[named]));
    let (code, printed) = contract(&["diff".as_ref(), &list, &folder, "--json".as_ref()]);
    assert_eq!((code, &printed["findings"]), (0, &json!([])));
}

#[test]
fn what_is_no_surface_is_refused_with_what_to_give_instead() {
    let surfaces = Surfaces::new();
    let good = surfaces.write("good.json", &tools(&[]));
    let good = good.to_str().expect("text");
    let bad = surfaces.write("bad.json", &json!({"a": 1}));
    let hashes = surfaces.write("hashes.json", &json!({"tools": {"t": {"inputSchemaHash": "sha256:00"}}}));
    let broken = surfaces.path().join("broken.json");
    fs::write(&broken, "{\"tools\": [").expect("writes");
    for (file, message) in [
        (bad.as_path(), "no list of tools"),
        (hashes.as_path(), "hashes"),
        (broken.as_path(), "is not JSON"),
        (Path::new("/nowhere.json"), "cannot read /nowhere.json"),
    ] {
        let (code, errors) = refused(&["diff", good, file.to_str().expect("text")]);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(message), "{errors}");
    }
    let (code, errors) = refused(&["diff", good]);
    assert_eq!(code, 2);
    assert!(errors.contains("--server or --url"), "{errors}");
}

#[test]
fn the_surface_before_names_and_outline_changed_has_every_bump_and_nothing_else_breaks() {
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/surface/before.json");
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract.lock.json");
    let (code, printed) = contract(&["diff".as_ref(), &before, &lock, "--json".as_ref()]);
    assert_eq!(code, 0, "{printed}");
    let breaking: Vec<(&str, &str)> = printed["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|finding| finding["verdict"] != "compatible")
        .map(|finding| {
            assert_eq!(finding["bump_missing"], false, "{finding}");
            (finding["tool"].as_str().expect("a name"), finding["verdict"].as_str().expect("a verdict"))
        })
        .collect();
    assert!(
        breaking.iter().all(|finding| matches!(finding, ("search" | "show_file", "breaks"))),
        "{breaking:?}"
    );
}

#[test]
fn the_lock_of_the_project_is_what_the_program_has() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract.lock.json");
    let (code, output, errors) = run(pintle().args(["contract", "print"]), b"");
    assert_eq!(code, Some(0), "{errors}");
    let present = fs::read_to_string(lock).expect("a lock");
    assert_eq!(
        present, output,
        "the surface changed: bump the versions that `pintle contract check` names, then `pintle contract accept`"
    );
}

#[test]
fn accept_writes_the_lock_and_check_passes_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let here =
        |arguments: &[&str]| run(pintle().current_dir(folder.path()).arg("contract").args(arguments), b"");
    let (code, _, errors) = here(&["check"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("pintle contract accept"), "{errors}");
    assert_eq!(here(&["accept"]).0, Some(0));
    let (code, output, _) = here(&["check"]);
    assert_eq!(code, Some(0), "{output}");
    let lock = folder.path().join("contract.lock.json");
    let mut changed: Value = serde_json::from_slice(&fs::read(&lock).expect("a lock")).expect("JSON");
    let tool = &mut changed["tools"][0];
    tool["inputSchema"]["properties"]["gone"] = json!({"type": "string"});
    fs::write(&lock, changed.to_string()).expect("writes");
    let (code, output, _) = here(&["check"]);
    assert_eq!(code, Some(1));
    assert!(output.contains("argument-removed") && output.contains("needs schemaVersion"), "{output}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left beside the lock");
}

#[test]
fn a_lock_is_the_same_whatever_the_configuration_and_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pintle.toml"), "toolsets = [\"files\"]\n[timeouts]\ndefault = \"1s\"\n")
        .expect("writes");
    let (_, plain, _) = run(pintle().args(["contract", "print"]), b"");
    let (code, configured, errors) =
        run(pintle().current_dir(folder.path()).env("PINTLE_RUNNING", "1").args(["contract", "print"]), b"");
    assert_eq!(code, Some(0), "{errors}");
    assert!(plain == configured);
}

#[test]
fn any_server_on_standard_input_and_output_or_http_can_be_asked() {
    let surfaces = Surfaces::new();
    let root = surfaces.path().join("root");
    fs::create_dir(&root).expect("a folder");
    let command = format!("{} serve --root '{}'", env!("CARGO_BIN_EXE_pintle"), root.display());
    let (code, output, errors) = run(pintle().args(["contract", "print", "--server", &command]), b"");
    assert_eq!(code, Some(0), "{errors}");
    let printed: Value = serde_json::from_str(&output).expect("JSON");
    assert!(printed["tools"].as_array().expect("tools").iter().any(|tool| tool["name"] == "text.read"));

    let server = Setup::new().with_local_tokens().start();
    let url = format!("http://{}/mcp", server.address());
    let (code, errors) = refused(&["print", "--url", &url]);
    assert_eq!(code, 2);
    assert!(errors.contains("401") && errors.contains("--header"), "{errors}");
}

#[test]
fn sarif_has_the_findings_with_their_rules() {
    let surfaces = Surfaces::new();
    let old = surfaces.write("old.json", &tools(&[tool("t", json!({"type": "object"}))]));
    let new = surfaces.write("new.json", &tools(&[]));
    let (code, printed) = contract(&["diff".as_ref(), &old, &new, "--format".as_ref(), "sarif".as_ref()]);
    assert_eq!(code, 1);
    let result = &printed["runs"][0]["results"][0];
    assert_eq!(
        (&printed["version"], &result["ruleId"], &result["level"]),
        (&json!("2.1.0"), &json!("tool-removed"), &json!("error"))
    );
    let rules = printed["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["id"] == "tool-removed"));
}

#[test]
fn lint_says_what_a_client_would_refuse() {
    let surfaces = Surfaces::new();
    let list =
        surfaces.write("list.json", &tools(&[tool("a.b", json!({"type": "object", "properties": {}}))]));
    let list = list.to_str().expect("text");
    let (code, output, errors) =
        run(pintle().args(["contract", "lint", list, "--client", "claude-desktop", "--json"]), b"");
    assert_eq!(code, Some(1), "{errors}");
    let printed: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(printed["findings"][0]["rule"], "name-characters");
    let (code, errors) = refused(&["lint", list, "--client", "cluade-desktop"]);
    assert_eq!(code, 2);
    assert!(errors.contains("claude-desktop"), "{errors}");
}

#[test]
fn no_client_refuses_the_list_of_this_program() {
    let (code, output, errors) = run(pintle().args(["contract", "lint", "--json"]), b"");
    assert_eq!(code, Some(0), "{output}{errors}");
    let printed: Value = serde_json::from_str(&output).expect("JSON");
    let findings = printed["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["severity"] == "warning"), "{output}");
}

//! The list of tools that a client receives, and the form of its results.

use serde_json::{Value, json};

use crate::support::{Server, Setup, data, http::modern, request};

/// Makes a handshake under this name and returns its result.
fn initialize(server: &mut Server, client: &str) -> Value {
    let client = json!({"name": client, "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let reply = server.call("initialize", params);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    reply["result"].clone()
}

fn list(server: &mut Server) -> Vec<Value> {
    let frame = server.call("tools/list", json!({}));
    frame["result"]["tools"].as_array().unwrap_or_else(|| panic!("{frame}")).clone()
}

fn listed(setup: Setup) -> Vec<Value> {
    let mut server = setup.start();
    initialize(&mut server, "test");
    let tools = list(&mut server);
    server.finish();
    tools
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

const FILES: [&str; 11] = [
    "file_create",
    "file_list",
    "file_move",
    "file_read",
    "file_remove",
    "text_append",
    "text_edit",
    "text_insert",
    "text_read",
    "text_replace",
    "text_substitute",
];
const SEARCH: [&str; 3] = ["index_build", "index_status", "search"];
const ALWAYS: [&str; 3] = ["check_status", "show_file", "workspace_status"];
const ASSETS: [&str; 7] = [
    "diff_assets",
    "get_example",
    "get_schema",
    "list_examples",
    "list_schemas",
    "populate_backend",
    "validate_asset",
];

fn sorted(groups: &[&[&'static str]]) -> Vec<&'static str> {
    let mut all = groups.concat();
    all.sort_unstable();
    all
}

#[test]
fn names_have_underscores_unless_dots_are_asked_for_and_both_are_called() {
    let tools = listed(Setup::new());
    assert_eq!(names(&tools), sorted(&[&FILES, &SEARCH, &ALWAYS]));
    for tool in &tools {
        let canonical = tool["_meta"]["pintle/name"].as_str().expect("the canonical name");
        assert_eq!(canonical.replace('.', "_"), tool["name"].as_str().expect("a name"));
        for text in [tool["description"].to_string(), tool["inputSchema"].to_string()] {
            assert!(!FILES.iter().any(|name| text.contains(&name.replacen('_', ".", 1))), "{text}");
        }
    }
    let dotted = listed(Setup::new().args(["--tool-names", "dotted"]));
    assert!(names(&dotted).contains(&"text.read") && !names(&dotted).contains(&"text_read"));
    let setup = Setup::new();
    std::fs::write(setup.path("root/a.txt"), "one\n").expect("writes");
    let mut server = setup.start();
    initialize(&mut server, "test");
    for name in ["text_read", "text.read"] {
        let frame = server.call("tools/call", json!({"name": name, "arguments": {"path": "a.txt"}}));
        assert_eq!(frame["result"]["structuredContent"]["content"], json!("one\n"), "{frame}");
        assert_eq!(server.result(name, json!({"path": "a.txt"}))["content"], json!("one\n"));
    }
    // Clients that do not speak MCP see the canonical names, and the log has them.
    let discovered = server.result("mcp.discover", json!({}));
    assert!(names(discovered["tools"].as_array().expect("tools")).contains(&"text.read"));
    assert!(server.records(5).iter().any(|record| record["method"] == json!("text.read")));
    server.finish();
}

#[test]
fn assets_are_listed_when_there_is_something_to_work_on_and_can_always_be_called() {
    let mut server = Setup::new().start();
    initialize(&mut server, "test");
    assert!(!names(&list(&mut server)).iter().any(|name| ASSETS.contains(name)));
    let frame = server.call("tools/call", json!({"name": "list_schemas", "arguments": {}}));
    assert_eq!(frame["result"]["structuredContent"]["ok"], json!(true), "{frame}");
    let all = server.result("mcp.discover", json!({}));
    assert_eq!(all["tools"].as_array().map(Vec::len), Some(24));
    server.finish();
    let complete = sorted(&[&FILES, &SEARCH, &ALWAYS, &ASSETS]);
    assert_eq!(names(&listed(Setup::assets())), complete);
    let with_backend = Setup::new().args(["--backend-url", "http://127.0.0.1:9"]);
    assert_eq!(names(&listed(with_backend)), complete);
    let bound = Setup::new().env("SYN_SCHEMAS_DIR", data().join("schemas"));
    assert_eq!(names(&listed(bound)), complete);
}

#[test]
fn with_a_list_of_toolsets_the_others_do_not_exist() {
    let setup = Setup::assets().args(["--toolsets", "files,search"]);
    let mut server = setup.start();
    initialize(&mut server, "test");
    assert_eq!(names(&list(&mut server)), sorted(&[&FILES, &SEARCH, &ALWAYS]));
    let frame = server.call("tools/call", json!({"name": "list_schemas", "arguments": {}}));
    assert_eq!(frame["error"]["code"], json!(-32602), "{frame}");
    let templates = server.call("resources/templates/list", json!({}));
    assert!(!templates.to_string().contains("schema://"), "{templates}");
    server.finish();
    assert_eq!(names(&listed(Setup::new().args(["--toolsets", "assets"]))), sorted(&[&ASSETS, &ALWAYS]));
    assert_eq!(names(&listed(Setup::new().env("PINTLE_TOOLSETS", "search"))), sorted(&[&SEARCH, &ALWAYS]));
    let config = Setup::new();
    std::fs::write(config.path("root/pintle.toml"), "toolsets = [\"files\"]\n").expect("writes");
    assert_eq!(names(&listed(config)), sorted(&[&FILES, &ALWAYS]));
    let mut wrong = crate::support::pintle();
    wrong.args(["serve", "--toolsets", "file"]);
    let (code, _, problem) = crate::support::run(&mut wrong, b"");
    assert_eq!(code, Some(2));
    assert!(problem.contains("`file`") && problem.contains("`files`"), "{problem}");
}

#[test]
fn tools_that_the_scopes_can_never_use_are_not_listed() {
    let reading = listed(Setup::new().args(["--scope", "read:/docs/"]));
    let expected = sorted(&[
        &["file_list", "file_read", "text_read"],
        &["index_status", "search"],
        &["check_status", "show_file", "workspace_status"],
    ]);
    assert_eq!(names(&reading), expected);
    let writing = listed(Setup::new().args(["--scope", "write:/docs/"]));
    // The index covers the complete root.
    assert!(names(&writing).contains(&"text_replace") && !names(&writing).contains(&"index_build"));
    let publishing = listed(Setup::assets().args(["--scope", "assets:publish"]));
    assert!(names(&publishing).contains(&"populate_backend") && !names(&publishing).contains(&"text_read"));
}

#[test]
fn hints_say_what_a_tool_may_do_and_which_are_always_needed() {
    let tools = listed(Setup::assets());
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).expect("a tool");
    for name in ["text_edit", "text_replace", "text_substitute", "file_move", "file_remove"] {
        assert_eq!(of(name)["annotations"]["destructiveHint"], json!(true), "{name}");
    }
    for name in ["file_create", "text_append", "text_insert"] {
        let hints = &of(name)["annotations"];
        assert_eq!(
            (&hints["destructiveHint"], &hints["readOnlyHint"]),
            (&json!(false), &json!(false)),
            "{name}"
        );
        assert_eq!(hints["openWorldHint"], json!(false), "{name}");
    }
    for name in
        ["text_read", "file_read", "file_list", "search", "show_file", "validate_asset", "check_status"]
    {
        assert_eq!(of(name)["annotations"]["readOnlyHint"], json!(true), "{name}");
    }
    let with = |key: &str| -> Vec<&str> {
        names(&tools).into_iter().filter(|name| of(name)["_meta"].get(key).is_some()).collect()
    };
    let always =
        ["file_create", "file_list", "search", "text_edit", "text_insert", "text_read", "text_replace"];
    assert_eq!(with("anthropic/alwaysLoad"), always);
    assert_eq!(with("anthropic/maxResultSizeChars"), ["search", "show_file", "text_read"]);
}

/// Everything in a schema that some client refuses, with its JSON pointer.
fn refused(schema: &Value, pointer: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("$schema") {
                found.push(format!("{pointer}: $schema"));
            }
            let is_array = members.get("type").is_some_and(|name| name.to_string().contains("\"array\""));
            if is_array && !members.contains_key("items") {
                found.push(format!("{pointer}: no items"));
            }
            for (name, member) in members {
                refused(member, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| refused(item, pointer, found)),
        Value::Number(number)
            if number.as_f64().is_some_and(|number| number.abs() > 9_007_199_254_740_991.0) =>
        {
            found.push(format!("{pointer}: {number}"));
        }
        _ => {}
    }
}

#[test]
fn listed_schemas_have_nothing_that_a_client_refuses() {
    let mut found = Vec::new();
    for tool in listed(Setup::assets()) {
        let name = tool["name"].as_str().expect("a name");
        for kind in ["inputSchema", "outputSchema"] {
            let schema = &tool[kind];
            assert_eq!(schema["type"], json!("object"), "{name}");
            for union in ["anyOf", "oneOf", "allOf", "not"] {
                assert!(schema.get(union).is_none(), "{name}: {kind} has {union} at its root");
            }
            refused(schema, &format!("{name} {kind}"), &mut found);
        }
        assert!(tool["description"].as_str().is_some_and(|text| text.len() < 2048), "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false), "{name}");
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_result_matches_the_listed_schema_of_its_tool() {
    let mut server = Setup::assets().start();
    initialize(&mut server, "test");
    let tools = list(&mut server);
    for (name, arguments) in [
        ("validate_asset", json!({"asset": {}, "schema": "lamp"})),
        ("get_schema", json!({"name": "lamp"})),
        ("list_examples", json!({})),
        ("workspace_status", json!({})),
    ] {
        let schema = tools.iter().find(|tool| tool["name"] == name).expect("a tool")["outputSchema"].clone();
        let frame = server.call("tools/call", json!({"name": name, "arguments": arguments}));
        let result = &frame["result"]["structuredContent"];
        assert!(jsonschema::is_valid(&schema, result), "{name}: {result} does not match {schema}");
    }
    server.finish();
}

#[test]
fn the_instructions_are_short_and_name_tools_as_the_list_does() {
    let mut server = Setup::new().start();
    let instructions =
        initialize(&mut server, "test")["instructions"].as_str().expect("instructions").to_owned();
    assert!(instructions.len() < 2048, "{}", instructions.len());
    let listed = list(&mut server);
    let named = instructions.split('`').filter(|word| word.starts_with("text_") || word.starts_with("file_"));
    for name in named.chain(["search", "show_file"]) {
        assert!(names(&listed).contains(&name), "{name}");
    }
    server.finish();
}

#[test]
fn the_tool_list_without_assets_is_small() {
    let tools = listed(Setup::new());
    let shown = tools.iter().map(|tool| {
        json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]})
    });
    let bytes: usize = shown.map(|tool| tool.to_string().len() + 1).sum();
    assert!(bytes <= 14 * 1024, "{bytes} bytes");
}

/// The result of a call that succeeds and of one that fails.
fn results(server: &mut Server) -> (Value, Value) {
    let read = server.call("tools/call", json!({"name": "text_read", "arguments": {"path": "a.txt"}}));
    let failed = server.call("tools/call", json!({"name": "text_read", "arguments": {"path": "b.txt"}}));
    (read["result"].clone(), failed["result"].clone())
}

fn with_file(setup: Setup) -> Server {
    std::fs::write(setup.path("root/a.txt"), "one\n").expect("writes");
    setup.start()
}

#[test]
fn a_client_that_cannot_use_structured_content_gets_one_text_and_all_others_json() {
    for (client, setting, is_text) in [
        ("gemini-cli-mcp-client", None, true),
        ("qwen-cli-mcp-client-pintle", None, true),
        ("@cline/core", None, true),
        ("Cline", None, true),
        ("claude-code", None, false),
        ("nobody knows", None, false),
        ("Cline", Some("json"), false),
        ("claude-code", Some("text"), true),
        ("claude-code", Some("auto"), false),
    ] {
        let setup = match setting {
            Some(setting) => Setup::new().args(["--results", setting]),
            None => Setup::new(),
        };
        let mut server = with_file(setup);
        initialize(&mut server, client);
        let has_schema = list(&mut server).iter().all(|tool| tool.get("outputSchema").is_some());
        assert_eq!(has_schema, !is_text, "{client}");
        let (read, failed) = results(&mut server);
        let text = read["content"][0]["text"].as_str().expect("a text");
        let object: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(object["content"], json!("one\n"), "{client}");
        assert_eq!(read["content"].as_array().map(Vec::len), Some(1), "{client}");
        assert_eq!(read.get("structuredContent").is_some(), !is_text, "{client}: {read}");
        // A failure is the same for all clients: one text with the error object.
        assert_eq!(failed["isError"], json!(true), "{failed}");
        assert!(failed.get("structuredContent").is_none(), "{failed}");
        assert!(failed["content"][0]["text"].as_str().is_some_and(|text| text.contains("NOT_FOUND")));
        server.finish();
    }
}

#[test]
fn without_a_handshake_a_client_is_identified_by_each_request() {
    let mut server = with_file(Setup::new());
    let meta = |client: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        })
    };
    for (client, is_text) in [("Cline", true), ("copilot-cli", false), ("@cline/core", true)] {
        let params = json!({"name": "text_read", "arguments": {"path": "a.txt"}, "_meta": meta(client)});
        let frame = server.call("tools/call", params);
        assert_eq!(frame["result"].get("structuredContent").is_none(), is_text, "{client}: {frame}");
        let frame = server.call("tools/list", json!({"_meta": meta(client)}));
        assert_eq!(frame["result"]["tools"][0].get("outputSchema").is_none(), is_text, "{client}");
        // Another client gets another list.
        assert_eq!(frame["result"]["cacheScope"], json!("private"), "{client}");
    }
    server.finish();
}

#[test]
fn over_http_a_client_is_identified_by_its_session_or_by_its_request() {
    let server = with_file(Setup::new().http());
    let mut session = server.connect();
    let client = json!({"name": "Cline", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let answer = session.post("/mcp", &request(json!(1), "initialize", params));
    let id = answer.header("mcp-session-id").expect("a session").to_owned();
    session.set("mcp-session-id", &id);
    let read = json!({"name": "text_read", "arguments": {"path": "a.txt"}});
    let result = session.call(json!(2), "tools/call", read.clone()).result();
    assert!(result.get("structuredContent").is_none(), "{result}");
    let mut alone = server.connect();
    let result = alone.modern(json!(3), "tools/call", read.clone()).result();
    assert!(result.get("structuredContent").is_some(), "{result}");
    let mut message = modern(json!(4), "tools/call", read);
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": "Cline", "version": "1"});
    alone
        .set("mcp-protocol-version", "2026-07-28")
        .set("mcp-method", "tools/call")
        .set("mcp-name", "text_read");
    let result = alone.post("/mcp", &message).result();
    assert!(result.get("structuredContent").is_none(), "{result}");
}

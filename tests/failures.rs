//! Calls that fail: the right code, a message that says what to do, and the next call works.

use serde_json::{Value, json};

use crate::support::{Setup, request};

#[test]
fn a_call_over_its_deadline_fails_with_the_deadline() {
    let mut server = Setup::fixtures().arg("--timeout=test_sleep=50ms").start();
    let error = server.error("test_sleep", json!({"ms": 60_000}));
    assert_eq!((&error["code"], &error["timeoutMs"]), (&json!("TOOL_TIMEOUT"), &json!(50)), "{error}");
    assert_eq!(server.result("test_sleep", json!({"ms": 1})), json!({"slept": 1}));
    server.finish();
}

#[test]
fn a_timeout_can_stand_in_the_configuration_file() {
    let setup = Setup::fixtures();
    let config = setup.path("pintle.toml");
    std::fs::write(&config, "[timeouts]\ndefault = \"20ms\"\ntest_progress = \"0\"\n").expect("writes");
    let mut server = setup.arg("--config").arg(&config).start();
    assert_eq!(server.error("test_sleep", json!({"ms": 60_000}))["timeoutMs"], json!(20));
    let result = server.result("test_progress", json!({"count": 1, "everyMs": 100}));
    assert_eq!(result, json!({"count": 1}));
    server.finish();
}

#[test]
fn a_panic_is_an_internal_error_and_the_next_call_works() {
    let mut server = Setup::fixtures().start();
    let frame = server.call("test_panic", json!({}));
    assert_eq!(frame["error"]["code"], json!(-32603), "{frame}");
    assert_eq!(frame["error"]["data"]["code"], json!("INTERNAL"), "{frame}");
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    let stderr = server.finish();
    assert!(stderr.contains("panic at") && stderr.contains("fixtures/src/panic.rs"), "{stderr}");
}

#[test]
fn a_tool_that_breaks_its_output_schema_is_caught() {
    let mut server = Setup::fixtures().start();
    let frame = server.call("test_bad_output", json!({}));
    assert_eq!(frame["error"]["code"], json!(502), "{frame}");
    assert_eq!(frame["error"]["data"]["code"], json!("INVALID_OUTPUT"), "{frame}");
    server.finish();
}

#[test]
fn an_unknown_argument_of_any_tool_is_refused_with_those_that_are_known() {
    let mut server = Setup::fixtures().start();
    let discovered = server.result("mcp.discover", json!({}));
    let tools = discovered["tools"].as_array().expect("tools").clone();
    assert!(tools.len() >= 12, "{discovered}");
    for tool in tools {
        let name = tool["name"].as_str().expect("a name");
        assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false), "{name}");
        let error = server.error(name, json!({"bogusx": 1}));
        assert_eq!(error["code"], json!("INVALID_REQUEST"), "{name}: {error}");
        let message = error["details"]["errors"].as_array().expect("errors").iter();
        let reported = message.filter_map(|error| error["msg"].as_str()).find(|text| text.contains("bogusx"));
        let reported = reported.unwrap_or_else(|| panic!("{name}: {error}"));
        let known = tool["inputSchema"]["properties"].as_object().filter(|known| !known.is_empty());
        if let Some(known) = known {
            // It is similar to none of them, so none is suggested.
            assert!(!reported.contains("nearest"), "{reported}");
            let (_, listed) = reported.split_once("`bogusx` (known: ").expect(reported);
            assert!(known.keys().all(|key| listed.contains(key)), "{reported}");
        }
    }
    let error = server.error("validate_asset", json!({"asset": {}, "shema": "x"}));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("unknown argument `shema`; the nearest known one is `schema`"), "{message}");
    assert!(message.contains("argument `schema` is missing"), "{message}");
    server.finish();
}

#[test]
fn wrong_arguments_are_refused_with_their_pointer() {
    let mut server = Setup::fixtures().start();
    for (tool, arguments, pointer) in [
        ("test_sleep", json!({"ms": "soon"}), "/ms"),
        ("test_sleep", json!({"ms": -1}), "/ms"),
        ("test_sleep", json!({"ms": 1.5}), "/ms"),
        ("validate_asset", json!({"asset": 1, "schema": 2}), "/schema"),
    ] {
        let frame = server.call(tool, arguments);
        assert_eq!(frame["error"]["code"], json!(-32602), "{frame}");
        assert_eq!(frame["error"]["data"]["details"]["errors"][0]["path"], json!(pointer), "{frame}");
    }
    server.finish();
}

#[test]
fn an_integer_with_a_decimal_point_is_an_integer_and_the_schema_sets_the_bounds() {
    let mut server = Setup::fixtures().start();
    server.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test_sleep\",\"params\":{\"ms\":1.0}}\n");
    assert_eq!(server.frame()["result"], json!({"slept": 1}));
    let error = server.error("test_progress", json!({"count": 4_294_967_296_u64, "everyMs": 0}));
    assert_eq!(error["details"]["errors"][0]["path"], json!("/count"), "{error}");
    server.finish();
}

#[test]
fn the_deadline_includes_the_time_in_the_queue() {
    let mut server = Setup::fixtures().args(["--running=1", "--timeout=test_sleep=100ms"]).start();
    for _ in 0..3 {
        assert_eq!(server.error("test_sleep", json!({"ms": 600_000}))["code"], json!("TOOL_TIMEOUT"));
    }
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    server.finish();
}

#[test]
fn an_unknown_tool_is_unsupported() {
    let mut server = Setup::new().start();
    let unsupported = json!({"ok": false, "reason": "unsupported", "detail": "tool not implemented"});
    for method in ["no_such_tool", "mcp.nothing", "test_echo"] {
        assert_eq!(server.result(method, json!({})), unsupported, "{method}");
    }
    let invocation = json!({"tool": "mcp.tool:no_such_tool", "input": {}});
    assert_eq!(server.result("mcp.tool.invoke", invocation), unsupported);
    server.finish();
}

#[test]
fn an_unknown_control_method_is_method_not_found() {
    let mut server = Setup::new().start();
    assert_eq!(server.call("$/unknown", json!({}))["error"]["code"], json!(-32601));
    server.finish();
}

#[test]
fn an_invocation_reaches_the_same_tool_and_checks_its_version() {
    let mut server = Setup::fixtures().start();
    let invoke = |extra: Value| {
        let mut params = json!({"tool": "mcp.tool:test_echo", "input": {"value": [1]}});
        params.as_object_mut().expect("object").extend(extra.as_object().expect("object").clone());
        params
    };
    for extra in [json!({}), json!({"version": {"major": 1}}), json!({"metadata": {"runId": "r"}})] {
        assert_eq!(server.result("mcp.tool.invoke", invoke(extra)), json!({"value": [1]}));
    }
    for extra in [
        json!({"version": {"major": 2}}),
        json!({"version": {}}),
        json!({"version": {"major": 1, "x": 1}}),
        json!({"metadata": {"other": 1}}),
        json!({"unknown": 1}),
        json!({"tool": "test_echo"}),
        json!({"tool": ""}),
        json!({"input": []}),
    ] {
        let frame = server.call("mcp.tool.invoke", invoke(extra.clone()));
        assert_eq!(frame["error"]["code"], json!(-32602), "{extra}: {frame}");
    }
    server.finish();
}

#[test]
fn reserved_parts_of_a_version_are_refused_with_the_reason() {
    let version = |part: &str, value: Value| json!({"major": 1, part: value});
    let both = json!({"major": 1, "minor": 0, "patch": 0});
    let cases = [
        ("minor", version("minor", json!(0))),
        ("minor", version("minor", Value::Null)),
        ("patch", version("patch", json!(3))),
        ("minor", both),
        ("patch", json!({"patch": 1})),
    ];
    let mut server = Setup::fixtures().start();
    let http = Setup::fixtures().http().start();
    let mut client = http.connect();
    for (part, version) in cases {
        let params = json!({"tool": "mcp.tool:test_echo", "input": {"value": 1}, "version": version});
        let frame = server.call("mcp.tool.invoke", params.clone());
        let error = &frame["error"];
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{version}: {frame}"));
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("INVALID_REQUEST")));
        assert!(message.contains(&format!("`version.{part}` is reserved")), "{frame}");
        assert!(error["data"]["hint"].as_str().is_some_and(|hint| hint.contains("`major`")), "{frame}");
        let answer = client.post("/rpc", &request(json!(1), "mcp.tool.invoke", params));
        assert_eq!((answer.status, &answer.message()["error"]), (400, error), "{version}");
    }
    // Another major version is also refused before the tool is reached.
    let params = json!({"tool": "mcp.tool:test_echo", "input": {"value": 1}, "version": {"major": 2}});
    let answer = client.post("/rpc", &request(json!(1), "mcp.tool.invoke", params));
    assert_eq!(answer.refusal(), (400, -32602), "{answer:?}");
    server.finish();
}

#[test]
fn an_invocation_s_metadata_can_ask_for_progress() {
    let mut server = Setup::fixtures().start();
    let input = json!({"count": 2, "everyMs": 1});
    let metadata = json!({"progressToken": "inner"});
    let params = json!({"tool": "mcp.tool:test_progress", "input": input, "metadata": metadata});
    server.send(&request(json!(1), "mcp.tool.invoke", params));
    let reported = server.frame();
    assert_eq!(reported["params"]["progressToken"], json!("inner"), "{reported}");
    assert_eq!(reported["params"]["tool"], json!("test_progress"), "{reported}");
    assert_eq!(server.frame()["result"], json!({"count": 2}));
    server.finish();
}

#[test]
fn a_result_over_the_limit_is_refused_with_a_hint() {
    // The request is below its limit, but its output is larger than the result limit of a small server.
    let mut server = Setup::fixtures().arg("--max-result-bytes=1000").start();
    let error = server.error("test_echo", json!({"value": "x".repeat(2_000)}));
    assert_eq!(error["details"]["reason"], json!("result_too_large"), "{error}");
    assert!(error["hint"].is_string(), "{error}");
    server.finish();
}

#[test]
fn definitions_are_complete_sorted_and_versioned() {
    let mut server = Setup::fixtures().start();
    let discovered = server.result("mcp.discover", json!({}));
    assert_eq!(discovered["ok"], json!(true));
    let tools = discovered["tools"].as_array().expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert!(names.is_sorted(), "{names:?}");
    for tool in tools {
        for field in ["title", "description"] {
            assert!(tool[field].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], json!("object"), "{tool}");
        }
        assert!(tool["schemaVersion"].as_u64().is_some_and(|version| version >= 1), "{tool}");
        assert_eq!(tool["_meta"]["pintle/schemaVersion"], tool["schemaVersion"]);
        assert_eq!(tool["_meta"]["pintle/toolingVersion"], tool["toolingVersion"]);
        let version = tool["toolingVersion"].as_str().expect("a version");
        assert!(version.starts_with(concat!(env!("CARGO_PKG_VERSION"), "+")), "{version}");
    }
    server.finish();
}

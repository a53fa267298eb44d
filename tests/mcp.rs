//! MCP on standard input and output, with and without a handshake, next to the direct dialect.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::{Server, Setup, request};

const MODERN: &str = "2026-07-28";

fn initialize(server: &mut Server, version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    server.request(json!("init"), "initialize", params);
    let reply = server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    reply["result"].clone()
}

/// Params of a request in the stateless revision.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    params
}

fn call(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.call("tools/call", json!({"name": name, "arguments": arguments}))
}

/// The object in the text of a failed call.
fn failure(frame: &Value) -> Value {
    assert_eq!(frame["result"]["isError"], json!(true), "{frame}");
    let text = frame["result"]["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = Setup::fixtures().start();
        let result = initialize(&mut server, version);
        assert_eq!(result["protocolVersion"], json!(version));
        assert_eq!(result["serverInfo"]["name"], json!("pintle"));
        assert_eq!(server.call("ping", json!({}))["result"], json!({}));
        let frame = call(&mut server, "test_echo", json!({"value": [1, null]}));
        assert_eq!(frame["result"]["structuredContent"], json!({"value": [1, null]}));
        assert_eq!(frame["result"]["content"], json!([{"type": "text", "text": r#"{"value":[1,null]}"#}]));
        assert!(frame["result"].get("isError").is_none(), "{frame}");
        assert!(frame["result"].get("resultType").is_none(), "{frame}");
        server.finish();
    }
}

/// Every number in a schema that a JavaScript client may round, with its JSON pointer.
fn rounded_numbers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() >= EXACT) => {
            found.push(format!("{pointer}: {number}"));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                rounded_numbers(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                rounded_numbers(member, &format!("{pointer}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_listed_schema_has_a_number_that_a_client_may_round() {
    let mut server = Setup::assets().arg("--fixtures").start();
    let discovered = server.result("mcp.discover", json!({}));
    initialize(&mut server, "2025-11-25");
    let listed = server.result("tools/list", json!({}));
    let stateless = server.result("tools/list", modern(json!({})));
    server.finish();
    for (way, list) in [("mcp.discover", discovered), ("tools/list", listed), ("stateless", stateless)] {
        let tools = list["tools"].as_array().expect("tools");
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        // One tool of each toolset, so that no toolset is missing.
        for name in ["text.read", "search", "validate_asset", "test_sleep"] {
            let listed = name.replace('.', "_");
            assert!(names.contains(&name) || names.contains(&listed.as_str()), "{way}: {names:?}");
        }
        let mut found = Vec::new();
        for tool in tools {
            rounded_numbers(tool, tool["name"].as_str().expect("a name"), &mut found);
        }
        assert!(found.is_empty(), "{way} lists {} such numbers:\n{}", found.len(), found.join("\n"));
    }
}

#[test]
fn an_integer_that_a_client_may_round_is_refused_with_the_bound() {
    let setup = Setup::fixtures();
    std::fs::write(setup.path("root/file.txt"), "one\ntwo\n").expect("writes");
    let mut server = setup.start();
    let largest = (1_i64 << 53) - 1;
    for (tool, arguments, bound) in [
        ("text.read", json!({"path": "file.txt", "lines": [1, largest + 1]}), largest),
        ("text.read", json!({"path": "file.txt", "lines": [-largest - 1, 0]}), -largest),
        ("text.read", json!({"path": "file.txt", "lines": [1, 1e300]}), largest),
        ("text.read", json!({"path": "file.txt", "lines": [1, u64::MAX]}), largest),
        ("test_sleep", json!({"ms": largest + 1}), largest),
    ] {
        let frame = server.call(tool, arguments.clone());
        let error = &frame["error"];
        assert_eq!(error["data"]["code"], json!("INVALID_REQUEST"), "{tool} {arguments}: {frame}");
        assert_eq!(error["code"], json!(-32602), "{tool} {arguments}: {frame}");
        assert!(error.to_string().contains(&bound.to_string()), "{tool} {arguments}: {frame}");
    }
    // The bound itself is an argument like any other.
    let read = server.result("text.read", json!({"path": "file.txt", "lines": [1, largest]}));
    assert_eq!(read["content"], json!("one\ntwo\n"));
    server.finish();
}

#[test]
fn the_stateless_revision_needs_no_handshake() {
    let mut server = Setup::fixtures().start();
    let frame = server.call("server/discover", modern(json!({})));
    let versions = frame["result"]["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!(MODERN)), "{frame}");
    let params = modern(json!({"name": "test_echo", "arguments": {"value": 1}}));
    let frame = server.call("tools/call", params);
    assert_eq!(frame["result"]["structuredContent"], json!({"value": 1}), "{frame}");
    assert_eq!(frame["result"]["resultType"], json!("complete"), "{frame}");
    let frame = server.call("tools/list", modern(json!({})));
    assert!(frame["result"]["ttlMs"].is_number() && frame["result"]["cacheScope"].is_string(), "{frame}");
    server.finish();
}

/// The members that differ between the dialects: schemas in the form that all clients accept, names in texts, hints for
/// clients.
const DIFFERENT_BETWEEN_DIALECTS: [&str; 3] = ["description", "inputSchema", "outputSchema"];

#[test]
fn definitions_are_those_of_the_direct_dialect() {
    let mut server = Setup::assets().args(["--tool-names", "dotted"]).start();
    initialize(&mut server, "2025-11-25");
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let mut listed = server.frame()["result"]["tools"].clone();
    let mut direct = server.result("mcp.discover", json!({}))["tools"].clone();
    for tool in [&mut listed, &mut direct].into_iter().flat_map(|tools| tools.as_array_mut().expect("tools"))
    {
        for name in DIFFERENT_BETWEEN_DIALECTS {
            tool[name] = json!(tool[name]["required"]);
        }
        // The direct dialect has no tasks.
        tool.as_object_mut().expect("an object").shift_remove("execution");
        let meta = tool["_meta"].as_object_mut().expect("an object");
        meta.retain(|name, _| matches!(name.as_str(), "pintle/schemaVersion" | "pintle/toolingVersion"));
        tool.sort_all_objects();
        // Alternative results are listed as one object, which requires less.
        tool["outputSchema"] = json!(null);
    }
    assert_eq!(listed, direct);
    server.finish();
}

#[test]
fn failures_are_results_that_a_model_can_read_and_unknown_names_are_errors() {
    let mut server = Setup::assets().args(["--fixtures", "--timeout=test_sleep=50ms"]).start();
    initialize(&mut server, "2025-11-25");
    let missing = failure(&call(&mut server, "test_echo", json!({"valu": 1})));
    assert_eq!(missing["code"], json!("INVALID_REQUEST"));
    let late = failure(&call(&mut server, "test_sleep", json!({"ms": 60_000})));
    assert_eq!((&late["code"], &late["timeoutMs"]), (&json!("TOOL_TIMEOUT"), &json!(50)));
    assert_eq!(failure(&call(&mut server, "test_panic", json!({})))["code"], json!("INTERNAL"));
    assert_eq!(failure(&call(&mut server, "test_bad_output", json!({})))["code"], json!("INVALID_OUTPUT"));
    let not_found = failure(&call(&mut server, "get_schema", json!({"name": "lampe"})));
    assert_eq!((&not_found["ok"], &not_found["reason"]), (&json!(false), &json!("not_found")));
    assert_eq!(not_found["code"], json!("NOT_FOUND"));
    assert!(not_found["message"].as_str().is_some_and(|text| text.contains("lamp")), "{not_found}");
    // A verdict is an answer and not a failure.
    let verdict = call(&mut server, "validate_asset", json!({"asset": {}, "schema": "lamp"}));
    assert_eq!(verdict["result"]["structuredContent"]["ok"], json!(false));
    assert!(verdict["result"].get("isError").is_none());
    for (method, params, code) in [
        ("tools/call", json!({"name": "test_ecko", "arguments": {}}), -32602),
        ("tools/call", json!({"arguments": {}}), -32602),
        ("tools/call", json!({"name": "test_echo", "arguments": [1]}), -32602),
    ] {
        let frame = server.call(method, params);
        assert_eq!(frame["error"]["code"], json!(code), "{method}: {frame}");
    }
    server.finish();
}

#[test]
fn what_is_not_offered_is_an_unknown_method() {
    let mut server = Setup::assets().start();
    initialize(&mut server, "2025-11-25");
    for (method, params, code) in [
        ("prompts/list", json!({}), -32601),
        ("prompts/get", json!({"name": "x"}), -32601),
        ("logging/setLevel", json!({"level": "info"}), -32601),
        ("nothing/here", json!({}), -32601),
    ] {
        let frame = server.call(method, params);
        assert_eq!(frame["error"]["code"], json!(code), "{method}: {frame}");
    }
    server.finish();
}

#[test]
fn resources_are_listed_read_and_completed() {
    let mut server = Setup::assets().start();
    initialize(&mut server, "2025-11-25");
    let listed = server.result("resources/list", json!({}));
    let uris: Vec<_> = listed["resources"].as_array().expect("resources").iter().map(|r| &r["uri"]).collect();
    assert!(uris.contains(&&json!("schema://lamp")), "{listed}");
    let templates = server.result("resources/templates/list", json!({}));
    let templates = templates["resourceTemplates"].to_string();
    assert!(templates.contains("schema://{name}") && templates.contains("example://{+path}"), "{templates}");
    let read = server.result("resources/read", json!({"uri": "schema://lamp"}));
    let content = &read["contents"][0];
    assert_eq!(content["uri"], json!("schema://lamp"));
    let schema: Value = serde_json::from_str(content["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(schema["$id"], json!("https://schemas.example.org/2.1.0/lamp.schema.json"));
    let frame = server.call("resources/read", json!({"uri": "schema://lampe"}));
    assert_eq!(
        (&frame["error"]["code"], &frame["error"]["data"]["uri"]),
        (&json!(-32002), &json!("schema://lampe"))
    );
    let frame = server.call("resources/read", modern(json!({"uri": "shema://lamp"})));
    assert_eq!(
        (&frame["error"]["code"], &frame["error"]["data"]["uri"]),
        (&json!(-32602), &json!("shema://lamp"))
    );
    let params = json!({
        "ref": {"type": "ref/resource", "uri": "schema://{name}"},
        "argument": {"name": "name", "value": "l"},
    });
    let completed = server.result("completion/complete", params);
    assert_eq!(completed["completion"]["values"], json!(["lamp", "lonely"]));
    server.finish();
}

#[test]
fn calls_run_side_by_side_and_ids_come_back_byte_for_byte() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    server.request(json!("slow"), "tools/call", json!({"name": "test_sleep", "arguments": {"ms": 400}}));
    for id in ["0", "-1", "1.0", "1e3", "12345678901234567890", r#""é""#] {
        let line = format!(
            r#"{{"method":"tools/call","params":{{"name":"test_echo","arguments":{{"value":0}}}},"jsonrpc":"2.0","id":{id}}}"#
        );
        server.write(format!("{line}\n").as_bytes());
        assert!(server.line().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)), "{id}");
    }
    server.write(b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\n");
    assert_eq!(server.frame()["error"]["code"], json!(-32600));
    assert_eq!(server.frame()["id"], json!("slow"));
    server.finish();
}

#[test]
fn a_cancelled_notification_ends_a_call_without_a_reply_and_a_cancel_request_with_one() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    let sleep = json!({"name": "test_sleep", "arguments": {"ms": 600_000}});
    server.request(json!(1), "tools/call", sleep.clone());
    server
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}}));
    server.request(json!(2), "tools/call", sleep);
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}}));
    let frame = server.frame();
    assert_eq!(frame["id"], json!(2), "{frame}");
    assert_eq!(failure(&frame)["code"], json!("CANCELLED"));
    // Both ids are free again, and the first call never answers.
    for id in [1, 2] {
        server.request(json!(id), "tools/call", json!({"name": "test_echo", "arguments": {"value": id}}));
        assert_eq!(server.frame()["result"]["structuredContent"], json!({"value": id}));
    }
    let stderr = server.finish();
    assert_eq!(stderr.matches("CANCELLED").count(), 2, "{stderr}");
}

#[test]
fn a_cancelled_notification_for_a_queued_direct_call_keeps_its_id_until_its_turn() {
    let mut server = Setup::fixtures().start();
    server.request(json!("first"), "test_sleep", json!({"ms": 300}));
    server.request(json!(1), "test_echo", json!({"value": "never told"}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    server.request(json!(1), "test_echo", json!({"value": "too early"}));
    assert_eq!(server.frame()["id"], json!("first"));
    let refused = server.frame();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)), "{refused}");
    assert_eq!(server.result("test_echo", json!({"value": 2})), json!({"value": 2}));
    server.finish();
}

#[test]
fn progress_comes_before_the_reply_with_its_extras_in_meta() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    let arguments = json!({"count": 600, "everyMs": 1});
    let params = json!({"name": "test_progress", "arguments": arguments, "_meta": {"progressToken": 7}});
    server.request(json!("p"), "tools/call", params);
    let mut reported = Vec::new();
    let reply = loop {
        let frame = server.frame();
        if frame.get("id").is_some() {
            break frame;
        }
        reported.push(frame["params"].clone());
    };
    assert_eq!(reply["result"]["structuredContent"], json!({"count": 600}));
    let last = reported.last().expect("progress");
    assert_eq!(
        (&last["progressToken"], &last["progress"], &last["total"]),
        (&json!(7), &json!(600), &json!(600))
    );
    assert_eq!(last["_meta"]["pintle/id"], json!("p"));
    assert_eq!(last["_meta"]["pintle/tool"], json!("test_progress"));
    assert!(last.get("tool").is_none(), "{last}");
    server.finish();
}

#[test]
fn both_dialects_share_one_pipe_and_its_ids() {
    let mut server = Setup::fixtures().start();
    assert_eq!(server.result("test_echo", json!({"value": "first"})), json!({"value": "first"}));
    initialize(&mut server, "2025-11-25");
    server.request(json!(1), "tools/call", json!({"name": "test_sleep", "arguments": {"ms": 300}}));
    server.request(json!("1"), "test_echo", json!({"value": 1}));
    let refused = server.frame();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("1"), &json!(-32600)), "{refused}");
    assert_eq!(server.frame()["result"]["structuredContent"], json!({"slept": 300}));
    assert_eq!(server.result("test_echo", json!({"value": 2})), json!({"value": 2}));
    server.finish();
}

#[test]
fn a_line_over_the_limit_is_an_error_with_its_id_if_it_can_be_read() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    let long = "x".repeat(1 << 20);
    let params = json!({"name": "test_echo", "arguments": {"value": long}});
    server.request(json!(41), "tools/call", params.clone());
    let last = format!(r#"{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"last"}}"#);
    server.write(format!("{last}\n").as_bytes());
    for id in [json!(41), json!("last")] {
        let frame = server.frame();
        assert_eq!((&frame["id"], &frame["error"]["code"]), (&id, &json!(-32600)), "{frame}");
        assert_eq!(frame["error"]["data"]["details"]["reason"], json!("payload_too_large"), "{frame}");
    }
    server.finish();
}

#[test]
fn the_end_of_input_lets_running_calls_finish() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    for id in 0..3 {
        server.request(
            json!(id),
            "tools/call",
            json!({"name": "test_sleep", "arguments": {"ms": 6_000 + id}}),
        );
    }
    server.close_stdin();
    let mut ids: Vec<u64> = (0..3).filter_map(|_| server.frame()["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_first_line_that_is_no_request_does_not_affect_later_ones() {
    let mut server = Setup::fixtures().start();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    server.request(json!(0), "tools/list", json!({}));
    assert_eq!(server.frame()["error"]["code"], json!(-32602), "no handshake, no meta");
    assert_eq!(initialize(&mut server, "2025-11-25")["protocolVersion"], json!("2025-11-25"));
    assert_eq!(
        call(&mut server, "test_echo", json!({"value": 1}))["result"]["structuredContent"],
        json!({"value": 1})
    );
    server.finish();
}

#[test]
fn many_good_and_bad_lines_get_one_reply_each() {
    const COUNT: usize = 2_000;
    let mut server = Setup::fixtures().args(["--log-level=off", "--waiting=5000"]).start();
    initialize(&mut server, "2025-11-25");
    let mut stdin = server.take_stdin();
    let writer = std::thread::spawn(move || {
        for number in 0..COUNT {
            let good = request(
                json!(number),
                "tools/call",
                json!({"name": "test_echo", "arguments": {"value": number}}),
            );
            let line = match number % 5 {
                0 => format!("{{\"broken\": {number}"),
                1 => format!("[{good}]"),
                2 => good.to_string().replace("\"jsonrpc\":\"2.0\",", ""),
                _ => good.to_string(),
            };
            writeln!(stdin, "{line}").expect("the server reads");
        }
    });
    let mut answered = vec![0; COUNT];
    let mut anonymous = 0;
    for _ in 0..COUNT {
        let frame = server.frame();
        match frame["id"].as_u64() {
            Some(id) => {
                let expected = if id % 5 == 2 { json!(-32600) } else { Value::Null };
                assert_eq!(frame["error"]["code"], expected, "{frame}");
                answered[id as usize] += 1;
            }
            None => anonymous += 1,
        }
    }
    writer.join().expect("writes");
    assert_eq!(anonymous, COUNT / 5 * 2);
    let once = answered.iter().enumerate().all(|(id, count)| *count == usize::from(id % 5 >= 2));
    assert!(once, "{answered:?}");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.remaining_frames(), Vec::<String>::new());
}

#[test]
fn a_call_can_carry_an_idempotency_key_and_a_trace() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    for id in [1, 2] {
        let params = json!({"name": "test_echo", "arguments": {"value": 1}, "_meta": meta});
        let mut message = request(json!(id), "tools/call", params);
        message["idempotencyKey"] = json!("k");
        server.send(&message);
        assert_eq!(server.frame()["result"]["structuredContent"], json!({"value": 1}));
    }
    let records = server.records(2);
    assert_eq!(records[1]["idempotency"]["cacheHit"], json!(true));
    for record in &records {
        assert_eq!((&record["traceId"], &record["route"]), (&json!(trace), &json!("tool")), "{record}");
    }
    server.finish();
}

#[test]
fn notifications_have_the_id_of_the_listening_request_and_calls_do_not_wait_for_a_listener() {
    let mut server = Setup::fixtures().start();
    let notifications = json!({"toolsListChanged": true});
    server.request(
        json!("listen:0"),
        "subscriptions/listen",
        modern(json!({"notifications": notifications})),
    );
    let id = |frame: &Value| frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!(id(&server.frame()), json!("listen:0"));
    // The SDK acknowledges before its handler listens, so the first changes may have no listener.
    const TRIES: usize = 1000;
    let notification = (0..TRIES).find_map(|number| {
        let params = modern(json!({"name": "test_trigger_tool_change", "arguments": {}}));
        server.request(json!(number), "tools/call", params);
        let frame = server.frame();
        if frame.get("id").is_none() {
            server.frame();
            return Some(frame);
        }
        assert_eq!(frame["id"], json!(number), "{frame}");
        None
    });
    let notification = notification.expect("a notification");
    assert_eq!(notification["method"], json!("notifications/tools/list_changed"), "{notification}");
    assert_eq!(id(&notification), json!("listen:0"));
    server.finish();
}

#[test]
fn a_refused_mcp_request_does_not_wait_behind_direct_calls() {
    let mut server = Setup::fixtures().start();
    initialize(&mut server, "2025-11-25");
    server.request(json!("slow"), "test_sleep", json!({"ms": 600_000}));
    // A method that needs params, an unknown method, and a line that is not JSON.
    for (id, message) in [
        (json!(1), request(json!(1), "tools/call", json!({"name": 7})).to_string()),
        (json!(2), request(json!(2), "no/such", json!({})).to_string()),
        (json!(null), "nonsense".to_owned()),
    ] {
        server.write(format!("{message}\n").as_bytes());
        let reply = server.frame();
        assert_eq!(reply["id"], id, "{reply}");
        assert!(reply["error"].is_object(), "{reply}");
    }
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "slow"}}));
    assert_eq!(server.frame()["id"], json!("slow"));
    server.finish();
}

#[test]
fn lists_completions_and_pings_do_not_wait_behind_tools() {
    let mut server = Setup::fixtures().args(["--running=1", "--waiting=0"]).start();
    initialize(&mut server, "2025-11-25");
    let arguments = json!({"count": 1, "everyMs": 600_000});
    let params = json!({"name": "test_progress", "arguments": arguments, "_meta": {"progressToken": 1}});
    server.request(json!("slow"), "tools/call", params);
    // The call occupies the only slot once it reports progress.
    assert_eq!(server.frame()["method"], json!("notifications/progress"));
    let turned_away = server.call("tools/call", json!({"name": "test_echo", "arguments": {"value": 1}}));
    assert_eq!(turned_away["result"]["isError"], json!(true), "{turned_away}");
    let completion = json!({
        "ref": {"type": "ref/resource", "uri": "list://{+path}"},
        "argument": {"name": "path", "value": ""}
    });
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", completion),
    ] {
        let reply = server.call(method, params);
        assert!(reply["result"].is_object(), "{method}: {reply}");
    }
    server.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}),
    );
    server.finish();
}

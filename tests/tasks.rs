//! MCP tasks: calls that outlive the request that made them.

use std::{fs, path::PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    commands::{shell, with_tools},
    commands_end::{marker, processes, wait_until_ended},
    support::{
        Server,
        http::{Client, initialize, modern},
        wait_until,
    },
};

const LEGACY: &str = "2025-11-25";

/// A command that reports that it has begun and ends with a result when the file `go` exists in the root.
fn gate() -> String {
    shell("echo begun >&2; while [ ! -e go ]; do sleep 0.02; done; echo done")
}

/// A command that runs until it is killed.
fn endless(marker: &str) -> String {
    shell(&format!("sh -c \"touch ready; sleep 300; :\" {marker}; :"))
}

fn open_gate(server: &Server) {
    fs::write(server.path("root/go"), "").expect("writes");
}

fn wait_until_begun(server: &Server) {
    let ready: PathBuf = server.path("root/ready");
    wait_until("the command runs", || ready.exists());
}

/// Params that declare that the client supports tasks.
fn declaring(mut params: Value) -> Value {
    let extensions = json!({"io.modelcontextprotocol/tasks": {}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": extensions});
    params
}

fn call(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

/// A request about a task in 2026-07-28, on its own connection.
fn ask(server: &Server, method: &str, id: &str) -> Value {
    server.connect().modern(json!(1), method, declaring(json!({"taskId": id}))).message()
}

/// The id of the task that a call becomes in 2026-07-28. The connection is closed as soon as the id is known.
fn task_of(server: &Server, tool: &str) -> String {
    let mut client = server.connect();
    let created = client.modern(json!(1), "tools/call", declaring(call(tool))).result();
    client.disconnect();
    assert_eq!(created["resultType"], json!("task"), "{created}");
    assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &json!(3_600_000)), "{created}");
    created["taskId"].as_str().expect("an id").to_owned()
}

/// The log records of the calls of a tool.
fn records_of(server: &Server, count: usize, tool: &str) -> Vec<Value> {
    server.records_of(count, |record| record["method"] == tool)
}

/// A client of 2025-11-25, on a pipe or in a session.
enum Legacy {
    Pipe,
    Session(Client),
}

impl Legacy {
    fn open(server: &mut Server, is_http: bool) -> (Self, Value) {
        if is_http {
            let handshake = server.connect().post("/mcp", &initialize(LEGACY)).result();
            return (Self::Session(server.session(LEGACY)), handshake);
        }
        server.send(&initialize(LEGACY));
        let handshake = server.frame()["result"].clone();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (Self::Pipe, handshake)
    }

    fn send(&mut self, server: &mut Server, id: i64, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match self {
            Self::Pipe => server.send(&message),
            Self::Session(client) => client.send("POST", "/mcp", &[], message.to_string().as_bytes()),
        }
    }

    fn reply(&mut self, server: &Server) -> Value {
        match self {
            Self::Pipe => server.frame(),
            Self::Session(client) => client.answer().message(),
        }
    }

    fn ask(&mut self, server: &mut Server, method: &str, params: Value) -> Value {
        self.send(server, 1, method, params);
        self.reply(server)
    }

    /// Calls a tool as a task. Returns the task.
    fn task(&mut self, server: &mut Server, tool: &str, task: Value) -> Value {
        let mut params = call(tool);
        params["task"] = task;
        let reply = self.ask(server, "tools/call", params);
        assert!(reply["result"]["task"].is_object(), "{reply}");
        reply["result"]["task"].clone()
    }
}

fn legacy_on_pipe(server: &mut Server) -> Legacy {
    Legacy::open(server, false).0
}

#[test]
fn a_long_call_becomes_a_task_that_outlives_its_connection_and_can_be_polled_on_another() {
    let server = with_tools([("gate", &gate())]).http().start();
    let discovered = server.connect().modern(json!(1), "server/discover", json!({})).result();
    let extensions = &discovered["capabilities"]["extensions"];
    assert_eq!(extensions, &json!({"io.modelcontextprotocol/tasks": {}}), "{discovered}");
    assert!(discovered["capabilities"].get("tasks").is_none(), "{discovered}");

    let id = task_of(&server, "gate");
    let task = ask(&server, "tasks/get", &id)["result"].clone();
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("working"), &json!("begun")), "{task}");
    open_gate(&server);
    let mut task = Value::Null;
    wait_until("the task has ended", || {
        task = ask(&server, "tasks/get", &id)["result"].clone();
        task["status"] != "working"
    });
    assert_eq!((&task["status"], &task["resultType"]), (&json!("completed"), &json!("complete")), "{task}");
    let expected = json!({"stdout": "done\n", "stderr": "begun\n", "exitCode": 0, "truncated": false});
    assert_eq!(task["result"]["structuredContent"], expected, "{task}");
    assert!(task["result"].get("_meta").is_none(), "{task}");
    // A task that has ended is not changed by a cancel.
    assert_eq!(ask(&server, "tasks/cancel", &id)["result"], json!({"resultType": "complete"}));
    assert_eq!(ask(&server, "tasks/get", &id)["result"]["status"], json!("completed"));
    let records = records_of(&server, 1, "gate");
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["status"], json!("ok"));
    assert!(server.records_of(1, |record| record["method"] == "tasks/get").len() >= 2);
}

#[test]
fn cancelling_a_task_kills_its_command() {
    let marker = marker();
    let server = with_tools([("endless", &endless(&marker))]).http().start();
    let id = task_of(&server, "endless");
    assert!(!processes(&marker).is_empty());
    assert_eq!(ask(&server, "tasks/cancel", &id)["result"], json!({"resultType": "complete"}));
    let task = ask(&server, "tasks/get", &id)["result"].clone();
    assert_eq!(task["status"], json!("cancelled"), "{task}");
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
    wait_until_ended(&marker);
    let records = records_of(&server, 1, "endless");
    assert_eq!((records.len(), &records[0]["error"]), (1, &json!("CANCELLED")), "{records:?}");
}

#[test]
fn a_client_that_does_not_declare_tasks_gets_a_plain_result_and_no_answers_about_tasks() {
    let server = with_tools([("slow", &shell("sleep 2.2; echo done"))]).http().start();
    let result = server.connect().modern(json!(1), "tools/call", call("slow")).result();
    assert_eq!(result["resultType"], json!("complete"), "{result}");
    assert_eq!(result["structuredContent"]["stdout"], json!("done\n"), "{result}");
    let refused = server.connect().modern(json!(1), "tasks/get", json!({"taskId": "x"}));
    assert_eq!(refused.refusal().1, -32021);
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(ask(&server, method, "unknown")["error"]["code"], json!(-32602), "{method}");
    }
    let update = declaring(json!({"taskId": "unknown", "inputResponses": {}}));
    assert_eq!(server.connect().modern(json!(1), "tasks/update", update).refusal().1, -32602);
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(ask(&server, method, "unknown")["error"]["code"], json!(-32601), "{method}");
    }
}

#[test]
fn a_requested_task_follows_the_rules_of_2025_11_25_on_pipes_and_in_sessions() {
    for is_http in [false, true] {
        let fails = shell("exit 3");
        let setup = with_tools([("gate", &gate()), ("fails", &fails)]);
        let mut server = if is_http { setup.http() } else { setup }.start();
        let (mut client, handshake) = Legacy::open(&mut server, is_http);
        let capability = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        assert_eq!(handshake["capabilities"]["tasks"], capability, "{handshake}");
        assert!(handshake["capabilities"].get("extensions").is_none(), "{handshake}");
        let tools = client.ask(&mut server, "tools/list", json!({}))["result"]["tools"].clone();
        for tool in tools.as_array().expect("tools") {
            let may_be_task = ["gate", "fails", "index_build"].iter().any(|name| tool["name"] == *name);
            let expected = may_be_task.then(|| json!({"taskSupport": "optional"}));
            assert_eq!(tool.get("execution"), expected.as_ref(), "{tool}");
            assert!(tool["_meta"].get("pintle/taskSupport").is_none(), "{tool}");
        }

        let task = client.task(&mut server, "gate", json!({"ttl": 600_000_000}));
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(3_600_000)), "{task}");
        assert!(task["pollInterval"].is_u64() && task.get("ttlMs").is_none(), "{task}");
        let id = task["taskId"].clone();
        let listed = client.ask(&mut server, "tasks/list", json!({}));
        assert_eq!(listed["result"]["tasks"][0]["taskId"], id, "{listed}");
        // The request for the result waits.
        client.send(&mut server, 7, "tasks/result", json!({"taskId": id}));
        open_gate(&server);
        let reply = client.reply(&server);
        assert_eq!(reply["id"], json!(7), "{reply}");
        let result = &reply["result"];
        assert_eq!(result["structuredContent"]["stdout"], json!("done\n"), "{reply}");
        assert_eq!(
            result["_meta"],
            json!({"io.modelcontextprotocol/related-task": {"taskId": id}}),
            "{reply}"
        );
        assert!(result.get("resultType").is_none(), "{reply}");
        let state = client.ask(&mut server, "tasks/get", json!({"taskId": id}));
        assert_eq!(state["result"]["status"], json!("completed"), "{state}");
        assert!(state["result"].get("result").is_none(), "{state}");
        let late = client.ask(&mut server, "tasks/cancel", json!({"taskId": id}));
        assert_eq!(late["error"]["code"], json!(-32602), "{late}");

        // If the tool fails, the task fails.
        let failing = client.task(&mut server, "fails", json!({}))["taskId"].clone();
        let result = client.ask(&mut server, "tasks/result", json!({"taskId": failing}));
        assert_eq!(result["result"]["isError"], json!(true), "{result}");
        let state = client.ask(&mut server, "tasks/get", json!({"taskId": failing}));
        assert_eq!(state["result"]["status"], json!("failed"), "{state}");

        // A tool that cannot be a task is refused, and so is an invalid time to live.
        for (tool, task, code) in [("text_read", json!({}), -32601), ("gate", json!({"ttl": -1}), -32602)] {
            let mut params = call(tool);
            params["task"] = task;
            let refused = client.ask(&mut server, "tools/call", params);
            assert_eq!(refused["error"]["code"], json!(code), "{refused}");
        }
        let unknown = client.ask(&mut server, "tasks/result", json!({"taskId": "unknown"}));
        assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown}");
        assert_eq!(records_of(&server, 1, "gate").len(), 1);
        if !is_http {
            server.finish();
        }
    }
}

#[test]
fn a_cancelled_task_has_that_status_at_once_and_its_result_is_the_cancel() {
    let marker = marker();
    let mut server = with_tools([("endless", &endless(&marker))]).start();
    let mut client = legacy_on_pipe(&mut server);
    let id = client.task(&mut server, "endless", json!({}))["taskId"].clone();
    wait_until_begun(&server);
    let cancelled = client.ask(&mut server, "tasks/cancel", json!({"taskId": id}));
    assert_eq!(cancelled["result"]["status"], json!("cancelled"), "{cancelled}");
    wait_until_ended(&marker);
    let result = client.ask(&mut server, "tasks/result", json!({"taskId": id}));
    let text = result["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("CANCELLED"), "{result}");
    server.finish();
}

#[test]
fn a_task_expires_and_is_cancelled_if_it_still_runs() {
    let marker = marker();
    let mut server = with_tools([("endless", &endless(&marker)), ("quick", &shell("echo done"))]).start();
    let mut client = legacy_on_pipe(&mut server);
    for (tool, ttl) in [("quick", 100), ("endless", 400)] {
        let task = client.task(&mut server, tool, json!({"ttl": ttl}));
        assert_eq!(task["ttl"], json!(ttl), "{task}");
        let id = task["taskId"].clone();
        wait_until("the task has expired", || {
            let state = client.ask(&mut server, "tasks/get", json!({"taskId": id}));
            state["error"]["code"] == json!(-32602)
        });
    }
    wait_until_ended(&marker);
    let listed = client.ask(&mut server, "tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
    let records = records_of(&server, 1, "endless");
    assert_eq!((records.len(), &records[0]["error"]), (1, &json!("CANCELLED")), "{records:?}");
    server.finish();
}

#[test]
fn two_pipes_do_not_see_each_other_s_tasks() {
    let mut servers = [(); 2].map(|()| with_tools([("gate", &gate())]).start());
    let [one, other] = &mut servers;
    let (mut client, mut stranger) = (legacy_on_pipe(one), legacy_on_pipe(other));
    let id = client.task(one, "gate", json!({}))["taskId"].clone();
    let known = client.ask(one, "tasks/get", json!({"taskId": id}));
    assert_eq!(known["result"]["status"], json!("working"), "{known}");
    let strange = stranger.ask(other, "tasks/get", json!({"taskId": id}));
    let unknown = stranger.ask(other, "tasks/get", json!({"taskId": "unknown"}));
    assert_eq!(strange["error"]["code"], json!(-32602));
    assert_eq!(strange, unknown);
    assert_eq!(stranger.ask(other, "tasks/list", json!({}))["result"]["tasks"], json!([]));
    servers.into_iter().for_each(|server| drop(server.finish()));
}

#[test]
fn the_end_of_a_pipe_s_input_cancels_its_tasks() {
    let marker = marker();
    let mut server = with_tools([("endless", &endless(&marker))]).start();
    let mut client = legacy_on_pipe(&mut server);
    client.task(&mut server, "endless", json!({}));
    wait_until_begun(&server);
    let log = server.finish();
    wait_until_ended(&marker);
    let records: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let calls: Vec<_> = records.iter().filter(|record| record["method"] == "endless").collect();
    assert_eq!(calls.len(), 1, "{log}");
    assert_eq!(calls[0]["error"], json!("CANCELLED"), "{log}");
}

#[test]
fn a_server_that_stops_lets_tasks_end_within_the_drain_and_cancels_them_after_it() {
    for is_http in [false, true] {
        let marker = marker();
        let manifests = [("gate", gate()), ("endless", endless(&marker))];
        let setup = with_tools([("gate", &manifests[0].1), ("endless", &manifests[1].1)]);
        let setup = setup.args(["--drain", "3s"]);
        let mut server = if is_http { setup.http() } else { setup }.start();
        let mut client = Legacy::open(&mut server, is_http).0;
        client.task(&mut server, "gate", json!({}));
        client.task(&mut server, "endless", json!({}));
        wait_until_begun(&server);
        server.signal(Signal::TERM);
        open_gate(&server);
        assert_eq!(records_of(&server, 1, "gate")[0]["status"], json!("ok"));
        assert!(server.is_running());
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(records_of(&server, 1, "endless")[0]["error"], json!("CANCELLED"));
        wait_until_ended(&marker);
    }
}

#[test]
fn a_caller_has_at_most_64_tasks_and_ended_ones_are_evicted() {
    let mut server = with_tools([("gate", &gate())]).start();
    let mut client = legacy_on_pipe(&mut server);
    for _ in 0..64 {
        client.task(&mut server, "gate", json!({}));
    }
    let mut params = call("gate");
    params["task"] = json!({});
    let refused = client.ask(&mut server, "tools/call", params);
    assert_eq!(refused["error"]["data"]["code"], json!("QUEUE_OVERLOADED"), "{refused}");
    open_gate(&server);
    let first = client.ask(&mut server, "tasks/list", json!({}))["result"]["tasks"][0]["taskId"].clone();
    let ended = client.ask(&mut server, "tasks/result", json!({"taskId": first}));
    assert_eq!(ended["result"]["structuredContent"]["exitCode"], json!(0), "{ended}");
    let last = client.task(&mut server, "gate", json!({}))["taskId"].clone();
    let listed = client.ask(&mut server, "tasks/list", json!({}))["result"]["tasks"].clone();
    let listed = listed.as_array().expect("tasks");
    assert_eq!(listed.len(), 64);
    assert_eq!(listed[63]["taskId"], last);
    let state = client.ask(&mut server, "tasks/result", json!({"taskId": last}));
    assert_eq!(state["result"]["structuredContent"]["exitCode"], json!(0), "{state}");
    server.finish();
}

#[test]
fn building_the_index_can_be_a_task() {
    let mut server = with_tools([("gate", &gate())]).start();
    fs::write(server.path("root/a.txt"), "needle\n").expect("writes");
    let mut legacy = legacy_on_pipe(&mut server);
    let task = legacy.task(&mut server, "index_build", json!({"ttl": 60_000}));
    assert_eq!(task["ttl"], json!(60_000), "{task}");
    let result = legacy.ask(&mut server, "tasks/result", json!({"taskId": task["taskId"]}));
    let built = &result["result"]["structuredContent"];
    assert_eq!((&built["files"], &built["generation"]), (&json!(1), &json!(1)), "{result}");
    assert_eq!(records_of(&server, 1, "index_build").len(), 1);
    server.finish();
}

#[test]
fn a_long_call_on_a_pipe_becomes_a_task_in_2026_07_28_too() {
    let mut server = with_tools([("gate", &gate())]).start();
    let mut ask = |method: &str, params: Value| {
        let message = modern(json!(1), method, declaring(params));
        server.send(&message);
        server.frame()["result"].clone()
    };
    let created = ask("tools/call", call("gate"));
    assert_eq!(created["resultType"], json!("task"), "{created}");
    let id = created["taskId"].clone();
    assert_eq!(ask("tasks/get", json!({"taskId": id}))["status"], json!("working"));
    assert_eq!(ask("tasks/cancel", json!({"taskId": id})), json!({"resultType": "complete"}));
    assert_eq!(ask("tasks/get", json!({"taskId": id}))["status"], json!("cancelled"));
    server.finish();
}

#[test]
fn a_call_that_runs_when_the_input_ends_is_answered_with_its_result_and_not_with_a_task() {
    // Longer than the two seconds after which a call becomes a task.
    let mut server = with_tools([("slow", &shell("sleep 3; echo done"))]).start();
    server.send(&modern(json!(1), "tools/call", declaring(call("slow"))));
    server.close_stdin();
    let reply = server.frame();
    assert_eq!(reply["result"]["structuredContent"]["stdout"], json!("done\n"), "{reply}");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_ping_and_a_cancel_do_not_wait_behind_requests_that_wait_for_results() {
    let marker = marker();
    let mut server = with_tools([("endless", &endless(&marker))]).start();
    let mut client = legacy_on_pipe(&mut server);
    let task = client.task(&mut server, "endless", json!({}));
    for number in 0..400 {
        client.send(&mut server, 1000 + number, "tasks/result", json!({"taskId": task["taskId"]}));
    }
    client.send(&mut server, 2, "ping", json!({}));
    client.send(&mut server, 3, "tasks/cancel", json!({"taskId": task["taskId"]}));
    // Only the cancel ends the task, so it was read although all requests before it wait.
    let (mut refused, mut pongs, mut cancels) = (0, 0, 0);
    for _ in 0..402 {
        let reply = server.frame();
        match reply["id"].as_i64() {
            Some(2) => pongs += 1,
            Some(3) => cancels += 1,
            _ => refused += i32::from(reply["error"]["data"]["code"] == "QUEUE_OVERLOADED"),
        }
    }
    assert_eq!((pongs, cancels), (1, 1));
    assert!(refused > 0, "only so many requests may wait for results");
    wait_until_ended(&marker);
}

#[test]
fn a_request_that_waits_for_a_result_can_be_cancelled_and_has_a_deadline() {
    let marker = marker();
    let mut server =
        with_tools([("endless", &endless(&marker))]).args(["--timeout", "1s,endless=60s"]).start();
    let mut client = legacy_on_pipe(&mut server);
    let task = client.task(&mut server, "endless", json!({}));
    let waiting = json!({"taskId": task["taskId"]});
    client.send(&mut server, 7, "tasks/result", waiting.clone());
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}));
    let reply = server.frame();
    assert_eq!((&reply["id"], &reply["error"]["data"]["code"]), (&json!(7), &json!("CANCELLED")), "{reply}");
    let status = client.ask(&mut server, "tasks/get", waiting.clone());
    assert_eq!(status["result"]["status"], json!("working"), "{status}");
    let late = client.ask(&mut server, "tasks/result", waiting);
    assert_eq!(late["error"]["data"]["code"], json!("TOOL_TIMEOUT"), "{late}");
}

#[test]
fn a_call_that_is_refused_makes_no_task() {
    let mut server = with_tools([("slow", &shell("echo done"))]).start();
    let mut client = legacy_on_pipe(&mut server);
    let mut ask = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments, "task": {}});
        client.ask(&mut server, "tools/call", params)
    };
    let wrong = ask("slow", json!({"unknown": 1}));
    assert_eq!((&wrong["result"]["isError"], wrong["result"].get("task")), (&json!(true), None), "{wrong}");
    let cannot = ask("text_read", json!({"path": "a"}));
    assert_eq!(cannot["error"]["code"], json!(-32601), "{cannot}");
    assert_eq!(cannot["error"]["message"], json!("this tool cannot be called as a task"), "{cannot}");
    let unknown = ask("nothing", json!({}));
    assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown}");
    let listed = client.ask(&mut server, "tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
}

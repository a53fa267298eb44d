//! Every revision of MCP: each frame that the server writes is valid against the official JSON Schema of the revision
//! in use.
//!
//! The schemas are fetched by `scripts/mcp-schemas`. An error whose id could not be read has `id: null`, as JSON-RPC
//! requires; the schemas have no such id, so these replies are not validated. The reply to a fractional id is not
//! validated either: no revision allows one, and the refusal repeats it to identify the request.

use std::{collections::HashMap, fs, path::Path};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::{Answer, Client, MODERN, initialize, modern},
    request,
};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

/// One revision's schema.
struct Revision {
    name: &'static str,
    document: Value,
    /// The member of the document that has its definitions.
    definitions_key: &'static str,
    validators: HashMap<String, Validator>,
}

impl Revision {
    fn load(name: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/mcp-schemas");
        let text = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap_or_else(|error| {
            panic!("the schema of {name} is missing ({error}): run scripts/mcp-schemas")
        });
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let definitions_key = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        Self { name, document, definitions_key, validators: HashMap::new() }
    }

    fn defines(&self, definition: &str) -> bool {
        self.document[self.definitions_key].get(definition).is_some()
    }

    /// The errors of a value against a definition.
    fn problems(&mut self, definition: &str, value: &Value) -> Vec<String> {
        if !self.validators.contains_key(definition) {
            assert!(self.defines(definition), "{} has no {definition}", self.name);
            let mut schema = self.document.clone();
            schema["$ref"] = json!(format!("#/{}/{definition}", self.definitions_key));
            let validator = jsonschema::options().should_validate_formats(true).build(&schema);
            self.validators.insert(definition.to_owned(), validator.expect("a schema"));
        }
        let errors = self.validators[definition].iter_errors(value);
        errors.map(|error| format!("{definition}: {}: {error}", error.instance_path())).collect()
    }

    /// The errors of a frame that the server wrote in answer to this method or while it ran.
    fn judge(&mut self, method: &str, frame: &Value) -> Vec<String> {
        let is_old = !self.defines("JSONRPCErrorResponse");
        let mut definitions = Vec::new();
        let mut problems = Vec::new();
        if let Some(result) = frame.get("result") {
            definitions.push(if is_old { "JSONRPCResponse" } else { "JSONRPCResultResponse" });
            problems.extend(self.problems(result_definition(method), result));
        } else if let Some(error) = frame.get("error") {
            if frame["id"].is_null() {
                return problems;
            }
            definitions.push(if is_old { "JSONRPCError" } else { "JSONRPCErrorResponse" });
            let own = match error["code"].as_i64() {
                Some(-32020) => Some("HeaderMismatchError"),
                Some(-32021) => Some("MissingRequiredClientCapabilityError"),
                Some(-32022) => Some("UnsupportedProtocolVersionError"),
                _ => None,
            };
            definitions.extend(own.filter(|own| self.defines(own)));
        } else {
            definitions.extend(["JSONRPCNotification", "ServerNotification"]);
        }
        definitions.push("JSONRPCMessage");
        problems.extend(definitions.into_iter().flat_map(|definition| self.problems(definition, frame)));
        problems
    }
}

fn result_definition(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "ping" => "EmptyResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        other => panic!("{other} has no result"),
    }
}

/// The expected outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Result,
    Error,
    /// A result, after at least one notification.
    Progress,
}

/// The requests that are sent in every revision.
fn requests() -> Vec<(&'static str, Value, End)> {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let progress = |token: Value| {
        let arguments = json!({"count": 3, "everyMs": 300});
        json!({"name": "test_progress", "arguments": arguments, "_meta": {"progressToken": token}})
    };
    let complete =
        |name: &str, reference: Value| json!({"ref": reference, "argument": {"name": name, "value": "l"}});
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    vec![
        ("tools/list", json!({}), End::Result),
        ("tools/call", call("test_echo", json!({"value": {"a": [1, null, "é"]}})), End::Result),
        ("tools/call", call("list_schemas", json!({})), End::Result),
        ("tools/call", call("validate_asset", json!({"asset": {}, "schema": "lamp"})), End::Result),
        ("tools/call", call("diff_assets", json!({"base": {}, "new": {"a": 1}})), End::Result),
        ("tools/call", json!({"name": "list_examples"}), End::Result),
        // A failure of a tool is a result that a model can read.
        ("tools/call", call("get_schema", json!({"name": "nothing"})), End::Result),
        ("tools/call", call("populate_backend", json!({"asset": {}})), End::Result),
        ("tools/call", call("file.list", json!({})), End::Result),
        ("tools/call", call("text.read", json!({"path": "none.txt"})), End::Result),
        ("tools/call", call("test_panic", json!({})), End::Result),
        ("tools/call", call("test_bad_output", json!({})), End::Result),
        ("tools/call", call("test_sleep", json!({"ms": 600_000})), End::Result),
        ("tools/call", call("test_echo", json!({"valu": 1})), End::Result),
        ("tools/call", call("get_schema", json!({"name": 7})), End::Result),
        ("tools/call", call("no_such_tool", json!({})), End::Error),
        ("tools/call", call("test_echo", json!([1])), End::Error),
        ("tools/call", json!({"arguments": {}}), End::Error),
        ("tools/call", progress(json!(7)), End::Progress),
        ("tools/call", progress(json!("seven")), End::Progress),
        ("resources/list", json!({}), End::Result),
        ("resources/templates/list", json!({}), End::Result),
        ("resources/read", json!({"uri": "schema://lamp"}), End::Result),
        ("resources/read", json!({"uri": "example://lamp/broken.json"}), End::Result),
        ("resources/read", json!({"uri": "list:///"}), End::Result),
        ("resources/read", json!({"uri": "list:///none"}), End::Error),
        ("resources/read", json!({"uri": "schema://nothing"}), End::Error),
        ("resources/read", json!({"uri": "nothing://lamp"}), End::Error),
        ("resources/read", json!({}), End::Error),
        ("completion/complete", complete("name", template("schema://{name}")), End::Result),
        ("completion/complete", complete("path", template("example://{+path}")), End::Result),
        ("completion/complete", complete("path", template("list://{+path}")), End::Result),
        ("completion/complete", complete("name", template("nothing://{name}")), End::Error),
        ("completion/complete", complete("name", json!({"type": "ref/prompt", "name": "x"})), End::Error),
        ("nothing/here", json!({}), End::Error),
    ]
}

/// Malformed frames, each with an id that can be read.
fn malformed(good: &Value) -> Vec<String> {
    let changed = |member: &str, value: Value| {
        let mut frame = good.clone();
        frame[member] = value;
        frame.to_string()
    };
    let with_arguments = |arguments: &str| {
        let mut frame = good.clone();
        frame["params"]["arguments"] = json!("HERE");
        frame.to_string().replace(r#""HERE""#, arguments)
    };
    vec![
        changed("jsonrpc", json!("1.0")),
        changed("params", json!([1])),
        changed("params", json!("text")),
        changed("extra", json!(true)),
        changed("meta", json!({"colour": "red"})),
        changed("idempotencyKey", json!("")),
        with_arguments(r#"{"value":1e400}"#),
        with_arguments(r#"{"value":123456789012345678901}"#),
        with_arguments(r#"{"value":"\ud800"}"#),
        with_arguments(&format!(r#"{{"value":{}{}}}"#, "[".repeat(500), "]".repeat(500))),
    ]
}

/// The tools of a server. The test tools also have prompts and resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tools {
    Product,
    Fixtures,
}

/// A client of one revision that validates all frames that it receives.
struct Judge {
    revision: Revision,
    server: Server,
    client: Option<Client>,
    next_id: u64,
    judged: usize,
    wrong: Vec<String>,
}

impl Judge {
    fn new(name: &'static str, over_http: bool, tools: Tools) -> Self {
        let setup = match tools {
            Tools::Product => Setup::assets(),
            Tools::Fixtures => Setup::assets().args(["--fixtures", "--timeout=test_sleep=50ms"]),
        };
        let server = if over_http { setup.http().start() } else { setup.start() };
        let client = over_http.then(|| server.connect());
        let revision = Revision::load(name);
        Self { revision, server, client, next_id: 0, judged: 0, wrong: Vec::new() }
    }

    fn is_modern(&self) -> bool {
        self.revision.name == MODERN
    }

    /// The handshake, or the discovery of the stateless revision.
    fn connect(&mut self) {
        if self.is_modern() {
            self.ask("server/discover", json!({}), End::Result);
            return;
        }
        let hello = initialize(self.revision.name);
        let frames = match &mut self.client {
            None => self.exchange_on_pipe(&hello.to_string()),
            Some(client) => {
                let answer = client.post("/mcp", &hello);
                let id = answer.header("mcp-session-id").expect("a session").to_owned();
                client.set("mcp-session-id", &id).set("mcp-protocol-version", self.revision.name);
                frames(&answer)
            }
        };
        assert_eq!(frames[0]["result"]["protocolVersion"], json!(self.revision.name));
        self.check("initialize", &frames, End::Result);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        match &mut self.client {
            None => self.server.send(&initialized),
            Some(client) => assert_eq!(client.post("/mcp", &initialized).status, 202),
        }
        self.ask("ping", json!({}), End::Result);
    }

    fn message(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        // Ids are numbers and strings in turn.
        let id = if self.next_id.is_multiple_of(2) {
            json!(self.next_id)
        } else {
            json!(format!("id {}", self.next_id))
        };
        if self.is_modern() { modern(id, method, params) } else { request(id, method, params) }
    }

    fn ask(&mut self, method: &str, params: Value, end: End) {
        let message = self.message(method, params);
        let frames = self.exchange(&message, &message.to_string());
        let reply = frames.last().expect("a reply");
        assert_eq!(reply["id"], message["id"], "{}: {method}", self.revision.name);
        self.check(method, &frames, end);
    }

    /// Sends a frame and returns all frames that come back; over HTTP the headers are those of `message`.
    fn exchange(&mut self, message: &Value, frame: &str) -> Vec<Value> {
        let is_modern = self.is_modern();
        let Some(client) = &mut self.client else { return self.exchange_on_pipe(frame) };
        let mut headers = Vec::new();
        if is_modern {
            headers.extend([
                ("mcp-protocol-version", MODERN),
                ("mcp-method", message["method"].as_str().unwrap_or("-")),
            ]);
            let name = ["name", "uri"].iter().find_map(|member| message["params"][*member].as_str());
            headers.extend(name.map(|name| ("mcp-name", name)));
        }
        client.send("POST", "/mcp", &headers, frame.as_bytes());
        frames(&client.answer())
    }

    fn exchange_on_pipe(&mut self, frame: &str) -> Vec<Value> {
        self.server.write(format!("{frame}\n").as_bytes());
        let mut frames = vec![self.server.frame()];
        while frames.last().is_some_and(|frame| frame.get("id").is_none()) {
            frames.push(self.server.frame());
        }
        frames
    }

    fn check(&mut self, method: &str, frames: &[Value], end: End) {
        let reply = frames.last().expect("a reply");
        let found = match (reply.get("result").is_some(), frames.len()) {
            (false, _) => End::Error,
            (true, 1) => End::Result,
            (true, _) => End::Progress,
        };
        if found != end {
            self.wrong.push(format!("{}: {method} should end with {end:?}: {reply}", self.revision.name));
        }
        for frame in frames {
            self.judged += 1;
            for problem in self.revision.judge(method, frame) {
                let head: String = frame.to_string().chars().take(600).collect();
                self.wrong.push(format!("{}: {method}: {problem}\n  in {head}", self.revision.name));
            }
        }
    }

    /// Sends all requests.
    fn send_all(&mut self, tools: Tools) {
        self.connect();
        for (method, params, end) in requests() {
            let is_test = params["name"].as_str().is_some_and(|name| name.starts_with("test_"));
            if tools == Tools::Fixtures || !is_test {
                self.ask(method, params, end);
            }
        }
        if tools == Tools::Product {
            self.ask("prompts/list", json!({}), End::Error);
            self.ask("logging/setLevel", json!({"level": "info"}), End::Error);
        }
        let good = self.message("tools/call", json!({"name": "list_schemas", "arguments": {}}));
        for frame in malformed(&good) {
            let frames = self.exchange(&good, &frame);
            assert_eq!(frames[0]["id"], good["id"], "the id can be read: {frame}");
            self.check("tools/call", &frames, End::Error);
        }
    }

    /// Sends all requests on one transport in one revision. Returns the number of frames and their errors.
    fn run(name: &'static str, over_http: bool) -> (usize, Vec<String>) {
        let (mut judged, mut wrong) = (0, Vec::new());
        for tools in [Tools::Product, Tools::Fixtures] {
            let mut judge = Self::new(name, over_http, tools);
            judge.send_all(tools);
            judged += judge.judged;
            wrong.extend(judge.wrong);
        }
        (judged, wrong)
    }
}

/// The messages of a response, one or more.
fn frames(answer: &Answer) -> Vec<Value> {
    let texts: Vec<&str> = match answer.header("content-type") {
        Some("text/event-stream") => {
            let data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
            data.filter(|text| !text.is_empty()).collect()
        }
        _ => vec![&answer.body],
    };
    texts
        .into_iter()
        .map(|text| serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer:?}")))
        .collect()
}

/// Tests every revision in parallel.
fn run_all(over_http: bool) {
    let runs = REVISIONS.map(|name| std::thread::spawn(move || Judge::run(name, over_http)));
    let mut wrong = Vec::new();
    for (name, run) in REVISIONS.into_iter().zip(runs) {
        let (judged, found) = run.join().expect("a run without a panic");
        println!("{name}: {judged} frames");
        assert!(judged > 2 * requests().len(), "only {judged} frames");
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_frame_on_standard_output_is_valid_in_its_revision() {
    run_all(false);
}

#[test]
fn every_frame_over_http_is_valid_in_its_revision() {
    run_all(true);
}

#[test]
fn a_line_over_the_limit_is_answered_with_a_valid_error_in_every_revision() {
    for name in REVISIONS {
        let mut judge = Judge::new(name, false, Tools::Fixtures);
        judge.connect();
        let long = "x".repeat(1 << 20);
        let message = judge.message("tools/call", json!({"name": "test_echo", "arguments": {"value": long}}));
        let frames = judge.exchange(&message, &message.to_string());
        assert_eq!(frames[0]["id"], message["id"]);
        judge.check("tools/call", &frames, End::Error);
        assert!(judge.wrong.is_empty(), "{:?}", judge.wrong);
    }
}

#[test]
fn errors_that_the_stateless_revision_defines_are_as_it_defines_them() {
    let unknown = "2999-01-01";
    for over_http in [false, true] {
        let mut judge = Judge::new(MODERN, over_http, Tools::Product);
        let mut message = judge.message("tools/list", json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(unknown);
        let frames = match &mut judge.client {
            None => judge.exchange_on_pipe(&message.to_string()),
            Some(client) => {
                let headers = [("mcp-protocol-version", unknown), ("mcp-method", "tools/list")];
                client.send("POST", "/mcp", &headers, message.to_string().as_bytes());
                frames(&client.answer())
            }
        };
        assert_eq!(frames[0]["error"]["code"], json!(-32022), "{frames:?}");
        judge.check("tools/list", &frames, End::Error);
        assert!(judge.wrong.is_empty(), "{}", judge.wrong.join("\n"));
    }

    let mut judge = Judge::new(MODERN, true, Tools::Product);
    let message = judge.message("tools/list", json!({}));
    let client = judge.client.as_mut().expect("HTTP");
    // A header that disagrees with the body, and a header that names an unknown revision.
    for (headers, number, frame) in [
        (vec![("mcp-protocol-version", MODERN), ("mcp-method", "ping")], -32020, message.clone()),
        (vec![("mcp-protocol-version", "1999-01-01")], -32022, request(json!(1), "tools/list", json!({}))),
    ] {
        client.send("POST", "/mcp", &headers, frame.to_string().as_bytes());
        let answer = client.answer();
        assert_eq!(answer.refusal(), (400, number), "{answer:?}");
        let problems = judge.revision.judge("tools/list", &answer.message());
        assert!(problems.is_empty(), "{answer:?}\n{}", problems.join("\n"));
    }
}

/// The validation has to find errors.
#[test]
fn a_broken_frame_is_found_in_every_revision() {
    for name in REVISIONS {
        let mut revision = Revision::load(name);
        let mut result = json!({"content": [{"type": "text", "text": "x"}]});
        let mut listed = json!({"tools": []});
        let mut read = json!({"contents": [{"uri": "schema://lamp", "text": "{}"}]});
        if name == MODERN {
            for result in [&mut result, &mut listed, &mut read] {
                result["resultType"] = json!("complete");
            }
            for result in [&mut listed, &mut read] {
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
        }
        let reply = |result: &Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}});
        let params = json!({"progressToken": 1, "progress": 1});
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        for (method, frame) in [
            ("tools/call", &reply(&result)),
            ("tools/list", &reply(&listed)),
            ("resources/read", &reply(&read)),
            ("ping", &error),
            ("ping", &notification),
        ] {
            let problems = revision.judge(method, frame);
            assert!(problems.is_empty(), "{name}: {frame}: {problems:?}");
        }

        let changed = |frame: &Value, pointer: &str, value: Value| {
            let mut frame = frame.clone();
            *frame.pointer_mut(pointer).expect("a member of the frame") = value;
            frame
        };
        let mut broken = vec![
            ("tools/call", changed(&reply(&result), "/jsonrpc", json!("1.0"))),
            ("tools/call", changed(&reply(&result), "/id", json!(1.5))),
            ("tools/call", changed(&reply(&result), "/id", json!(null))),
            ("tools/call", changed(&reply(&result), "/result/content/0/type", json!("words"))),
            ("tools/call", changed(&reply(&result), "/result/content/0/text", json!(7))),
            ("tools/call", changed(&reply(&result), "/result/content", json!("x"))),
            ("tools/list", reply(&result)),
            ("tools/list", changed(&reply(&listed), "/result/tools", json!([{"name": "x"}]))),
            ("resources/read", changed(&reply(&read), "/result/contents/0/uri", json!("not an address"))),
            ("resources/read", changed(&reply(&read), "/result/contents/0/text", json!(null))),
            ("ping", changed(&error, "/error/code", json!("INTERNAL"))),
            ("ping", changed(&error, "/error/message", json!(null))),
            ("ping", changed(&notification, "/params/progress", json!("half"))),
            ("ping", changed(&notification, "/params/progressToken", json!(null))),
            ("ping", changed(&notification, "/method", json!("notifications/nonsense"))),
        ];
        if name == MODERN {
            let mut without = listed.clone();
            without.as_object_mut().expect("an object").shift_remove("ttlMs");
            broken.push(("tools/list", reply(&without)));
            broken.push(("ping", changed(&error, "/error/code", json!(-32022))));
        }
        for (method, frame) in broken {
            assert!(!revision.judge(method, &frame).is_empty(), "{name}: {method}: {frame} passes");
        }
    }
}

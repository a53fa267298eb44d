//! Parity: the same call gives the same answer in every dialect and on every transport.
//!
//! The corpus (`tests/parity/corpus.jsonl`) is a list of requests, good and bad, each with its expected outcome. Each
//! access path gets a server of its own and sends every request: both dialects, on standard input and output and over
//! HTTP; MCP both with a handshake and without, direct both by the tool's name and by `mcp.tool.invoke`. Then the
//! replies and log records are compared.
//!
//! A line of the corpus has `about`, `tool` and `arguments` (or `text`: the arguments as they are written), and may
//! have `key` (an idempotency key), `meta`, `server` (the kind of server), `hit` (whether the stored outcome of the key
//! answers it), `file` (the content of the file at its `path` before the server starts), `differs` (see [`Exception`])
//! and `has` (by JSON pointer: values that the result contains, among others). `expect` is `ok`, an error code, or the
//! `reason` of a result of the assets toolset. `{"$repeat": [text, count]}` stands for a long text, `{"$nest": depth}`
//! for nested lists, and `"$cursor"` for the last cursor in a result.
//!
//! Every server starts with the same files and with a link `out` to the outside of the root. The requests come in the
//! order of the corpus, so that one may find the changes of those before it; repeated changes are intended.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    Server, Setup, TEST_TIMEOUT,
    http::{Client, MODERN},
    is_of_handshake, pintle, request, run,
};

const LEGACY: &str = "2025-11-25";
/// The largest result of the servers here; the corpus has results below and above it.
const MAX_RESULT_BYTES: usize = 100_000;
/// The text before a time in a result.
const TIME: &str = r#""builtAt":""#;

/// Where the two dialects differ by design. Everything else has to be the same.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Exception {
    /// An unknown tool. The direct dialect answers with a result of its own (`unsupported`), which it has promised
    /// since before there was MCP; MCP has an error for it, -32602. The records are the same.
    UnknownTool,
    /// A request that is refused for its frame, before it becomes a call. The arguments are at another location in each
    /// frame (`params` or `params.arguments`), so the message, and the size and method in the record, are those of the
    /// frame. The code is the same, and so is everything else for the same frame on another transport.
    Frame,
    // Neither is tested with `mcp.tool.invoke`, which checks its own params before it looks for a tool.
}

/// A dialect on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    DirectStdio,
    DirectHttp,
    McpStdio,
    McpSession,
    McpStdioStateless,
    McpStateless,
    InvokeStdio,
    InvokeHttp,
}

impl Way {
    /// Each pair sends the same frames on different transports.
    const ALL: [Self; 8] = [
        Self::DirectStdio,
        Self::DirectHttp,
        Self::McpStdio,
        Self::McpSession,
        Self::McpStdioStateless,
        Self::McpStateless,
        Self::InvokeStdio,
        Self::InvokeHttp,
    ];

    fn is_direct(self) -> bool {
        matches!(self, Self::DirectStdio | Self::DirectHttp) || self.is_invoke()
    }

    fn is_invoke(self) -> bool {
        matches!(self, Self::InvokeStdio | Self::InvokeHttp)
    }

    fn is_http(self) -> bool {
        matches!(self, Self::DirectHttp | Self::McpSession | Self::McpStateless | Self::InvokeHttp)
    }

    fn is_stateless(self) -> bool {
        matches!(self, Self::McpStdioStateless | Self::McpStateless)
    }
}

/// One request of the corpus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    tool: String,
    arguments: Option<Value>,
    text: Option<String>,
    key: Option<String>,
    meta: Option<Value>,
    file: Option<Value>,
    #[serde(default)]
    server: Kind,
    differs: Option<Exception>,
    #[serde(default)]
    hit: bool,
    #[serde(default)]
    has: BTreeMap<String, Value>,
    expect: String,
}

/// A kind of server.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Without a backend.
    #[default]
    Plain,
    /// With a backend that accepts everything.
    Created,
    /// With a backend that fails.
    Failing,
    /// With a backend that accepts everything, and unvalidated assets allowed.
    Unvalidated,
    /// With an existing index, for a client that may read only one folder.
    Narrow,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Plain, Self::Created, Self::Failing, Self::Unvalidated, Self::Narrow];
}

fn corpus() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/corpus.jsonl");
    let text = fs::read_to_string(path).expect("the corpus");
    text.lines()
        .map(|line| {
            let mut case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            case.arguments.iter_mut().chain(&mut case.file).for_each(expand);
            assert!(case.arguments.is_some() != case.text.is_some(), "arguments or text: {line}");
            case
        })
        .collect()
}

/// Expands the abbreviations of a line of the corpus.
fn expand(value: &mut Value) {
    if let (Some(text), Some(count)) = (value["$repeat"][0].as_str(), value["$repeat"][1].as_u64()) {
        *value = json!(text.repeat(count as usize));
    } else if let Some(depth) = value.get("$nest").and_then(Value::as_u64) {
        *value = (0..depth).fold(json!("core"), |inner, _| json!([inner]));
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(members) => members.values_mut().for_each(expand),
        _ => {}
    }
}

impl Case {
    /// The frame of this request. The arguments are inserted as they are written.
    fn frame(&self, way: Way, id: usize) -> String {
        let arguments = match (&self.arguments, &self.text) {
            (Some(arguments), _) => arguments.to_string(),
            (None, text) => text.clone().unwrap_or_default(),
        };
        let mut envelope = String::new();
        let mut inner_meta = json!({});
        if way.is_stateless() {
            inner_meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            inner_meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        if let Some(meta) = &self.meta {
            let mut meta = meta.clone();
            // MCP has its own member for the trace.
            if !way.is_direct()
                && let Some(trace) = meta.as_object_mut().and_then(|meta| meta.shift_remove("traceparent"))
            {
                inner_meta["traceparent"] = trace;
            }
            envelope.push_str(&format!(r#","meta":{meta}"#));
        }
        if let (Some(key), false) = (&self.key, way.has_key_header()) {
            envelope.push_str(&format!(r#","idempotencyKey":{}"#, json!(key)));
        }
        let tool = json!(self.tool);
        if way.is_invoke() {
            let id_of_tool = json!(format!("mcp.tool:{}", self.tool));
            let params = format!(r#"{{"tool":{id_of_tool},"input":{arguments}}}"#);
            return format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"mcp.tool.invoke","params":{params}{envelope}}}"#
            );
        }
        if way.is_direct() {
            return format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":{tool},"params":{arguments}{envelope}}}"#
            );
        }
        let params = format!(r#"{{"name":{tool},"arguments":{arguments},"_meta":{inner_meta}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}{envelope}}}"#)
    }
}

impl Way {
    /// Whether the key is also sent in a header.
    fn has_key_header(self) -> bool {
        matches!(self, Self::DirectHttp | Self::McpStateless)
    }
}

/// A reply, independent of its dialect.
#[derive(Clone, Debug, PartialEq)]
struct Reply {
    /// The tool's own object, as text, so that the order of members and the form of numbers are compared.
    payload: Option<String>,
    /// The code and message that MCP adds to the object of a failure.
    added: Option<(Value, Value)>,
    /// The error object.
    error: Option<Value>,
    /// The number of a JSON-RPC error.
    number: Option<i64>,
}

impl Reply {
    fn payload(object: &Value) -> Self {
        Self { payload: Some(object.to_string()), added: None, error: None, number: None }
    }

    fn json_rpc_error(reply: &Value) -> Self {
        let error = &reply["error"];
        assert_eq!(error["message"], error["data"]["message"], "one message: {reply}");
        Self {
            payload: None,
            added: None,
            error: Some(error["data"].clone()),
            number: error["code"].as_i64(),
        }
    }

    /// Parses a direct reply.
    fn direct(reply: &Value) -> Self {
        match reply.get("result") {
            Some(result) => Self::payload(result),
            None => Self::json_rpc_error(reply),
        }
    }

    /// Parses an MCP reply.
    fn mcp(reply: &Value) -> Self {
        let Some(result) = reply.get("result") else { return Self::json_rpc_error(reply) };
        let content = result["content"].as_array().expect("content");
        assert!(content.len() == 1 && content[0]["type"] == json!("text"), "one text: {reply}");
        let text = content[0]["text"].as_str().expect("a text");
        let mut object: Value = serde_json::from_str(text).expect("JSON in the text");
        let Some(is_error) = result.get("isError") else {
            let answer = Self::payload(&result["structuredContent"]);
            assert_eq!(answer.payload.as_deref(), Some(text), "both forms say the same: {reply}");
            return answer;
        };
        assert_eq!(is_error, &json!(true), "{reply}");
        assert!(result.get("structuredContent").is_none(), "{reply}");
        if object["ok"] != json!(false) {
            return Self { payload: None, added: None, error: Some(object), number: None };
        }
        let members = object.as_object_mut().expect("an object");
        let added = [members.shift_remove("code"), members.shift_remove("message")];
        let [Some(code), Some(message)] = added else { panic!("code and message are missing: {reply}") };
        Self { added: Some((code, message)), ..Self::payload(&object) }
    }

    /// Replaces what cannot be the same: the path of the server's folder and the time of its index.
    fn fix(&mut self, folder: &str) {
        let Some(payload) = &mut self.payload else { return };
        *payload = payload.replace(folder, "/HERE");
        if let Some((before, after)) = payload.split_once(TIME)
            && let Some((_, after)) = after.split_once('"')
        {
            *payload = format!(r#"{before}{TIME}THEN"{after}"#);
        }
    }

    fn has_time(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.contains(TIME))
    }

    /// Whether both replies say the same, each in the form of its dialect.
    fn is_same(&self, other: &Self) -> bool {
        let numbers = self.number.zip(other.number);
        self.payload == other.payload
            && self.error == other.error
            && numbers.is_none_or(|(one, another)| one == another)
    }

    /// The outcome in the form of the corpus.
    fn outcome(&self) -> String {
        let Some(payload) = &self.payload else {
            return self.code().as_str().unwrap_or_default().to_owned();
        };
        let object: Value = serde_json::from_str(payload).expect("JSON");
        match (&object["ok"], object["reason"].as_str()) {
            (Value::Bool(false), Some(reason)) => reason.to_owned(),
            _ => "ok".to_owned(),
        }
    }

    /// The cursor of the next page.
    fn cursor(&self) -> Option<String> {
        let object: Value = serde_json::from_str(self.payload.as_ref()?).expect("JSON");
        object["cursor"].as_str().map(str::to_owned)
    }

    fn code(&self) -> Value {
        self.error.as_ref().map_or(Value::Null, |error| error["code"].clone())
    }
}

/// The reply and the log records of one request on one access path.
struct Seen {
    answer: Reply,
    /// All records with its id, without the access path and the time.
    records: Vec<Value>,
}

/// The observations of the corpus: for each request, one for each access path, in the order of [`Way::ALL`].
struct Observation {
    cases: Vec<Case>,
    seen: Vec<Vec<Seen>>,
}

static OBSERVATION: LazyLock<Observation> = LazyLock::new(|| {
    let cases = corpus();
    let created = start_backend("201 Created", r#"{"id":"a-1"}"#);
    let failing = start_backend("500 Internal Server Error", "internal error");
    let setup = |kind: Kind| {
        // An automatic index would be ready at a different time on each access path. MCP converts arguments that the
        // direct dialect refuses; `arguments` tests that.
        let setup = Setup::assets().args(["--index=manual", "--arguments=strict"]);
        let setup = setup.args(["--fixtures", "--deterministic", "--timeout=test_sleep=50ms"]);
        let setup = setup.arg(format!("--max-result-bytes={MAX_RESULT_BYTES}"));
        match kind {
            Kind::Plain => setup,
            Kind::Created => setup.env("SYN_BACKEND_URL", &created),
            Kind::Failing => setup.env("SYN_BACKEND_URL", &failing),
            Kind::Unvalidated => setup.env("SYN_BACKEND_URL", &created).arg("--allow-unvalidated"),
            Kind::Narrow => setup.args(["--scope", "read:/finds/"]),
        }
    };
    let mut seen: Vec<Vec<Seen>> = cases.iter().map(|_| Vec::new()).collect();
    std::thread::scope(|scope| {
        let ways = Way::ALL.map(|way| {
            let (cases, setup) = (&cases, &setup);
            scope.spawn(move || {
                let mut found = BTreeMap::new();
                for kind in Kind::ALL {
                    found.extend(observe(cases, way, kind, setup(kind)));
                }
                found
            })
        });
        for way in ways {
            for (id, one) in way.join().expect("an access path without a panic") {
                seen[id].push(one);
            }
        }
    });
    Observation { cases, seen }
});

/// Writes the files of the corpus into a root.
fn prepare(root: &Path, cases: &[Case]) {
    for case in cases {
        let Some(content) = case.file.as_ref().and_then(Value::as_str) else { continue };
        let path = case.arguments.as_ref().and_then(|arguments| arguments["path"].as_str()).expect("a path");
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        // A file that was just written could be treated as one that is still being written.
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(10)).expect("a time");
    }
    std::os::unix::fs::symlink("/", root.join("out")).expect("a link");
}

/// Sends the requests for one kind of server, one after the other, on one access path.
fn observe(cases: &[Case], way: Way, kind: Kind, setup: Setup) -> BTreeMap<usize, Seen> {
    prepare(&setup.path("root"), cases);
    if kind == Kind::Narrow {
        let mut index = pintle();
        index.arg("index").current_dir(setup.path("root")).env("PINTLE_STATE_DIR", setup.path("state"));
        assert_eq!(run(&mut index, b"").0, Some(0), "an index");
    }
    let folder = setup.path("").canonicalize().expect("a folder").display().to_string();
    let log = setup.path("calls.jsonl");
    let setup = setup.arg("--log-file").arg(&log);
    let mut line = Line::open(way, setup);
    let of_kind = cases
        .iter()
        .enumerate()
        .filter(|(_, case)| case.server == kind && !(way.is_invoke() && case.differs.is_some()));
    let mut seen: BTreeMap<usize, Seen> = of_kind
        .map(|(id, case)| {
            let reply = line.ask(case, id);
            assert_eq!(reply["id"], json!(id), "{way:?}: {}: {reply}", case.about);
            let mut answer = if way.is_direct() { Reply::direct(&reply) } else { Reply::mcp(&reply) };
            line.cursor = answer.cursor().or(line.cursor.take());
            answer.fix(&folder);
            (id, Seen { answer, records: Vec::new() })
        })
        .collect();
    let server = line.close();
    for record in fs::read_to_string(&log).expect("the log").lines() {
        let mut record: Value = serde_json::from_str(record).expect("a record");
        if is_of_handshake(&record) {
            continue;
        }
        let expected = if way.is_http() { "http" } else { "stdio" };
        let members = record.as_object_mut().expect("an object");
        assert_eq!(members.shift_remove("transport"), Some(json!(expected)), "{way:?}");
        let http_request_id = members.shift_remove("httpRequestId");
        let made_up = way.is_http().then(|| json!("00000000-0000-0000-0000-000000000000"));
        assert_eq!(http_request_id, made_up, "{way:?}");
        members.shift_remove("ts").expect("a time");
        let execution = record["execution"].as_object_mut().expect("an object");
        execution.shift_remove("durationMs").expect("a duration");
        let id = record["requestId"].as_str().and_then(|id| id.parse().ok());
        let one = id.and_then(|id| seen.get_mut(&id));
        let one = one.unwrap_or_else(|| panic!("{way:?}: a record of no request: {record}"));
        if one.answer.has_time() {
            // Times can differ in length.
            record["execution"].as_object_mut().and_then(|execution| execution.shift_remove("outputBytes"));
        }
        one.records.push(record);
    }
    drop(server);
    seen
}

/// A client and its own server.
struct Line {
    way: Way,
    server: Server,
    client: Option<Client>,
    /// The last cursor in a result.
    cursor: Option<String>,
}

impl Line {
    fn open(way: Way, setup: Setup) -> Self {
        let mut server = if way.is_http() { setup.http().start() } else { setup.start() };
        let client = match way {
            Way::DirectStdio | Way::InvokeStdio | Way::McpStdioStateless => None,
            Way::DirectHttp | Way::InvokeHttp | Way::McpStateless => Some(server.connect()),
            Way::McpSession => Some(server.session(LEGACY)),
            Way::McpStdio => {
                server.send(&crate::support::http::initialize(LEGACY));
                assert_eq!(server.frame()["result"]["protocolVersion"], json!(LEGACY));
                server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                None
            }
        };
        Self { way, server, client, cursor: None }
    }

    fn ask(&mut self, case: &Case, id: usize) -> Value {
        let mut frame = case.frame(self.way, id);
        if let Some(cursor) = &self.cursor {
            frame = frame.replace(r#""$cursor""#, &json!(cursor).to_string());
        }
        let Some(client) = &mut self.client else {
            self.server.write(format!("{frame}\n").as_bytes());
            return self.server.frame();
        };
        let mut headers = Vec::new();
        if self.way.has_key_header() {
            headers.extend(case.key.as_ref().map(|key| ("idempotency-key", key.as_str())));
        }
        if self.way == Way::McpStateless {
            let names =
                [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", &case.tool)];
            headers.extend(names);
        }
        let path = if self.way.is_direct() { "/rpc" } else { "/mcp" };
        client.send("POST", path, &headers, frame.as_bytes());
        let answer = client.answer();
        let message = answer.message();
        let is_forbidden = message["error"]["code"] == json!(403);
        assert_eq!(answer.status == 403, is_forbidden, "{:?}: {}: {answer:?}", self.way, case.about);
        message
    }

    /// Ends the server, so that its log is complete.
    fn close(mut self) -> Server {
        drop(self.client.take());
        match self.way.is_http() {
            true => self.server.signal(Signal::TERM),
            false => self.server.close_stdin(),
        }
        assert_eq!(self.server.wait().code(), Some(0), "{}", self.server.stderr());
        self.server
    }
}

/// A backend that gives every client the same answer, as long as the tests run.
fn start_backend(status: &str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // It is no failure of the backend if a client disconnects early.
            std::thread::spawn(move || drop(answer_one(stream, &answer)));
        }
    });
    format!("http://{address}")
}

fn answer_one(stream: TcpStream, answer: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    reader.get_mut().write_all(answer.as_bytes())
}

/// Checks every request and fails with a list of all differences.
fn for_each_case(check: impl Fn(&Case, &[Seen]) -> Vec<String>) {
    let Observation { cases, seen } = &*OBSERVATION;
    let wrong: Vec<String> = cases
        .iter()
        .zip(seen)
        .flat_map(|(case, seen)| {
            let found = check(case, seen).into_iter();
            found.map(|text| format!("{} ({}): {text}", case.about, head(&case.tool)))
        })
        .collect();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// The beginning of a text that may be very long.
fn head(text: &str) -> String {
    text.chars().take(1_000).collect()
}

fn described(way: Way, seen: &Seen) -> String {
    head(&format!("{way:?} answered {:?}", seen.answer))
}

#[test]
fn the_corpus_is_large_and_has_every_tool_and_every_outcome() {
    let cases = corpus();
    assert!(cases.len() >= 150, "only {} requests", cases.len());
    let mut server = Setup::assets().arg("--fixtures").start();
    let discovered = server.result("mcp.discover", json!({}));
    server.finish();
    let ends: BTreeSet<_> = cases.iter().map(|case| (case.tool.as_str(), case.expect.as_str())).collect();
    for tool in discovered["tools"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        let refused = ends.contains(&(name, "INVALID_REQUEST"));
        assert!(
            refused && ends.iter().any(|(tool, end)| *tool == name && *end != "INVALID_REQUEST"),
            "{name}"
        );
    }
    for end in [
        "ok",
        "INVALID_REQUEST",
        "INTERNAL",
        "INVALID_OUTPUT",
        "TOOL_TIMEOUT",
        "CONFLICT",
        "NOT_FOUND",
        "NO_INDEX",
        "FORBIDDEN",
        "not_found",
        "validation_failed",
        "unsupported",
        "backend_error",
        "unknown_tool",
    ] {
        assert!(ends.iter().any(|(_, found)| *found == end), "{end}");
    }
    println!("{} requests on {} ways", cases.len(), Way::ALL.len());
}

#[test]
fn every_access_path_gives_the_same_payload_or_the_same_error() {
    for_each_case(|case, seen| {
        let mut wrong = Vec::new();
        for (index, (way, one)) in Way::ALL.into_iter().zip(seen).enumerate() {
            let same = match case.differs {
                None => one.answer.is_same(&seen[0].answer),
                Some(Exception::UnknownTool) => {
                    one.answer.is_same(&seen[if way.is_direct() { 0 } else { 2 }].answer)
                }
                Some(Exception::Frame) => one.answer.code() == seen[0].answer.code(),
            };
            // Each pair has equal replies, to the last member. Over HTTP a missing scope is a status, whose body is an
            // error of the protocol; on a pipe it is a failure of the tool.
            let neighbour = &seen[index & !1].answer;
            let scope_over_http = !way.is_direct()
                && way.is_http()
                && one.answer.number == Some(403)
                && neighbour.number.is_none();
            let is_alike = one.answer == *neighbour || (scope_over_http && one.answer.is_same(neighbour));
            if !same || !is_alike {
                wrong.push(format!("{}\n  but {}", described(way, one), described(Way::ALL[0], &seen[0])));
            }
        }
        wrong
    });
}

#[test]
fn every_request_has_the_outcome_of_the_corpus() {
    for_each_case(|case, seen| {
        let ways = Way::ALL.into_iter().zip(seen);
        let wrong = ways.filter(|(way, one)| {
            let expected = match (case.differs, way.is_direct()) {
                (Some(Exception::UnknownTool), true) => "unsupported",
                (Some(Exception::UnknownTool), false) => "INVALID_REQUEST",
                _ => &case.expect,
            };
            one.answer.outcome() != expected
        });
        wrong.map(|(way, one)| format!("not {}: {}", case.expect, described(way, one))).collect()
    });
}

#[test]
fn every_result_has_the_values_of_the_corpus() {
    for_each_case(|case, seen| {
        let mut wrong = Vec::new();
        for (way, one) in Way::ALL.into_iter().zip(seen).filter(|_| !case.has.is_empty()) {
            let payload = one.answer.payload.as_deref().unwrap_or("null");
            let object: Value = serde_json::from_str(payload).expect("JSON");
            let differs = |(pointer, value): &(&String, &Value)| object.pointer(pointer) != Some(value);
            wrong.extend(
                case.has
                    .iter()
                    .filter(differs)
                    .map(|(pointer, value)| format!("{pointer} is not {value}: {}", described(way, one))),
            );
        }
        wrong
    });
}

#[test]
fn every_access_path_writes_the_same_single_log_record() {
    for_each_case(|case, seen| {
        let mut wrong = Vec::new();
        for (index, (way, one)) in Way::ALL.into_iter().zip(seen).enumerate() {
            let compared = match case.differs {
                None | Some(Exception::UnknownTool) => &seen[0],
                Some(Exception::Frame) => &seen[index & !1],
            };
            if one.records.len() != 1 || one.records != compared.records {
                let (left, expected) = (json!(one.records), json!(compared.records));
                wrong.push(format!("{way:?} left {left}\n  not {expected}"));
            }
        }
        wrong
    });
}

#[test]
fn the_record_has_the_code_of_the_reply_and_marks_answers_from_the_store() {
    for_each_case(|case, seen| {
        let mut wrong = Vec::new();
        for (way, one) in Way::ALL.into_iter().zip(seen).filter(|(way, _)| !way.is_direct()) {
            let code = one.answer.added.as_ref().map_or(one.answer.code(), |(code, _)| code.clone());
            let Some(record) = one.records.first() else { continue };
            if record["error"] != code {
                wrong.push(format!("{} and left {record}", described(way, one)));
            }
            if record["idempotency"]["cacheHit"] != json!(case.hit) {
                wrong.push(format!("{way:?}: an answer from the store should be {}: {record}", case.hit));
            }
        }
        wrong
    });
}

#[test]
fn a_failure_of_an_asset_tool_is_reported_as_a_failure_and_a_verdict_as_an_answer() {
    for_each_case(|case, seen| {
        let code = match case.expect.as_str() {
            "not_found" => Some("NOT_FOUND"),
            "unsupported" => Some("CAPABILITY_MISSING"),
            "backend_error" => Some("UPSTREAM_FAILED"),
            "validation_failed" if case.tool != "validate_asset" => Some("INVALID_REQUEST"),
            _ => None,
        };
        let ways = Way::ALL.into_iter().zip(seen).filter(|(way, _)| !way.is_direct());
        let wrong = ways.filter(|(_, one)| {
            let added = one.answer.added.as_ref();
            added.and_then(|(code, _)| code.as_str()) != code
                || added.is_some_and(|(_, message)| message.as_str().is_none_or(str::is_empty))
        });
        wrong.map(|(way, one)| format!("not {code:?}: {}", described(way, one))).collect()
    });
}

#[test]
fn an_unknown_tool_is_a_result_in_the_direct_dialect_and_an_error_in_mcp() {
    let unsupported = r#"{"ok":false,"reason":"unsupported","detail":"tool not implemented"}"#;
    for_each_case(|case, seen| {
        if case.differs != Some(Exception::UnknownTool) {
            return Vec::new();
        }
        let ways = Way::ALL.into_iter().zip(seen);
        let wrong = ways.filter(|(way, one)| match way.is_direct() {
            true => one.answer.payload.as_deref() != Some(unsupported),
            false => one.answer.number != Some(-32602),
        });
        wrong.map(|(way, one)| described(way, one)).collect()
    });
}

/// The other intended difference: MCP allows a client to omit empty arguments.
#[test]
fn absent_arguments_are_empty_in_mcp_and_an_invalid_envelope_in_the_direct_dialect() {
    let mut server = Setup::assets().start();
    let listed = server.result("list_schemas", json!({}));
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "list_schemas"}));
    assert_eq!(server.frame()["error"]["code"], json!(-32600));
    server.send(&request(json!(1), "list_schemas", Value::Null));
    assert_eq!(server.frame()["error"]["code"], json!(-32600));
    let http = Setup::assets().http().start();
    let mut direct = http.connect();
    let refused = direct.post("/rpc", &json!({"jsonrpc": "2.0", "id": 1, "method": "list_schemas"}));
    assert_eq!(refused.refusal(), (400, -32600));
    let mut session = http.session(LEGACY);
    let mut stateless = http.connect();
    server.send(&crate::support::http::initialize(LEGACY));
    server.frame();
    for params in [json!({"name": "list_schemas"}), json!({"name": "list_schemas", "arguments": null})] {
        assert_eq!(server.result("tools/call", params.clone())["structuredContent"], listed);
        let answer = session.call(json!(1), "tools/call", params.clone());
        assert_eq!(answer.result()["structuredContent"], listed);
        let answer = stateless.modern(json!(1), "tools/call", params);
        assert_eq!(answer.result()["structuredContent"], listed);
    }
    server.finish();
}

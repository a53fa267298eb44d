//! Publishing to a real HTTP server on this machine.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Setup, TEST_TIMEOUT, request};

/// A backend that answers each request with the next answer. It passes on each request before it answers.
struct Backend {
    address: SocketAddr,
    requests: mpsc::Receiver<(String, Value)>,
}

impl Backend {
    /// An answer of `None` is never sent: the connection stays open until the client closes it.
    fn start(answers: Vec<Option<String>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((stream, _)) = listener.accept() else { return };
                serve(stream, answer.as_deref(), &sender);
            }
        });
        Self { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn received(&self) -> (String, Value) {
        self.requests.recv_timeout(TEST_TIMEOUT).expect("a request came")
    }
}

fn serve(stream: TcpStream, answer: Option<&str>, requests: &mpsc::Sender<(String, Value)>) {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).expect("a request line");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let _ = requests.send((first.trim().to_owned(), serde_json::from_slice(&body).unwrap_or(Value::Null)));
    match answer {
        Some(answer) => reader.get_mut().write_all(answer.as_bytes()).expect("an answer"),
        None => {
            let _ = reader.read(&mut [0]);
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"))
}

/// One publication to a backend that gives these answers.
fn populate(answers: Vec<Option<String>>, params: Value) -> (Value, Backend) {
    let backend = Backend::start(answers);
    let mut server = Setup::assets().env("SYN_BACKEND_URL", backend.url()).start();
    let result = server.result("populate_backend", params);
    server.finish();
    (result, backend)
}

fn asset() -> Value {
    json!({"$schemaRef": "jsonschema/synesthetic-asset.schema.json", "name": "Evening"})
}

#[test]
fn a_valid_asset_is_posted_as_it_is_and_its_id_comes_back() {
    let (result, backend) =
        populate(vec![answer("201 Created", "", r#"{"id":"a-1"}"#)], json!({"asset": asset()}));
    let url = format!("{}/synesthetic-assets/a-1", backend.url());
    assert_eq!(result, json!({"ok": true, "asset_id": "a-1", "backend_url": url}));
    let (line, body) = backend.received();
    assert_eq!(line, "POST /synesthetic-assets/ HTTP/1.1");
    assert_eq!(body, asset());
}

#[test]
fn the_id_is_looked_for_in_the_answer_and_then_in_the_location() {
    let location = "location: /things/l-3\r\n";
    for (headers, body, id, path) in [
        ("", r#"{"id":7,"asset_id":"x"}"#, "7", "/synesthetic-assets/7"),
        ("", r#"{"asset_id":"b"}"#, "b", "/synesthetic-assets/b"),
        (location, "", "l-3", "/things/l-3"),
        (location, r#"{"id":"i"}"#, "i", "/things/l-3"),
    ] {
        let (result, backend) =
            populate(vec![answer("201 Created", headers, body)], json!({"asset": asset()}));
        let url = format!("{}{path}", backend.url());
        assert_eq!(result, json!({"ok": true, "asset_id": id, "backend_url": url}), "{headers}{body}");
    }
}

#[test]
fn an_invalid_asset_is_never_sent() {
    let (result, backend) = populate(vec![answer("201 Created", "", "{}")], json!({"asset": {"name": 5}}));
    assert_eq!(result["reason"], json!("validation_failed"));
    assert_eq!(result["errors"][0]["path"], json!("/name"));
    assert!(backend.requests.try_recv().is_err());
    let (result, _) = populate(vec![], json!({"asset": {"name": "x"}, "schema": "nothing"}));
    assert_eq!(result["errors"][0]["msg"], json!("schema_not_found"), "{result}");
}

#[test]
fn an_unvalidated_asset_is_posted_only_if_a_setting_allows_it() {
    let params = json!({"asset": {"name": 5}, "validate_first": false});
    let (result, backend) = populate(vec![answer("201 Created", "", r#"{"id":"x"}"#)], params.clone());
    assert_eq!((&result["ok"], &result["reason"]), (&json!(false), &json!("unsupported")), "{result}");
    assert!(backend.requests.try_recv().is_err());

    let backend = Backend::start(vec![answer("201 Created", "", r#"{"id":"x"}"#)]);
    let setup = Setup::assets().arg("--allow-unvalidated").env("SYN_BACKEND_URL", backend.url());
    let mut server = setup.start();
    assert_eq!(server.result("populate_backend", params)["asset_id"], json!("x"));
    server.finish();
}

#[test]
fn the_path_can_be_changed() {
    let backend = Backend::start(vec![answer("200 OK", "", r#"{"id":"x"}"#)]);
    let setup = Setup::assets().env("SYN_BACKEND_URL", format!("{}/", backend.url()));
    let mut server = setup.env("SYN_BACKEND_ASSETS_PATH", "/api/v2/assets").start();
    let result = server.result("populate_backend", json!({"asset": asset()}));
    assert_eq!(result["backend_url"], json!(format!("{}/api/v2/assets/x", backend.url())));
    assert_eq!(backend.received().0, "POST /api/v2/assets HTTP/1.1");
    server.finish();
}

#[test]
fn a_backend_failure_is_reported_with_its_status_and_detail() {
    let failing = answer("500 Internal Server Error", "", "internal error");
    let (result, _) = populate(vec![failing], json!({"asset": asset()}));
    assert_eq!(
        result,
        json!({"ok": false, "reason": "backend_error", "status": 500, "detail": "internal error"})
    );
    let refusing = answer("422 Unprocessable Entity", "", r#"{"detail":"no lamps"}"#);
    let (result, _) = populate(vec![refusing], json!({"asset": asset()}));
    assert_eq!((&result["status"], &result["detail"]), (&json!(422), &json!("no lamps")));
}

#[test]
fn a_backend_that_does_not_listen_is_unreachable() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut server = Setup::assets().env("SYN_BACKEND_URL", format!("http://{closed}")).start();
    assert_eq!(
        server.result("populate_backend", json!({"asset": asset()})),
        json!({"ok": false, "reason": "backend_error", "status": 503, "detail": "network_unreachable"})
    );
    server.finish();
}

#[test]
fn a_backend_that_takes_more_than_five_seconds_is_a_timeout() {
    let started = Instant::now();
    let (result, _) = populate(vec![None], json!({"asset": asset()}));
    assert_eq!(result, json!({"ok": false, "reason": "backend_error", "status": 503, "detail": "timeout"}));
    assert!(started.elapsed() >= Duration::from_secs(5));
}

#[test]
fn a_call_that_waits_for_the_backend_can_be_cancelled() {
    let backend = Backend::start(vec![None]);
    let mut server = Setup::assets().env("SYN_BACKEND_URL", backend.url()).start();
    server.request(json!(1), "populate_backend", json!({"asset": asset()}));
    // The backend has received the complete request; only its answer is missing.
    assert_eq!(backend.received().1, asset());
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}));
    assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"));
    server.finish();
}

#[test]
fn a_redirect_is_followed_on_the_same_host_and_refused_to_another() {
    let to = |target: &str| answer("307 Temporary Redirect", &format!("location: {target}\r\n"), "");
    let answers = vec![to("/moved"), answer("201 Created", "", r#"{"id":"m"}"#)];
    let (result, backend) = populate(answers, json!({"asset": asset()}));
    assert_eq!(result["asset_id"], json!("m"), "{result}");
    assert_eq!(backend.received().0, "POST /synesthetic-assets/ HTTP/1.1");
    assert_eq!(backend.received().0, "POST /moved HTTP/1.1");

    let other = Backend::start(vec![answer("201 Created", "", r#"{"id":"stolen"}"#)]);
    let (result, _) = populate(vec![to(&format!("{}/x", other.url()))], json!({"asset": asset()}));
    assert_eq!((&result["reason"], &result["status"]), (&json!("backend_error"), &json!(307)), "{result}");
    assert!(other.requests.try_recv().is_err(), "the asset went to another host");
}

#[test]
fn a_redirect_that_would_drop_the_asset_is_a_failure() {
    for status in ["301 Moved Permanently", "302 Found", "303 See Other"] {
        let moved = answer(status, "location: /login\r\n", "");
        // A GET of the new location would succeed, but its answer is not a receipt for the asset.
        let answers = vec![moved, answer("200 OK", "", r#"{"id":"somebody"}"#)];
        let (result, backend) = populate(answers, json!({"asset": asset()}));
        assert_eq!(result["reason"], json!("backend_error"), "{result}");
        assert_eq!(result["status"].to_string(), status[..3], "{result}");
        let detail = result["detail"].as_str().expect("a detail");
        assert!(detail.contains("redirected to") && detail.contains("/login"), "{detail}");
        backend.received();
        assert!(backend.requests.try_recv().is_err(), "it was followed");
    }
}

#[test]
fn an_asset_that_was_accepted_without_an_id_is_not_sent_again_under_its_key() {
    let backend = Backend::start(vec![answer("201 Created", "", ""), answer("201 Created", "", "")]);
    let mut server = Setup::assets().env("SYN_BACKEND_URL", backend.url()).start();
    for id in [1, 2] {
        let mut message = request(json!(id), "populate_backend", json!({"asset": asset()}));
        message["idempotencyKey"] = json!("k");
        server.send(&message);
        let frame = server.frame();
        assert_eq!(frame["result"]["status"], json!(201), "{frame}");
        assert!(frame["result"]["detail"].as_str().is_some_and(|detail| detail.contains("no id")), "{frame}");
    }
    backend.received();
    assert!(backend.requests.try_recv().is_err(), "it was sent twice");
    server.finish();
}

#[test]
fn an_asset_over_the_request_limit_is_refused_before_it_is_parsed() {
    let mut server = Setup::assets().env("SYN_BACKEND_URL", "http://127.0.0.1:1").start();
    server.request(json!(1), "populate_backend", json!({"asset": "x".repeat(1 << 20)}));
    let frame = server.frame();
    assert_eq!(frame["result"]["errors"], json!([{"path": "", "msg": "payload_too_large"}]), "{frame}");
    server.finish();
}

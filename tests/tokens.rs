//! Tokens of the local secret: how they are minted, which are taken, and how they end.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::{Answer, Client},
    pintle, request, run,
    tokens::{Forge, assert_within_a_second, claims_of, mint, now, signed, token_command},
};

const LEGACY: &str = "2025-11-25";

fn start() -> Server {
    Setup::fixtures().with_local_tokens().start()
}

fn echo() -> Value {
    request(json!(1), "test_echo", json!({"value": "hello"}))
}

/// Whether a token is taken, on a connection of its own.
fn is_taken(server: &Server, token: &str) -> bool {
    let answer = server.connect().bearing(token).post("/rpc", &echo());
    assert!(matches!(answer.status, 200 | 401), "{answer:?}");
    answer.status == 200
}

#[test]
fn a_minted_token_opens_every_way_in() {
    let server = start();
    let token = server.mint("me", ["write:/", "metrics:read"]);
    let mut client = server.connect().bearing(&token);
    assert_eq!(client.post("/rpc", &echo()).result(), json!({"value": "hello"}));
    let call = json!({"name": "test_echo", "arguments": {"value": "hello"}});
    let answer = client.modern(json!(2), "tools/call", call.clone());
    assert_eq!(answer.result()["structuredContent"], json!({"value": "hello"}));
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let mut session = server.connect().bearing(&token);
        let answer = session.open_session(version).call(json!(3), "tools/call", call.clone());
        let text = answer.result()["content"][0]["text"].clone();
        assert_eq!(text, json!("{\"value\":\"hello\"}"), "{version}: {answer:?}");
        session.send("DELETE", "/mcp", &[], b"");
        assert_eq!(session.answer().status, 204);
    }
    assert_eq!(client.get("/metrics").status, 200);
    // The scheme's name has no case (RFC 9110, 11.1).
    let lower = server.connect().set("authorization", &format!("bearer {token}")).post("/rpc", &echo());
    assert_eq!(lower.status, 200, "{lower:?}");
}

#[test]
fn every_way_in_is_closed_without_a_token() {
    let server = start();
    let reason = "no token was sent";
    let refused = |answer: Answer| {
        answer.assert_unauthorized(reason);
        let challenge = answer.header("www-authenticate");
        // Nothing was tried, so there is no error code (RFC 6750, 3.1).
        assert_eq!(
            challenge,
            Some(
                "Bearer realm=\"pintle\", error_description=\"no token was sent; `pintle token mint` prints one\""
            )
        );
        let hint = answer.message()["error"]["data"]["hint"].clone();
        assert!(hint.as_str().is_some_and(|hint| hint.contains("pintle token mint")), "{hint}");
    };
    let initialize = crate::support::http::initialize(LEGACY);
    let registered = server.connect().post("/register", &json!({}));
    assert_eq!(registered.status, 404);
    assert!(
        registered.message()["error_description"]
            .as_str()
            .is_some_and(|text| text.contains("pintle token mint"))
    );
    refused(server.connect().post("/rpc", &echo()));
    refused(server.connect().post("/mcp", &initialize));
    refused(server.connect().modern(json!(1), "server/discover", json!({})));
    refused(server.connect().get("/mcp"));
    refused(server.connect().get("/metrics"));
    let mut delete = server.connect();
    delete.send("DELETE", "/mcp", &[("mcp-session-id", "unknown")], b"");
    refused(delete.answer());
    // Before the body is read: what is wrong with it does not matter.
    refused(server.connect().post_bytes("/rpc", b"{"));
    refused(server.connect().post_bytes("/mcp", b"[]"));
    refused(server.connect().post_bytes("/rpc", &b"x".repeat(100_000)));
    // These are for probes and for everybody.
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/nothing", 404)] {
        assert_eq!(server.connect().get(path).status, status, "{path}");
    }
    assert_eq!(server.connect().get("/healthz").body, "ok\n");
    assert_eq!(server.connect().get("/readyz").body, "ok\n");
    // The same connection goes on after a refusal.
    let mut client = server.connect();
    refused(client.post("/rpc", &echo()));
    let mut client = client.bearing(&server.mint("me", []));
    assert_eq!(client.post("/rpc", &echo()).status, 200);
}

/// What all bad tokens say of their bearer. It must not be logged.
const MARKER: &str = "marker-of-a-bad-token";

/// Bad tokens, and why each is refused.
fn bad_tokens(forge: &Forge, other: &Forge) -> Vec<(String, &'static str)> {
    let header = json!({"alg": "HS256", "typ": "JWT"});
    let with = |changes: Value| forge.with(&changes);
    let headed = |header: Value| forge.sign(&header, &forge.claims);
    let good = with(json!({}));
    let (message, signature) = good.rsplit_once('.').expect("a signature");
    let (head, claims) = message.split_once('.').expect("claims");
    let now = now();
    let raw = |claims: &str| {
        let head = BASE64_URL_SAFE_NO_PAD.encode(header.to_string());
        let message = format!("{head}.{}", BASE64_URL_SAFE_NO_PAD.encode(claims));
        // The secret signs whatever is in the claims, also what is no JSON.
        forge.sign_message(&message)
    };
    let malformed = "the token is malformed";
    let signature_wrong = "the token's signature is wrong";
    let algorithm = "the token's algorithm is not accepted";
    let subject = "the token's subject is not a name";
    vec![
        // Its form.
        ("x".into(), malformed),
        ("..".into(), malformed),
        (format!("{head}.{claims}"), malformed),
        (format!("{good}.{signature}"), malformed),
        (format!("{good}="), malformed),
        (format!("{good}!"), malformed),
        (format!("{head}.{signature}"), malformed),
        (format!("%{}", &good[1..]), malformed),
        (raw("{"), malformed),
        (raw("[]"), malformed),
        (raw("\"text\""), malformed),
        (raw("null"), malformed),
        (headed(json!([])), malformed),
        (headed(json!("HS256")), malformed),
        (good[..good.len() / 2].to_owned(), malformed),
        // Its signature.
        (good[..good.len() - 3].to_owned(), signature_wrong),
        (format!("{message}."), signature_wrong),
        (
            format!("{message}.{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..]),
            signature_wrong,
        ),
        (swap_claims(&good, &with(json!({"scope": "write:/ metrics:read"}))), signature_wrong),
        (other.with(&json!({})), signature_wrong),
        (other.sign(&header, &forge.claims), signature_wrong),
        (
            signed(&header, &forge.claims, |message| crate::support::tokens::hs256(b"", message)),
            signature_wrong,
        ),
        // Its header.
        (signed(&json!({"alg": "none"}), &forge.claims, |_| Vec::new()), algorithm),
        (headed(json!({"alg": "none"})), algorithm),
        (headed(json!({"alg": "None"})), algorithm),
        (headed(json!({"alg": "hs256"})), algorithm),
        (headed(json!({"alg": "HS384"})), algorithm),
        (headed(json!({"alg": "HS512"})), algorithm),
        (headed(json!({"alg": "RS256"})), algorithm),
        (headed(json!({"alg": "ES256", "kid": MARKER})), algorithm),
        (headed(json!({"alg": "EdDSA"})), algorithm),
        (headed(json!({"alg": ["HS256"]})), algorithm),
        (headed(json!({"alg": null})), algorithm),
        (headed(json!({"typ": "JWT"})), algorithm),
        (
            headed(json!({"alg": "HS256", "crit": ["b64"], "b64": false})),
            "the token has critical header parameters that are not supported",
        ),
        // Its size.
        (with(json!({"more": "x".repeat(9000)})), "the token is too large"),
        (format!("{good}{}", "x".repeat(9000)), "the token is too large"),
        (format!("{good}{}", "x".repeat(100_000)), "the token is too large"),
        // Its time.
        (with(json!({"exp": now - 6})), "the token has expired"),
        (with(json!({"exp": 0})), "the token has expired"),
        (with(json!({"exp": -1})), "the token has expired"),
        (with(json!({"exp": null})), "the token has no `exp` claim"),
        (with(json!({"exp": (now + 60).to_string()})), "the token's `exp` claim has the wrong type"),
        (with(json!({"exp": true})), "the token's `exp` claim has the wrong type"),
        (with(json!({"exp": [now + 60]})), "the token's `exp` claim has the wrong type"),
        (with(json!({"nbf": now + 3600})), "the token is not valid yet"),
        (with(json!({"nbf": (now - 60).to_string()})), "the token's `nbf` claim has the wrong type"),
        (with(json!({"iat": "yesterday"})), "the token's `iat` claim has the wrong type"),
        // Whose it is, and for whom.
        (with(json!({"iss": null})), "the token has no `iss` claim"),
        (with(json!({"iss": "pintle:other"})), "the token's issuer is not accepted"),
        (with(json!({"iss": ""})), "the token's issuer is not accepted"),
        (with(json!({"iss": [forge.claims["iss"]]})), "the token's `iss` claim has the wrong type"),
        (with(json!({"aud": null})), "the token has no `aud` claim"),
        (with(json!({"aud": "pintle"})), "the token's audience is not this server"),
        (with(json!({"aud": []})), "the token's audience is not this server"),
        (with(json!({"aud": ["a", "b"]})), "the token's audience is not this server"),
        (with(json!({"aud": [forge.claims["aud"], 5]})), "the token's `aud` claim has the wrong type"),
        (with(json!({"aud": {"pintle": true}})), "the token's `aud` claim has the wrong type"),
        (with(json!({"sub": null})), "the token has no `sub` claim"),
        (with(json!({"sub": 5})), "the token's `sub` claim has the wrong type"),
        (with(json!({"sub": ""})), subject),
        (with(json!({"sub": "  "})), subject),
        (with(json!({"sub": format!("{MARKER}\n")})), subject),
        (with(json!({"sub": format!("{MARKER}\u{7f}")})), subject),
        (with(json!({"sub": MARKER.repeat(20)})), subject),
        // What it grants.
        (with(json!({"scope": ["write:/"]})), "the token's `scope` claim has the wrong type"),
        (with(json!({"scope": 7})), "the token's `scope` claim has the wrong type"),
        (with(json!({"jti": 7})), "the token's `jti` claim has the wrong type"),
    ]
}

/// The first token with the claims of the second.
fn swap_claims(token: &str, other: &str) -> String {
    let claims = other.split('.').nth(1).expect("claims");
    let mut parts: Vec<&str> = token.split('.').collect();
    parts[1] = claims;
    parts.join(".")
}

/// Whatever `Authorization` can be besides one bearer token.
fn bad_headers(token: &str) -> Vec<(Vec<Vec<u8>>, &'static str)> {
    let not_bearer = "the Authorization header must be `Bearer`, a space and a token";
    let several = "more than one Authorization header was sent";
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let bearer = format!("Bearer {token}");
    vec![
        (texts(&[""]), not_bearer),
        (texts(&["Bearer"]), not_bearer),
        (texts(&["Bearer   "]), not_bearer),
        (texts(&[token]), not_bearer),
        (texts(&[&format!("Bearer{token}")]), not_bearer),
        (texts(&[&format!("Basic {}", BASE64_URL_SAFE_NO_PAD.encode(format!("{MARKER}:x")))]), not_bearer),
        (texts(&[&format!("Basic {token}")]), not_bearer),
        (texts(&[&format!("Token {token}")]), not_bearer),
        (texts(&[&format!("DPoP {token}")]), not_bearer),
        (texts(&[&format!("{bearer} {token}")]), not_bearer),
        (texts(&[&format!("{bearer}, {bearer}")]), not_bearer),
        (texts(&[&format!("{bearer},{bearer}")]), not_bearer),
        (vec![[bearer.as_bytes(), b"\xff"].concat()], not_bearer),
        (texts(&[&bearer, &bearer]), several),
        (texts(&[&bearer, "Basic x"]), several),
        (texts(&["", &bearer]), several),
    ]
}

fn post_with_headers(server: &Server, path: &str, values: &[Vec<u8>]) -> Answer {
    let body = echo().to_string();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        server.address(),
        body.len()
    )
    .into_bytes();
    for value in values {
        head.extend([b"authorization: ", value.as_slice(), b"\r\n"].concat());
    }
    head.extend([b"\r\n", body.as_bytes()].concat());
    let mut client = server.connect();
    client.write(&head).expect("the server reads");
    client.answer()
}

#[test]
fn every_bad_token_is_refused_and_the_log_has_only_the_reason() {
    let server = start();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let (forge, other) = (Forge::new(&server.state(), MARKER), Forge::new(elsewhere.path(), MARKER));
    let mut bad: Vec<(Vec<Vec<u8>>, &str)> = bad_tokens(&forge, &other)
        .into_iter()
        .map(|(token, reason)| (vec![format!("Bearer {token}").into_bytes()], reason))
        .collect();
    bad.extend(bad_headers(&forge.with(&json!({}))));
    assert!(bad.len() >= 40, "only {} kinds", bad.len());
    for (values, reason) in &bad {
        let shown = || values.iter().map(|value| value.escape_ascii().to_string()).collect::<Vec<_>>();
        for path in ["/rpc", "/mcp"] {
            let answer = post_with_headers(&server, path, values);
            assert_eq!(answer.status, 401, "{:?}: {answer:?}", shown());
            answer.assert_unauthorized(reason);
            let challenge = answer.header("www-authenticate").expect("a challenge");
            let expected =
                format!("Bearer realm=\"pintle\", error=\"invalid_token\", error_description=\"{reason}\"");
            assert_eq!(challenge, expected, "{:?}", shown());
            assert!(!answer.body.contains(MARKER), "{answer:?}");
        }
    }
    let records = server.records(2 * bad.len());
    assert_eq!(records.len(), 2 * bad.len());
    for (record, (_, reason)) in records.iter().zip(bad.iter().flat_map(|bad| [bad, bad])) {
        assert_eq!(record["status"], json!("error"), "{record}");
        assert_eq!(record["error"], json!("UNAUTHORIZED"), "{record}");
        assert_eq!(record["metadata"]["reason"], json!(reason), "{record}");
    }
    let log = server.stderr();
    assert!(!log.contains(MARKER), "{log}");
    for (values, _) in &bad {
        for part in values.iter().flat_map(|value| value.split(|byte| b" .,".contains(byte))) {
            let part = String::from_utf8_lossy(part);
            assert!(part.len() < 8 || !log.contains(&*part), "the log has {part}");
        }
    }
}

#[test]
fn a_token_is_as_good_as_its_claims_within_the_leeway() {
    let server = start();
    let forge = Forge::new(&server.state(), "me");
    let audience = forge.claims["aud"].clone();
    for changes in [
        json!({}),
        json!({"aud": [audience, "another"]}),
        json!({"aud": ["another", audience]}),
        json!({"nbf": now() - 60}),
        json!({"nbf": now() + 2}),
        json!({"exp": now() as f64 + 30.5}),
        json!({"iat": null}),
        json!({"jti": null}),
        json!({"scope": null}),
        json!({"scope": ""}),
        json!({"scope": "openid  read:docs \u{e9}"}),
        json!({"sub": "J\u{f6}rg / #1"}),
    ] {
        assert!(is_taken(&server, &forge.with(&changes)), "{changes}");
    }
    let unknown_header = json!({"alg": "HS256", "kid": "unknown", "x": 1});
    assert!(is_taken(&server, &forge.sign(&unknown_header, &forge.claims)));
}

#[test]
fn a_token_ends_when_its_time_is_over_also_if_it_was_used_before() {
    let server = start();
    let forge = Forge::new(&server.state(), "me");
    // With the leeway of 5 s there are 4 s left.
    let token = forge.with(&json!({"exp": now() - 1}));
    let mut client = server.connect().bearing(&token);
    assert_eq!(client.post("/rpc", &echo()).status, 200);
    crate::support::wait_until("the token expires", || client.post("/rpc", &echo()).status == 401);
    client.post("/rpc", &echo()).assert_unauthorized("the token has expired");
    assert!(now() >= claims_of(&token)["exp"].as_u64().expect("a time") + 5);
}

#[test]
fn rotate_ends_all_tokens_of_a_running_server_within_a_second() {
    let server = start();
    let old = [server.mint("a", ["write:/"]), server.mint("b", [])];
    assert!(old.iter().all(|token| is_taken(&server, token)));
    let mut session = server.connect().bearing(&old[0]);
    session.open_session(LEGACY);
    let (code, output, errors) = token_command(&server.state(), &["rotate"], "");
    assert_eq!((code, output.as_str()), (Some(0), ""), "{errors}");
    assert_within_a_second("old tokens are refused", || !is_taken(&server, &old[0]));
    assert!(!is_taken(&server, &old[1]));
    session.call(json!(1), "tools/list", json!({})).assert_unauthorized("the token's signature is wrong");
    let new = server.mint("a", ["write:/"]);
    assert!(is_taken(&server, &new));
    // The same at once after another rotation, and the other way round.
    token_command(&server.state(), &["rotate"], "");
    let newer = server.mint("a", ["write:/"]);
    assert_within_a_second("new tokens are taken", || is_taken(&server, &newer));
    assert!(!is_taken(&server, &new));
}

#[test]
fn revoke_ends_one_token_of_a_running_server_within_a_second() {
    let server = start();
    let tokens: Vec<String> = (0..4).map(|_| server.mint("me", ["write:/"])).collect();
    assert!(tokens.iter().all(|token| is_taken(&server, token)));
    let id = claims_of(&tokens[1])["jti"].as_str().expect("an id").to_owned();
    for (given, input, ended) in
        [(tokens[0].as_str(), "", 0), (&id, "", 1), ("-", &*format!("{}\n", tokens[2]), 2)]
    {
        let (code, output, errors) = token_command(&server.state(), &["revoke", given], input);
        assert_eq!((code, output.as_str()), (Some(0), ""), "{errors}");
        assert!(!errors.contains(&tokens[ended]), "{errors}");
        assert_within_a_second("the token is refused", || !is_taken(&server, &tokens[ended]));
    }
    server
        .connect()
        .bearing(&tokens[0])
        .post("/rpc", &echo())
        .assert_unauthorized("the token has been revoked");
    assert!(is_taken(&server, &tokens[3]), "the others go on");
    // A server that starts later knows it, too.
    let state = server.state();
    let second = Setup::fixtures().env("PINTLE_STATE_DIR", &state).with_local_tokens().start();
    assert_eq!([0, 1, 2, 3].map(|n| is_taken(&second, &tokens[n])), [false, false, false, true]);
}

#[test]
fn only_what_names_a_token_can_be_revoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = mint(folder.path(), "me", &[]);
    let without_id = Forge::new(folder.path(), "me").with(&json!({"jti": null}));
    for given in
        [&token[..token.len() / 2], "a.b", "a.b.c", "", " ", "two words", &without_id, &"x".repeat(300)]
    {
        let (code, output, errors) = token_command(folder.path(), &["revoke", given], "");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{given}: {errors}");
        assert!(errors.contains("id"), "{errors}");
    }
    assert!(!folder.path().join("revoked").exists());
}

#[test]
fn mint_prints_the_token_alone_and_the_token_says_what_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("new/state");
    let arguments = ["mint", "--sub", "me", "--scope", "read:/a b/", "--scope", "run:x", "--ttl", "90m"];
    let (code, _, errors) = token_command(&state, &arguments, "");
    assert_eq!(code, Some(2), "a scope in a token has no space: {errors}");
    let arguments =
        ["mint", "--sub", "me", "--scope", "read:/a/", "--scope", "write:/b run:x", "--ttl", "90m"];
    let (code, output, errors) = token_command(&state, &arguments, "");
    assert_eq!(code, Some(0), "{errors}");
    let token = output.strip_suffix('\n').expect("a line");
    assert!(!token.contains(char::is_whitespace) && token.split('.').count() == 3, "{output}");
    assert!(!errors.contains(token.rsplit('.').next().expect("a signature")), "{errors}");
    let claims = claims_of(token);
    assert_eq!(claims["sub"], json!("me"));
    assert_eq!(claims["scope"], json!("read:/a/ write:/b run:x"));
    let lifetime =
        |claims: &Value| claims["exp"].as_u64().expect("a time") - claims["iat"].as_u64().expect("a time");
    assert_eq!(lifetime(&claims), 90 * 60);
    assert!(claims["iat"].as_u64().is_some_and(|begun| (now() - 120..=now()).contains(&begun)), "{claims}");
    assert!(claims["iss"].is_string() && claims["aud"].is_string(), "{claims}");
    // The secret is not in it, and no two tokens have the same id.
    let secret = fs::read_to_string(state.join("secret")).expect("a secret");
    assert!(!claims.to_string().contains(secret.trim()) && !errors.contains(secret.trim()));
    let other = claims_of(&mint(&state, "me", &[]));
    assert_ne!(other["jti"], claims["jti"]);
    assert_eq!((lifetime(&other), &other["scope"]), (24 * 3600, &json!("")));
    // Whoever gets a token that grants nothing should know.
    let (_, _, errors) = token_command(&state, &["mint"], "");
    assert!(errors.contains("grants nothing") && errors.contains("--scope"), "{errors}");
}

#[test]
fn mint_refuses_what_makes_no_sense() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, named) in [
        (["--scope", "read:docs"], "read:docs"),
        (["--scope", "look:/docs"], "look:/docs"),
        (["--scope", "read:/ WRITE:/"], "WRITE:/"),
        (["--scope", "read:/../x"], "read:/../x"),
        (["--scope", "read:/a/*/b"], "read:/a/*/b"),
        (["--scope", "everything"], "everything"),
        (["--ttl", "0"], "--ttl"),
        (["--ttl", "0s"], "--ttl"),
        (["--ttl", "-5s"], "-5"),
        (["--ttl", "soon"], "--ttl"),
        (["--ttl", "20"], "--ttl"),
        (["--sub", ""], "--sub"),
        (["--sub", "a\nb"], "--sub"),
        (["--sub", &*"x".repeat(257)], "--sub"),
    ] {
        let given = [&["mint"][..], &arguments].concat();
        let (code, output, errors) = token_command(folder.path(), &given, "");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{arguments:?}: {errors}");
        assert!(errors.contains(named), "{arguments:?}: {errors}");
    }
}

#[test]
fn inspect_says_whether_a_token_is_valid_also_by_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path();
    let inspect = |token: &str, input: &str| {
        let (code, output, errors) = token_command(state, &["inspect", token], input);
        let shown: Value =
            serde_json::from_str(&output).unwrap_or_else(|_| panic!("no JSON: {output} {errors}"));
        assert!(!output.contains(token.rsplit('.').next().unwrap_or(token)) || token == "-", "{output}");
        (code, shown)
    };
    let (code, output, errors) = token_command(state, &["inspect", "a.b.c"], "");
    assert_eq!((code, output.as_str()), (Some(2), ""), "there is no secret yet");
    assert!(errors.contains("pintle token mint"), "{errors}");
    let token = mint(state, "me", &["read:/"]);
    let (code, shown) = inspect(&token, "");
    assert_eq!((code, &shown["valid"], &shown["claims"]["sub"]), (Some(0), &json!(true), &json!("me")));
    assert_eq!(shown["claims"]["scope"], json!("read:/"));
    assert_eq!(inspect("-", &format!("{token}\n")), (code, shown));
    let forge = Forge::new(state, "me");
    for (token, problem) in [
        (forge.with(&json!({"exp": now() - 60})), "the token has expired"),
        (forge.with(&json!({"nbf": now() + 60})), "the token is not valid yet"),
        (forge.with(&json!({"iss": "other"})), "the token's issuer is not accepted"),
        (format!("{token}x"), "the token's signature is wrong"),
        ("nonsense".into(), "the token is malformed"),
    ] {
        let (code, shown) = inspect(&token, "");
        assert_eq!((code, &shown["valid"], &shown["problem"]), (Some(1), &json!(false), &json!(problem)));
        assert_eq!(shown["claims"]["sub"], if token == "nonsense" { Value::Null } else { json!("me") });
    }
    token_command(state, &["revoke", &token], "");
    assert_eq!(inspect(&token, "").1["problem"], json!("the token has been revoked"));
    assert_eq!(inspect(&token, "").0, Some(1));
    token_command(state, &["rotate"], "");
    assert_eq!(inspect(&token, "").1["problem"], json!("the token's signature is wrong"));
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn the_secret_is_made_for_its_owner_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    // Whatever the user's umask is.
    for (name, umask) in [("a", "000"), ("b", "022"), ("c", "077")] {
        let state = folder.path().join(name);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
        command.arg(pintle().get_program()).args(["token", "mint"]).env("PINTLE_STATE_DIR", &state);
        let (code, token, errors) = run(&mut command, b"");
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!((mode(&state.join("secret")), mode(&state)), (0o600, 0o700), "{umask}");
        token_command(&state, &["revoke", token.trim()], "");
        assert_eq!(mode(&state.join("revoked")), 0o600);
        let before = fs::read(state.join("secret")).expect("a secret");
        token_command(&state, &["rotate"], "");
        assert_eq!(mode(&state.join("secret")), 0o600);
        assert_ne!(fs::read(state.join("secret")).expect("a secret"), before);
        let names: Vec<_> = fs::read_dir(&state)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["secret"], "nothing is left behind");
    }
}

/// Starts a server that must not start. Returns what it says.
fn refused_start(state: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = pintle();
    command.args(["serve", "--http", "127.0.0.1:0", "--auth", "local"]).current_dir(folder.path());
    command.env("PINTLE_STATE_DIR", state).env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, output, errors) = run(&mut command, b"");
    assert!(code.is_some_and(|code| code != 0) && output.is_empty(), "{code:?} {output} {errors}");
    assert!(!errors.contains("mcp:ready"), "{errors}");
    errors
}

#[test]
fn a_secret_that_others_can_read_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, secret) = (folder.path(), folder.path().join("secret"));
    mint(state, "me", &[]);
    for bits in [0o604, 0o640, 0o644, 0o660, 0o602, 0o777] {
        fs::set_permissions(&secret, Permissions::from_mode(bits)).expect("a mode");
        let (code, output, errors) = token_command(state, &["mint"], "");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{bits:o}: {errors}");
        for errors in [errors, refused_start(state)] {
            assert!(errors.contains("others") && errors.contains("chmod 600"), "{bits:o}: {errors}");
            assert!(errors.contains("pintle token rotate"), "{errors}");
        }
        assert_eq!(token_command(state, &["inspect", "a.b.c"], "").0, Some(2));
    }
    // Rotating is the remedy.
    assert_eq!(token_command(state, &["rotate"], "").0, Some(0));
    assert_eq!(mode(&secret), 0o600);
    assert_eq!(token_command(state, &["mint"], "").0, Some(0));
}

#[test]
fn what_is_no_secret_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, secret) = (folder.path(), folder.path().join("secret"));
    let put = |content: &[u8]| {
        let _ = fs::remove_file(&secret);
        fs::write(&secret, content).expect("writes");
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("a mode");
    };
    let assert_refused = |what: &str| {
        let (code, output, errors) = token_command(state, &["mint"], "");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{what}: {errors}");
        assert!(errors.contains("secret"), "{what}: {errors}");
        assert!(refused_start(state).contains("secret"), "{what}");
    };
    for content in [&b""[..], b"\n", b"short", &b"x".repeat(5000)] {
        put(content);
        assert_refused(&format!("{} bytes", content.len()));
    }
    put(&b"x".repeat(40));
    assert_eq!(token_command(state, &["mint"], "").0, Some(0), "a text of one's own is a secret");
    fs::rename(&secret, state.join("elsewhere")).expect("moves");
    symlink("elsewhere", &secret).expect("a link");
    assert_refused("a link");
    fs::remove_file(&secret).expect("removes");
    fs::create_dir(&secret).expect("a folder");
    assert_refused("a folder");
    fs::remove_dir(&secret).expect("removes");
    rustix::fs::mknodat(rustix::fs::CWD, &secret, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    assert_refused("a pipe");
}

#[test]
fn several_that_mint_at_once_create_one_secret() {
    for _ in 0..crate::support::rounds(3, 30) {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path();
        let tokens: Vec<String> = std::thread::scope(|scope| {
            let mints: Vec<_> = (0..8).map(|_| scope.spawn(|| mint(state, "me", &["read:/"]))).collect();
            mints.into_iter().map(|mint| mint.join().expect("mints")).collect()
        });
        for token in tokens {
            let (code, output, _) = token_command(state, &["inspect", &token], "");
            assert_eq!(code, Some(0), "{output}");
        }
        assert_eq!(fs::read_dir(state).expect("a folder").count(), 1);
    }
}

#[test]
fn a_server_creates_the_secret_and_takes_tokens_that_are_minted_later() {
    let server = start();
    let secret = server.state().join("secret");
    assert_eq!(mode(&secret), 0o600);
    let text = fs::read_to_string(&secret).expect("a secret");
    assert!(is_taken(&server, &server.mint("me", [])));
    assert_eq!(fs::read_to_string(&secret).expect("a secret"), text);
    // Nothing that the server prints gives it away.
    assert!(!server.stderr().contains(text.trim()));
    // Another state folder is another issuer.
    let elsewhere = tempfile::tempdir().expect("a folder");
    assert!(!is_taken(&server, &mint(elsewhere.path(), "me", &["write:/"])));
}

#[test]
fn without_a_secret_that_can_be_used_no_token_is_taken_until_there_is_one() {
    let server = start();
    let token = server.mint("me", []);
    assert!(is_taken(&server, &token));
    let secret = server.state().join("secret");
    let text = fs::read(&secret).expect("a secret");
    fs::remove_file(&secret).expect("removes");
    assert_within_a_second("no token is taken", || !is_taken(&server, &token));
    fs::write(&secret, &text).expect("writes");
    fs::set_permissions(&secret, Permissions::from_mode(0o644)).expect("a mode");
    assert!(!is_taken(&server, &token));
    assert_eq!(token_command(&server.state(), &["rotate"], "").0, Some(0));
    let token = server.mint("me", []);
    assert_within_a_second("the new secret is used", || is_taken(&server, &token));
    assert!(server.stderr().contains("no token is accepted"), "{}", server.stderr());
}

#[test]
fn a_secret_that_others_can_read_meanwhile_is_not_used_any_more() {
    for (name, expected) in [("secret", "could make tokens"), ("revoked", "could take tokens off the list")] {
        let server = start();
        let token = server.mint("me", []);
        assert_eq!(token_command(&server.state(), &["revoke", &server.mint("other", [])], "").0, Some(0));
        assert!(is_taken(&server, &token));
        let file = server.state().join(name);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("a mode");
        assert_within_a_second("no token is taken", || !is_taken(&server, &token));
        crate::support::wait_until("it is said", || server.stderr().contains(expected));
        let said = server.stderr();
        assert_eq!(said.contains("could make tokens"), name == "secret", "{said}");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
        assert_within_a_second("tokens are taken again", || is_taken(&server, &token));
    }
}

#[test]
fn auth_local_is_the_default_and_scopes_of_the_server_are_refused_with_it() {
    let server = Setup::fixtures().args(["--http", "127.0.0.1:0"]).start();
    assert_eq!(server.connect().post("/rpc", &echo()).status, 401);
    assert!(is_taken(&server, &server.mint("me", [])));
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = pintle();
    command.args(["serve", "--http", "127.0.0.1:0", "--scope", "read:/"]).current_dir(folder.path());
    command.env("PINTLE_STATE_DIR", "/nonexistent/pintle-state");
    let (code, _, errors) = run(&mut command, b"");
    assert_ne!(code, Some(0));
    assert!(errors.contains("pintle token mint --scope"), "{errors}");
}

#[test]
fn a_refused_page_can_read_why_and_a_preflight_needs_no_token() {
    let server = start();
    let origin = format!("http://{}", server.address());
    let mut client: Client = server.connect();
    client.set("origin", &origin);
    let asked = [
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization, content-type"),
    ];
    client.send("OPTIONS", "/mcp", &asked, b"");
    let answer = client.answer();
    assert_eq!(answer.status, 204, "{answer:?}");
    let allowed = answer.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
    assert!(allowed.contains("authorization"), "{answer:?}");
    let answer = client.modern(json!(1), "server/discover", json!({}));
    answer.assert_unauthorized("no token was sent");
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin.as_str()), "{answer:?}");
    let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
    assert!(exposed.contains("www-authenticate"), "{answer:?}");
}

#[test]
fn beyond_this_machine_a_proxy_is_needed_and_its_name_is_the_only_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = pintle();
    command.args(["serve", "--http", "0.0.0.0:0", "--auth", "local"]).current_dir(folder.path());
    command.env("PINTLE_STATE_DIR", "/nonexistent/pintle-state");
    let (code, _, errors) = run(&mut command, b"");
    assert_ne!(code, Some(0));
    assert!(errors.contains("TLS") && errors.contains("--behind-proxy"), "{errors}");
    let arguments = ["--http", "0.0.0.0:0", "--behind-proxy", "--public-url", "https://pintle.test:8443/"];
    let server = Setup::fixtures().args(arguments).start();
    let token = server.mint("me", []);
    let status = |host: &str, origin: Option<&str>| {
        let mut client = server.connect().bearing(&token);
        client.set("host", host);
        if let Some(origin) = origin {
            client.set("origin", origin);
        }
        client.post("/rpc", &echo()).status
    };
    assert_eq!(status("pintle.test:8443", None), 200);
    assert_eq!(status("pintle.test:8443", Some("https://pintle.test:8443")), 200);
    assert_eq!(status("pintle.test:8443", Some("https://evil.test")), 403);
    assert_eq!(status("evil.test", None), 403);
}

//! Tokens of an authorization server: tests run their own issuer over HTTP, whose keys change and which can be slow or
//! down.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    rsa,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};

use crate::support::{
    Server, Setup, data,
    http::{Answer, Client},
    pintle, request, run,
    tokens::{changed, hs256, now, signed},
    wait_until,
};

const LEGACY: &str = "2025-11-25";
const AUDIENCE: &str = "https://pintle.test/mcp";
const PUBLIC_URL: &str = "https://pintle.test";

/// A key of an issuer.
enum Key {
    Rs256(Box<RsaKeyPair>),
    Es256(Box<EcdsaKeyPair>),
}

impl Key {
    fn rs256() -> Self {
        let text = fs::read_to_string(data().join("keys/rsa-for-tests-only.pem")).expect("a key");
        let lines = text.lines().skip_while(|line| !line.starts_with("-----BEGIN")).skip(1);
        let base64: String = lines.take_while(|line| !line.starts_with("-----END")).collect();
        let der = BASE64_STANDARD.decode(base64).expect("Base64");
        Self::Rs256(Box::new(RsaKeyPair::from_pkcs8(&der).expect("a key")))
    }

    fn es256() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Self::Es256(Box::new(pair.expect("a key")))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rs256(_) => "RS256",
            Self::Es256(_) => "ES256",
        }
    }

    /// The public half, as a set of keys has it.
    fn public(&self, id: &str) -> Value {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rs256(pair) => {
                let public: rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({"kty": "RSA", "kid": id, "use": "sig", "alg": "RS256", "n": encode(&public.n), "e": encode(&public.e)})
            }
            Self::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": encode(x), "y": encode(y)})
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("signs");
                signature
            }
            Self::Es256(pair) => pair.sign(&random, message).expect("signs").as_ref().to_vec(),
        }
    }

    /// A token with this header, besides the algorithm, and these claims.
    fn token(&self, header: &Value, claims: &Value) -> String {
        let header = changed(header, &json!({"alg": self.algorithm()}));
        signed(&header, claims, |message| self.sign(message))
    }
}

/// How an issuer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    /// It answers when it is well again.
    Slow,
    /// It closes every connection.
    Down,
    /// It answers 500.
    Broken,
}

struct Answers {
    mood: Mood,
    /// The set of keys.
    keys: Value,
    cache_control: String,
    /// What its metadata says besides.
    metadata: Value,
    /// How often each path was asked for.
    asked: BTreeMap<String, usize>,
}

/// An authorization server with its keys.
struct Issuer {
    address: SocketAddr,
    answers: Arc<(Mutex<Answers>, Condvar)>,
}

impl Issuer {
    fn new(keys: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let answers = Answers {
            mood: Mood::Well,
            keys,
            cache_control: "public, max-age=3600".into(),
            metadata: json!({}),
            asked: BTreeMap::new(),
        };
        let answers = Arc::new((Mutex::new(answers), Condvar::new()));
        let shared = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(stream, address, &shared));
            }
        });
        Self { address, answers }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn change(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.answers.0.lock().expect("unpoisoned"));
        self.answers.1.notify_all();
    }

    fn set_mood(&self, mood: Mood) {
        self.change(|answers| answers.mood = mood);
    }

    fn asked(&self, path: &str) -> usize {
        self.answers.0.lock().expect("unpoisoned").asked.get(path).copied().unwrap_or_default()
    }

    /// How often any path was asked for.
    fn asked_in_all(&self) -> usize {
        self.answers.0.lock().expect("unpoisoned").asked.values().sum()
    }

    fn claims(&self) -> Value {
        json!({"iss": self.url(), "aud": AUDIENCE, "sub": "me", "iat": now(), "exp": now() + 600, "scope": "read:/docs"})
    }

    fn setup(&self) -> Setup {
        let setup = Setup::fixtures();
        let root = setup.path("root");
        fs::create_dir(root.join("docs")).expect("a folder");
        fs::write(root.join("docs/a.txt"), "content\n").expect("writes");
        setup.args([
            "--http",
            "127.0.0.1:0",
            "--auth",
            "jwks",
            "--audience",
            AUDIENCE,
            "--issuer",
            &self.url(),
        ])
    }

    fn start(&self) -> Server {
        self.setup().args(["--public-url", PUBLIC_URL]).start()
    }
}

/// Answers one request.
fn answer(stream: TcpStream, address: SocketAddr, (answers, changed_mood): &(Mutex<Answers>, Condvar)) {
    let mut lines = BufReader::new(&stream).lines();
    let Some(Ok(first)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut answers = answers.lock().expect("unpoisoned");
    *answers.asked.entry(path.clone()).or_default() += 1;
    while answers.mood == Mood::Slow {
        answers = changed_mood.wait(answers).expect("unpoisoned");
    }
    let (status, body) = match (answers.mood, path.as_str()) {
        (Mood::Down, _) => return,
        (Mood::Broken, _) => ("500 Broken", json!({})),
        (_, "/.well-known/openid-configuration") => {
            let metadata =
                json!({"issuer": format!("http://{address}"), "jwks_uri": format!("http://{address}/keys")});
            ("200 OK", changed(&metadata, &answers.metadata))
        }
        (_, "/keys") => ("200 OK", answers.keys.clone()),
        _ => ("404 Not Found", json!({})),
    };
    let (body, control) = (body.to_string(), &answers.cache_control);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: {control}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The server may have stopped waiting.
    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
}

fn keys<const N: usize>(keys: [(&str, &Key); N]) -> Value {
    json!({"keys": Vec::from(keys.map(|(id, key)| key.public(id)))})
}

fn echo() -> Value {
    request(json!(1), "test_echo", json!({"value": "hello"}))
}

fn post(server: &Server, token: &str) -> Answer {
    server.connect().bearing(token).post("/rpc", &echo())
}

#[track_caller]
fn assert_taken(server: &Server, token: &str) {
    let answer = post(server, token);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn tokens_of_both_algorithms_open_every_way_in() {
    let (rsa, ec) = (Key::rs256(), Key::es256());
    let issuer = Issuer::new(keys([("rsa", &rsa), ("ec", &ec)]));
    let server = issuer.start();
    for (key, id) in [(&rsa, "rsa"), (&ec, "ec")] {
        let token = key.token(&json!({"kid": id, "typ": "at+jwt"}), &issuer.claims());
        let mut client = server.connect().bearing(&token);
        assert_eq!(client.post("/rpc", &echo()).result(), json!({"value": "hello"}));
        let call = json!({"name": "text.read", "arguments": {"path": "docs/a.txt"}});
        let answer = client.modern(json!(1), "tools/call", call.clone());
        assert_eq!(answer.result()["structuredContent"]["content"], json!("content\n"));
        assert_eq!(client.open_session(LEGACY).call(json!(1), "tools/call", call).status, 200);
        // There is one key for the algorithm, so none needs to be named.
        assert_taken(&server, &key.token(&json!({}), &issuer.claims()));
        // An audience may be one of several.
        let several = changed(&issuer.claims(), &json!({"aud": ["other", AUDIENCE]}));
        assert_taken(&server, &key.token(&json!({"kid": id}), &several));
    }
    // All of that with one look at the keys.
    assert_eq!((issuer.asked("/.well-known/openid-configuration"), issuer.asked("/keys")), (1, 1));
}

#[test]
fn every_bad_token_is_refused_with_the_way_to_a_good_one() {
    let (rsa, ec, stranger) = (Key::rs256(), Key::es256(), Key::es256());
    let issuer = Issuer::new(keys([("rsa", &rsa), ("ec", &ec)]));
    let server = issuer.start();
    let with = |changes: Value| ec.token(&json!({"kid": "ec"}), &changed(&issuer.claims(), &changes));
    let claims = issuer.claims();
    let hmac = |secret: &[u8], id: &str| {
        signed(&json!({"alg": "HS256", "kid": id}), &claims, |message| hs256(secret, message))
    };
    let Key::Rs256(pair) = &rsa else { unreachable!("an RSA key") };
    let Key::Es256(point) = &ec else { unreachable!("an EC key") };
    let jwk = rsa.public("rsa");
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(jwk["n"].as_str().expect("a modulus")).expect("Base64");
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        BASE64_STANDARD.encode(pair.public().as_ref())
    );
    let algorithm = "the token's algorithm is not accepted";
    let signature = "the token's signature is wrong";
    let unknown = "the token's key is not known";
    let good = with(json!({}));
    assert_taken(&server, &good);
    for (token, reason) in [
        // A public key is no secret, in whatever form.
        (hmac(pair.public().as_ref(), "rsa"), algorithm),
        (hmac(&modulus, "rsa"), algorithm),
        (hmac(pem.as_bytes(), "rsa"), algorithm),
        (hmac(jwk.to_string().as_bytes(), "rsa"), algorithm),
        (hmac(point.public_key().as_ref(), "ec"), algorithm),
        (hmac(b"", "rsa"), algorithm),
        (signed(&json!({"alg": "none"}), &claims, |_| Vec::new()), algorithm),
        (signed(&json!({"alg": "PS256", "kid": "rsa"}), &claims, |message| rsa.sign(message)), algorithm),
        (signed(&json!({"alg": "RS512", "kid": "rsa"}), &claims, |message| rsa.sign(message)), algorithm),
        // The key is for another algorithm, so for this one it is not known.
        (signed(&json!({"alg": "RS256", "kid": "ec"}), &claims, |message| ec.sign(message)), unknown),
        (signed(&json!({"alg": "ES256", "kid": "rsa"}), &claims, |message| rsa.sign(message)), unknown),
        (ec.token(&json!({"kid": "unknown"}), &claims), unknown),
        (ec.token(&json!({"kid": "EC"}), &claims), unknown),
        (ec.token(&json!({"kid": 7}), &claims), "the token is malformed"),
        (stranger.token(&json!({"kid": "ec"}), &claims), signature),
        (stranger.token(&json!({}), &claims), signature),
        // Keys that a token brings along are nobody's.
        (stranger.token(&json!({"kid": "ec", "jwk": stranger.public("ec")}), &claims), signature),
        (stranger.token(&json!({"kid": "mine", "jku": format!("{}/mine", issuer.url())}), &claims), unknown),
        (format!("{}AAAA", &good[..good.len() - 4]), signature),
        (
            ec.token(&json!({"kid": "ec", "crit": ["exp"]}), &claims),
            "the token has critical header parameters that are not supported",
        ),
        (with(json!({"iss": "https://elsewhere.test"})), "the token's issuer is not accepted"),
        (with(json!({"iss": format!("{}/", issuer.url())})), "the token's issuer is not accepted"),
        (with(json!({"iss": null})), "the token has no `iss` claim"),
        (with(json!({"aud": "https://elsewhere.test"})), "the token's audience is not this server"),
        (with(json!({"aud": null})), "the token has no `aud` claim"),
        (with(json!({"exp": now() - 10})), "the token has expired"),
        (with(json!({"exp": null})), "the token has no `exp` claim"),
        (with(json!({"nbf": now() + 60})), "the token is not valid yet"),
        (with(json!({"sub": null})), "the token has no `sub` claim"),
        (with(json!({"scope": ["read:/"]})), "the token's `scope` claim has the wrong type"),
    ] {
        let answer = post(&server, &token);
        assert_eq!(answer.status, 401, "{reason}: {answer:?}");
        answer.assert_unauthorized(reason);
        let expected = format!(
            "Bearer resource_metadata=\"{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp\", \
             error=\"invalid_token\", error_description=\"{reason}\""
        );
        assert_eq!(answer.header("www-authenticate"), Some(expected.as_str()));
        let hint = answer.message()["error"]["data"]["hint"].clone();
        assert!(hint.as_str().is_some_and(|hint| hint.contains(&issuer.url())), "{hint}");
    }
    assert_eq!(issuer.asked("/mine"), 0);
    let log = server.stderr();
    for part in good.split('.') {
        assert!(!log.contains(part), "{log}");
    }
}

#[test]
fn a_client_without_a_token_finds_the_authorization_server() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    let server = issuer.start();
    let metadata_url = format!("{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp");
    let expected =
        format!("Bearer resource_metadata=\"{metadata_url}\", error_description=\"no token was sent\"");
    let initialize = crate::support::http::initialize(LEGACY);
    for answer in [
        server.connect().post("/mcp", &initialize),
        server.connect().modern(json!(1), "server/discover", json!({})),
        server.connect().get("/mcp"),
        server.connect().post("/rpc", &echo()),
        // Whatever name the client has for the server, it is told the public one.
        server.connect().set("host", "pintle.test").post("/mcp", &initialize),
        server.connect().set("x-forwarded-host", "evil.test").post("/mcp", &initialize),
    ] {
        answer.assert_unauthorized("no token was sent");
        assert_eq!(answer.header("www-authenticate"), Some(expected.as_str()));
    }
    for (path, resource) in [("", PUBLIC_URL.to_owned()), ("/mcp", format!("{PUBLIC_URL}/mcp"))] {
        for host in [None, Some("pintle.test"), Some("evil.test")] {
            let mut client = server.connect();
            if let Some(host) = host {
                client.set("host", host);
            }
            let answer = client.get(&format!("/.well-known/oauth-protected-resource{path}"));
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, Some("application/json")),
                "{host:?}"
            );
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "a page may read it");
            let metadata: Value = serde_json::from_str(&answer.body).expect("JSON");
            assert_eq!(metadata["resource"], json!(resource));
            assert_eq!(metadata["authorization_servers"], json!([issuer.url()]));
            assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
            let scopes = metadata["scopes_supported"].as_array().expect("scopes");
            assert!(
                scopes.contains(&json!("read:/")) && scopes.contains(&json!("metrics:read")),
                "{metadata}"
            );
        }
    }
    for path in ["/elsewhere", "/mcp/more", "/%22"] {
        let answer = server.connect().get(&format!("/.well-known/oauth-protected-resource{path}"));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    assert_eq!(issuer.asked_in_all(), 0, "none of that needs the issuer");
}

#[test]
fn without_a_public_address_it_is_the_one_that_is_served_on() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    let server = issuer.setup().start();
    let own = format!("http://{}", server.address());
    let answer = server.connect().get("/.well-known/oauth-protected-resource/mcp");
    let metadata: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(metadata["resource"], json!(format!("{own}/mcp")));
    let answer = server.connect().post("/mcp", &crate::support::http::initialize(LEGACY));
    let challenge = answer.header("www-authenticate").expect("a challenge");
    assert!(challenge.contains(&format!("resource_metadata=\"{own}/.well-known/")), "{challenge}");
}

#[test]
fn there_is_no_metadata_without_an_authorization_server() {
    let servers = [Setup::new().with_local_tokens().start(), Setup::new().http().start()];
    for server in servers {
        for path in ["", "/mcp"] {
            let answer = server.connect().get(&format!("/.well-known/oauth-protected-resource{path}"));
            assert_eq!(answer.status, 404, "{answer:?}");
        }
    }
}

#[test]
fn a_missing_scope_comes_with_the_challenge_to_ask_for_it() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    let server = issuer.start();
    let token = key.token(&json!({"kid": "ec"}), &issuer.claims());
    let mut client = server.connect().bearing(&token);
    let mut session = server.connect().bearing(&token);
    session.open_session(LEGACY);
    let challenge = |scope: &str| {
        format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", \
             resource_metadata=\"{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp\""
        )
    };
    let create = json!({"path": "docs/new.txt", "content": "x"});
    let call = json!({"name": "file_create", "arguments": create});
    for answer in [
        client.post("/rpc", &request(json!(1), "file.create", create)),
        client.modern(json!(1), "tools/call", call.clone()),
        session.call(json!(1), "tools/call", call),
    ] {
        answer.assert_missing_scope("write:/docs/new.txt");
        assert_eq!(answer.header("www-authenticate"), Some(challenge("write:/docs/new.txt").as_str()));
    }
    // A stream of progress does not begin before the call is allowed.
    let build = json!({"name": "index_build", "arguments": {}, "_meta": {"progressToken": "p"}});
    let direct = json!({"jsonrpc": "2.0", "id": 1, "method": "index_build", "params": {}, "meta": {"progressToken": "p"}});
    for answer in [
        client.modern(json!(1), "tools/call", build.clone()),
        session.call(json!(1), "tools/call", build),
        client.post("/rpc", &direct),
    ] {
        answer.assert_missing_scope("write:/");
        assert_eq!(answer.header("www-authenticate"), Some(challenge("write:/").as_str()));
    }
    let moved = json!({"path": "docs/a.txt", "to": "b.txt", "hash": "0".repeat(64)});
    let answer = client.post("/rpc", &request(json!(1), "file.move", moved));
    assert_eq!(answer.header("www-authenticate"), Some(challenge("write:/docs/a.txt write:/b.txt").as_str()));
    let answer = client.modern(json!(1), "resources/read", json!({"uri": "list:///"}));
    answer.assert_missing_scope("read:/");
    assert_eq!(answer.header("www-authenticate"), Some(challenge("read:/").as_str()));
    let answer = client.get("/metrics");
    answer.assert_missing_scope("metrics:read");
    assert_eq!(answer.header("www-authenticate"), Some(challenge("metrics:read").as_str()));
    // A path that no scope in a token can name: a part of it would be another scope.
    for path in ["a b.txt", "caf\u{e9}.txt"] {
        let answer = client.post("/rpc", &request(json!(1), "text.read", json!({"path": path})));
        assert_eq!(answer.refusal(), (403, 403), "{answer:?}");
        let challenge = answer.header("www-authenticate").expect("a challenge");
        assert!(
            challenge.starts_with("Bearer error=\"insufficient_scope\", resource_metadata="),
            "{challenge}"
        );
    }
    // What is refused for another reason has no challenge.
    let denied = json!({"path": ".git/hooks/pre-commit", "content": "x"});
    let answer = client.post("/rpc", &request(json!(1), "file.create", denied));
    assert_eq!((answer.status, answer.header("www-authenticate")), (403, None), "{answer:?}");
    assert_eq!(
        client.set("origin", "http://evil.test").post("/rpc", &echo()).header("www-authenticate"),
        None
    );
}

#[test]
fn a_new_key_is_fetched_and_a_removed_one_is_refused_after_its_time() {
    let (old, new) = (Key::es256(), Key::rs256());
    let issuer = Issuer::new(keys([("old", &old)]));
    issuer.change(|answers| answers.cache_control = "max-age=1".into());
    let server = issuer.start();
    let old_token = old.token(&json!({"kid": "old"}), &issuer.claims());
    let new_token = new.token(&json!({"kid": "new"}), &issuer.claims());
    assert_taken(&server, &old_token);
    assert_eq!(post(&server, &new_token).status, 401);
    issuer.change(|answers| {
        answers.keys = keys([("old", &old), ("new", &new)]);
        answers.cache_control = "max-age=3600".into();
    });
    wait_until("the new key is known", || post(&server, &new_token).status == 200);
    assert_taken(&server, &old_token);
    let fetched = issuer.asked("/keys");
    issuer.change(|answers| answers.keys = keys([("new", &new)]));
    assert_taken(&server, &old_token);
    assert_eq!(issuer.asked("/keys"), fetched, "the keys are good for an hour");

    // The same where the keys are good for a second only.
    let issuer = Issuer::new(keys([("old", &old), ("new", &new)]));
    issuer.change(|answers| answers.cache_control = "public, max-age=1, must-revalidate".into());
    let server = issuer.start();
    let [old_token, new_token] =
        [(&old, "old"), (&new, "new")].map(|(key, id)| key.token(&json!({"kid": id}), &issuer.claims()));
    assert_taken(&server, &old_token);
    issuer.change(|answers| answers.keys = keys([("new", &new)]));
    wait_until("the removed key is refused", || {
        assert_taken(&server, &new_token);
        post(&server, &old_token).status == 401
    });
    post(&server, &old_token).assert_unauthorized("the token's key is not known");
    // Another key under the same name is another key.
    let other = Key::es256();
    issuer.change(|answers| answers.keys = keys([("old", &other), ("new", &new)]));
    let other_token = other.token(&json!({"kid": "old"}), &issuer.claims());
    wait_until("the other key is known", || post(&server, &other_token).status == 200);
    post(&server, &old_token).assert_unauthorized("the token's signature is wrong");
}

#[test]
fn all_who_come_with_a_new_key_at_once_are_taken() {
    let (old, new) = (Key::es256(), Key::es256());
    let issuer = Issuer::new(keys([("old", &old)]));
    let server = issuer.start();
    let old_token = old.token(&json!({"kid": "old"}), &issuer.claims());
    assert_taken(&server, &old_token);
    issuer.change(|answers| {
        answers.keys = keys([("old", &old), ("new", &new)]);
        answers.mood = Mood::Slow;
    });
    let token = new.token(&json!({"kid": "new"}), &issuer.claims());
    // The first makes the server ask, as soon as it may again.
    let before = issuer.asked_in_all();
    let (address, token) = (server.address(), token.as_str());
    let ask = || Client::connect(address).bearing(token).post("/rpc", &echo()).status;
    std::thread::scope(|scope| {
        let mut calls = vec![scope.spawn(ask)];
        wait_until("the issuer is asked", || {
            if issuer.asked_in_all() == before && calls[0].is_finished() {
                calls[0] = scope.spawn(ask);
            }
            issuer.asked_in_all() > before
        });
        // The others come while it is asked.
        let mut others: Vec<Client> = (0..5).map(|_| server.connect().bearing(token)).collect();
        for client in &mut others {
            client.send("POST", "/rpc", &[], echo().to_string().as_bytes());
        }
        // Whoever comes with a key that is known does not wait for it.
        assert_taken(&server, &old_token);
        issuer.set_mood(Mood::Well);
        for client in &mut others {
            let answer = client.answer();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        assert!(calls.into_iter().all(|call| call.join().expect("answers") == 200));
    });
}

#[test]
fn unknown_keys_are_asked_for_at_a_bounded_rate() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    let server = issuer.start();
    let good = key.token(&json!({"kid": "ec"}), &issuer.claims());
    assert_taken(&server, &good);
    let begun = std::time::Instant::now();
    let mut client = server.connect();
    for number in 0..300 {
        let token = key.token(&json!({"kid": format!("unknown-{number}")}), &issuer.claims());
        client.set("authorization", &format!("Bearer {token}"));
        client.post("/rpc", &echo()).assert_unauthorized("the token's key is not known");
    }
    let (asked, seconds) = (issuer.asked("/keys"), begun.elapsed().as_secs() as usize);
    assert!(asked <= seconds + 2, "asked {asked} times in {seconds} s");
    assert_taken(&server, &good);
}

#[test]
fn while_the_issuer_is_slow_or_down_its_keys_are_kept() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    issuer.change(|answers| answers.cache_control = "max-age=1".into());
    let server = issuer.start();
    let token =
        |sub: &str| key.token(&json!({"kid": "ec"}), &changed(&issuer.claims(), &json!({"sub": sub})));
    assert_taken(&server, &token("first"));
    for mood in [Mood::Down, Mood::Broken, Mood::Slow] {
        issuer.set_mood(mood);
        let before = issuer.asked_in_all();
        wait_until("the issuer is asked again", || {
            assert_taken(&server, &token(&format!("{mood:?}")));
            issuer.asked_in_all() > before
        });
        // Also those that come now, and not only tokens that were seen before.
        let asked = issuer.asked_in_all();
        for number in 0..20 {
            assert_taken(&server, &token(&format!("{mood:?} {number}")));
        }
        if mood == Mood::Slow {
            assert!(issuer.asked_in_all() <= asked + 1, "one request at a time");
        }
        issuer.set_mood(Mood::Well);
    }
    // An answer that is no set of keys changes nothing either.
    for nonsense in [json!({}), json!({"keys": {}}), json!([]), json!("keys")] {
        issuer.change(|answers| answers.keys = nonsense);
        let before = issuer.asked("/keys");
        wait_until("the keys are fetched again", || {
            assert_taken(&server, &token("me"));
            issuer.asked("/keys") > before
        });
        assert_taken(&server, &token("another"));
    }
    wait_until("it is said", || server.stderr().contains("cannot be fetched"));
    assert!(server.stderr().contains(&issuer.url()), "{}", server.stderr());
}

#[test]
fn a_set_without_a_key_that_can_be_used_ends_all_tokens_until_there_is_one() {
    let key = Key::es256();
    for withdrawn in [json!({"keys": []}), json!({"keys": [{"kty": "oct", "k": "c2VjcmV0"}, "nonsense"]})] {
        let issuer = Issuer::new(keys([("ec", &key)]));
        issuer.change(|answers| answers.cache_control = "max-age=1".into());
        let server = issuer.start();
        let token = key.token(&json!({"kid": "ec"}), &issuer.claims());
        assert_taken(&server, &token);
        issuer.change(|answers| answers.keys = withdrawn);
        wait_until("the token is refused", || post(&server, &token).status == 401);
        post(&server, &token).assert_unauthorized("the token's key is not known");
        // They stay withdrawn while the issuer is down.
        issuer.set_mood(Mood::Down);
        assert_eq!(post(&server, &token).status, 401);
        wait_until("it is said", || server.stderr().contains("has no key for RS256 or ES256"));
        issuer.set_mood(Mood::Well);
        issuer.change(|answers| answers.keys = keys([("ec", &key)]));
        wait_until("the key is known again", || post(&server, &token).status == 200);
    }
}

#[test]
fn an_issuer_that_is_down_from_the_beginning_is_an_upstream_failure_until_it_comes() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    issuer.set_mood(Mood::Down);
    let server = issuer.start();
    let token = key.token(&json!({"kid": "ec"}), &issuer.claims());
    let mut client = server.connect().bearing(&token);
    for _ in 0..2 {
        let answer = client.post("/rpc", &echo());
        assert_eq!(answer.refusal(), (502, 502), "{answer:?}");
        let inside = client.modern(json!(1), "server/discover", json!({}));
        assert_eq!(inside.refusal(), (200, 502), "{inside:?}");
        for answer in [answer, inside] {
            // The token may be good: the client must not throw it away.
            assert_eq!(answer.header("www-authenticate"), None);
            assert_eq!(answer.message()["error"]["data"]["code"], json!("UPSTREAM_FAILED"), "{answer:?}");
        }
    }
    assert_eq!(client.get("/metrics").status, 502);
    assert_eq!(client.get("/healthz").status, 200);
    // Whoever has no token needs no keys to be refused.
    server.connect().post("/rpc", &echo()).assert_unauthorized("no token was sent");
    issuer.set_mood(Mood::Well);
    wait_until("the issuer is asked again", || client.post("/rpc", &echo()).status == 200);
    assert_eq!(client.open_session(LEGACY).call(json!(1), "tools/list", json!({})).status, 200);
}

#[test]
fn metadata_that_is_not_the_issuers_is_not_trusted() {
    let key = Key::es256();
    for metadata in [
        json!({"issuer": "https://elsewhere.test"}),
        json!({"issuer": null}),
        json!({"jwks_uri": null}),
        json!({"jwks_uri": "http://192.0.2.1/keys"}),
        json!({"jwks_uri": "file:///etc/passwd"}),
    ] {
        let issuer = Issuer::new(keys([("ec", &key)]));
        issuer.change(|answers| answers.metadata = metadata.clone());
        let server = issuer.start();
        let answer = post(&server, &key.token(&json!({"kid": "ec"}), &issuer.claims()));
        assert_eq!(answer.refusal(), (502, 502), "{metadata}: {answer:?}");
        assert_eq!(issuer.asked("/keys"), 0);
    }
}

#[test]
fn keys_can_have_an_address_of_their_own_and_only_good_ones_are_used() {
    let (ec, other) = (Key::es256(), Key::es256());
    let mut set = keys([("ec", &ec)]);
    let members = set["keys"].as_array_mut().expect("keys");
    let with = |changes: Value| changed(&other.public("other"), &changes);
    members.extend([
        json!({"kty": "oct", "kid": "other", "k": BASE64_URL_SAFE_NO_PAD.encode("a secret of at least thirty-two bytes")}),
        with(json!({"use": "enc"})),
        with(json!({"alg": "ES384"})),
        with(json!({"crv": "P-384"})),
        with(json!({"x": null})),
        json!({"kty": "RSA", "kid": "small", "n": "AQAB", "e": "AQAB"}),
        json!("no key"),
    ]);
    let issuer = Issuer::new(set);
    let keys_url = format!("{}/keys", issuer.url());
    let server = issuer.setup().args(["--jwks-url", &keys_url]).start();
    assert_taken(&server, &ec.token(&json!({"kid": "ec"}), &issuer.claims()));
    post(&server, &other.token(&json!({"kid": "other"}), &issuer.claims()))
        .assert_unauthorized("the token's key is not known");
    let secret = b"a secret of at least thirty-two bytes";
    let symmetric =
        signed(&json!({"alg": "HS256", "kid": "other"}), &issuer.claims(), |message| hs256(secret, message));
    post(&server, &symmetric).assert_unauthorized("the token's algorithm is not accepted");
    assert_eq!(issuer.asked("/.well-known/openid-configuration"), 0);
}

#[test]
fn callers_of_an_issuer_are_told_apart() {
    let key = Key::es256();
    let issuer = Issuer::new(keys([("ec", &key)]));
    let server = issuer.start();
    let token =
        |sub: &str| key.token(&json!({"kid": "ec"}), &changed(&issuer.claims(), &json!({"sub": sub})));
    let mut one = server.connect().bearing(&token("one"));
    one.open_session(LEGACY);
    let session = one.sent("mcp-session-id").expect("a session").to_owned();
    let mut two = server.connect().bearing(&token("two"));
    two.set("mcp-session-id", &session).set("mcp-protocol-version", LEGACY);
    assert_eq!(two.call(json!(1), "tools/list", json!({})).status, 404);
    assert_eq!(one.call(json!(1), "tools/list", json!({})).status, 200);
}

#[test]
fn an_issuer_that_cannot_be_trusted_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let jwks = ["--http", "127.0.0.1:0", "--auth", "jwks"];
    let good = ["--issuer", "https://issuer.test", "--audience", "pintle"];
    for (arguments, expected) in [
        (vec!["--issuer", "https://issuer.test"], "--audience"),
        (vec!["--audience", "pintle"], "--issuer"),
        (vec!["--issuer", "https://issuer.test", "--audience", ""], "--audience"),
        (vec!["--issuer", "", "--audience", "pintle"], "--issuer"),
        (vec!["--issuer", "http://issuer.test", "--audience", "pintle"], "https"),
        (vec!["--issuer", "http://192.0.2.1", "--audience", "pintle"], "https"),
        (vec!["--issuer", "http://127.0.0.1.issuer.test", "--audience", "pintle"], "https"),
        (vec!["--issuer", "ftp://issuer.test", "--audience", "pintle"], "https://"),
        (vec!["--issuer", "issuer.test", "--audience", "pintle"], "https://"),
        ([&good[..], &["--jwks-url", "http://keys.test"]].concat(), "https"),
        ([&good[..], &["--public-url", "pintle.test"]].concat(), "https://pintle.example"),
        ([&good[..], &["--public-url", "https://pintle.test/path"]].concat(), "https://pintle.example"),
        ([&good[..], &["--http", "0.0.0.0:0", "--public-url", PUBLIC_URL]].concat(), "--behind-proxy"),
        ([&good[..], &["--http", "0.0.0.0:0", "--behind-proxy"]].concat(), "--public-url"),
    ] {
        let arguments = if arguments.contains(&"--http") {
            [&jwks[2..], &arguments].concat()
        } else {
            [&jwks[..], &arguments].concat()
        };
        let mut command = pintle();
        command.arg("serve").args(&arguments).current_dir(folder.path());
        command
            .env("PINTLE_STATE_DIR", folder.path().join("../no-state"))
            .env("MCP_READY_FILE", "/nonexistent/ready");
        let (code, output, errors) = run(&mut command, b"");
        assert!(code.is_some_and(|code| code != 0) && output.is_empty(), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}

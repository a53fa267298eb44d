//! Tokens: minted by the binary, or forged with its secret.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};

use super::{
    Server, Setup,
    http::{Answer, Client},
    pintle, run,
};

impl Setup {
    /// Over HTTP, for whoever has a token of the state folder's secret.
    pub fn with_local_tokens(self) -> Self {
        self.args(["--http", "127.0.0.1:0", "--auth", "local"])
    }
}

impl Server {
    /// The state folder.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// A token of this server's state folder.
    pub fn mint<const N: usize>(&self, subject: &str, scopes: [&str; N]) -> String {
        mint(&self.state(), subject, &scopes)
    }

    /// A connection with a token of its own.
    pub fn connect_with<const N: usize>(&self, subject: &str, scopes: [&str; N]) -> Client {
        self.connect().bearing(&self.mint(subject, scopes))
    }
}

/// Runs `pintle token`.
pub fn token_command(state: &Path, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = pintle();
    command.arg("token").args(arguments).env("PINTLE_STATE_DIR", state).current_dir("/");
    run(&mut command, input.as_bytes())
}

/// A new token.
pub fn mint(state: &Path, subject: &str, scopes: &[&str]) -> String {
    let mut arguments = vec!["mint", "--sub", subject];
    arguments.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    let (code, token, errors) = token_command(state, &arguments, "");
    assert_eq!(code, Some(0), "{errors}");
    token.trim_end().to_owned()
}

/// The claims of a token.
pub fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).expect("claims");
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).expect("Base64");
    serde_json::from_slice(&claims).expect("JSON")
}

/// A token with any header and claims.
pub fn signed(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
    let message = format!("{header}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

/// The HS256 signature of a message.
pub fn hs256(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

/// Makes tokens with the secret of a state folder that the binary would not mint.
pub struct Forge {
    secret: String,
    /// The claims of a good token.
    pub claims: Value,
}

impl Forge {
    /// With the claims of a token of this subject.
    pub fn new(state: &Path, subject: &str) -> Self {
        let claims = claims_of(&mint(state, subject, &["write:/"]));
        let secret = std::fs::read_to_string(state.join("secret")).expect("a secret");
        Self { secret: secret.trim().to_owned(), claims }
    }

    /// A token with this header and these claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        signed(header, claims, |message| hs256(self.secret.as_bytes(), message))
    }

    /// A token whose first two parts are these.
    pub fn sign_message(&self, message: &str) -> String {
        let signature = BASE64_URL_SAFE_NO_PAD.encode(hs256(self.secret.as_bytes(), message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// A token whose claims differ from the good ones; null is no claim.
    pub fn with(&self, changes: &Value) -> String {
        self.sign(&json!({"alg": "HS256", "typ": "JWT"}), &changed(&self.claims, changes))
    }
}

/// Claims that differ from others; null is no claim.
pub fn changed(claims: &Value, changes: &Value) -> Value {
    let mut claims = claims.clone();
    let members = claims.as_object_mut().expect("an object");
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    claims
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// Asserts that something holds at the latest when it is asked for a second from now.
pub fn assert_within_a_second(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    loop {
        let asked = begun.elapsed();
        if holds() {
            return;
        }
        assert!(asked < Duration::from_secs(1), "after a second still not: {what}");
    }
}

impl Answer {
    /// Asserts that the token was refused for this reason, with a body that teaches.
    #[track_caller]
    pub fn assert_unauthorized(&self, reason: &str) {
        let body = self.message();
        assert_eq!(self.refusal(), (401, 401), "{self:?}");
        assert_eq!(body["jsonrpc"], json!("2.0"), "{body}");
        let error = &body["error"]["data"];
        assert_eq!((&error["code"], &error["message"]), (&json!("UNAUTHORIZED"), &json!(reason)), "{body}");
        assert_eq!(body["error"]["message"], json!(reason), "{body}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("Authorization: Bearer")), "{body}");
        let challenge = self.header("www-authenticate").unwrap_or_else(|| panic!("no challenge: {self:?}"));
        assert!(challenge.contains(&format!("error_description=\"{reason}")), "{challenge}");
    }

    /// Asserts that this scope is missing, and that the error names it.
    #[track_caller]
    pub fn assert_missing_scope(&self, scope: &str) {
        assert_eq!(self.refusal(), (403, 403), "wants {scope}: {self:?}");
        let error = &self.message()["error"]["data"];
        assert_eq!(error["code"], json!("FORBIDDEN"), "{self:?}");
        let all: Vec<&str> = scope.split(' ').collect();
        assert_eq!(error["details"]["scope"], json!(all[0]), "{self:?}");
        if all.len() > 1 {
            assert_eq!(error["details"]["scopes"], json!(all), "{self:?}");
        }
        let message = error["message"].as_str().expect("a message");
        for scope in scope.split(' ') {
            assert!(message.contains(&format!("`{scope}`")), "{message} names {scope}");
        }
    }
}

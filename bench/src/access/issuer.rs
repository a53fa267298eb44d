//! An authorization server on loopback: a set of two keys, and tokens that they signed.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{SystemTime, UNIX_EPOCH},
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

/// Whom its tokens are meant for.
pub const AUDIENCE: &str = "https://pintle.test/mcp";

pub struct Issuer {
    address: SocketAddr,
    rs256: RsaKeyPair,
    es256: EcdsaKeyPair,
}

impl Issuer {
    /// An issuer that answers as long as this process runs.
    pub fn start() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let es256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let issuer = Self { address, rs256: rsa_key(), es256: es256.expect("a key") };
        let keys = issuer.keys();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(&stream, address, &keys);
            }
        });
        issuer
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A token that is signed with RS256.
    pub fn rs256_token(&self) -> String {
        self.token("RS256", |message| {
            let mut signature = vec![0; self.rs256.public().modulus_len()];
            let random = SystemRandom::new();
            self.rs256.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("signs");
            signature
        })
    }

    /// A token that is signed with ES256.
    pub fn es256_token(&self) -> String {
        let sign = |message: &[u8]| self.es256.sign(&SystemRandom::new(), message).expect("signs");
        self.token("ES256", |message| sign(message).as_ref().to_vec())
    }

    fn token(&self, algorithm: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let expires = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + 3600;
        let header = json!({"alg": algorithm, "kid": algorithm});
        let claims = json!({
            "iss": self.url(), "aud": AUDIENCE, "sub": "me", "exp": expires, "scope": "write:/"
        });
        let [header, claims] = [header, claims].map(|part| encode(part.to_string().as_bytes()));
        let message = format!("{header}.{claims}");
        let signature = encode(&sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// The public halves of the keys.
    fn keys(&self) -> Value {
        let public: rsa::PublicKeyComponents<Vec<u8>> = self.rs256.public().into();
        let (x, y) = self.es256.public_key().as_ref()[1..].split_at(32);
        json!({"keys": [
            {"kty": "RSA", "kid": "RS256", "alg": "RS256", "n": encode(&public.n), "e": encode(&public.e)},
            {"kty": "EC", "crv": "P-256", "kid": "ES256", "x": encode(x), "y": encode(y)},
        ]})
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The key of the tests: `ring` makes none.
fn rsa_key() -> RsaKeyPair {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/keys/rsa-for-tests-only.pem");
    let text = fs::read_to_string(path).expect("a key");
    let lines = text.lines().skip_while(|line| !line.starts_with("-----BEGIN")).skip(1);
    let base64: String = lines.take_while(|line| !line.starts_with("-----END")).collect();
    RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(base64).expect("Base64")).expect("a key")
}

/// Answers one request: with the keys, or with where they are.
fn answer(mut stream: &TcpStream, address: SocketAddr, keys: &Value) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let asked_for_keys = lines.next().is_some_and(|line| line.starts_with("GET /keys "));
    // Reads the rest of the head, so that the connection is closed without a reset.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let body = match asked_for_keys {
        true => keys.clone(),
        false => {
            json!({"issuer": format!("http://{address}"), "jwks_uri": format!("http://{address}/keys")})
        }
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=3600\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

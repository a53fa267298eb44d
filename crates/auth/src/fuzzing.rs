//! What must hold of tokens and key sets whatever bytes come: the properties that the fuzz targets assert.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{AuditHead, AuditKey, Expectation, KeySet, Keys, crypto, verify};

const SECRET: &[u8] = b"a secret of at least thirty-two bytes";
const NOW: f64 = 1_700_000_000.0;

/// Reads a token as it came, and one that is signed: a line of header and the rest as claims. What is not signed is never
/// accepted; what is accepted has the issuer and the audience that are expected, a subject, and is valid now.
pub fn token(bytes: &[u8]) {
    let expected = Expectation { issuer: "issuer".into(), audience: "server".into() };
    let check = |token: &str| verify(token, &Keys::Secret(SECRET), &expected, NOW);
    if let Ok(text) = std::str::from_utf8(bytes) {
        // The fuzzer does not know the secret.
        assert!(check(text).is_err(), "{text:?}");
    }
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (header, claims) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{header}.{claims}");
    if let Ok(identity) = check(&format!("{signed}.{}", crypto::sign(&signed, SECRET))) {
        assert!(identity.name.starts_with("issuer#"));
        assert!(!identity.subject.trim().is_empty() && !identity.subject.contains(char::is_control));
        assert!(identity.expires + 5.0 > NOW && identity.not_before.is_none_or(|begin| begin - 5.0 <= NOW));
        // The same token with another signature, or for another server, is refused.
        assert!(
            check(&format!("{signed}.{}", crypto::sign(&signed, b"another secret of thirty-two bytes")))
                .is_err()
        );
        let other = Expectation { audience: "another".into(), ..expected };
        let token = format!("{signed}.{}", crypto::sign(&signed, SECRET));
        let for_other = verify(&token, &Keys::Secret(SECRET), &other, NOW).is_ok();
        assert!(!for_other || String::from_utf8_lossy(bytes).contains("another"));
    }
}

/// Reads the public keys of an authorization server. With whatever keys there are, a token that nobody signed with them is
/// refused.
pub fn key_set(bytes: &[u8]) {
    let Ok(keys) = KeySet::parse(bytes) else { return };
    let expected = Expectation { issuer: "issuer".into(), audience: "server".into() };
    for algorithm in ["RS256", "ES256", "HS256", "none"] {
        let header = format!("{{\"alg\":\"{algorithm}\"}}");
        let claims =
            format!("{{\"iss\":\"issuer\",\"aud\":\"server\",\"sub\":\"me\",\"exp\":{}}}", NOW + 60.0);
        let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let token = format!("{header}.{claims}.{}", BASE64_URL_SAFE_NO_PAD.encode([7; 64]));
        assert!(verify(&token, &Keys::Public(&keys), &expected, NOW).is_err());
    }
}

/// Reads the lines of an audit log, and its head. None of them is accepted, because nobody has sealed them.
pub fn audit_log(bytes: &[u8]) {
    let key = AuditKey::new(SECRET);
    let text = String::from_utf8_lossy(bytes);
    for line in text.split('\n') {
        assert!(key.check(&AuditHead::empty(), line).is_err(), "{line:?}");
    }
    assert_eq!(AuditHead::parse(&text, &key), None);
    // What is sealed is accepted, and only there.
    if let Ok(serde_json::Value::Object(record)) = serde_json::from_slice(bytes) {
        let (line, head) = key.append(&AuditHead::empty(), record.clone());
        assert_eq!(key.check(&AuditHead::empty(), &line).as_ref(), Ok(&head));
        assert!(key.check(&head, &line).is_err());
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("token", token);
        seeds::each_seed("key_set", key_set);
        seeds::each_seed("audit_log", audit_log);
    }
}

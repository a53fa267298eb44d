//! Checking a token: its form, its key, its signature and its claims.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use crate::{Identity, KeySet, TokenError, crypto};

/// The longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 8 * 1024;

/// What a token must say besides who bears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Who must have issued it.
    pub issuer: String,
    /// Whom it must be meant for.
    pub audience: String,
}

/// The keys that can verify a token.
pub enum Keys<'a> {
    /// The local secret, with HS256.
    Secret(&'a [u8]),
    /// The public keys of an authorization server, with RS256 or ES256.
    Public(&'a KeySet),
}

/// Checks a token. `now` is in seconds since 1970.
pub fn verify(
    token: &str,
    keys: &Keys<'_>,
    expected: &Expectation,
    now: f64,
) -> Result<Identity, TokenError> {
    if token.len() > LONGEST_TOKEN {
        return Err(TokenError::TooLarge);
    }
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    let signed = &token[..header.len() + 1 + claims.len()];
    let header = object(header)?;
    if header.contains_key("crit") {
        return Err(TokenError::Critical);
    }
    let algorithm = match header.get("alg").and_then(Value::as_str) {
        Some("HS256") => Algorithm::HS256,
        Some("RS256") => Algorithm::RS256,
        Some("ES256") => Algorithm::ES256,
        _ => return Err(TokenError::Algorithm),
    };
    // The kind of the key decides which algorithms are accepted, never the token: else a public key could be used as
    // a secret.
    let is_signed = match keys {
        Keys::Secret(secret) if algorithm == Algorithm::HS256 => {
            crypto::verify(signature, signed, &DecodingKey::from_secret(secret), algorithm)?
        }
        Keys::Public(keys) if algorithm != Algorithm::HS256 => {
            let key_id = match header.get("kid") {
                None => None,
                Some(Value::String(key_id)) => Some(key_id.as_str()),
                Some(_) => return Err(TokenError::Malformed),
            };
            crypto::verify(signature, signed, keys.find(key_id, algorithm)?, algorithm)?
        }
        _ => return Err(TokenError::Algorithm),
    };
    if !is_signed {
        return Err(TokenError::Signature);
    }
    Identity::read(&object(claims)?, expected, now)
}

/// The JSON object in a part of a token.
fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &[u8] = b"a secret of at least thirty-two bytes";
    const NOW: f64 = 1_700_000_000.0;

    fn expected() -> Expectation {
        Expectation { issuer: "issuer".into(), audience: "server".into() }
    }

    fn claims() -> Value {
        json!({"iss": "issuer", "aud": "server", "sub": "me", "exp": NOW + 60.0, "scope": "read:/a nonsense read:b"})
    }

    fn signed(header: &Value, claims: &Value) -> String {
        let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = crypto::sign(&signed, SECRET);
        format!("{signed}.{signature}")
    }

    fn check(token: &str) -> Result<Identity, TokenError> {
        verify(token, &Keys::Secret(SECRET), &expected(), NOW)
    }

    #[test]
    fn each_claim_is_checked() {
        let header = json!({"alg": "HS256"});
        for (name, value, error) in [
            ("iss", json!("other"), TokenError::Issuer),
            ("iss", Value::Null, TokenError::MissingClaim("iss")),
            ("iss", json!(5), TokenError::ClaimType("iss")),
            ("aud", json!("other"), TokenError::Audience),
            ("aud", json!([]), TokenError::Audience),
            ("aud", json!(["other"]), TokenError::Audience),
            ("aud", json!(["server", 5]), TokenError::ClaimType("aud")),
            ("aud", json!({"server": true}), TokenError::ClaimType("aud")),
            ("aud", Value::Null, TokenError::MissingClaim("aud")),
            ("exp", Value::Null, TokenError::MissingClaim("exp")),
            ("exp", json!("1800000000"), TokenError::ClaimType("exp")),
            ("exp", json!(NOW - 5.0), TokenError::Expired),
            ("exp", json!(-1), TokenError::Expired),
            ("nbf", json!(NOW + 6.0), TokenError::NotYetValid),
            ("nbf", json!(true), TokenError::ClaimType("nbf")),
            ("iat", json!("now"), TokenError::ClaimType("iat")),
            ("sub", Value::Null, TokenError::MissingClaim("sub")),
            ("sub", json!(""), TokenError::Subject),
            ("sub", json!(" "), TokenError::Subject),
            ("sub", json!("a\nb"), TokenError::Subject),
            ("sub", json!("x".repeat(257)), TokenError::Subject),
            ("sub", json!(["me"]), TokenError::ClaimType("sub")),
            ("scope", json!(["read:/"]), TokenError::ClaimType("scope")),
            ("jti", json!(7), TokenError::ClaimType("jti")),
        ] {
            let mut claims = claims();
            match value {
                Value::Null => drop(claims.as_object_mut().and_then(|claims| claims.remove(name))),
                value => claims[name] = value,
            }
            assert_eq!(check(&signed(&header, &claims)), Err(error), "{name} {claims}");
        }
        for (name, value) in [
            ("aud", json!(["other", "server"])),
            ("exp", json!(NOW - 4.0)),
            ("nbf", json!(NOW + 4.0)),
            ("iat", json!(NOW + 100.0)),
        ] {
            let mut claims = claims();
            claims[name] = value;
            check(&signed(&header, &claims)).unwrap_or_else(|error| panic!("{claims}: {error}"));
        }
    }

    #[test]
    fn the_form_and_the_header_are_checked() {
        let good = signed(&json!({"alg": "HS256"}), &claims());
        assert_eq!(check(&good).map(|identity| identity.subject), Ok("me".into()));
        let (message, _) = good.rsplit_once('.').expect("a signature");
        for (token, error) in [
            (String::new(), TokenError::Malformed),
            ("a.b".into(), TokenError::Malformed),
            ("a.b.c.d".into(), TokenError::Malformed),
            (good[..good.len() - 3].to_owned(), TokenError::Signature),
            (format!("{good}!"), TokenError::Malformed),
            (format!("{good}="), TokenError::Malformed),
            (format!("{message}."), TokenError::Signature),
            (signed(&json!({"alg": "none"}), &claims()), TokenError::Algorithm),
            (signed(&json!({"alg": "hs256"}), &claims()), TokenError::Algorithm),
            (signed(&json!({"alg": "HS512"}), &claims()), TokenError::Algorithm),
            (signed(&json!({"alg": "RS256"}), &claims()), TokenError::Algorithm),
            (signed(&json!({"alg": ["HS256"]}), &claims()), TokenError::Algorithm),
            (signed(&json!({}), &claims()), TokenError::Algorithm),
            (signed(&json!([]), &claims()), TokenError::Malformed),
            (
                signed(&json!({"alg": "HS256", "crit": ["b64"], "b64": false}), &claims()),
                TokenError::Critical,
            ),
            (signed(&json!({"alg": "HS256"}), &json!("claims")), TokenError::Malformed),
            (signed(&json!({"alg": "HS256", "x": "y".repeat(9000)}), &claims()), TokenError::TooLarge),
        ] {
            assert_eq!(check(&token), Err(error), "{token}");
        }
    }

    #[test]
    fn what_a_scope_claim_has_that_makes_no_sense_grants_nothing() {
        let identity = check(&signed(&json!({"alg": "HS256"}), &claims())).expect("a valid token");
        assert_eq!(identity.scopes, pintle_contract::Scopes::parse(["read:/a"]).expect("a scope"));
    }
}

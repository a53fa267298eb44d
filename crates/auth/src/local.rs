//! The local secret: tokens for the clients of one user's own server, without an authorization server.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use pintle_contract::{ScopeError, Scopes};
use serde_json::json;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{Expectation, Identity, Keys, TokenError, claims::is_subject, crypto, verify};

/// The fewest bytes of a secret: as many as HS256 has.
const SHORTEST: usize = 32;
const LONGEST: usize = 4096;

/// The secret of a state folder, which signs and verifies its tokens. Whoever has it can make any token.
#[derive(Clone)]
pub struct LocalSecret(Vec<u8>);

/// A text that is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a secret has {SHORTEST} to {LONGEST} bytes")]
pub struct SecretError;

/// Why a token is not minted.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum MintError {
    /// No token may name its bearer so.
    #[error("a subject is a name of at most 256 bytes without control characters")]
    Subject,
    /// A scope makes no sense.
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

/// What a token is to say.
pub struct TokenRequest<'a> {
    /// Who bears it.
    pub subject: &'a str,
    /// What it grants.
    pub scopes: &'a [String],
    /// How long it is valid, in seconds.
    pub lifetime: u64,
}

/// A new token.
pub struct Minted {
    /// The token.
    pub token: String,
    /// Its own id, by which it can be revoked.
    pub token_id: String,
}

impl LocalSecret {
    /// A new secret. `random` are bytes that nobody can guess.
    pub fn new(random: [u8; 32]) -> Self {
        Self(BASE64_URL_SAFE_NO_PAD.encode(random).into_bytes())
    }

    /// Reads the secret from its file, whose text is the key. A line feed at its end is not part of it.
    pub fn parse(text: &[u8]) -> Result<Self, SecretError> {
        let text = text.trim_ascii();
        if (SHORTEST..=LONGEST).contains(&text.len()) { Ok(Self(text.to_vec())) } else { Err(SecretError) }
    }

    /// The text of its file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The issuer and the audience of its tokens: a name of this secret, which does not give it away.
    pub fn expectation(&self) -> Expectation {
        let hash = Sha256::new().chain_update(b"the issuer of ").chain_update(&self.0).finalize();
        let name = format!("pintle:{}", BASE64_URL_SAFE_NO_PAD.encode(&hash[..12]));
        Expectation { issuer: name.clone(), audience: name }
    }

    /// Makes a token. `now` is in seconds since 1970, `random` are bytes that no other token has.
    pub fn mint(&self, request: &TokenRequest<'_>, now: u64, random: [u8; 16]) -> Result<Minted, MintError> {
        if !is_subject(request.subject) {
            return Err(MintError::Subject);
        }
        Scopes::parse(request.scopes.iter().map(String::as_str))?;
        let Expectation { issuer, audience } = self.expectation();
        let token_id = BASE64_URL_SAFE_NO_PAD.encode(random);
        let claims = json!({
            "iss": issuer, "aud": audience, "sub": request.subject, "jti": token_id, "iat": now,
            "exp": now.saturating_add(request.lifetime), "scope": request.scopes.join(" "),
        });
        let [header, claims] = [json!({"alg": "HS256", "typ": "JWT"}), claims]
            .map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = crypto::sign(&signed, &self.0);
        Ok(Minted { token: format!("{signed}.{signature}"), token_id })
    }

    /// Checks a token of this secret. `now` is in seconds since 1970.
    pub fn verify(&self, token: &str, now: f64) -> Result<Identity, TokenError> {
        verify(token, &Keys::Secret(&self.0), &self.expectation(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn secret() -> LocalSecret {
        LocalSecret::new([7; 32])
    }

    fn minted(scopes: &[&str]) -> Minted {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let request = TokenRequest { subject: "me", scopes: &scopes, lifetime: 60 };
        secret().mint(&request, NOW, [1; 16]).expect("scopes")
    }

    #[test]
    fn a_minted_token_names_its_bearer_until_it_expires() {
        let Minted { token, token_id } = minted(&["read:/a", "run:test"]);
        let identity = secret().verify(&token, NOW as f64).expect("a valid token");
        assert_eq!((&*identity.subject, identity.token_id), ("me", Some(token_id)));
        assert_eq!(identity.scopes, Scopes::parse(["read:/a", "run:test"]).expect("scopes"));
        let at = |seconds: u64| secret().verify(&token, (NOW + seconds) as f64).err();
        assert_eq!((at(64), at(65)), (None, Some(TokenError::Expired)));
    }

    #[test]
    fn a_token_of_another_secret_is_refused() {
        let token = minted(&[]).token;
        let other = LocalSecret::new([8; 32]);
        assert_eq!(other.verify(&token, NOW as f64), Err(TokenError::Signature));
        assert_eq!(
            LocalSecret::parse(secret().as_bytes()).expect("a secret").verify(&token, NOW as f64).err(),
            None
        );
        let with_line_feed = [secret().as_bytes(), b"\n"].concat();
        assert!(LocalSecret::parse(&with_line_feed).expect("a secret").verify(&token, NOW as f64).is_ok());
        assert_eq!(LocalSecret::parse(b"short").err(), Some(SecretError));
    }

    #[test]
    fn a_token_that_would_be_refused_is_not_minted() {
        let scopes = ["read:docs".to_owned()];
        let request = TokenRequest { subject: "me", scopes: &scopes, lifetime: 60 };
        assert!(matches!(secret().mint(&request, NOW, [1; 16]), Err(MintError::Scope(_))));
        for subject in ["", " ", "a\nb", &"x".repeat(257)] {
            let request = TokenRequest { subject, scopes: &[], lifetime: 60 };
            assert!(matches!(secret().mint(&request, NOW, [1; 16]), Err(MintError::Subject)), "{subject:?}");
        }
    }
}

//! The claims of a token, and whom they make of its bearer.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use pintle_contract::Scopes;
use serde_json::{Map, Value};

use crate::{Expectation, TokenError};

/// How far the clocks of two machines may differ, in seconds.
pub(crate) const LEEWAY: f64 = 5.0;
const LONGEST_SUBJECT: usize = 256;

/// Whom a token names, and what it grants.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Who bears the token, as no other bearer is called: a subject is unique to its issuer only.
    pub name: Arc<str>,
    /// Who bears it, as the issuer says.
    pub subject: Arc<str>,
    /// What it grants.
    pub scopes: Scopes,
    /// The token's own id, by which it can be revoked.
    pub token_id: Option<String>,
    /// When it ends, in seconds since 1970.
    pub expires: f64,
    /// When it begins.
    pub not_before: Option<f64>,
}

impl Identity {
    /// Checks the claims of a token whose signature was verified.
    pub(crate) fn read(
        claims: &Map<String, Value>,
        expected: &Expectation,
        now: f64,
    ) -> Result<Self, TokenError> {
        let issuer = text(claims, "iss")?.ok_or(TokenError::MissingClaim("iss"))?;
        if issuer != expected.issuer {
            return Err(TokenError::Issuer);
        }
        check_audience(claims, &expected.audience)?;
        let subject = subject(claims)?;
        let identity = Self {
            name: format!("{issuer}#{subject}").into(),
            subject: subject.into(),
            scopes: scopes(text(claims, "scope")?.unwrap_or_default()),
            token_id: text(claims, "jti")?.map(str::to_owned),
            expires: number(claims, "exp")?.ok_or(TokenError::MissingClaim("exp"))?,
            not_before: number(claims, "nbf")?,
        };
        number(claims, "iat")?;
        identity.check_time(now)?;
        Ok(identity)
    }

    /// Refuses a token outside its time.
    pub(crate) fn check_time(&self, now: f64) -> Result<(), TokenError> {
        if now >= self.expires + LEEWAY {
            return Err(TokenError::Expired);
        }
        match self.not_before {
            Some(begin) if now < begin - LEEWAY => Err(TokenError::NotYetValid),
            _ => Ok(()),
        }
    }
}

/// A time as tokens have it: what has passed since 1970.
pub fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn text<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, TokenError> {
    let claim = claims.get(name);
    claim.map(|value| value.as_str().ok_or(TokenError::ClaimType(name))).transpose()
}

fn number(claims: &Map<String, Value>, name: &'static str) -> Result<Option<f64>, TokenError> {
    let claim = claims.get(name);
    claim
        .map(|value| value.as_f64().filter(|number| number.is_finite()).ok_or(TokenError::ClaimType(name)))
        .transpose()
}

/// The audience is one text, or several of which one must be this server.
fn check_audience(claims: &Map<String, Value>, expected: &str) -> Result<(), TokenError> {
    let is_meant = match claims.get("aud").ok_or(TokenError::MissingClaim("aud"))? {
        Value::String(audience) => audience == expected,
        Value::Array(audiences) => {
            let texts = audiences.iter().map(Value::as_str).collect::<Option<Vec<_>>>();
            texts.ok_or(TokenError::ClaimType("aud"))?.contains(&expected)
        }
        _ => return Err(TokenError::ClaimType("aud")),
    };
    if is_meant { Ok(()) } else { Err(TokenError::Audience) }
}

fn subject(claims: &Map<String, Value>) -> Result<&str, TokenError> {
    let subject = text(claims, "sub")?.ok_or(TokenError::MissingClaim("sub"))?;
    if is_subject(subject) { Ok(subject) } else { Err(TokenError::Subject) }
}

/// Whether a token may name its bearer so.
pub(crate) fn is_subject(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= LONGEST_SUBJECT && !name.contains(char::is_control)
}

/// The scopes of a `scope` claim. What makes no sense grants nothing; an authorization server may also grant what other
/// servers have, such as `openid`.
fn scopes(claim: &str) -> Scopes {
    let usable = claim.split(' ').filter(|text| Scopes::parse([*text]).is_ok());
    Scopes::parse(usable).unwrap_or_else(|_| Scopes::none())
}

//! Why a token is refused.

use thiserror::Error;

/// Why a token is refused. Its text is the reason that the client and the log get; it repeats nothing of the token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// There is no `Authorization` header.
    #[error("no token was sent")]
    Missing,
    /// There is more than one.
    #[error("more than one Authorization header was sent")]
    SeveralHeaders,
    /// The header is of another scheme, or empty.
    #[error("the Authorization header must be `Bearer`, a space and a token")]
    NotBearer,
    /// It has more bytes than a token may have.
    #[error("the token is too large")]
    TooLarge,
    /// It is not three parts of Base64 with JSON in them.
    #[error("the token is malformed")]
    Malformed,
    /// It demands extensions that are not known here.
    #[error("the token has critical header parameters that are not supported")]
    Critical,
    /// Its algorithm is not accepted.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// No key has its key id.
    #[error("the token's key is not known")]
    UnknownKey,
    /// The keys of the authorization server are not there yet.
    #[error("the keys of the authorization server could not be fetched")]
    NoKeys,
    /// The signature is not the key's.
    #[error("the token's signature is wrong")]
    Signature,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not valid yet.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It was issued by another.
    #[error("the token's issuer is not accepted")]
    Issuer,
    /// It is meant for another.
    #[error("the token's audience is not this server")]
    Audience,
    /// It was revoked.
    #[error("the token has been revoked")]
    Revoked,
    /// A claim is missing.
    #[error("the token has no `{0}` claim")]
    MissingClaim(&'static str),
    /// A claim has another type than it must have.
    #[error("the token's `{0}` claim has the wrong type")]
    ClaimType(&'static str),
    /// The subject is empty or too long, or has control characters.
    #[error("the token's subject is not a name")]
    Subject,
}

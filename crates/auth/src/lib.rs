//! Bearer tokens (JWTs, RFC 7519), checked without any I/O: whoever has bytes, keys and the time can use this crate.
//!
//! A **token** names a subject and its scopes until it expires. A **key set** verifies its signature: the local secret
//! (HS256), or the public keys of an authorization server (JWKS: RS256 and ES256). What a token must say besides is the
//! **expectation**: issuer and audience. [`verify`] checks all of it; [`TokenCache`] remembers tokens that passed.

mod audit;
mod cache;
mod claims;
mod crypto;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod jwks;
mod local;
mod verify;

pub use audit::{AuditError, AuditHead, AuditKey, AuditProblem};
pub use cache::TokenCache;
pub use claims::{Identity, since_1970};
pub use error::TokenError;
pub use jwks::{JwksError, KeySet};
pub use local::{LocalSecret, MintError, Minted, SecretError, TokenRequest};
pub use verify::{Expectation, Keys, verify};

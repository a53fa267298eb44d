//! The public keys of an authorization server (JWKS, RFC 7517).

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::TokenError;

/// How many keys of a set are used.
const MOST_KEYS: usize = 100;
/// The smallest RSA modulus, in bytes: 2,048 bits.
const SMALLEST_MODULUS: usize = 256;

/// The keys of an authorization server that can verify tokens.
pub struct KeySet {
    keys: Vec<PublicKey>,
}

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// A text that is not a set of keys.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JwksError {
    /// It is not JSON, or has no `keys`.
    #[error("it is not a JSON Web Key Set")]
    NotASet,
}

impl KeySet {
    /// Reads a set. Keys that are for something else are left out. A set without any key that can be used is a set, too:
    /// the issuer has withdrawn its keys.
    pub fn parse(text: &[u8]) -> Result<Self, JwksError> {
        #[derive(Deserialize)]
        struct Written {
            keys: Vec<Value>,
        }
        let Written { keys } = serde_json::from_slice(text).map_err(|_| JwksError::NotASet)?;
        let keys = keys.into_iter().take(MOST_KEYS).filter_map(PublicKey::read).collect();
        Ok(Self { keys })
    }

    /// Whether no key can be used, so that no token is valid.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of an id. A token without a key id can only mean the one key that there is for its algorithm.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&DecodingKey, TokenError> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithm == algorithm);
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        found.map(|key| &key.key).ok_or(TokenError::UnknownKey)
    }
}

impl PublicKey {
    fn read(written: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(written).ok()?;
        if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(parameters) if parameters.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            _ => return None,
        };
        let declared = match algorithm {
            Algorithm::RS256 => KeyAlgorithm::RS256,
            _ => KeyAlgorithm::ES256,
        };
        if jwk.common.key_algorithm.is_some_and(|own| own != declared) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        if let DecodingKeyKind::RsaModulusExponent { n, .. } = key.kind()
            && n.iter().skip_while(|byte| **byte == 0).count() < SMALLEST_MODULUS
        {
            return None;
        }
        Some(Self { id: jwk.common.key_id, algorithm, key })
    }
}

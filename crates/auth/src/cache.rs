//! Tokens that were verified lately.
//!
//! Verifying an RS256 or ES256 signature takes longer than answering a small call. What can change between two uses of a
//! token is checked on each of them: its time, whether it was revoked, and whether the keys are still the same.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::{Identity, TokenError};

/// How many tokens are remembered.
const MOST: usize = 4096;

/// Tokens that passed, by their hash: a comparison of hashes says nothing about a token to who measures its time.
#[derive(Default)]
pub struct TokenCache {
    tokens: Mutex<HashMap<[u8; 32], Remembered>>,
}

struct Remembered {
    identity: Arc<Identity>,
    /// The keys by which it was verified.
    generation: u64,
}

impl TokenCache {
    /// The identity of a token: the remembered one, if it still holds, or what `verify` finds out. `generation` changes
    /// whenever the keys do.
    pub fn get_or_verify(
        &self,
        token: &str,
        generation: u64,
        now: f64,
        verify: impl FnOnce() -> Result<Identity, TokenError>,
    ) -> Result<Arc<Identity>, TokenError> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let remembered = self.tokens.lock().get(&hash).and_then(|remembered| {
            (remembered.generation == generation).then(|| Arc::clone(&remembered.identity))
        });
        if let Some(identity) = remembered {
            identity.check_time(now)?;
            return Ok(identity);
        }
        let identity = Arc::new(verify()?);
        let mut tokens = self.tokens.lock();
        if tokens.len() >= MOST {
            tokens
                .retain(|_, token| token.generation == generation && token.identity.check_time(now).is_ok());
        }
        if tokens.len() >= MOST {
            // Whoever bears so many valid tokens has them verified again.
            tokens.clear();
        }
        tokens.insert(hash, Remembered { identity: Arc::clone(&identity), generation });
        Ok(identity)
    }
}

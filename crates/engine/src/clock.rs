//! Times and ids for logs and progress, which `--deterministic` fixes.

use std::sync::atomic::{AtomicU64, Ordering};

/// The source of times and random ids.
#[derive(Debug)]
pub struct Clock {
    deterministic: bool,
    random_state: AtomicU64,
}

impl Clock {
    /// A clock with the real time, or one that stands still.
    pub fn new(deterministic: bool) -> Self {
        let seed = getrandom::u64().unwrap_or_else(|_| std::process::id().into());
        Self { deterministic, random_state: AtomicU64::new(seed) }
    }

    /// Whether times and ids are fixed.
    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Now, as ISO 8601 in UTC with milliseconds.
    pub fn now(&self) -> String {
        let now = if self.deterministic { jiff::Timestamp::UNIX_EPOCH } else { jiff::Timestamp::now() };
        format!("{now:.3}")
    }

    /// `digits` hexadecimal digits for a trace or span id: unique, not secret.
    pub fn random_hex(&self, digits: usize) -> String {
        if self.deterministic {
            return "0".repeat(digits);
        }
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut random = 0;
        let digit = |index: usize| {
            if index.is_multiple_of(16) {
                random = self.next_random();
            }
            random = random.rotate_left(4);
            char::from(HEX[(random & 15) as usize])
        };
        (0..digits).map(digit).collect()
    }

    /// SplitMix64: every step of the counter gives another well-mixed number.
    fn next_random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.random_state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

//! Times and ids for logs and progress, which `--deterministic` fixes.

use parking_lot::Mutex;

/// The source of times and random ids.
#[derive(Debug)]
pub struct Clock {
    deterministic: bool,
    random: Mutex<fastrand::Rng>,
}

impl Clock {
    /// A clock with the real time, or one that stands still.
    pub fn new(deterministic: bool) -> Self {
        let seed = getrandom::u64().unwrap_or_else(|_| std::process::id().into());
        Self { deterministic, random: Mutex::new(fastrand::Rng::with_seed(seed)) }
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
        let mut random = self.random.lock();
        (0..digits).map(|_| random.digit(16)).collect()
    }
}

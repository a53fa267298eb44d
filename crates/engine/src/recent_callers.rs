//! Whether more than one caller uses the server at the moment.
//!
//! One caller alone has the whole server. As soon as there are others, none may take all of it: [`crate::admission`]
//! keeps a slot free, and transports begin the requests of a caller one after the other.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long after its last message a caller counts as one who uses the server: an agent thinks between two calls.
const RECENT: Duration = Duration::from_secs(60);

/// The last two callers: enough to tell for each caller when another one was last seen.
#[derive(Default)]
pub(crate) struct RecentCallers(Mutex<[Option<Seen>; 2]>);

struct Seen {
    caller: Arc<str>,
    at: Instant,
}

impl RecentCallers {
    /// A message of a caller has come.
    pub(crate) fn saw(&self, caller: &str) {
        let at = Instant::now();
        let mut seen = self.0.lock();
        match seen.iter().position(|seen| seen.as_ref().is_some_and(|seen| *seen.caller == *caller)) {
            Some(known) => {
                seen.swap(0, known);
                if let Some(latest) = &mut seen[0] {
                    latest.at = at;
                }
            }
            None => {
                seen.swap(0, 1);
                seen[0] = Some(Seen { caller: caller.into(), at });
            }
        }
    }

    /// Whether somebody else has called recently.
    pub(crate) fn others_than(&self, caller: &str) -> bool {
        let now = Instant::now();
        let seen = self.0.lock();
        seen.iter().flatten().any(|seen| *seen.caller != *caller && now.duration_since(seen.at) < RECENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_caller_counts_until_it_was_silent_for_a_while() {
        let callers = RecentCallers::default();
        callers.saw("a");
        assert!(!callers.others_than("a") && callers.others_than("b"));
        callers.saw("b");
        callers.saw("c");
        assert!(["a", "b", "c"].iter().all(|caller| callers.others_than(caller)));
        tokio::time::advance(RECENT).await;
        callers.saw("c");
        assert!(!callers.others_than("c") && callers.others_than("a"));
    }
}

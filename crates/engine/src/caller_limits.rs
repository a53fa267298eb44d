//! Limits for each caller: how many of its calls there may be at once, and how many a second.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Stage};
use serde_json::json;
use tokio::time::Instant;

/// When whoever was turned away may try again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The calls of all callers.
#[derive(Clone)]
pub(crate) struct CallerLimits {
    /// How many calls a caller may have at once; 0 is no limit.
    calls: usize,
    /// How many calls a caller may make in a second; 0 is no limit.
    rate: u32,
    callers: Arc<Mutex<HashMap<String, CallerState>>>,
}

struct CallerState {
    calls: usize,
    /// A token bucket: each call takes one, and they come back at the rate. There are at most those of one second.
    tokens: f64,
    filled: Instant,
}

/// A call that counts until this is dropped.
pub(crate) struct CountedCall {
    limits: CallerLimits,
    caller: String,
}

impl CallerLimits {
    pub(crate) fn new(calls: usize, rate: u32) -> Self {
        Self { calls, rate, callers: Arc::default() }
    }

    /// Counts a call, or turns it away. `None` if there are no limits.
    pub(crate) fn count(&self, caller: &str) -> Result<Option<CountedCall>, Fault> {
        if self.calls == 0 && self.rate == 0 {
            return Ok(None);
        }
        let (now, rate) = (Instant::now(), f64::from(self.rate));
        let mut callers = self.callers.lock();
        // A caller whose bucket is full again and who has no calls need not be remembered.
        if callers.len() >= 1024 {
            callers.retain(|_, state| state.calls > 0 || state.refilled(now, rate) < rate);
        }
        let state = callers.entry(caller.to_owned()).or_insert_with(|| CallerState {
            calls: 0,
            tokens: rate,
            filled: now,
        });
        if self.calls > 0 && state.calls >= self.calls {
            let message = format!("{} calls of this caller are running or waiting; no more may", self.calls);
            return Err(overloaded(message, RETRY_AFTER));
        }
        if self.rate > 0 {
            state.tokens = state.refilled(now, rate);
            state.filled = now;
            if state.tokens < 1.0 {
                let message = format!("this caller may make {} calls a second", self.rate);
                return Err(overloaded(message, Duration::from_secs_f64((1.0 - state.tokens) / rate)));
            }
            state.tokens -= 1.0;
        }
        state.calls += 1;
        Ok(Some(CountedCall { limits: self.clone(), caller: caller.to_owned() }))
    }
}

impl CallerState {
    fn refilled(&self, now: Instant, rate: f64) -> f64 {
        (self.tokens + now.duration_since(self.filled).as_secs_f64() * rate).min(rate)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let mut callers = self.limits.callers.lock();
        if let Some(state) = callers.get_mut(&self.caller) {
            state.calls -= 1;
            if state.calls == 0 && self.limits.rate == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

/// The fault of a call that is turned away.
pub(crate) fn overloaded(message: String, retry_after: Duration) -> Fault {
    let millis = retry_after.as_millis().max(1);
    Fault::new(ErrorCode::QueueOverloaded, message)
        .at(Stage::Admission)
        .hint("try again in a moment, with fewer calls at once")
        .details(json!({ "retryAfterMs": millis }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_so_many_calls_at_once_and_others_have_theirs() {
        let limits = CallerLimits::new(2, 0);
        let held: Vec<_> = (0..2).map(|_| limits.count("a").expect("may call")).collect();
        let refused = limits.count("a").err().expect("too many");
        assert_eq!(refused.code, ErrorCode::QueueOverloaded);
        assert!(limits.count("b").is_ok());
        drop(held);
        assert!(limits.count("a").is_ok());
        assert!(limits.callers.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_may_make_so_many_calls_a_second() {
        let limits = CallerLimits::new(0, 4);
        assert!((0..4).all(|_| limits.count("a").is_ok()));
        let refused = limits.count("a").err().expect("too many");
        assert_eq!(refused.details.as_ref().and_then(|details| details["retryAfterMs"].as_u64()), Some(250));
        assert!(limits.count("b").is_ok());
        tokio::time::advance(Duration::from_millis(251)).await;
        assert!(limits.count("a").is_ok() && limits.count("a").is_err());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!((0..9).filter(|_| limits.count("a").is_ok()).count(), 4);
    }
}

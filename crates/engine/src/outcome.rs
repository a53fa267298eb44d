//! How a call ended, and what the client gets of it.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault};
use pintle_tool::{Answer, Failure, LARGE};
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::budget::Reservation;

/// How a call ended. Results are compact JSON texts: what travels, and many times smaller than values.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With a result.
    Success(Arc<RawValue>),
    /// With a result that reports a failure in the toolset's own words.
    Declined(Arc<RawValue>, Failure),
    /// With an error.
    Fault(Fault),
}

impl Outcome {
    /// A success with this object.
    pub fn success(value: &Value) -> Self {
        match to_raw_value(value) {
            Ok(json) => Self::Success(json.into()),
            Err(_) => Self::Fault(unwritable()),
        }
    }

    /// Serializes what came out of a tool: the only time that this happens.
    pub(crate) fn serialize(answer: Answer) -> Self {
        match (to_raw_value(&answer.value), answer.failure) {
            (Ok(json), None) => Self::Success(json.into()),
            (Ok(json), Some(failure)) => Self::Declined(json.into(), failure),
            (Err(_), _) => Self::Fault(unwritable()),
        }
    }

    /// The error code, if it failed.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Success(_) => None,
            Self::Declined(_, failure) => Some(failure.code),
            Self::Fault(fault) => Some(fault.code),
        }
    }

    /// Whether the outcome may be stored under an idempotency key: the same call would end the same way again, or must
    /// not happen again.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Declined(_, failure) if failure.took_effect => true,
            Self::Fault(fault) if fault.took_effect => true,
            outcome => !outcome.code().is_some_and(ErrorCode::is_retryable),
        }
    }

    /// Whether it takes long to write.
    pub fn is_large(&self) -> bool {
        match self {
            Self::Success(json) | Self::Declined(json, _) => json.get().len() > LARGE,
            Self::Fault(_) => false,
        }
    }

    /// The size of the result or error object as it travels.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Success(json) | Self::Declined(json, _) => json.get().len(),
            Self::Fault(fault) => json_size(fault),
        }
    }
}

/// The outcome of a call, with the memory that is reserved for its reply until that is written.
pub struct Reply {
    /// How the call ended.
    pub outcome: Outcome,
    /// To be kept until the reply's frame is written or dropped.
    pub reservation: Reservation,
    /// The names of the arguments that had to be converted.
    pub repaired: Vec<String>,
}

impl Reply {
    pub(crate) fn new(outcome: Outcome, reservation: Reservation) -> Self {
        Self { outcome, reservation, repaired: Vec::new() }
    }

    /// An error is short: it needs no reservation.
    pub(crate) fn fault(fault: Fault) -> Self {
        Self::new(Outcome::Fault(fault), Reservation::default())
    }
}

fn unwritable() -> Fault {
    Fault::internal("the result could not be written as JSON")
}

/// The size of a value's compact JSON, without making it.
pub(crate) fn json_size(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

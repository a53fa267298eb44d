//! What a tool is given besides its arguments.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pintle_contract::{ErrorCode, Fault};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::progress::Progress;

/// Who is calling: the local user on a pipe, or a token's issuer and subject.
#[derive(Clone, Debug)]
pub struct Caller {
    identity: String,
}

impl Caller {
    /// The local user on a pipe of their own.
    pub fn local() -> Self {
        static PIPES: AtomicU64 = AtomicU64::new(0);
        Self { identity: format!("local#{}", PIPES.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Whoever reaches a server that asks for no token.
    pub fn anonymous() -> Self {
        Self { identity: "anonymous".into() }
    }

    /// What tells this caller from any other.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

/// The circumstances of one call. Cheap to clone; the call's slot is free once every clone is gone.
#[derive(Clone)]
pub struct CallContext {
    pub(crate) caller: Arc<Caller>,
    /// Fires when the call is cancelled, over its deadline or answered: whatever still works may stop.
    pub(crate) ended: CancellationToken,
    pub(crate) progress: Progress,
    pub(crate) _slot: Arc<OwnedSemaphorePermit>,
}

impl CallContext {
    /// Who is calling.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Tells the caller how far the work is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Fires when nobody waits for the work any more: the call was cancelled or is over its deadline.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether nobody waits for the work any more. Long computations ask now and then.
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Runs a computation where it may take its time. A tool must not compute for more than about a
    /// millisecond anywhere else: until it yields, its call can be neither cancelled nor timed out.
    ///
    /// The computation keeps the call's slot until it ends, also when the call was given up.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let context = self.clone();
        match tokio::task::spawn_blocking(move || work(&context)).await {
            Ok(result) => Ok(result),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Fault::new(ErrorCode::Cancelled, "the server is stopping")),
            },
        }
    }
}

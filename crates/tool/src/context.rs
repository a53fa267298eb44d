//! What a tool is given besides its arguments.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pintle_contract::{Access, ErrorCode, Fault, Scopes, Stage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{cancel::Cancel, progress::Progress};

/// Who is calling: the local user on a pipe, or a token's issuer and subject.
#[derive(Clone, Debug)]
pub struct Caller {
    identity: String,
    scopes: Scopes,
}

impl Caller {
    /// The local user on a pipe of their own.
    pub fn local() -> Self {
        static PIPES: AtomicU64 = AtomicU64::new(0);
        let identity = format!("local#{}", PIPES.fetch_add(1, Ordering::Relaxed));
        Self { identity, scopes: Scopes::everything() }
    }

    /// Whoever reaches a server that asks for no token.
    pub fn anonymous() -> Self {
        Self { identity: "anonymous".into(), scopes: Scopes::everything() }
    }

    /// The same caller, who may do less.
    #[must_use]
    pub fn restricted_to(self, scopes: Scopes) -> Self {
        Self { scopes, ..self }
    }

    /// What it may do.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Refuses what no scope covers, and names the scope that would.
    pub fn require(&self, access: &Access) -> Result<(), Fault> {
        if self.scopes.cover(access) {
            return Ok(());
        }
        let message = format!("this needs the scope `{access}`, which the caller does not have");
        Err(Fault::new(ErrorCode::Forbidden, message)
            .at(Stage::Authorize)
            .details(serde_json::json!({"scope": access.to_string()})))
    }

    /// What distinguishes this caller from any other.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

/// The circumstances of one call. Cheap to clone; the call's slot is free once every clone is gone.
#[derive(Clone)]
pub struct CallContext {
    parts: Arc<CallParts>,
}

/// What those who serve tools put into a [`CallContext`].
pub struct CallParts {
    /// Who is calling.
    pub caller: Arc<Caller>,
    /// Fires when the call is cancelled, over its deadline or answered: whatever still works may stop.
    pub ended: CancellationToken,
    /// Where progress goes.
    pub progress: Progress,
    /// The call's one switch.
    pub cancel: Arc<Cancel>,
    /// What the call occupies, free again when the last clone of the context is dropped.
    pub slot: Option<Box<dyn Send + Sync>>,
    /// How many bytes a result may have.
    pub largest_result: usize,
    /// Arguments with what the caller wrote for them, where that was no JSON and the tool said what it means.
    pub reread: Vec<(String, String)>,
}

/// The fault of a result that has, or would have, so many bytes.
pub fn result_too_large(bytes: usize, limit: usize) -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the result has {bytes} bytes; at most {limit} are allowed"),
    )
    .hint("ask for less at a time, or raise max_result_bytes in the configuration")
    .details(json!({"reason": "result_too_large", "bytes": bytes, "limit": limit}))
}

impl CallContext {
    /// The context of a call.
    pub fn new(parts: CallParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// A context outside any server, for tests of a toolset: no slot, no deadline, no progress.
    pub fn detached(caller: Caller) -> Self {
        Self::new(CallParts {
            caller: Arc::new(caller),
            ended: CancellationToken::new(),
            progress: Progress::silent(),
            cancel: Arc::default(),
            slot: None,
            largest_result: usize::MAX,
            reread: Vec::new(),
        })
    }

    /// How many bytes a result may have. What a caller could ask for without end is refused before it is gathered.
    pub fn largest_result(&self) -> usize {
        self.parts.largest_result
    }

    /// What the caller wrote for an argument whose meaning [`Tool::reread`](crate::Tool::reread) gave.
    pub fn reread(&self, argument: &str) -> Option<&str> {
        self.parts.reread.iter().find(|(name, _)| name == argument).map(|(_, text)| text.as_str())
    }

    /// Who is calling.
    pub fn caller(&self) -> &Caller {
        &self.parts.caller
    }

    /// Reports to the caller how far the work is.
    pub fn progress(&self) -> &Progress {
        &self.parts.progress
    }

    /// Fires when nobody waits for the work any more: the call was cancelled or is over its deadline.
    pub fn ended(&self) -> &CancellationToken {
        &self.parts.ended
    }

    /// Whether nobody waits for the work any more. Long computations ask now and then.
    pub fn has_ended(&self) -> bool {
        self.parts.ended.is_cancelled()
    }

    /// To be asked once, right before a change that cannot be undone. If this says yes, the call can be neither
    /// cancelled nor timed out any more, and its caller gets what came of it; if no, nothing may happen.
    pub fn commit(&self) -> bool {
        self.parts.cancel.commit()
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

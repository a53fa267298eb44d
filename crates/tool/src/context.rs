//! The context of a call: caller, cancellation, deadline and progress.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pintle_contract::{Access, ErrorCode, Fault, Permissions, Refusal, Scopes, Stage, Verb};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    cancel::{Cancel, CleanupGuard},
    progress::Progress,
};

/// Who is calling: the local user on a pipe, or a token's issuer and subject.
#[derive(Clone, Debug)]
pub struct Caller {
    identity: Arc<str>,
    /// The subject of a token.
    subject: Option<Arc<str>>,
    permissions: Permissions,
}

impl Caller {
    /// The local user on a pipe of their own.
    pub fn local() -> Self {
        static PIPES: AtomicU64 = AtomicU64::new(0);
        Self::known_as(format!("local#{}", PIPES.fetch_add(1, Ordering::Relaxed)))
    }

    /// Any caller of a server without authentication.
    pub fn anonymous() -> Self {
        Self::known_as("anonymous")
    }

    /// A caller whose identity was checked. It may do everything until [`Caller::restricted_to`] says less.
    pub fn known_as(identity: impl Into<Arc<str>>) -> Self {
        Self { identity: identity.into(), subject: None, permissions: Permissions::everything() }
    }

    /// The same caller with fewer permissions.
    #[must_use]
    pub fn restricted_to(self, permissions: Permissions) -> Self {
        Self { permissions, ..self }
    }

    /// The same caller as the subject of a token.
    #[must_use]
    pub fn with_subject(self, subject: impl Into<Arc<str>>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    /// The subject of the caller's token.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// What the caller may do.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Refuses an access that the caller does not have.
    pub fn require(&self, access: &Access) -> Result<(), Fault> {
        self.require_all(std::slice::from_ref(access))
    }

    /// Refuses a call if the caller lacks one of its accesses, and names all scopes that are missing. What a deny rule
    /// covers is named first, because no scope helps.
    pub fn require_all(&self, accesses: &[Access]) -> Result<(), Fault> {
        let (mut missing, mut denied) = (Vec::new(), None);
        for access in accesses {
            match self.permissions.check(access) {
                Ok(()) => {}
                Err(Refusal::Denied(verb, path)) => drop(denied.get_or_insert((verb, path))),
                Err(Refusal::MissingScope(access)) => missing.push(access),
            }
        }
        let missing = scopes_for(&missing);
        let named = missing.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(", ");
        if let Some((verb, path)) = denied {
            let done = match verb {
                Verb::Read => "read",
                Verb::Write => "written",
            };
            let message = format!("{path} may not be {done}: a deny rule of this server covers it");
            let hint = "work without it; only the user can change this, in the server's configuration \
                        (`[[deny]]`, and `[allow]` for what is denied by default)";
            return Err(match missing.as_slice() {
                [] => forbidden(message),
                _ => {
                    forbidden(format!("{message}; other paths need {named}, which the caller does not have"))
                        .details(json!({"denied": path.as_str(), "scopes": missing}))
                }
            }
            .hint(hint));
        }
        let (message, details) = match missing.as_slice() {
            [] => return Ok(()),
            [scope] => (
                format!("this needs the scope {named}, which the caller does not have"),
                json!({ "scope": scope }),
            ),
            [first, ..] => (
                format!("this needs the scopes {named}, which the caller does not have"),
                json!({"scope": first, "scopes": missing}),
            ),
        };
        Err(forbidden(message).details(details))
    }

    /// A text that is unique to this caller and its scopes. An outcome that was stored for the same caller with other
    /// scopes may show what these scopes do not.
    pub fn identity_and_scopes(&self) -> String {
        format!("{} {:?}", self.identity, self.permissions.scopes())
    }

    /// A text that is unique to this caller.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

/// The scopes that would grant all of these, without those that another one includes.
fn scopes_for(missing: &[Access]) -> Vec<String> {
    let scopes: Vec<String> = missing.iter().map(Access::to_string).collect();
    let includes = |index: usize, access: &Access| {
        Scopes::parse([scopes[index].as_str()]).is_ok_and(|granted| granted.cover(access))
    };
    let mut needed: Vec<usize> = Vec::new();
    for (index, access) in missing.iter().enumerate() {
        if !needed.iter().any(|&other| includes(other, access)) {
            needed.retain(|&other| !includes(index, &missing[other]));
            needed.push(index);
        }
    }
    needed.into_iter().map(|index| scopes[index].clone()).collect()
}

fn forbidden(message: String) -> Fault {
    Fault::new(ErrorCode::Forbidden, message).at(Stage::Authorize)
}

/// Decides whether a call may do something, and records the decision.
pub trait Authorizer: Send + Sync {
    /// Refuses what the caller may not do.
    fn authorize(&self, accesses: &[Access]) -> Result<(), Fault>;
}

/// The context of one call. Cheap to clone; the call's slot is released when the last clone is dropped.
#[derive(Clone)]
pub struct CallContext {
    parts: Arc<CallParts>,
}

/// The parts of a [`CallContext`], which the engine provides.
pub struct CallParts {
    /// Who is calling.
    pub caller: Arc<Caller>,
    /// Decides about accesses that are only known while the call runs. None: the caller's permissions alone decide.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Fires when the call is cancelled, past its deadline or answered: all remaining work can stop.
    pub ended: CancellationToken,
    /// Where progress goes.
    pub progress: Progress,
    /// The call's cancellation state.
    pub cancel: Arc<Cancel>,
    /// The call's slot in the queue, released when the last clone of the context is dropped.
    pub slot: Option<Box<dyn Send + Sync>>,
    /// The size limit of a result, in bytes.
    pub largest_result: usize,
    /// Repaired arguments: the name, and the text that the caller wrote (see [`Tool::reread`](crate::Tool::reread)).
    pub reread: Vec<(String, String)>,
}

/// The fault for a result over the size limit.
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
            authorizer: None,
            ended: CancellationToken::new(),
            progress: Progress::silent(),
            cancel: Arc::default(),
            slot: None,
            largest_result: usize::MAX,
            reread: Vec::new(),
        })
    }

    /// The size limit of a result, in bytes. A tool whose result can be of any size checks it before collecting all of it.
    pub fn largest_result(&self) -> usize {
        self.parts.largest_result
    }

    /// The text that the caller wrote for an argument, if [`Tool::reread`](crate::Tool::reread) converted it.
    pub fn reread(&self, argument: &str) -> Option<&str> {
        self.parts.reread.iter().find(|(name, _)| name == argument).map(|(_, text)| text.as_str())
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.parts.caller
    }

    /// Refuses what the caller may not do, as the server does before the call for what its arguments name. For paths that
    /// are not in the arguments, because the tool has to look for them.
    pub fn authorize(&self, accesses: &[Access]) -> Result<(), Fault> {
        match &self.parts.authorizer {
            Some(authorizer) => authorizer.authorize(accesses),
            None => self.caller().require_all(accesses),
        }
    }

    /// Reports progress to the caller.
    pub fn progress(&self) -> &Progress {
        &self.parts.progress
    }

    /// The cancellation token: fires when the call was cancelled or is past its deadline.
    pub fn ended(&self) -> &CancellationToken {
        &self.parts.ended
    }

    /// Whether the call was cancelled or is past its deadline. Long computations check it regularly.
    pub fn has_ended(&self) -> bool {
        self.parts.ended.is_cancelled()
    }

    /// The point of no return: call it once, right before a change that cannot be undone. If it returns true, the call can
    /// be neither cancelled nor timed out any more, and its caller gets the result. If false, nothing must be changed.
    pub fn commit(&self) -> bool {
        self.parts.cancel.commit()
    }

    /// For work that cleans up after itself if the call ends early. As long as the guard lives, the reply that the call was
    /// cancelled or timed out waits, for some seconds at most, so that the caller finds nothing half done.
    pub fn cleanup_guard(&self) -> CleanupGuard {
        self.parts.cancel.cleanup_guard()
    }

    /// Runs a computation on a blocking thread. A tool must not compute for more than about a millisecond on the async
    /// runtime: until it yields, its call can be neither cancelled nor timed out.
    ///
    /// The computation keeps the call's slot until it ends, even if the call is cancelled.
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

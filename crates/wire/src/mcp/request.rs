//! What travels with an MCP request through the SDK, from the bridge to the handler and back.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_contract::Meta;
use pintle_engine::{Incoming, Reservation};
use pintle_tool::{Caller, Cancel, ProgressSink};
use rmcp::{ErrorData, RoleServer, service::RequestContext};
use serde_json::{Value, value::RawValue};

use super::clients::ResultForm;

/// A request that the SDK has. Cheap to clone; it travels in the extensions of the SDK's request.
#[derive(Clone)]
pub(crate) struct McpRequest(Arc<RequestState>);

struct RequestState {
    /// The message, until the handler takes it. What nobody takes is logged by the bridge or, if the SDK drops the
    /// request, when the last clone goes.
    incoming: Mutex<Option<Incoming>>,
    held: Mutex<HeldReply>,
    meta: Meta,
    idempotency_key: Option<String>,
    progress: Arc<dyn ProgressSink>,
    shows_missing_scopes: bool,
    task: Option<Value>,
}

/// The part of a reply that goes past the SDK, from the handler to the bridge.
#[derive(Default)]
pub(crate) struct HeldReply {
    /// A result that is written into the frame as it is, instead of being parsed for the SDK's types.
    pub(crate) body: Option<ResultBody>,
    /// The memory that is reserved for the frame.
    pub(crate) reservation: Reservation,
}

/// The JSON of a result.
pub(crate) enum ResultBody {
    /// A tool's, and how it is sent.
    Tool(Arc<RawValue>, ResultForm),
    /// A resource's: its one content.
    Resource(Arc<RawValue>),
    /// The whole of a result.
    Whole(Box<RawValue>),
}

impl McpRequest {
    pub(crate) fn new(
        incoming: Incoming,
        meta: Meta,
        idempotency_key: Option<String>,
        progress: Arc<dyn ProgressSink>,
        shows_missing_scopes: bool,
        task: Option<Value>,
    ) -> Self {
        Self(Arc::new(RequestState {
            incoming: Mutex::new(Some(incoming)),
            held: Mutex::default(),
            meta,
            idempotency_key,
            progress,
            shows_missing_scopes,
            task,
        }))
    }

    /// The request that the SDK calls a handler with.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        let request = context.extensions.get::<Self>().cloned();
        request.ok_or_else(|| ErrorData::internal_error("a request that came past the bridge", None))
    }

    /// Takes the message. Whoever takes it has to answer it.
    pub(crate) fn take(&self) -> Result<Incoming, ErrorData> {
        self.take_unanswered()
            .ok_or_else(|| ErrorData::internal_error("a request that was handled twice", None))
    }

    /// Takes the message if no handler has taken it.
    pub(crate) fn take_unanswered(&self) -> Option<Incoming> {
        self.0.incoming.lock().take()
    }

    /// Who sent the message and what cancels it, until it is taken.
    pub(crate) fn caller_and_cancel(&self) -> Option<(Arc<Caller>, Arc<Cancel>)> {
        let incoming = self.0.incoming.lock();
        incoming.as_ref().map(|incoming| (Arc::clone(incoming.caller()), Arc::clone(incoming.cancel())))
    }

    /// What the request says about the task that it asks for, if it does.
    pub(crate) fn task(&self) -> Option<&Value> {
        self.0.task.as_ref()
    }

    /// Leaves something for the bridge, which writes the reply.
    pub(crate) fn hold(&self, reply: HeldReply) {
        *self.0.held.lock() = reply;
    }

    /// Leaves a result for the bridge, beside the memory that is reserved for it.
    pub(crate) fn hold_body(&self, body: ResultBody) {
        self.0.held.lock().body = Some(body);
    }

    /// What was left for the bridge.
    pub(crate) fn take_held(&self) -> HeldReply {
        std::mem::take(&mut self.0.held.lock())
    }

    /// What the envelope says about the request.
    pub(crate) fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// The key under which the outcome is to be kept.
    pub(crate) fn idempotency_key(&self) -> Option<String> {
        self.0.idempotency_key.clone()
    }

    /// Where progress goes.
    pub(crate) fn progress(&self) -> Arc<dyn ProgressSink> {
        Arc::clone(&self.0.progress)
    }

    /// Whether a missing scope shows outside the reply, as HTTP's status does: then the reply is an error of the
    /// protocol.
    pub(crate) fn shows_missing_scopes(&self) -> bool {
        self.0.shows_missing_scopes
    }
}

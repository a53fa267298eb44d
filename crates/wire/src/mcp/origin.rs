//! What a call brings along that the SDK's types have no place for.

use std::sync::Arc;

use pintle_contract::{Meta, RequestId};
use pintle_engine::{Caller, Cancel, ProgressSink, Transport};

use crate::http::{ReplyStream, Ticket};

/// Travels in the extensions of a request, from the transport to the handler.
#[derive(Clone)]
pub(crate) struct Origin {
    /// The id as the client wrote it.
    pub(crate) id: Option<RequestId>,
    /// Who is calling.
    pub(crate) caller: Arc<Caller>,
    /// The way it came in.
    pub(crate) transport: Transport,
    /// The call's switch.
    pub(crate) cancel: Arc<Cancel>,
    /// What the envelope says about the request.
    pub(crate) meta: Meta,
    /// The key under which the outcome is to be kept.
    pub(crate) idempotency_key: Option<String>,
    /// Where progress goes.
    pub(crate) progress: Option<Arc<dyn ProgressSink>>,
    /// The stream that the reply goes to, where there is one.
    pub(crate) reply_stream: Option<ReplyStream>,
    /// Its place among the calls that belong to no session.
    pub(crate) ticket: Option<Arc<Ticket>>,
}

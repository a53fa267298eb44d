//! What a call brings along that the SDK's types have no place for.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use pintle_contract::{Meta, RequestId};
use pintle_engine::{Caller, Cancel, Engine, ProgressSink, Refused, Reservation, Transport};
use rmcp::model::ErrorData;
use serde_json::value::RawValue;

use super::{clients::ResultForm, message};
use crate::http::{ReplyStream, Ticket};

/// What is known of a request before the SDK has it.
#[derive(Clone)]
pub(crate) struct Asked {
    engine: Arc<Engine>,
    transport: Transport,
    method: Arc<str>,
    frame_bytes: usize,
    /// Whether it has become a call: then the engine logs it.
    pub(crate) is_call: Arc<AtomicBool>,
    held: Arc<Mutex<HeldReply>>,
}

/// The part of a reply that goes past the SDK, from the handler to the transport.
#[derive(Default)]
pub(crate) struct HeldReply {
    /// A tool's result: it is written into the frame as it is, instead of being parsed for the SDK's types.
    pub(crate) result: Option<ToolJson>,
    /// The memory that is reserved for the frame.
    pub(crate) reservation: Reservation,
}

/// The JSON of a tool's result.
pub(crate) struct ToolJson {
    pub(crate) json: Arc<RawValue>,
    /// How it is sent.
    pub(crate) form: ResultForm,
}

impl Asked {
    pub(crate) fn new(engine: &Arc<Engine>, transport: Transport, method: &str, frame_bytes: usize) -> Self {
        let engine = Arc::clone(engine);
        Self {
            engine,
            transport,
            method: method.into(),
            frame_bytes,
            is_call: Arc::default(),
            held: Arc::default(),
        }
    }

    /// Leaves something for the transport that will write the reply.
    pub(crate) fn hold(&self, reply: HeldReply) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = reply;
    }

    /// What was left for the transport.
    pub(crate) fn take_held(&self) -> HeldReply {
        std::mem::take(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Logs an error that the SDK answered with. What became a call the engine has logged.
    pub(crate) async fn log(self, id: RequestId, error: ErrorData) {
        if self.is_call.load(Ordering::Relaxed) {
            return;
        }
        let fault = message::fault_of(&error);
        let refused = Refused { id: Some(id), method: Some(self.method.as_ref().to_owned()), fault };
        self.engine.log_refusal(&refused, &self.transport, self.frame_bytes).await;
    }
}

/// Travels in the extensions of a request, from the transport to the handler.
#[derive(Clone)]
pub(crate) struct Origin {
    /// The id as the client wrote it.
    pub(crate) id: Option<RequestId>,
    /// What was known of it before the SDK had it.
    pub(crate) asked: Asked,
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

//! A request that stands alone: the revisions without sessions.

use std::sync::Arc;

use axum::http::StatusCode;
use pintle_contract::{PROTOCOL_VERSION_KEY, RequestId};
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        ClientJsonRpcMessage, ErrorCode, ErrorData, InitializeRequestParams, JsonRpcMessage, ProtocolVersion,
        ServerJsonRpcMessage,
    },
    service::serve_directly_with_ct,
    transport::Transport,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{refusal::error_status, stream::EventStream},
    mcp::{Asked, Gone, Origin, message},
};

/// The number under which the SDK sees the one request.
const NUMBER: i64 = 1;

/// Has the SDK answer one request on its stream. `Err` says what is wrong with the params.
pub(crate) fn serve(
    handler: impl ServerHandler,
    method: &str,
    params: Value,
    id: RequestId,
    stream: Arc<EventStream>,
    origin: Origin,
    end: CancellationToken,
) -> Result<(), String> {
    let version = params["_meta"].get(PROTOCOL_VERSION_KEY).cloned();
    let version: Option<ProtocolVersion> = version.and_then(|version| serde_json::from_value(version).ok());
    let peer = version.map(|version| {
        let mut peer = InitializeRequestParams::default();
        peer.protocol_version = version;
        peer
    });
    let asked = origin.asked.clone();
    let message = message::request(method, params, NUMBER, origin)?;
    let answered = CancellationToken::new();
    let transport = SingleTransport { message: Some(message), asked, id, stream, answered };
    let service = serve_directly_with_ct(handler, transport, peer, end);
    tokio::spawn(async move {
        let _ = service.waiting().await;
    });
    Ok(())
}

struct SingleTransport {
    message: Option<ClientJsonRpcMessage>,
    asked: Asked,
    id: RequestId,
    stream: Arc<EventStream>,
    answered: CancellationToken,
}

impl Drop for SingleTransport {
    fn drop(&mut self) {
        // However the SDK leaves, nobody is left waiting.
        self.stream.end();
    }
}

impl Transport<RoleServer> for SingleTransport {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let mut failed = None;
        match message {
            JsonRpcMessage::Response(response) => {
                let held = self.asked.take_held();
                let frame = message::result_frame(&self.id, &response.result, held.result.as_ref());
                self.stream.reply(frame, StatusCode::OK, held.reservation);
                self.answered.cancel();
            }
            JsonRpcMessage::Error(error) => {
                let status = stateless_status(&error.error);
                let held = self.asked.take_held();
                self.stream.reply(message::error_frame(&self.id, &error.error), status, held.reservation);
                failed = Some((self.asked.clone(), self.id.clone(), error.error));
                self.answered.cancel();
            }
            other => self.stream.push(message::told_frame(&other, |_| Some(self.id.clone()))),
        }
        async move {
            if let Some((asked, id, error)) = failed {
                asked.log(id, error).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if let Some(message) = self.message.take() {
            return Some(message);
        }
        self.answered.cancelled().await;
        None
    }

    async fn close(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// The statuses that this revision has for its own errors.
fn stateless_status(error: &ErrorData) -> StatusCode {
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        _ => error_status(error),
    }
}

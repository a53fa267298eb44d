//! JSON-RPC messages, as a client sends and reads them.

use pintle_surface::{DocumentError, read_document};
use serde_json::{Value, json};

use crate::ClientError;

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// What a message is to a client that waits for the answer to `id`.
pub(crate) enum Incoming {
    Answer(Result<Value, (i64, String)>),
    /// The server asks something; this is the reply.
    Asked(Value),
    /// Nothing to do with the answer.
    Other,
}

/// A message that came while `method` was waited for; nothing if it is not JSON.
pub(crate) fn parse(text: &[u8], method: &'static str) -> Result<Option<Value>, ClientError> {
    match read_document(text) {
        Ok(message) => Ok(Some(message)),
        Err(error @ DocumentError::TooDeep) => Err(ClientError::TooDeep(method, error)),
        Err(DocumentError::NotJson(_)) => Ok(None),
    }
}

pub(crate) fn read(mut message: Value, id: u64) -> Incoming {
    if let (Some(method), Some(asked)) = (message.get("method").and_then(Value::as_str), message.get("id")) {
        return Incoming::Asked(match method {
            "ping" => json!({"jsonrpc": "2.0", "id": asked, "result": {}}),
            _ => {
                json!({"jsonrpc": "2.0", "id": asked, "error": {"code": -32601, "message": "not supported"}})
            }
        });
    }
    if message.get("id").and_then(Value::as_u64) != Some(id) {
        return Incoming::Other;
    }
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
        let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
        return Incoming::Answer(Err((code, text.chars().take(500).collect())));
    }
    match message.get_mut("result") {
        Some(result) => Incoming::Answer(Ok(result.take())),
        None => Incoming::Other,
    }
}

pub(crate) fn refused(method: &'static str, (code, message): (i64, String)) -> ClientError {
    ClientError::Refused { method, code, message }
}

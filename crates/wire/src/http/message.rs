//! The message that a `POST` brings: read, opened, and with what its headers say of it.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, request::Parts},
};
use pintle_contract::{Fault, Stage};
use pintle_engine::{Incoming, Received};
use pintle_rpc::{Dialect, Opened};
use pintle_tool::{LARGE, block_in_place_if};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    ServerState,
    accept::Accepts,
    body,
    connection::Connection,
    rejection::{Reason, Rejection},
    request_id,
};

/// A message whose body and envelope are good.
pub(crate) enum Message {
    /// It wants one reply, of a kind that its client accepts.
    Request(Incoming, Opened),
    /// It wants no reply.
    Notification(Incoming, Opened),
    /// It answers something that the server asked.
    Response(Value),
}

/// How a client reads its reply.
pub(crate) struct ClientReading {
    pub(crate) accepts: Accepts,
    /// Ends with the connection that the reply is read from.
    pub(crate) connection: Option<CancellationToken>,
}

impl<S: Sync> FromRequestParts<S> for ClientReading {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let accepts = Accepts::read(&parts.headers);
        Ok(Self { accepts, connection: Connection::of(&parts.extensions) })
    }
}

/// What a `POST` brings, for the extractors of the paths that take one.
pub(crate) struct Posted {
    pub(crate) message: Message,
    pub(crate) client: ClientReading,
    pub(crate) parts: Parts,
    /// How large the body was.
    pub(crate) bytes: usize,
}

impl Posted {
    /// Reads a message in the dialect of its path. `to_accept` is what a client is refused with that accepts no reply at
    /// all; it needs to accept one only if it wants one.
    pub(crate) async fn read(
        request: Request,
        state: &Arc<ServerState>,
        dialect: Dialect,
        to_accept: &'static str,
    ) -> Result<Self, Rejection> {
        let (mut parts, body) = body::read(request, state, dialect).await?;
        let Ok(client) = ClientReading::from_request_parts(&mut parts, state).await;
        let transport = request_id::transport(&parts.extensions);
        let caller = state.caller_of(&parts.extensions);
        let turn = state.turn(&caller).await;
        let received =
            block_in_place_if(body.len() > LARGE, || state.engine.receive(&body, &caller, &transport));
        let message = match received.holding(turn) {
            Received::Request(incoming, mut opened) => match add_headers(&parts.headers, &mut opened) {
                Ok(()) if client.accepts.nothing() => {
                    return Err(Reason::NotAcceptable(to_accept).reject(incoming).await);
                }
                Ok(()) => Message::Request(incoming, opened),
                Err(fault) => return Err(Reason::Fault(fault).reject(incoming).await),
            },
            Received::Notification(incoming, mut opened) => match add_headers(&parts.headers, &mut opened) {
                Ok(()) => Message::Notification(incoming, opened),
                Err(fault) => return Err(Reason::Fault(fault).reject(incoming).await),
            },
            Received::Refused(incoming, fault) => return Err(Reason::Fault(fault).reject(incoming).await),
            Received::Response(response) => Message::Response(response),
        };
        Ok(Self { message, client, parts, bytes: body.len() })
    }
}

/// Adds what the headers say to what the envelope says: the idempotency key and the trace.
fn add_headers(headers: &HeaderMap, opened: &mut Opened) -> Result<(), Fault> {
    take_key(headers, &mut opened.idempotency_key)?;
    if opened.meta.traceparent.is_none() {
        let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        opened.meta.traceparent = traceparent.map(str::to_owned);
    }
    Ok(())
}

/// The key may come in a header; what it may be is the envelope's rule.
fn take_key(headers: &HeaderMap, key: &mut Option<String>) -> Result<(), Fault> {
    const LONGEST: usize = 255;
    let wrong = |message: &str| Err(Fault::invalid(Stage::Envelope, message));
    let mut values = headers.get_all("idempotency-key").iter();
    let header = match (values.next(), values.next()) {
        (None, _) => return Ok(()),
        (Some(header), None) => header,
        (Some(_), Some(_)) => return wrong("the Idempotency-Key header appears twice"),
    };
    let Ok(header) = header.to_str() else { return wrong("the Idempotency-Key header is not plain text") };
    if header.is_empty() || header.len() > LONGEST {
        return wrong("the Idempotency-Key header must have 1 to 255 characters");
    }
    match key {
        Some(key) if key != header => wrong("the Idempotency-Key header differs from `idempotencyKey`"),
        _ => {
            *key = Some(header.to_owned());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_from_the_header_or_the_envelope_and_must_be_the_same_in_both() {
        let (longest, too_long) = ("k".repeat(255), "k".repeat(256));
        for (headers, envelope, expected) in [
            (&[][..], None, Ok(None)),
            (&[], Some("a"), Ok(Some("a"))),
            (&["a"], None, Ok(Some("a"))),
            (&["a"], Some("a"), Ok(Some("a"))),
            (&[longest.as_str()], None, Ok(Some(longest.as_str()))),
            (&["a"], Some("b"), Err("the Idempotency-Key header differs from `idempotencyKey`")),
            (&["a", "a"], None, Err("the Idempotency-Key header appears twice")),
            (&[""], None, Err("the Idempotency-Key header must have 1 to 255 characters")),
            (&[too_long.as_str()], None, Err("the Idempotency-Key header must have 1 to 255 characters")),
            (&["\u{e9}"], None, Err("the Idempotency-Key header is not plain text")),
        ] {
            let mut map = HeaderMap::new();
            for value in headers {
                let value = axum::http::HeaderValue::from_bytes(value.as_bytes()).expect("a header");
                map.append("idempotency-key", value);
            }
            let mut key = envelope.map(str::to_owned);
            let taken = take_key(&map, &mut key);
            let found = taken.map(|()| key.as_deref()).map_err(|fault| fault.message.clone());
            assert_eq!(found, expected.map_err(str::to_owned), "{headers:?} {envelope:?}");
        }
    }
}

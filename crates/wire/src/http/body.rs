//! The body of a request, in memory: JSON by its type, within the limit, and sent in time.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, header, request::Parts},
};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use pintle_rpc::Dialect;

use super::{
    ServerState,
    rejection::{Reason, Rejection},
};

/// How long a client may take to send a body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, so that the client reads why it was refused: one whose
/// connection is closed while it still sends sees only that.
const MOST_DISCARDED: usize = 64 << 20;

/// Reads the body of a message in the dialect of its path.
pub(crate) async fn read(
    request: Request,
    state: &ServerState,
    dialect: Dialect,
) -> Result<(Parts, Bytes), Rejection> {
    let (parts, body) = request.into_parts();
    let checked = match check_type(&parts.headers) {
        Ok(()) => read_within_limits(body, &parts.headers, state.options.max_request_bytes, dialect).await,
        Err(reason) => Err(reason),
    };
    match checked {
        Ok(bytes) => Ok((parts, bytes)),
        Err(reason) => {
            let seen = if let Reason::TooLarge { bytes, .. } = reason { bytes } else { 0 };
            Err(reason.reject(state.unopened(&parts.extensions, seen)).await)
        }
    }
}

/// CSRF guard: a browser lets a page of another site send anything but JSON without a CORS preflight.
fn check_type(headers: &HeaderMap) -> Result<(), Reason> {
    let is_identity = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(is_identity) {
        return Err(Reason::Compressed);
    }
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    match media_type.trim().eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Reason::NotJson),
    }
}

async fn read_within_limits(
    body: Body,
    headers: &HeaderMap,
    limit: usize,
    dialect: Dialect,
) -> Result<Bytes, Reason> {
    let too_large = |bytes, is_read| Reason::TooLarge { bytes, limit, dialect, is_read };
    // A client that asks first, or that wants to send more than is ever thrown away, need not begin.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let asks_first = headers.contains_key(header::EXPECT);
    if announced > limit && (asks_first || announced - limit > MOST_DISCARDED) {
        return Err(too_large(announced, false));
    }
    match tokio::time::timeout(READ_TIMEOUT, gather(body, limit)).await {
        Ok(Ok(Ok(bytes))) => Ok(bytes),
        Ok(Ok(Err(OverLimit(bytes)))) => Err(too_large(bytes, true)),
        Ok(Err(_)) => Err(Reason::CutOff),
        Err(_) => Err(Reason::TooSlow),
    }
}

/// A body over the limit; how much of it was seen.
struct OverLimit(usize);

async fn gather(mut body: Body, limit: usize) -> Result<Result<Bytes, OverLimit>, axum::Error> {
    let mut whole = BytesMut::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen += data.len();
        if seen <= limit {
            // Most bodies come in one piece, which need not be copied.
            if whole.is_empty() && body.is_end_stream() {
                return Ok(Ok(data));
            }
            whole.extend_from_slice(&data);
        } else {
            whole.clear();
            if seen - limit > MOST_DISCARDED {
                break;
            }
        }
    }
    Ok(if seen <= limit { Ok(whole.freeze()) } else { Err(OverLimit(seen)) })
}

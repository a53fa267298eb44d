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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[test]
    fn only_json_that_is_not_compressed_is_read() {
        for (headers, expected) in [
            (&[("content-type", "application/json")][..], None),
            (&[("content-type", "Application/JSON ; charset=utf-8")], None),
            (&[("content-type", "application/json"), ("content-encoding", "identity")], None),
            (&[], Some("NotJson")),
            (&[("content-type", "")], Some("NotJson")),
            (&[("content-type", "text/plain")], Some("NotJson")),
            (&[("content-type", "application/json+x")], Some("NotJson")),
            (&[("content-type", "text/plain; application/json")], Some("NotJson")),
            (&[("content-type", "application/json"), ("content-encoding", "gzip")], Some("Compressed")),
            (
                &[
                    ("content-type", "application/json"),
                    ("content-encoding", "identity"),
                    ("content-encoding", "br"),
                ],
                Some("Compressed"),
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            let found = check_type(&map).err().map(|reason| format!("{reason:?}"));
            assert_eq!(found.as_deref(), expected, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn a_body_is_gathered_from_its_pieces_and_its_size_is_known_where_it_is_too_large() {
        for (pieces, expected) in [
            (&[][..], Ok("")),
            (&["12345"], Ok("12345")),
            (&["1", "23", "45"], Ok("12345")),
            (&["123456"], Err(6)),
            (&["12345", "6"], Err(6)),
            (&["123", "456", "7890"], Err(10)),
        ] {
            let chunks =
                pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
            let body = Body::from_stream(stream::iter(chunks.collect::<Vec<_>>()));
            let found = read_within_limits(body, &HeaderMap::new(), 5, Dialect::Mcp).await;
            match (found, expected) {
                (Ok(bytes), Ok(text)) => assert_eq!(bytes, text),
                (Err(Reason::TooLarge { bytes, is_read: true, .. }), Err(size)) => assert_eq!(bytes, size),
                (found, expected) => panic!("{pieces:?}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_or_does_not_come_is_refused_for_that() {
        let broken = Body::from_stream(stream::iter(
            [Err::<Bytes, _>(std::io::ErrorKind::UnexpectedEof)]
                .map(|piece| piece.map_err(std::io::Error::from)),
        ));
        let found = read_within_limits(broken, &HeaderMap::new(), 5, Dialect::Mcp).await;
        assert!(matches!(found, Err(Reason::CutOff)), "{found:?}");
        tokio::time::pause();
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let found = read_within_limits(silent, &HeaderMap::new(), 5, Dialect::Mcp).await;
        assert!(matches!(found, Err(Reason::TooSlow)), "{found:?}");
    }

    #[tokio::test]
    async fn a_client_that_asks_first_is_refused_before_it_sends_a_body_that_is_too_large() {
        let expects = HeaderMap::from_iter([(header::EXPECT, HeaderValue::from_static("100-continue"))]);
        for (headers, size, expected) in
            [(&expects, 5, None), (&expects, 6, Some(false)), (&HeaderMap::new(), 6, Some(true))]
        {
            let found = read_within_limits(Body::from("x".repeat(size)), headers, 5, Dialect::Mcp).await;
            let is_read = found.err().map(|reason| matches!(reason, Reason::TooLarge { is_read: true, .. }));
            assert_eq!(is_read, expected, "{headers:?} {size}");
        }
    }
}

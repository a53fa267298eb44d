//! Request ids: `x-request-id` in requests and responses, `httpRequestId` in the log.
//!
//! A client or a proxy may choose the id, so that it finds the request again in the log. It is kept only if it is one
//! header of at most 128 visible ASCII characters; anything else is replaced, so that nobody can write arbitrary text
//! into the log.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Request};
use pintle_engine::Transport;
use tower_http::request_id::{MakeRequestId, RequestId};
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that a client may choose.
const LONGEST_REQUEST_ID: usize = 128;

/// Removes an id that is not to be kept, so that the next layer makes another.
pub(crate) fn drop_unusable<B>(mut request: Request<B>) -> Request<B> {
    if !is_usable(request.headers()) {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

fn is_usable(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(REQUEST_ID).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    (1..=LONGEST_REQUEST_ID).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Makes the ids of requests that come without one.
#[derive(Clone, Copy)]
pub(crate) struct MakeUuid {
    /// Whether all ids are the same, for logs that are compared.
    pub(crate) is_deterministic: bool,
}

impl MakeRequestId for MakeUuid {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let id = if self.is_deterministic { Uuid::nil() } else { Uuid::new_v4() };
        HeaderValue::try_from(id.to_string()).ok().map(RequestId::new)
    }
}

/// The transport of a request, as the log names it.
pub(crate) fn transport(extensions: &Extensions) -> Transport {
    let id = extensions.get::<RequestId>().and_then(|id| id.header_value().to_str().ok());
    Transport { name: "http", http_request_id: Some(Arc::from(id.unwrap_or_default())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_visible_request_id_is_kept() {
        let longest = "x".repeat(LONGEST_REQUEST_ID);
        let too_long = "x".repeat(LONGEST_REQUEST_ID + 1);
        for (values, expected) in [
            (&["mine"][..], Some("mine")),
            (&["!~{}\"\\"], Some("!~{}\"\\")),
            (&[longest.as_str()], Some(longest.as_str())),
            (&[too_long.as_str()], None),
            (&[], None),
            (&[""], None),
            (&["a b"], None),
            (&["a\tb"], None),
            (&["\u{e9}"], None),
            (&["one", "two"], None),
        ] {
            let mut request = Request::new(());
            for value in values {
                let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
                request.headers_mut().append(REQUEST_ID, value);
            }
            let request = drop_unusable(request);
            let found: Vec<_> = request.headers().get_all(REQUEST_ID).iter().collect();
            assert_eq!(found, Vec::from_iter(expected), "{values:?}");
        }
    }
}

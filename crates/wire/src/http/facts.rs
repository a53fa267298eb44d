//! What is known of an HTTP request beside its message. Travels with it, for the log.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, HeaderName};
use pintle_engine::Transport;

/// The header that names a request, for whoever compares logs.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest name that a client may give a request.
const LONGEST_REQUEST_ID: usize = 128;

/// What the log says of an HTTP request.
#[derive(Clone, Default)]
pub(crate) struct RequestFacts {
    request_id: Arc<str>,
    /// How large its body was, as far as it was read.
    pub(crate) frame_bytes: usize,
}

impl RequestFacts {
    /// The facts of a request of which only the head is known.
    pub(crate) fn new(request_id: &str) -> Self {
        Self { request_id: request_id.into(), frame_bytes: 0 }
    }

    /// The facts that travel with a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// The same request, once the size of its body is known.
    #[must_use]
    pub(crate) fn with_frame_bytes(self, frame_bytes: usize) -> Self {
        Self { frame_bytes, ..self }
    }

    /// How the log names the way by which the request came.
    pub(crate) fn transport(&self) -> Transport {
        Transport { name: "http", http_request_id: Some(Arc::clone(&self.request_id)) }
    }
}

/// The name that a client gave its request, if it can be repeated as it is: one header of at most 128 visible
/// ASCII characters.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(REQUEST_ID).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let value = value.to_str().ok()?;
    let is_visible = value.bytes().all(|byte| byte.is_ascii_graphic());
    (is_visible && (1..=LONGEST_REQUEST_ID).contains(&value.len())).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_visible_name_of_a_request_is_repeated() {
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
            let mut headers = HeaderMap::new();
            for value in values {
                let value = axum::http::HeaderValue::from_bytes(value.as_bytes()).expect("a header");
                headers.append(REQUEST_ID, value);
            }
            assert_eq!(request_id(&headers), expected, "{values:?}");
        }
    }
}

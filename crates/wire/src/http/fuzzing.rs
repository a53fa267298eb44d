//! What must hold of the headers of a request whatever a client sends: the property that the fuzz target asserts.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Authority};

use super::{
    accept::{Accepts, accepts_events},
    mcp,
    origin::{self, Origins},
    stream::EventId,
};

/// Reads the headers of a request: the first line is its target, each line that follows a header, and behind an empty
/// line comes its body. There is always a verdict, and what a browser on a foreign page could have sent is refused.
pub(crate) fn http_headers(bytes: &[u8]) {
    let (head, body) = match memchr::memmem::find(bytes, b"\n\n") {
        Some(end) => (&bytes[..end], &bytes[end + 2..]),
        None => (bytes, &b""[..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let Ok(target) = Uri::try_from(lines.next().unwrap_or_default()) else { return };
    let headers = headers(lines);
    assert_origin(&target, &headers);
    assert_accept(&headers);
    for id in headers.get_all("last-event-id").iter().filter_map(|value| value.to_str().ok()) {
        if let Some(EventId { stream, event }) = EventId::read(id) {
            assert_eq!(EventId::read(&format!("{stream}-{event}")), Some(EventId { stream, event }));
        }
    }
    mcp::fuzzing::assert_eras(&headers, body);
}

fn headers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Only what names this machine passes, and only pages of the same host.
fn assert_origin(target: &Uri, headers: &HeaderMap) {
    if origin::check(target, headers, &Origins::default()).is_err() {
        return;
    }
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
    let of_header = headers.get(header::HOST).map(text);
    let host = target.authority().map(Authority::to_string).or(of_header).expect("a request has a host");
    // What stands where a port stands need not be one: it says nothing about whose machine this is.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let number = name.parse::<IpAddr>();
    assert!(
        name.eq_ignore_ascii_case("localhost") || number.is_ok_and(|number| number.is_loopback()),
        "{host:?} passed as a name of this machine"
    );
    assert!(headers.get_all(header::HOST).iter().all(|other| text(other).eq_ignore_ascii_case(&host)));
    for origin in headers.get_all(header::ORIGIN) {
        let page = text(origin).to_ascii_lowercase();
        let own = ["http", "https"].map(|scheme| format!("{scheme}://{}", host.to_ascii_lowercase()));
        assert!(own.contains(&page), "a page of {page:?} passed for {host:?}");
    }
}

/// What is named outright counts, whatever else is said.
fn assert_accept(headers: &HeaderMap) {
    let with = |kind: &'static str| {
        let mut headers = headers.clone();
        headers.append(header::ACCEPT, HeaderValue::from_static(kind));
        headers
    };
    let accepts = Accepts::read(headers);
    assert_eq!(accepts.nothing(), !accepts.json && !accepts.events);
    assert!(Accepts::read(&with("application/json")).json);
    assert!(Accepts::read(&with("text/event-stream")).events);
    assert!(accepts_events(&with("text/event-stream")));
    assert!(!accepts.events || accepts_events(headers));
    if headers.get(header::ACCEPT).is_none() {
        assert!(accepts.json && !accepts.events);
    }
}

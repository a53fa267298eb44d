//! Which web pages may call: those of this server, and those that are allowed.
//!
//! A page of another site can make a browser send requests to this machine (CSRF), which have a foreign `Origin`. Where
//! the site has pointed a name of its own at this address (DNS rebinding), the browser takes both for one origin; then
//! the request has a foreign `Host`.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header, uri::Authority};
use pintle_contract::{ErrorCode, Fault, Stage};
use thiserror::Error;

/// What is allowed besides the machine's own names.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins, as browsers write them: `https://example.com`.
    pub origins: Vec<String>,
    /// Hosts, with or without a port.
    pub hosts: Vec<String>,
}

/// An origin or a host that could never match a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OriginsError {
    /// Browsers write no such origin.
    #[error("`{0}` is not an origin; write it as browsers do, such as https://example.com")]
    NotAnOrigin(String),
    /// No server has such a name.
    #[error("`{0}` is not a host; write its name, such as example.com")]
    NotAHost(String),
}

impl Origins {
    /// Refuses what could never match.
    pub fn new(origins: Vec<String>, hosts: Vec<String>) -> Result<Self, OriginsError> {
        let is_origin = |origin: &str| origin.split_once("://").is_some_and(|(_, rest)| is_authority(rest));
        if let Some(origin) = origins.iter().find(|origin| !is_origin(origin)) {
            return Err(OriginsError::NotAnOrigin(origin.clone()));
        }
        match hosts.iter().find(|host| !is_authority(host)) {
            Some(host) => Err(OriginsError::NotAHost(host.clone())),
            None => Ok(Self { origins, hosts }),
        }
    }
}

fn is_authority(text: &str) -> bool {
    !text.contains(['@', '/', '*']) && text.parse::<Authority>().is_ok()
}

/// Whether a host is a loopback name or address, to which no foreign site can point a name of its own.
fn is_own_name(host: &str) -> bool {
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || number.is_ok_and(|number| number.is_loopback())
}

pub(crate) fn check(uri: &Uri, headers: &HeaderMap, allowed: &Origins) -> Result<(), Fault> {
    let (host, header_differs) = host(uri, headers)?;
    let is_own = is_own_name(host.host());
    let is_allowed =
        |entry: &String| entry.eq_ignore_ascii_case(host.as_str()) || entry.eq_ignore_ascii_case(host.host());
    if !is_own && !allowed.hosts.iter().any(is_allowed) {
        return Err(Fault::new(ErrorCode::Forbidden, "the request is for another host than this server")
            .at(Stage::Envelope)
            .hint("reach the server by its own address, or allow the name with --allow-host"));
    }
    if header_differs {
        let message = "the Host header differs from the host of the request target";
        return Err(
            Fault::invalid(Stage::Envelope, message).hint("send the same host in both, or only a path")
        );
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let is_own = own_origin(origin).is_some_and(|authority| authority == host);
        if !is_own && !allowed.origins.iter().any(|entry| entry.eq_ignore_ascii_case(origin)) {
            return Err(Fault::new(ErrorCode::Forbidden, "web pages of other origins may not call")
                .at(Stage::Envelope)
                .hint("allow the page's origin with --allow-origin"));
        }
    }
    Ok(())
}

/// The host that a request is for, and whether its `Host` header says otherwise. A whole URI as the request target
/// names the host itself, and then counts in place of the header (RFC 9112, section 3.2.2).
fn host(uri: &Uri, headers: &HeaderMap) -> Result<(Authority, bool), Fault> {
    let bad = |message: &str| Fault::invalid(Stage::Envelope, message);
    let mut hosts = headers.get_all(header::HOST).iter();
    let header = match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
            Some(host.filter(is_plain).ok_or_else(|| bad("the Host header cannot be read"))?)
        }
        (Some(_), Some(_)) => return Err(bad("there is more than one Host header")),
        (None, _) => None,
    };
    match (uri.authority(), header) {
        (Some(target), _) if !is_plain(target) => Err(bad("the host of the request target cannot be read")),
        (Some(target), header) => Ok((target.clone(), header.is_some_and(|header| header != *target))),
        (None, Some(header)) => Ok((header, false)),
        (None, None) => Err(bad("the Host header is missing")),
    }
}

/// Whether an authority is a host and perhaps a port, without a user.
fn is_plain(authority: &Authority) -> bool {
    !authority.as_str().contains('@')
}

/// The authority of an origin that a page of this server has.
fn own_origin(origin: &str) -> Option<Authority> {
    let (scheme, authority) = origin.split_once("://")?;
    matches!(scheme, "http" | "https").then(|| authority.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &str, origin: Option<&str>) -> Option<u16> {
        let allowed = Origins { origins: vec!["https://app.test".into()], hosts: vec!["pintle.test".into()] };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().expect("a header"));
        }
        check(&Uri::from_static("/mcp"), &headers, &allowed).err().map(|fault| fault.http_status())
    }

    #[test]
    fn what_can_never_match_is_refused_at_once() {
        assert!(Origins::new(vec!["https://a.test".into()], vec!["a.test:8".into()]).is_ok());
        for origin in
            ["", "a.test", "*", "https://a.test/", "https://", "https://*.a.test", "https://u@a.test"]
        {
            let error = Origins::new(vec![origin.into()], vec![]).expect_err(origin);
            assert_eq!(error, OriginsError::NotAnOrigin(origin.into()));
        }
        for host in ["", "*", "http://a", "a b", "a/b"] {
            let error = Origins::new(vec![], vec![host.into()]).expect_err(host);
            assert_eq!(error, OriginsError::NotAHost(host.into()));
        }
    }

    #[test]
    fn the_host_of_an_absolute_target_counts_in_place_of_the_header() {
        let allowed = Origins { origins: vec![], hosts: vec!["pintle.test".into()] };
        for (target, host, expected) in [
            ("http://localhost:9/mcp", Some("localhost:9"), None),
            ("http://LOCALHOST:9/mcp", Some("localhost:9"), None),
            ("http://localhost:9/mcp", None, None),
            ("http://pintle.test/mcp", Some("pintle.test"), None),
            ("http://evil.test/mcp", Some("localhost:9"), Some(403)),
            ("http://evil.test/mcp", Some("evil.test"), Some(403)),
            ("http://evil.test/mcp", None, Some(403)),
            ("http://localhost:9/mcp", Some("evil.test"), Some(400)),
            ("http://localhost:9/mcp", Some("localhost:8"), Some(400)),
            ("http://localhost:9/mcp", Some("pintle.test"), Some(400)),
            ("http://user@localhost:9/mcp", Some("localhost:9"), Some(400)),
            ("http://localhost:9/mcp", Some("a b"), Some(400)),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, host.parse().expect("a header"));
            }
            let found = check(&target.parse().expect("a target"), &headers, &allowed).err();
            assert_eq!(found.map(|fault| fault.http_status()), expected, "{target} {host:?}");
        }
    }

    #[test]
    fn each_of_several_origins_must_be_allowed_and_there_is_one_host() {
        let allowed = Origins { origins: vec!["https://app.test".into()], hosts: vec![] };
        for (hosts, origins, expected) in [
            (&["localhost"][..], &["https://app.test", "http://localhost"][..], None),
            (&["localhost"], &["https://app.test", "https://evil.test"], Some(403)),
            (&["localhost"], &["https://evil.test", "https://app.test"], Some(403)),
            (&["localhost", "localhost"], &[], Some(400)),
            (&["localhost", "evil.test"], &[], Some(400)),
            (&[], &[], Some(400)),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().expect("a header"));
            }
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().expect("a header"));
            }
            let found = check(&Uri::from_static("/mcp"), &headers, &allowed).err();
            assert_eq!(found.map(|fault| fault.http_status()), expected, "{hosts:?} {origins:?}");
        }
    }

    #[test]
    fn only_the_own_names_and_pages_and_what_is_allowed_pass() {
        for (host, origin, expected) in [
            ("127.0.0.1:9", None, None),
            ("localhost:9", None, None),
            ("LOCALHOST", None, None),
            ("[::1]:9", None, None),
            ("127.0.0.2:9", None, None),
            ("192.0.2.1:9", None, Some(403)),
            ("pintle.test:1", None, None),
            ("localhost:9", Some("http://localhost:9"), None),
            ("localhost:9", Some("https://app.test"), None),
            ("evil.test", None, Some(403)),
            ("evil.test:9", Some("http://evil.test:9"), Some(403)),
            ("localhost.evil.test", None, Some(403)),
            ("127.0.0.1.evil.test", None, Some(403)),
            ("user@localhost:9", None, Some(400)),
            ("a b", None, Some(400)),
            ("localhost:9", Some("http://localhost:8"), Some(403)),
            ("localhost:9", Some("http://evil.test"), Some(403)),
            ("localhost:9", Some("null"), Some(403)),
            ("localhost:9", Some(""), Some(403)),
            ("localhost:9", Some("file://localhost:9"), Some(403)),
        ] {
            assert_eq!(verdict(host, origin), expected, "{host} {origin:?}");
        }
    }
}

//! Who may call from a browser: nobody but the server's own pages.
//!
//! A page of another site can make a browser send requests to this machine. It shows as a foreign
//! `Origin`; and where the site has given this address a name of its own, as a foreign `Host`.

use axum::http::{HeaderMap, Uri, header, uri::Authority};
use pintle_contract::{ErrorCode, Fault, Stage};

/// What is allowed besides the machine's own names.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins, as browsers write them: `https://example.com`.
    pub origins: Vec<String>,
    /// Hosts, with or without a port.
    pub hosts: Vec<String>,
}

const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

pub(crate) fn check(uri: &Uri, headers: &HeaderMap, allowed: &Origins) -> Result<(), Fault> {
    let host = host(uri, headers)?;
    let is_own = OWN_NAMES.iter().any(|name| host.host().eq_ignore_ascii_case(name));
    let is_allowed =
        |entry: &String| entry.eq_ignore_ascii_case(host.as_str()) || entry.eq_ignore_ascii_case(host.host());
    if !is_own && !allowed.hosts.iter().any(is_allowed) {
        return Err(Fault::new(ErrorCode::Forbidden, "the Host header names another server")
            .at(Stage::Envelope)
            .hint("reach the server by its own address, or allow the name with --allow-host"));
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

fn host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, Fault> {
    let bad = |message: &str| Fault::invalid(Stage::Envelope, message);
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let host = host.to_str().ok().filter(|host| !host.contains('@'));
            host.and_then(|host| host.parse().ok()).ok_or_else(|| bad("the Host header cannot be read"))
        }
        (Some(_), Some(_)) => Err(bad("there is more than one Host header")),
        (None, _) => uri.authority().cloned().ok_or_else(|| bad("the Host header is missing")),
    }
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
    fn only_the_own_names_and_pages_and_what_is_allowed_pass() {
        for (host, origin, expected) in [
            ("127.0.0.1:9", None, None),
            ("localhost:9", None, None),
            ("LOCALHOST", None, None),
            ("[::1]:9", None, None),
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

//! The HTTP client of the backend. It talks to one origin only.

use std::time::Duration;

use reqwest::{Client, StatusCode, redirect, retry};
use url::{Host, Url};

/// The timeout of a whole request, redirects included.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most redirects that are followed.
pub(super) const MAX_REDIRECTS: usize = 5;

/// Creates a client for the server at a URL.
pub(super) fn for_server(address: &Url) -> reqwest::Result<Client> {
    // An error means that a provider is already installed, which is fine.
    _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")))
        .timeout(TIMEOUT)
        .redirect(within_the_server())
        .retry(retry::never())
        // No connection pool: a request that fails on a dead pooled connection is silently sent again.
        .pool_max_idle_per_host(0);
    if address.scheme() == "http" {
        // Without TLS the system's root certificates are not needed, and need not exist.
        builder = builder.tls_certs_only([]);
    }
    if is_this_machine(address) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Follows redirects that stay in the origin and repeat the request; the others are returned as responses.
fn within_the_server() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let stays = attempt.previous().first().is_some_and(|first| is_same_server(first, attempt.url()));
        let is_near = attempt.previous().len() <= MAX_REDIRECTS;
        match keeps_the_request(attempt.status()) && stays && is_near {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

/// Whether a redirect repeats the request. The older ones (301, 302, 303) turn a POST into a GET, whose response would
/// be taken for a successful publication.
pub(super) fn keeps_the_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// The same scheme, host and port.
pub(super) fn is_same_server(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

fn is_this_machine(address: &Url) -> bool {
    match address.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_any_of_its_names() {
        for (address, expected) in [
            ("http://127.0.0.1:80/", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost/", true),
            ("http://LOCALHOST/", true),
            ("http://a.localhost/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_this_machine(&Url::parse(address).expect("a URL")), expected, "{address}");
        }
    }

    #[test]
    fn another_scheme_host_or_port_is_another_server() {
        let same = |a, b| is_same_server(&Url::parse(a).expect("a URL"), &Url::parse(b).expect("a URL"));
        assert!(same("http://h/a", "http://H:80/b"));
        assert!(!same("http://h/", "https://h/"));
        assert!(!same("http://h/", "http://h:8080/"));
        assert!(!same("http://127.0.0.1/", "http://localhost/"));
    }
}

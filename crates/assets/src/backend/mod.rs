//! The client of the backend: publishes each asset with one POST, and reads assets for callers.
//!
//! Every request has a timeout of five seconds and is never retried, and only redirects that repeat it (307, 308) within
//! the same origin (scheme, host and port) are followed.

mod answer;
mod client;

use reqwest::{
    Client,
    header::{ACCEPT, CONTENT_TYPE},
};
use tokio::sync::OnceCell;
use url::Url;

use crate::config::BackendConfig;

pub(crate) use answer::{Failed, Published};

/// The size limit of a response.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// The backend: its URL and an HTTP client.
pub(crate) struct Backend {
    /// The URL of the collection of assets.
    collection: Url,
    /// Created on first use, so that a server that never publishes does not pay for it.
    client: OnceCell<Client>,
}

/// Why a backend cannot be used. The address is not quoted, because it may hold a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressProblem {
    #[error("its address is not a valid URL: {0}")]
    NotAUrl(#[from] url::ParseError),
    #[error("its address does not start with http:// or https://")]
    OtherScheme,
    #[error("its address names no host")]
    NoHost,
}

impl Backend {
    /// The backend at an address.
    pub(crate) fn new(config: &BackendConfig) -> Result<Self, AddressProblem> {
        let mut collection = Url::parse(&config.url)?;
        if !matches!(collection.scheme(), "http" | "https") {
            return Err(AddressProblem::OtherScheme);
        }
        if !collection.has_host() {
            return Err(AddressProblem::NoHost);
        }
        let path = format!(
            "{}/{}",
            collection.path().trim_end_matches('/'),
            config.assets_path.trim_start_matches('/')
        );
        collection.set_path(&path);
        collection.set_fragment(None);
        Ok(Self { collection, client: OnceCell::new() })
    }

    /// Publishes an asset with one POST.
    pub(crate) async fn publish(&self, asset: Vec<u8>) -> Result<Published, Failed> {
        let request = self
            .client()
            .await?
            .post(self.collection.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(asset);
        let answer = answer::read(request, MAX_ANSWER_BYTES).await?;
        answer.published(|id| self.address(id))
    }

    /// Reads an asset, or the collection.
    pub(crate) async fn fetch(&self, id: Option<&str>) -> Result<String, Failed> {
        let address = match id {
            Some(id) => self.with_id(id),
            None => self.collection.clone(),
        };
        let request = self.client().await?.get(address).header(ACCEPT, "application/json");
        answer::read(request, MAX_ANSWER_BYTES).await?.json_text()
    }

    /// The URL of an asset without credentials and query, as it is shown to callers.
    fn address(&self, id: &str) -> String {
        let mut address = self.with_id(id);
        // Neither can fail for a URL that has a host.
        _ = address.set_username("");
        _ = address.set_password(None);
        address.set_query(None);
        address.into()
    }

    fn with_id(&self, id: &str) -> Url {
        let mut address = self.collection.clone();
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.pop_if_empty().push(id);
        }
        address
    }

    async fn client(&self) -> Result<&Client, Failed> {
        let address = self.collection.clone();
        let make = || async {
            // Loading the system's root certificates is slow and blocks.
            let made = tokio::task::spawn_blocking(move || client::for_server(&address)).await;
            made.ok().and_then(Result::ok).ok_or_else(Failed::unreachable)
        };
        self.client.get_or_try_init(make).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::http::{Reply, Server};

    fn backend(url: &str, path: &str) -> Result<Backend, AddressProblem> {
        Backend::new(&BackendConfig { url: url.into(), assets_path: path.into() })
    }

    async fn publish(server: &Server) -> Result<Published, Failed> {
        let backend = backend(&server.url(), "/assets/").expect("an address");
        backend.publish(br#"{"name":"x"}"#.to_vec()).await
    }

    fn failed(status: u16, detail: &str) -> Failed {
        Failed { status, detail: detail.into(), took_effect: false }
    }

    #[test]
    fn the_path_goes_below_the_address() {
        for (url, path, expected) in [
            ("http://h", "/synesthetic-assets/", "http://h/synesthetic-assets/"),
            ("http://h/", "assets", "http://h/assets"),
            ("https://h:8443/api/", "/assets", "https://h:8443/api/assets"),
        ] {
            assert_eq!(backend(url, path).expect("an address").collection.as_str(), expected);
        }
        for url in ["", "h", "ftp://h/", "file:///x", "http://"] {
            assert!(backend(url, "/").is_err(), "{url}");
        }
    }

    #[test]
    fn an_id_is_one_segment_and_no_secret_is_shown() {
        let backend = backend("http://me:secret@h/?token=t", "/assets/").expect("an address");
        assert_eq!(backend.address("a/b c"), "http://h/assets/a%2Fb%20c");
    }

    #[tokio::test]
    async fn the_asset_arrives_as_it_was_sent() {
        let server = Server::start(vec![Reply::json(201, r#"{"id": "7"}"#)]);
        publish(&server).await.expect("published");
        let requests = server.finish();
        assert!(requests[0].starts_with("POST /assets/ HTTP/1.1\r\n"), "{}", requests[0]);
        assert!(requests[0].to_lowercase().contains("content-type: application/json\r\n"), "{}", requests[0]);
        assert!(requests[0].ends_with("\r\n\r\n{\"name\":\"x\"}"), "{}", requests[0]);
    }

    #[tokio::test]
    async fn the_id_comes_from_id_then_asset_id_then_location() {
        for (reply, id, path) in [
            (Reply::json(201, r#"{"id": "a/1", "asset_id": "no"}"#), "a/1", "/assets/a%2F1"),
            (Reply::json(200, r#"{"id": 42}"#), "42", "/assets/42"),
            (Reply::json(200, r#"{"id": "", "asset_id": "b"}"#), "b", "/assets/b"),
            (Reply::empty(201).with("Location", "/v2/things/c%20d"), "c d", "/v2/things/c%20d"),
            (Reply::empty(201).with("Location", "e/"), "e", "/assets/e/"),
            (Reply::json(201, r#"{"id": 1}"#).with("Location", "/else/9"), "1", "/else/9"),
        ] {
            let server = Server::start(vec![reply]);
            let published = publish(&server).await.expect("published");
            assert_eq!(published.asset_id, id);
            assert_eq!(published.backend_url, format!("{}{path}", server.url()));
        }
    }

    #[tokio::test]
    async fn a_success_without_an_id_is_a_failure() {
        for reply in [Reply::empty(204), Reply::json(200, "[]"), Reply::json(200, r#"{"id": null}"#)] {
            let failed = publish(&Server::start(vec![reply])).await.expect_err("no id");
            assert!(failed.detail.contains("no id") && failed.took_effect, "{failed:?}");
            assert!((200..300).contains(&failed.status), "{failed:?}");
        }
    }

    #[tokio::test]
    async fn a_location_that_nobody_can_follow_is_ignored() {
        for location in ["javascript:alert(1)", "file:///etc/passwd", "mailto:a@h/7"] {
            let reply = || Reply::json(201, r#"{"id": "7"}"#).with("Location", location);
            let server = Server::start(vec![reply()]);
            let published = publish(&server).await.expect("published");
            assert_eq!(published.backend_url, format!("{}/assets/7", server.url()), "{location}");
            let server = Server::start(vec![Reply::empty(201).with("Location", location)]);
            assert!(publish(&server).await.expect_err("no id").detail.contains("no id"), "{location}");
        }
    }

    #[tokio::test]
    async fn a_refusal_quotes_the_words_of_the_backend() {
        let long = "x".repeat(2_000);
        for (reply, expected) in [
            (Reply::json(500, r#"{"detail": "internal error"}"#), failed(500, "internal error")),
            (Reply::json(422, r#"{"message": "bad name"}"#), failed(422, "bad name")),
            (Reply::json(400, r#"{"error": "nope", "detail": 7}"#), failed(400, "nope")),
            (Reply::text(502, "  upstream is gone \n"), failed(502, "upstream is gone")),
            (Reply::text(500, &long), failed(500, &long[..500])),
            (Reply::empty(404), failed(404, "Not Found")),
            (Reply::empty(599), failed(599, "status 599")),
        ] {
            assert_eq!(publish(&Server::start(vec![reply])).await.expect_err("refused"), expected);
        }
    }

    #[tokio::test]
    async fn nobody_there_is_unreachable() {
        let server = Server::start(vec![]);
        let url = server.url();
        server.finish();
        let backend = backend(&url, "/assets/").expect("an address");
        assert_eq!(
            backend.publish(b"{}".to_vec()).await.expect_err("nobody"),
            failed(503, "network_unreachable")
        );
    }

    #[tokio::test]
    async fn an_answer_that_takes_more_than_five_seconds_is_a_timeout() {
        let server = Server::start(vec![Reply::never()]);
        let started = std::time::Instant::now();
        assert_eq!(publish(&server).await.expect_err("slow"), failed(503, "timeout"));
        assert!(started.elapsed().as_millis() >= 4_900, "it was given its time");
    }

    #[tokio::test]
    async fn a_redirect_is_followed_on_the_same_server() {
        let server = Server::start(vec![
            Reply::empty(307).with("Location", "/moved/"),
            Reply::json(201, r#"{"id": "1"}"#),
        ]);
        let published = publish(&server).await.expect("published");
        assert_eq!(published.backend_url, format!("{}/assets/1", server.url()));
        let requests = server.finish();
        assert!(requests[1].starts_with("POST /moved/ HTTP/1.1\r\n"), "{}", requests[1]);
        assert!(requests[1].ends_with("{\"name\":\"x\"}"), "{}", requests[1]);
    }

    #[tokio::test]
    async fn a_redirect_that_would_change_the_request_is_not_followed() {
        for status in [300, 301, 302, 303] {
            let server = Server::start(vec![
                Reply::empty(status).with("Location", "/login?token=secret"),
                Reply::json(200, r#"{"id": "1"}"#),
            ]);
            let failed = publish(&server).await.expect_err("not followed");
            assert_eq!((failed.status, failed.took_effect), (status, false));
            let expected = format!("the backend redirected to {}/login, ", server.url());
            assert!(failed.detail.starts_with(&expected), "{failed:?}");
            assert_eq!(server.finish().len(), 1, "{status}");
        }
    }

    #[tokio::test]
    async fn a_redirect_to_another_server_is_not_followed() {
        let other = Server::start(vec![Reply::json(201, r#"{"id": "1"}"#)]);
        // The same port by another name is another server too.
        for target in [
            format!("{}/x", other.url()),
            "http://localhost:{port}/x".into(),
            "https://127.0.0.1:{port}/x".into(),
        ] {
            let reply = Reply::json(201, r#"{"id": "1"}"#);
            let server = Server::start(vec![Reply::empty(307).with("Location", &target), reply]);
            let failed = publish(&server).await.expect_err("not followed");
            assert_eq!(failed.status, 307, "{target}");
            assert!(failed.detail.contains("another server"), "{failed:?}");
            assert_eq!(server.finish().len(), 1, "{target}");
        }
        assert!(other.finish().is_empty(), "nothing must have been sent there");
    }

    #[tokio::test]
    async fn redirects_without_end_are_given_up() {
        let reply = || Reply::empty(307).with("Location", "/again");
        let server = Server::start((0..10).map(|_| reply()).collect());
        let failed = publish(&server).await.expect_err("given up");
        assert_eq!(failed.status, 307);
        assert!(failed.detail.contains("more than 5"), "{failed:?}");
        assert_eq!(server.finish().len(), 6);
    }

    #[tokio::test]
    async fn nothing_is_sent_twice() {
        let server = Server::start(vec![Reply::broken(), Reply::json(201, r#"{"id": 1}"#)]);
        assert_eq!(publish(&server).await.expect_err("broken off").status, 503);
        assert_eq!(server.finish().len(), 1);
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_to_read_is_reported_as_such() {
        let answer = |length| Reply::json(201, &format!(r#"{{"id": "1", "x": "{}"}}"#, "x".repeat(length)));
        publish(&Server::start(vec![answer(4 << 20)])).await.expect("read");
        let failed = publish(&Server::start(vec![answer(MAX_ANSWER_BYTES)])).await.expect_err("cut off");
        assert!(failed.detail.contains("too long to read") && failed.took_effect, "{failed:?}");
    }

    #[tokio::test]
    async fn an_asset_is_fetched_by_its_id_and_must_be_json() {
        let server = Server::start(vec![
            Reply::json(200, r#"{"name": "x"}"#),
            Reply::json(200, "[]"),
            Reply::text(200, "<html>"),
            Reply::json(404, r#"{"detail": "gone"}"#),
        ]);
        let backend = backend(&server.url(), "/assets/").expect("an address");
        assert_eq!(backend.fetch(Some("a/b")).await, Ok(r#"{"name": "x"}"#.into()));
        assert_eq!(backend.fetch(None).await, Ok("[]".into()));
        assert_eq!(backend.fetch(Some("c")).await, Err(failed(200, "the backend's answer is not JSON")));
        assert_eq!(backend.fetch(Some("d")).await, Err(failed(404, "gone")));
        let requests = server.finish();
        let lines: Vec<_> = requests.iter().filter_map(|request| request.lines().next()).collect();
        assert_eq!(
            lines,
            [
                "GET /assets/a%2Fb HTTP/1.1",
                "GET /assets/ HTTP/1.1",
                "GET /assets/c HTTP/1.1",
                "GET /assets/d HTTP/1.1"
            ]
        );
    }

    #[test]
    fn proxies_of_the_environment_do_not_apply_to_this_machine() {
        // The environment belongs to the process, so another one is started for it.
        let this = std::env::current_exe().expect("a path");
        let nobody = "http://127.0.0.1:1";
        let output = std::process::Command::new(this)
            .args(["--exact", "backend::tests::the_asset_arrives_as_it_was_sent"])
            .envs(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, nobody)))
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .output()
            .expect("runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    }
}

//! A server without a socket, for tests: requests go into its router, responses come out.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use http_body_util::BodyExt;
use pintle_engine::{CallLog, Engine, Options};
use pintle_tool::Caller;
use serde_json::Value;
use tower::ServiceExt;

use super::{Authentication, HttpOptions, Origins, ServerState, layers};
use crate::mcp::{McpHandler, McpOptions};

pub(crate) const LIMIT: usize = 1000;

/// An engine without tools.
pub(crate) fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(Vec::new(), Vec::new(), Options::default(), CallLog::off()).expect("an engine"))
}

/// What answers MCP.
pub(crate) fn service(engine: &Arc<Engine>) -> McpHandler {
    McpHandler::new(Arc::clone(engine), McpOptions::default())
}

pub(crate) fn state() -> Arc<ServerState> {
    let engine = engine();
    let service = Arc::new(service(&engine));
    let options = HttpOptions {
        max_request_bytes: LIMIT,
        write_timeout: Duration::from_secs(30),
        progress_always: false,
        origins: Origins::default(),
        connections: 1,
    };
    let authentication = Authentication::Anyone(Arc::new(Caller::anonymous()));
    ServerState::new(engine, authentication, service, options)
}

/// A server, and whoever calls it.
pub(crate) struct TestServer(Router);

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self(layers::router(state()))
    }

    /// Sends a request with headers that every client has, and these.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [("host", "localhost"), ("accept", "application/json, text/event-stream")] {
            if !headers.iter().any(|(given, _)| *given == name) {
                request = request.header(name, value);
            }
        }
        if !headers.iter().any(|(given, _)| *given == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let Ok(response) = self.0.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

impl Answer {
    /// The number of the JSON-RPC error; 0 if there is none. Not for a stream that does not end.
    pub(crate) async fn error_number(self) -> i64 {
        let bytes = self.body.collect().await.expect("a body").to_bytes();
        let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        message["error"]["code"].as_i64().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

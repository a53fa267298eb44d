//! Health, readiness and metrics, for operators.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{StatusCode, header},
    response::IntoResponse,
};
use pintle_contract::Access;
use prometheus::{IntCounterVec, IntGauge, Opts};

use super::{
    ServerState,
    rejection::{Reason, Rejection},
};

const OK: &str = "ok\n";

/// The process runs.
pub(crate) async fn alive() -> &'static str {
    OK
}

/// It takes requests.
pub(crate) async fn ready(State(state): State<Arc<ServerState>>) -> Result<&'static str, StatusCode> {
    if state.stopping.is_cancelled() { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok(OK) }
}

/// What is counted.
pub(crate) async fn metrics(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<impl IntoResponse, Rejection> {
    let caller = state.caller_of(request.extensions());
    if let Err(fault) = caller.require(&Access::Named("metrics:read".into())) {
        return Err(Reason::Fault(fault).reject(state.unopened(request.extensions(), 0)).await);
    }
    state.metrics.sessions.set(as_gauge(state.sessions.len()));
    state.metrics.tasks.set(as_gauge(tokio::runtime::Handle::current().metrics().num_alive_tasks()));
    // The folder itself is open while it is read.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1));
    state.metrics.open_files.set(as_gauge(open));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.engine.metrics_text()))
}

fn as_gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What is counted of HTTP.
pub(crate) struct HttpMetrics {
    requests: IntCounterVec,
    pub(crate) connections: IntGauge,
    sessions: IntGauge,
    tasks: IntGauge,
    open_files: IntGauge,
}

impl HttpMetrics {
    pub(crate) fn new(metrics: &pintle_engine::Metrics) -> Self {
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help).expect("a fixed name is valid");
            metrics.register(gauge.clone());
            gauge
        };
        // Dashboards know the label by this name.
        let requests = Opts::new("pintle_http_requests_total", "HTTP requests, by place and status.");
        let requests = IntCounterVec::new(requests, &["place", "status"])
            .expect("a fixed name and fixed labels are valid");
        metrics.register(requests.clone());
        Self {
            requests,
            connections: gauge("pintle_http_connections", "Open HTTP connections."),
            sessions: gauge("pintle_mcp_sessions", "MCP sessions of the revisions that have them."),
            tasks: gauge("pintle_tasks", "Tasks that are alive in the server."),
            open_files: gauge("process_open_fds", "Open file descriptors."),
        }
    }

    pub(crate) fn count(&self, path: &str, status: StatusCode) {
        self.requests.with_label_values(&[path, status.as_str()]).inc();
    }
}

//! Prometheus counters of calls, for operators.

use std::time::Duration;

use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::log::LogLine;

/// The counters of a server. Other crates may register their own.
pub struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    seconds: HistogramVec,
    running: IntGauge,
    waiting: IntGauge,
}

/// From a quarter of a millisecond to a minute.
const SECONDS: &[f64] = &[0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Registry::new(),
            calls: counters(
                "pintle_calls_total",
                "Calls and refusals, by what became of them.",
                &["transport", "route", "tool", "code"],
            ),
            seconds: HistogramVec::new(
                HistogramOpts::new("pintle_call_duration_seconds", "How long calls took, queue included.")
                    .buckets(SECONDS.to_vec()),
                &["tool"],
            )
            .expect("a fixed name and fixed labels are valid"),
            running: gauge("pintle_calls_running", "Calls that run now."),
            waiting: gauge("pintle_calls_waiting", "Calls that wait for a slot now."),
        };
        metrics.register(metrics.calls.clone());
        metrics.register(metrics.seconds.clone());
        metrics.register(metrics.running.clone());
        metrics.register(metrics.waiting.clone());
        metrics
    }

    /// Adds another crate's collector.
    pub fn register(&self, collector: impl prometheus::core::Collector + 'static) {
        // Fails only for a name that is taken; then the first keeps counting.
        let _ = self.registry.register(Box::new(collector));
    }

    pub(crate) fn count(&self, line: &LogLine<'_>, duration: Duration) {
        let labels = line.labels();
        self.calls.with_label_values(&labels).inc();
        let [_, _, tool, _] = labels;
        if !tool.is_empty() {
            self.seconds.with_label_values(&[tool]).observe(duration.as_secs_f64());
        }
    }

    pub(crate) fn text(&self, running: usize, waiting: usize) -> String {
        self.running.set(i64::try_from(running).unwrap_or(i64::MAX));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), labels).expect("a fixed name and fixed labels are valid")
}

fn gauge(name: &str, help: &str) -> IntGauge {
    IntGauge::new(name, help).expect("a fixed name is valid")
}

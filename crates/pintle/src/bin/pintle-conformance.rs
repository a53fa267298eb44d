//! `pintle-conformance`: the same program with `--fixtures`, for tests, benchmarks and the official conformance suite.

use std::{process::ExitCode, sync::Arc};

use pintle::Rig;
use pintle_fixtures::ConformanceHandler;

fn main() -> ExitCode {
    pintle::run(Some(Rig {
        tools: pintle_fixtures::tools,
        service: |handler| Arc::new(ConformanceHandler::new(handler)),
    }))
}

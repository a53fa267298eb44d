//! How an engine treats calls.

use std::{collections::HashMap, time::Duration};

use pintle_rpc::EnvelopeMode;
use pintle_tool::DynTool;

/// How a server treats calls.
#[derive(Clone, Debug)]
pub struct Options {
    /// Calls that run at the same time.
    pub running: usize,
    /// Calls that wait for a slot.
    pub waiting: usize,
    /// How long a call may run.
    pub timeouts: Timeouts,
    /// The largest result, in bytes.
    pub max_result_bytes: usize,
    /// The memory that replies may take until they are written, in bytes.
    pub reply_memory: usize,
    /// How long a result may wait for that memory.
    pub reply_patience: Duration,
    /// Whether a wrong envelope is refused.
    pub envelope: EnvelopeMode,
    /// Fixes ids and times in logs and progress.
    pub deterministic: bool,
    /// Which build this is.
    pub tooling_version: String,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            running: (2 * cores).max(4),
            waiting: 64,
            timeouts: Timeouts::default(),
            max_result_bytes: 8 << 20,
            reply_memory: 128 << 20,
            reply_patience: Duration::from_secs(60),
            envelope: EnvelopeMode::default(),
            deterministic: false,
            tooling_version: "unknown".into(),
        }
    }
}

/// How long calls may run; zero is for ever.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// For tools that are not named.
    pub default: Duration,
    /// By the tool's name.
    pub by_tool: HashMap<String, Duration>,
}

impl Timeouts {
    /// What is set for a tool, else what the tool itself declares, else what holds for all.
    pub(crate) fn of(&self, tool: &dyn DynTool) -> Duration {
        let set = self.by_tool.get(&tool.definition().name).copied();
        set.or_else(|| tool.timeout()).unwrap_or(self.default)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { default: Duration::from_secs(120), by_tool: HashMap::new() }
    }
}

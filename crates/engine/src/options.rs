//! How an engine treats calls.

use std::{collections::HashMap, time::Duration};

use pintle_rpc::EnvelopeMode;
use pintle_tool::{DynTool, ToolTimeout};

/// How a server treats calls.
#[derive(Clone, Debug)]
pub struct Options {
    /// Calls that run at the same time.
    pub running: usize,
    /// Calls that wait for a slot.
    pub waiting: usize,
    /// Calls of one caller that run or wait; 0 is no limit of its own.
    pub calls_per_caller: usize,
    /// Calls that one caller may make in a second; 0 is no limit.
    pub rate_per_caller: u32,
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
            calls_per_caller: 0,
            rate_per_caller: 0,
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

/// How long calls may run; zero means no limit.
#[derive(Clone, Debug, Default)]
pub struct Timeouts {
    /// For tools that are not named, if it is set.
    pub for_all: Option<Duration>,
    /// By the tool's name.
    pub by_tool: HashMap<String, Duration>,
}

impl Timeouts {
    /// How long a call may run if nobody has set anything.
    pub const DEFAULT: Duration = Duration::from_secs(120);

    /// How long calls may run of a tool that is not named and has no timeout of its own.
    pub fn general(&self) -> Duration {
        self.for_all.unwrap_or(Self::DEFAULT)
    }

    /// What is set for the tool, else what its manifest sets, else what is set for all tools, else the tool's own
    /// default, else the default of all.
    pub(crate) fn of(&self, tool: &dyn DynTool) -> Duration {
        let set = self.by_tool.get(&tool.definition().name).copied();
        set.unwrap_or_else(|| match tool.timeout() {
            Some(ToolTimeout::Set(timeout)) => timeout,
            Some(ToolTimeout::Default(timeout)) => self.for_all.unwrap_or(timeout),
            None => self.general(),
        })
    }
}

#[cfg(test)]
mod tests {
    use pintle_contract::{Annotations, ClientHints, Fault, Permission, ToolDefinition};
    use pintle_tool::Prepared;
    use serde_json::{Value, json};

    use super::*;

    struct Timed(ToolDefinition, Option<ToolTimeout>);

    impl DynTool for Timed {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }

        fn permissions(&self) -> &[Permission] {
            &[Permission::AnyCaller]
        }

        fn timeout(&self) -> Option<ToolTimeout> {
            self.1
        }

        fn prepare<'a>(&'a self, _: Value) -> Result<Prepared<'a>, Fault> {
            Err(Fault::internal("it is never called"))
        }
    }

    fn seconds(timeouts: &Timeouts, own: Option<ToolTimeout>) -> u64 {
        let definition = ToolDefinition {
            name: "t".into(),
            title: "t".into(),
            description: "t".into(),
            input_schema: json!({}),
            output_schema: json!({}),
            annotations: Annotations::READ_ONLY,
            client_hints: ClientHints::default(),
            schema_version: 1,
            aliases: Vec::new(),
            deprecated: None,
        };
        timeouts.of(&Timed(definition, own)).as_secs()
    }

    #[test]
    fn a_timeout_is_the_tools_then_its_manifests_then_that_of_all_then_its_default() {
        let [one, two, three] = [1, 2, 3].map(Duration::from_secs);
        let none = Timeouts::default();
        let all = Timeouts { for_all: Some(one), ..Timeouts::default() };
        let named = Timeouts { by_tool: HashMap::from([("t".into(), two)]), ..all.clone() };
        let (default, set) = (Some(ToolTimeout::Default(three)), Some(ToolTimeout::Set(three)));
        assert_eq!([None, default, set].map(|own| seconds(&none, own)), [120, 3, 3]);
        assert_eq!([None, default, set].map(|own| seconds(&all, own)), [1, 1, 3]);
        assert_eq!([None, default, set].map(|own| seconds(&named, own)), [2, 2, 2]);
    }
}

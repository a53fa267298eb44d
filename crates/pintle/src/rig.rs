//! What `pintle-conformance` adds: tools for tests, and flags for measuring. The product has none of it.

use std::sync::{Arc, OnceLock};

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use pintle_tool::DynTool;
use pintle_wire::{McpHandler, McpService};

/// The parts of a test rig.
#[derive(Debug)]
pub struct Rig {
    /// Tools for tests.
    pub tools: fn() -> Vec<Arc<dyn DynTool>>,
    /// Puts what the conformance suite asks for around a handler.
    pub service: fn(McpHandler) -> Arc<dyn McpService>,
}

static RIG: OnceLock<Rig> = OnceLock::new();

/// Notes which rig this program has, before its command line is read.
pub(crate) fn install(rig: Option<Rig>) {
    if let Some(rig) = rig {
        // There is one program in a process, so nobody was first.
        let _ = RIG.set(rig);
    }
}

/// The rig of this program, if its caller asked for fixtures.
pub(crate) fn wanted(arguments: &RigArguments) -> Option<&'static Rig> {
    RIG.get().filter(|_| arguments.fixtures)
}

/// Flags that exist where there is a rig.
#[derive(Clone, Debug, Default)]
pub struct RigArguments {
    /// Add the tools that tests use.
    pub fixtures: bool,
    /// Let writes return before they are on the disk; for measuring.
    pub no_fsync: bool,
    /// Print when each phase of an index was ready as one line of JSON; for measuring.
    pub phases_json: bool,
}

const FLAGS: [(&str, &str); 3] =
    [("fixtures", "fixtures"), ("no_fsync", "no-fsync"), ("phases_json", "phases-json")];

impl Args for RigArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        if RIG.get().is_none() {
            return command;
        }
        let flag = |(id, long)| Arg::new(id).long(long).hide(true).action(ArgAction::SetTrue);
        command.args(FLAGS.map(flag))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RigArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // A program without a rig does not know the flags at all.
        let is_set = |id| matches.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or_default();
        let [fixtures, no_fsync, phases_json] = FLAGS.map(|(id, _)| is_set(id));
        Ok(Self { fixtures, no_fsync, phases_json })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

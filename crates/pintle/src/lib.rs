//! Pintle: safe, fast hands on a workspace for AI agents.
//!
//! A library so that there can be two programs of it: `pintle`, and `pintle-conformance`, which adds fixtures for tests
//! ([`Rig`]) to the same command line.

mod audit;
mod cli;
mod command_tools;
mod commands;
mod compose;
mod config;
mod download;
mod environment;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod introduction;
mod living;
mod memory;
mod notices;
mod output;
mod ready;
mod replace_file;
mod rig;
mod rules;
mod secret;
mod settings;
mod state;
mod tenants;
mod terminal;
mod text_search;
mod toolsets;
mod workspace_tools;

use std::process::ExitCode;

pub use rig::Rig;

use crate::cli::Command;

/// Runs the program, with what a test rig adds to it.
pub fn run(rig: Option<Rig>) -> ExitCode {
    // Before anything else: a supervisor is started for every call of a command, and is nothing but that.
    if let Some(code) = pintle_process::act_as(std::env::args_os().nth(1).as_deref()) {
        return code;
    }
    rig::install(rig);
    memory::give_back_soon();
    notices::install_panic_hook();
    let result = match Command::read() {
        Command::Serve(arguments) => commands::serve::run(arguments),
        Command::Validate(arguments) => commands::validate::run(arguments),
        Command::Tools(arguments) => commands::tools::run(arguments),
        Command::Tool(arguments) => commands::tool::run(arguments),
        Command::Index(arguments) => commands::index::run(arguments),
        Command::Search(arguments) => commands::search::run(arguments),
        Command::Call(arguments) => commands::call::run(arguments),
        Command::Token(arguments) => commands::token::run(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments),
        Command::Audit(arguments) => commands::audit::run(arguments),
        Command::Contract(arguments) => commands::contract::run(arguments),
        Command::Alone(alone) => commands::validate::run_for_programs(alone),
    };
    let code = result.unwrap_or_else(|error| {
        notices::error(&error.to_string());
        ExitCode::from(2)
    });
    notices::finish();
    code
}

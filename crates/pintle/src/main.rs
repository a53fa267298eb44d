//! Pintle: safe, fast hands on a workspace for AI agents.

mod cli;
mod commands;
mod config;
mod environment;
mod notices;
mod output;
mod ready;
mod rules;
mod settings;
mod workbench;

use std::process::ExitCode;

use crate::cli::{Arguments, Command};

// Requests are parsed by one thread and dropped by another. The system's allocator locks an arena for
// each such value, and the two threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    notices::install_panic_hook();
    let arguments = Arguments::read();
    let result = match (arguments.command, arguments.validate) {
        (Some(Command::Serve(arguments)), _) => commands::serve::run(arguments),
        (Some(Command::Validate(arguments)), _) => commands::validate::run(arguments),
        (Some(Command::Tools(arguments)), _) => commands::tools::run(arguments),
        (Some(Command::Index(arguments)), _) => commands::index::run(arguments),
        (Some(Command::Search(arguments)), _) => commands::search::run(arguments),
        (Some(Command::Call(arguments)), _) => commands::call::run(arguments),
        (None, Some(path)) => commands::validate::run_for_programs(&path, arguments.workspace),
        (None, None) => unreachable!("the parser demands a command"),
    };
    let code = result.unwrap_or_else(|problem| {
        notices::error(&problem);
        ExitCode::from(2)
    });
    notices::finish();
    code
}

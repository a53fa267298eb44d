//! Watcher and supervisor as a program of their own, which the tests of this crate start instead of the server's.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle_process::act_as(std::env::args_os().nth(1).as_deref()).unwrap_or(ExitCode::FAILURE)
}

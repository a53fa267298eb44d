//! The processes between a server and its commands as a program of their own: what the tests of this crate start in the
//! place of the server's own program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle_process::act_as(std::env::args_os().nth(1).as_deref()).unwrap_or(ExitCode::FAILURE)
}

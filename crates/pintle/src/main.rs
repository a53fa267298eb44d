//! `pintle`.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle::run(None)
}

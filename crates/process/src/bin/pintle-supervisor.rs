//! The supervisor as a program of its own: what the tests of this crate start in the place of the server's own program.

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    pintle_process::supervise()
}

#[cfg(not(unix))]
fn main() {}

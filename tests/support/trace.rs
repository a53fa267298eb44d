//! A server whose system calls are slowed down or fail, so that a test can act between two of them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{Server, Setup, wait_until};

/// A server under `strace`.
pub struct Traced {
    pub server: Server,
    log: PathBuf,
}

/// Starts a server whose system calls are logged and tampered with, in the syntax of `strace`. Prints a note and
/// returns none where that is not possible.
pub fn traced(setup: Setup, calls: &str, tampering: &[&str]) -> Option<Traced> {
    let log = setup.path("trace");
    let strace = |log: &Path| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "--seccomp-bpf", "-e"]).arg(format!("trace={calls}"));
        for tampering in tampering {
            strace.arg("-e").arg(format!("inject={tampering}"));
        }
        strace.arg("-o").arg(log);
        strace
    };
    let probe = strace(Path::new("/dev/null")).arg("true").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("not tried: there is no strace that can tamper with system calls here");
        return None;
    }
    let wrap = |command: &Command| {
        let mut traced = strace(&log);
        traced.arg(command.get_program()).args(command.get_args());
        traced
    };
    let server = setup.wrapped(wrap).start();
    Some(Traced { server, log })
}

impl Traced {
    /// How often a system call has returned.
    pub fn count(&self, call: &str) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| line.contains(call) && line.contains(" = ")).count()
    }

    /// Kills the server, but not its tracer, and waits until both have ended.
    pub fn kill(mut self) {
        let ready = std::fs::read_to_string(self.server.path("ready")).expect("a ready file");
        let pid = ready.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a number");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the server is there");
        self.server.wait();
    }

    /// Waits until a system call has returned again.
    pub fn wait_for_another(&self, call: &str, before: usize) {
        wait_until(call, || self.count(call) > before);
    }
}

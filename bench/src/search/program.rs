//! Runs programs to their end: output, time and memory.

use std::{
    fs,
    io::Read,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::files::milliseconds;

/// How many milliseconds a program takes, until the end of its output.
pub fn time(command: &mut Command) -> f64 {
    let mut buffer = vec![0; 1 << 20];
    let started = Instant::now();
    let mut child = spawn(command);
    let mut stdout = child.stdout.take().expect("stdout");
    while stdout.read(&mut buffer).expect("the program writes") > 0 {}
    let ended = child.wait().expect("ends");
    let elapsed = started.elapsed();
    // Exit code 1 means that nothing was found.
    assert!(matches!(ended.code(), Some(0 | 1)), "{command:?} ended with {ended}");
    milliseconds(elapsed)
}

/// The output of a program, or an error with its standard error. Exit code 1 means that nothing was found, or an error.
pub fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let found_nothing =
        output.status.code() == Some(1) && !said.lines().any(|line| line.starts_with("error"));
    match output.status.success() || found_nothing {
        true => Ok(output.stdout),
        false => Err(format!("{command:?} failed: {}", said.trim())),
    }
}

/// The cost of running a program.
pub struct Cost {
    pub printed: Vec<u8>,
    pub milliseconds: f64,
    pub peak_mebibytes: f64,
}

/// Runs a program and samples its peak memory (VmHWM). The kernel's record of an ended child starts with its parent's
/// memory, so the running process is read many times; VmHWM never shrinks, so only the last instant can be missed.
pub fn cost(command: &mut Command) -> Cost {
    let started = Instant::now();
    let mut child = spawn(command);
    let (end, ended) = mpsc::channel::<()>();
    let id = child.id();
    let watcher = thread::spawn(move || {
        let mut peak: f64 = 0.0;
        while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            peak = peak.max(peak_mebibytes(id).unwrap_or_default());
        }
        peak
    });
    let mut printed = Vec::new();
    child.stdout.take().expect("stdout").read_to_end(&mut printed).expect("the program writes");
    let status = child.wait().expect("ends");
    let milliseconds = milliseconds(started.elapsed());
    drop(end);
    assert!(status.success(), "{command:?} ended with {status}");
    Cost { printed, milliseconds, peak_mebibytes: watcher.join().expect("watches") }
}

fn peak_mebibytes(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

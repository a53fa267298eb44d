//! Starts servers and measures their throughput, start time and memory.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The path of a built binary, next to this one.
pub fn binary(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("this binary has a path");
    let path = this.with_file_name(name);
    assert!(path.exists(), "{} is not built; use scripts/bench", path.display());
    path
}

/// The version of the binary under test, with its commit.
pub fn version() -> String {
    let output = Command::new(binary("pintle")).arg("--version").output().expect("pintle starts");
    String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("pintle ").to_owned()
}

/// `pintle-conformance serve`, for its echo tool, with a root, a state folder and a ready file of its own.
pub fn pintle(folder: &Path) -> Command {
    let root = folder.join("root");
    std::fs::create_dir_all(&root).expect("a root");
    let mut command = Command::new(binary("pintle-conformance"));
    command.arg("serve").arg("--fixtures").arg("--root").arg(root);
    command.arg("--state-dir").arg(folder.join("state"));
    command.env("MCP_READY_FILE", folder.join("ready"));
    command
}

/// Pipes all requests in, counts the replies, and returns the calls a second.
pub fn pipelined(command: &mut Command, requests: Vec<u8>, count: usize) -> f64 {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = child.stdout.take().expect("stdout");
    let started = Instant::now();
    let writer = std::thread::spawn(move || stdin.write_all(&requests).expect("the server reads"));
    let mut buffer = vec![0; 1 << 18];
    let mut replies = 0;
    loop {
        match stdout.read(&mut buffer).expect("the server writes") {
            0 => break,
            length => replies += buffer[..length].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    let elapsed = started.elapsed();
    writer.join().expect("writes");
    assert!(child.wait().expect("ends").success());
    assert_eq!(replies, count, "replies were lost");
    count as f64 / elapsed.as_secs_f64()
}

/// Starts the server and measures the time until it reports that it is ready.
pub fn start_to_ready(command: &mut Command) -> (Child, Duration) {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let ready = lines.any(|line| line.is_ok_and(|line| line.starts_with("mcp:ready")));
    assert!(ready, "the server did not get ready");
    (child, started.elapsed())
}

/// Resident memory of a process, in MiB.
pub fn resident_mebibytes(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

/// The median of several readings.
pub fn median(mut readings: Vec<f64>) -> f64 {
    readings.sort_by(f64::total_cmp);
    readings[readings.len() / 2]
}

//! Starts the real binary and talks to it.

pub mod archives;
pub mod folder;
pub mod http;
pub mod https;
pub mod packs;
pub mod random;
pub mod surfaces;
pub mod tokens;
pub mod trace;

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a busy machine, short enough to end a test that hangs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How often something is tried: a few times in the suite, many times in `scripts/stress`.
pub fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("PINTLE_STRESS").is_some() { many } else { few }
}

/// Reports that the running test cannot run on this system, and why. With `PINTLE_NO_SKIPS` that is a failure.
///
/// The line bypasses the capture of the test harness and has the number of skips so far, so that a skipped test is not
/// mistaken for one that passed.
pub fn skip(reason: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    assert!(
        std::env::var_os("PINTLE_NO_SKIPS").is_none(),
        "skipped, which PINTLE_NO_SKIPS forbids: {reason}"
    );
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED: {test}: {reason} ({count} skipped so far)\n");
    // It is no failure of the test if standard error has no reader.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The hash of a file with these bytes.
pub fn hash(bytes: impl AsRef<[u8]>) -> String {
    pintle_files::Hash::of(bytes.as_ref()).to_string()
}

/// The memory that a process uses now, in MiB.
pub fn resident_memory(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

/// The peak memory of a process, in MiB.
pub fn peak_memory(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes >> 10
}

/// The folder of the project's own test data.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").canonicalize().expect("test data")
}

/// The folder of expected transcripts and logs.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").canonicalize().expect("golden data")
}

/// Takes the build lock of a root: until the file is closed, no index of it is built, and searches scan.
pub fn hold_build_lock(root: &Path, state: &Path) -> std::fs::File {
    // Only the binary knows the name of the folder, so a first build creates it, and its index is removed.
    let mut index = pintle();
    index.arg("index").arg("--root").arg(root).arg("--state-dir").arg(state);
    let (code, _, errors) = run(&mut index, b"");
    assert_eq!(code, Some(0), "{errors}");
    let mut folders = std::fs::read_dir(state.join("index")).expect("indexes");
    let folder = folders.next().expect("an index").expect("an entry").path();
    assert!(folders.next().is_none(), "there is one index");
    let lock = std::fs::File::options().write(true).open(folder.join("lock")).expect("a lock");
    lock.lock().expect("the lock is free");
    for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
        if entry.file_name() != "lock" {
            std::fs::remove_file(entry.path()).expect("a file of the index");
        }
    }
    lock
}

/// The binary with an environment of its own, which has nothing of the machine's environment.
pub fn pintle() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The program with the test fixtures, in the same environment.
pub fn conformance() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle-conformance"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A server to be started.
pub struct Setup {
    command: Command,
    folder: TempDir,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    /// With an empty root, its own state folder and its own ready file.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("a root");
        let mut command = pintle();
        command.arg("serve").current_dir(&root);
        command.env("PINTLE_STATE_DIR", folder.path().join("state"));
        command.env("MCP_READY_FILE", folder.path().join("ready"));
        Self { command, folder }
    }

    /// With the test tools.
    pub fn fixtures() -> Self {
        Self::new().arg("--fixtures")
    }

    /// With the schemas and examples of the test data.
    pub fn assets() -> Self {
        Self::new()
            .env("SYN_SCHEMAS_DIR", data().join("schemas"))
            .env("SYN_EXAMPLES_DIR", data().join("examples"))
    }

    /// Over HTTP, on any free port.
    pub fn http(self) -> Self {
        self.args(["--http", "127.0.0.1:0", "--auth", "none"])
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(&argument);
        // Only the conformance program has the flags for tests and measurements.
        if argument.as_ref() == "--fixtures" || argument.as_ref() == "--no-fsync" {
            return self.wrapped(|command| {
                let mut other = conformance();
                other.args(command.get_args());
                other
            });
        }
        self
    }

    pub fn args<const N: usize>(self, arguments: [&str; N]) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same server, started through another program.
    pub fn wrapped(mut self, wrap: impl FnOnce(&Command) -> Command) -> Self {
        let mut command = wrap(&self.command);
        command.env_clear().envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        self.command = command;
        self
    }

    /// A path in the server's own folder, outside the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the server and waits until it is ready.
    pub fn start(self) -> Server {
        let mut server = self.start_without_reader();
        server.start_reading();
        server
    }

    /// Starts the server and does not read its standard output.
    pub fn start_without_reader(mut self) -> Server {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("starts");
        let stdin = child.stdin.take();
        let stderr = Arc::new(Mutex::new(String::new()));
        let mut errors = BufReader::new(child.stderr.take().expect("stderr"));
        let (ready_sender, ready) = mpsc::channel();
        let gathered = Arc::clone(&stderr);
        let error_reader = std::thread::spawn(move || {
            let mut line = String::new();
            while errors.read_line(&mut line).is_ok_and(|count| count > 0) {
                gathered.lock().expect("unpoisoned").push_str(&line);
                if line.starts_with("mcp:ready") {
                    let _ = ready_sender.send(());
                }
                line.clear();
            }
        });
        if ready.recv_timeout(TEST_TIMEOUT).is_err() {
            panic!("the server did not get ready: {}", stderr.lock().expect("unpoisoned"));
        }
        let lines = mpsc::channel().1;
        Server { child, stdin, lines, stderr, readers: vec![error_reader], folder: self.folder }
    }
}

/// Whether a record belongs to a handshake or a notification, which occupy no slot.
pub fn is_of_handshake(record: &Value) -> bool {
    record["route"] == "initialize" || record["route"] == "notification"
}

/// A running server.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Vec<u8>>,
    stderr: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    folder: TempDir,
}

impl Server {
    /// Starts to read standard output.
    pub fn start_reading(&mut self) {
        let (sender, lines) = mpsc::channel();
        let mut stdout = BufReader::new(self.child.stdout.take().expect("stdout"));
        self.lines = lines;
        self.readers.push(std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        }));
    }

    /// Writes bytes unchanged.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("the server reads");
        stdin.flush().expect("the server reads");
    }

    /// Sends one line.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a direct request.
    pub fn request(&mut self, id: Value, method: &str, params: Value) {
        self.send(&request(id, method, params));
    }

    /// The next frame on standard output, as text.
    pub fn line(&self) -> String {
        let line = self.lines.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| {
            panic!("no frame came; stderr: {}", self.stderr());
        });
        let text = String::from_utf8(line).expect("frames are UTF-8");
        text.strip_suffix('\n').expect("frames end with a newline").to_owned()
    }

    /// The next frame on standard output.
    pub fn frame(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
    }

    /// The next frame on standard output, if it has already arrived.
    pub fn frame_at_once(&self) -> Option<Value> {
        let line = self.lines.try_recv().ok()?;
        Some(serde_json::from_slice(&line).expect("JSON"))
    }

    /// Sends a request and waits for the next frame.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.request(json!(1), method, params);
        let frame = self.frame();
        assert_eq!(frame["id"], json!(1), "{frame}");
        frame
    }

    /// The result of a call.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let frame = self.call(method, params);
        frame.get("result").cloned().unwrap_or_else(|| panic!("not a result: {frame}"))
    }

    /// The error object of a call.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let frame = self.call(method, params);
        frame.pointer("/error/data").cloned().unwrap_or_else(|| panic!("not an error: {frame}"))
    }

    /// Another handle to standard input, for a thread that writes while this one reads.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin is open")
    }

    /// Closes standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Whether no frame is there and none comes before the server ends.
    pub fn remaining_frames(&self) -> Vec<String> {
        let mut frames = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TEST_TIMEOUT) {
            frames.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        frames
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the server is there");
    }

    /// Sends a signal, unless the server has ended.
    pub fn signal_if_running(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Whether the server has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("waits").is_none()
    }

    /// Reads standard output up to a text, without a thread that would keep it open.
    pub fn read_past(&mut self, text: &str) {
        let stdout = self.child.stdout.as_mut().expect("it has no reader");
        let mut seen = Vec::new();
        let mut byte = [0];
        while !seen.ends_with(text.as_bytes()) {
            stdout.read_exact(&mut byte).expect("the text comes");
            seen.extend(byte);
        }
    }

    /// Closes the reading end of the server's standard output.
    pub fn drop_stdout(&mut self) {
        drop(self.child.stdout.take().expect("it has no reader"));
    }

    /// How much of what was sent the server has not read yet.
    pub fn unread_input(&self) -> u64 {
        rustix::io::ioctl_fionread(self.stdin.as_ref().expect("stdin is open")).expect("a pipe")
    }

    /// Whether a condition holds while the server is idle: all its threads sleep, and none has run between the check
    /// before and the check after. So the condition does not make the server run.
    pub fn sleeps_while(&self, holds: impl FnOnce() -> bool) -> bool {
        let before = threads(self.pid());
        before.iter().all(|(_, state, _)| state == "S") && holds() && threads(self.pid()) == before
    }

    /// How often the server's threads have gone to sleep, in total.
    pub fn sleeps(&self) -> u64 {
        threads(self.pid()).iter().map(|(_, _, sleeps)| sleeps).sum()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The output on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("unpoisoned").clone()
    }

    /// The records of calls, lists and refusals on standard error, once there are at least `count`.
    pub fn records(&self, count: usize) -> Vec<Value> {
        self.records_of(count, |record| !is_of_handshake(record))
    }

    /// All matching records on standard error, once there are at least `count`.
    pub fn records_of(&self, count: usize, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let records: Vec<Value> = self
                .stderr()
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .filter(|record| is_wanted(record))
                .collect();
            if records.len() >= count {
                return records;
            }
            assert!(Instant::now() < deadline, "only {} records: {}", records.len(), self.stderr());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A path in the server's own folder, outside the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the server ends.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                for reader in self.readers.drain(..) {
                    reader.join().expect("reads to the end");
                }
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Closes standard input and waits for a clean end.
    pub fn finish(mut self) -> String {
        self.close_stdin();
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
        self.stderr()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The threads of a process: number, state, and how often each has gone to sleep.
fn threads(pid: u32) -> Vec<(PathBuf, String, u64)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut threads: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let state = field("State:")?.split(' ').next()?.to_owned();
            Some((path, state, field("voluntary_ctxt_switches:")?.parse().ok()?))
        })
        .collect();
    threads.sort();
    threads
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A direct request.
pub fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Runs the binary to its end.
pub fn run(command: &mut Command, input: &[u8]) -> (Option<i32>, String, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // It is no failure of the test if the program ends without reading all of its input.
        let _ = stdin.write_all(&input);
    });
    let mut errors = child.stderr.take().expect("stderr");
    let error_reader = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let mut output = String::new();
    child.stdout.take().expect("stdout").read_to_string(&mut output).expect("text");
    let status = child.wait().expect("ends");
    writer.join().expect("writes");
    let errors = error_reader.join().expect("reads").expect("text");
    (status.code(), output, errors)
}

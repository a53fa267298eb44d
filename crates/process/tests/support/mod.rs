//! Commands to run, and the processes that they start.

use std::{
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use pintle_process::{CommandSpec, Finished, Keep, RunError, Spawner};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
};

/// Long enough for a busy machine, short enough to end a test that hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How often something is tried: a few times in the suite, many times in a stress run.
pub fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("PINTLE_STRESS").is_some() { many } else { few }
}

/// One for all tests: its list separates the orphans of a dead supervisor from the processes of other tests.
pub static SPAWNER: LazyLock<Spawner> = LazyLock::new(|| {
    Spawner::with_executable(env!("CARGO_BIN_EXE_pintle-supervisor").into(), |problem| panic!("{problem}"))
});

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A text that is in the arguments of no other process. It is a number, so that `sleep` accepts it, too.
pub fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("0.000{:08}{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub fn command(program: &str, arguments: &[&str]) -> CommandSpec {
    CommandSpec {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        folder: "/".into(),
        stdin: None,
        grace: Duration::from_millis(300),
        keep_stdout: Keep::ends(256 << 10),
        keep_stderr: Keep::ends(256 << 10),
    }
}

/// A shell script; `$1` is the marker.
pub fn shell(script: &str, marker: &str) -> CommandSpec {
    command("/bin/sh", &["-c", script, "sh", marker])
}

/// A Python script; `sys.argv[1]` is the marker.
pub fn python(script: &str, marker: &str) -> CommandSpec {
    let path =
        ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists());
    command(path.expect("python3"), &["-c", script, marker])
}

/// Runs a command to its end.
pub fn run(spec: CommandSpec) -> Result<Finished, RunError> {
    runtime().block_on(SPAWNER.run(spec, |_| {}, ()))
}

/// Runs a command until it prints `ready` on standard error, drops it, and waits until no process is left. Returns how
/// long that took.
pub fn give_up_when_ready(spec: CommandSpec) -> Duration {
    runtime().block_on(async {
        let (lines, mut seen) = mpsc::unbounded_channel();
        let (held, ended) = oneshot::channel::<()>();
        let on_line = move |line: &str| _ = lines.send(line.to_owned());
        let running = tokio::spawn(SPAWNER.run(spec, on_line, held));
        loop {
            match tokio::time::timeout(TEST_TIMEOUT, seen.recv()).await.expect("it gets ready") {
                Some(line) if line == "ready" => break,
                Some(_) => {}
                None => panic!("it ended before it was ready: {:?}", running.await),
            }
        }
        let given_up = Instant::now();
        running.abort();
        // The sender is dropped without a message.
        assert!(tokio::time::timeout(TEST_TIMEOUT, ended).await.expect("it ends").is_err());
        given_up.elapsed()
    })
}

/// The processes with a marker in their arguments; zombies have none.
pub fn survivors(marker: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("a table of processes").flatten();
    let commands = processes.filter_map(|process| {
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let number = process.file_name().to_str()?.to_owned();
        (number.bytes().all(|byte| byte.is_ascii_digit()) && line.contains(marker))
            .then(|| format!("{number}: {line}"))
    });
    commands.collect()
}

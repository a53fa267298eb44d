//! Windows: `taskkill` ends the process tree of a command. Written from the documentation and never run: the project is
//! built and tested on Linux. There is no supervisor, so the commands of a killed server survive it, and so does a process
//! whose parent ended before the kill.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
};

use crate::{
    command::{CommandSpec, Exit, Finished, RunError, StartFailure},
    kept::{Keep, Kept},
    lines::Lines,
};

/// Windows has no supervisor and no watcher.
pub fn act_as(_first_argument: Option<&std::ffi::OsStr>) -> Option<std::process::ExitCode> {
    None
}

/// Starts commands.
#[derive(Clone, Default)]
pub struct Spawner {
    tasks: tokio_util::task::TaskTracker,
}

/// Kills a process tree when it is dropped before the process has ended.
struct Tree(Option<u32>);

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // An error is fine: the process has already ended.
            let mut taskkill = Command::new("taskkill");
            let _ = taskkill.args(["/PID", &pid.to_string(), "/T", "/F"]).stdout(Stdio::null()).status();
        }
    }
}

impl Spawner {
    /// Needs no preparation.
    pub fn new(_problem: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::default()
    }

    /// Runs a command to its end. If this future is dropped, its tree is killed.
    pub async fn run(
        &self,
        spec: CommandSpec,
        on_line: impl FnMut(&str) + Send + 'static,
        held: impl Send + 'static,
    ) -> Result<Finished, RunError> {
        let mut command = Command::new(&spec.program);
        command.args(&spec.arguments).env_clear().envs(spec.environment.iter().cloned());
        command.current_dir(&spec.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StartFailure::Missing,
            _ => StartFailure::Other(error.raw_os_error().unwrap_or(0)),
        })?;
        let mut tree = Tree(Some(child.id()));
        let ended = self.tasks.spawn_blocking(move || {
            let finished = wait(child, spec, on_line);
            drop(held);
            finished
        });
        let finished = ended.await.map_err(std::io::Error::other)?;
        tree.0 = None;
        finished
    }

    /// Windows has no grace.
    pub fn longest_grace(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    /// Resolves when no command runs.
    pub async fn all_ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn wait(mut child: Child, spec: CommandSpec, on_line: impl FnMut(&str)) -> Result<Finished, RunError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command need not read its input.
            stdin.zip(spec.stdin).map(|(mut stdin, bytes)| std::io::Write::write_all(&mut stdin, &bytes))
        });
        let stdout = scope.spawn(move || drain(stdout, spec.keep_stdout, |_| {}));
        let mut lines = Lines::new(on_line);
        let stderr = drain(stderr, spec.keep_stderr, |bytes| lines.push(bytes));
        lines.end();
        let stdout = stdout.join().unwrap_or_else(|_| Kept::new(spec.keep_stdout));
        Ok(Finished { exit: Exit::Code(child.wait()?.code().unwrap_or(-1)), stdout, stderr })
    })
}

fn drain(from: Option<impl Read>, keep: Keep, mut also: impl FnMut(&[u8])) -> Kept {
    let mut kept = Kept::new(keep);
    let mut buffer = vec![0; 64 << 10];
    let Some(mut from) = from else { return kept };
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.push(&buffer[..count]);
        also(&buffer[..count]);
    }
    kept
}

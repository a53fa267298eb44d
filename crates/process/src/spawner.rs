//! The server's side: starts a supervisor for each command, takes what the command prints, and sees to its end.

use std::{
    collections::HashSet,
    io::{self, PipeReader},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream as StdUnixStream, process::CommandExt},
    },
    path::PathBuf,
    process::{Child, Command},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, getpid};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf, pipe},
    },
    sync::oneshot,
};
use tokio_util::task::TaskTracker;

use crate::{
    command::{CommandSpec, Exit, Finished, RunError},
    kept::Kept,
    lines::Lines,
    message::{KILL, REPORT_BYTES, Report, write_spec},
    reaper, tree,
};

/// The first argument that makes this program a supervisor. It is no word that anyone would type.
pub const SUPERVISOR_ARGUMENT: &str = "--supervise-one-command";

/// How long the ends of the pipes may take to close once nothing is left that was started here. What a command handed
/// to another service may hold them for ever.
const PIPES_CLOSE: Duration = Duration::from_secs(1);

/// Starts commands, each below a supervisor of its own.
#[derive(Clone)]
pub struct Spawner {
    shared: Arc<Shared>,
}

struct Shared {
    executable: PathBuf,
    /// The supervisors that run. Everything else below this process was left behind by one that died.
    supervisors: Mutex<HashSet<Pid>>,
    /// Whether processes that lose their supervisor become this process's children.
    is_subreaper: bool,
    tasks: TaskTracker,
    problem: Box<dyn Fn(&str) + Send + Sync>,
}

impl Spawner {
    /// Starts supervisors as this same program, which has to call [`supervise`](crate::supervise) if its first argument
    /// is [`SUPERVISOR_ARGUMENT`]. What could not be killed is reported to `problem`.
    pub fn new(problem: impl Fn(&str) + Send + Sync + 'static) -> Self {
        // The file that runs, whatever has become of its name.
        let own = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe().unwrap_or_default(),
        };
        Self::with_executable(own, problem)
    }

    /// The same with another program for the supervisors.
    pub fn with_executable(executable: PathBuf, problem: impl Fn(&str) + Send + Sync + 'static) -> Self {
        // Children from before are not ours, and neither is what they leave behind.
        let has_children = tree::children(getpid()).is_none_or(|children| !children.is_empty());
        let is_subreaper = !has_children && reaper::become_subreaper().is_ok();
        Self {
            shared: Arc::new(Shared {
                executable,
                supervisors: Mutex::default(),
                is_subreaper,
                tasks: TaskTracker::new(),
                problem: Box::new(problem),
            }),
        }
    }

    /// Runs a command to its end, and to that of everything that it started. If this future is dropped, all of it is
    /// killed; that goes on in the background.
    ///
    /// `on_line` gets the lines of standard error as they come. `held` is dropped when nothing is left.
    pub async fn run(
        &self,
        spec: CommandSpec,
        on_line: impl FnMut(&str) + Send + 'static,
        held: impl Send + 'static,
    ) -> Result<Finished, RunError> {
        let (reply, finished) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        // A task of its own: whoever waits may stop waiting, but the end has to be seen to.
        self.shared.tasks.spawn(async move {
            let mut reply = reply;
            let outcome = shared.supervise(spec, on_line, &mut reply).await;
            drop(held);
            // Nobody may be there to hear it.
            let _ = reply.send(outcome);
        });
        finished.await.unwrap_or(Err(RunError::SupervisorLost))
    }

    /// Resolves when no command runs and none is being killed.
    pub async fn all_ended(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// A supervisor that was started, and the ends of what it was given.
struct Started {
    child: Child,
    pid: Pid,
    control: StdUnixStream,
    stdout: PipeReader,
    stderr: PipeReader,
}

impl Shared {
    async fn supervise(
        self: Arc<Self>,
        spec: CommandSpec,
        on_line: impl FnMut(&str) + Send + 'static,
        reply: &mut oneshot::Sender<Result<Finished, RunError>>,
    ) -> Result<Finished, RunError> {
        let starter = Arc::clone(&self);
        let started = tokio::task::spawn_blocking(move || starter.start()).await;
        let Started { child, pid, control, stdout, stderr } = started.map_err(io::Error::other)??;
        let talked = async {
            control.set_nonblocking(true)?;
            let (from, mut to) = UnixStream::from_std(control)?.into_split();
            let stdout = receiver(stdout)?;
            let stderr = receiver(stderr)?;
            let mut kept = (Kept::new(spec.keep_stdout), Kept::new(spec.keep_stderr));
            let mut lines = Lines::new(on_line);
            let outputs = async {
                tokio::join!(
                    drain(stdout, |bytes| kept.0.push(bytes)),
                    drain(stderr, |bytes| {
                        kept.1.push(bytes);
                        lines.push(bytes);
                    }),
                );
                lines.end();
            };
            let control = async {
                to.write_all(&write_spec(&spec)).await?;
                self.follow(from, to, reply).await
            };
            let exit = with_output(outputs, control).await?;
            Ok::<_, RunError>(Finished { exit, stdout: kept.0, stderr: kept.1 })
        };
        let outcome = talked.await;
        self.reap(child, pid, matches!(outcome, Err(RunError::SupervisorLost | RunError::System(_)))).await;
        outcome
    }

    /// Starts a supervisor.
    fn start(&self) -> io::Result<Started> {
        let (control, theirs) = StdUnixStream::pair()?;
        let (stdout, stdout_writer) = io::pipe()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let mut command = Command::new(&self.executable);
        command.arg0("pintle").arg(SUPERVISOR_ARGUMENT).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(stdout_writer).stderr(stderr_writer);
        // Under the lock: a child of this process that is not in the list counts as left behind.
        let mut supervisors = self.lock();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        supervisors.insert(pid);
        Ok(Started { child, pid, control, stdout, stderr })
    }

    /// Follows what a supervisor reports, to the end. Orders it to kill when nobody waits any more.
    async fn follow(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        reply: &mut oneshot::Sender<Result<Finished, RunError>>,
    ) -> Result<Exit, RunError> {
        let mut exit = None;
        let mut is_killed = false;
        loop {
            let mut frame = [0; REPORT_BYTES];
            let report = {
                let mut read = std::pin::pin!(from.read_exact(&mut frame));
                loop {
                    tokio::select! {
                        read = &mut read => break read,
                        () = reply.closed(), if !is_killed => {
                            is_killed = true;
                            // One that has ended just now needs no order.
                            let _ = to.write_all(&[KILL]).await;
                        }
                    }
                }
            };
            match report {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(RunError::SupervisorLost);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(RunError::SupervisorLost);
                }
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            match Report::read(frame)? {
                Report::NotStarted(failure) => return Err(failure.into()),
                Report::Exited(how) => exit = Some(how),
                Report::Unkillable { count, example } => (self.problem)(&format!(
                    "{count} processes that a command started cannot be killed, among them {example}; \
                     it is being tried again"
                )),
                Report::Done => return exit.ok_or(RunError::SupervisorLost),
            }
        }
    }

    /// Waits for a supervisor's end, and kills what it left behind if it did not see to that itself.
    async fn reap(self: Arc<Self>, mut child: Child, pid: Pid, has_died: bool) {
        let wait = move || {
            let _ = child.wait();
            // Only now: its number is not another process's yet, but it is no child of ours any more.
            let mut supervisors = self.lock();
            supervisors.remove(&pid);
            if has_died {
                let left = match self.is_subreaper {
                    true => reaper::kill_children_but(&supervisors),
                    false => reaper::kill_session(pid),
                };
                if left > 0 {
                    (self.problem)(&format!(
                        "a command killed its supervisor, and {left} of its processes cannot be killed"
                    ));
                }
            }
        };
        // A runtime that is shutting down takes the server with it, and then the system reaps.
        let _ = tokio::task::spawn_blocking(wait).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Pid>> {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn receiver(pipe: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(pipe.into())
}

/// Reads a pipe to its end.
async fn drain(mut pipe: pipe::Receiver, mut take: impl FnMut(&[u8])) {
    const AT_ONCE: usize = 64 << 10;
    let mut buffer = vec![0; AT_ONCE];
    // A pipe that cannot be read has ended.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        take(&buffer[..count]);
    }
}

/// Follows the control channel while the output is read, and waits a little for the rest of the output.
async fn with_output<T, E>(
    outputs: impl Future<Output = ()>,
    control: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (mut outputs, mut control) = (std::pin::pin!(outputs), std::pin::pin!(control));
    tokio::select! {
        biased;
        () = &mut outputs => control.await,
        ended = &mut control => {
            let _ = tokio::time::timeout(PIPES_CLOSE, outputs).await;
            ended
        }
    }
}

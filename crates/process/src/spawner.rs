//! The server's side: starts a supervisor for each command, reads the command's output, and makes sure that it ends.

use std::{
    io::{self, PipeReader},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf, pipe},
    },
    sync::oneshot,
    time::{Instant, sleep_until},
};
use tokio_util::task::TaskTracker;

use crate::{
    command::{CommandSpec, Exit, Finished, RunError},
    kept::Kept,
    lines::Lines,
    message::{KILL, REPORT_BYTES, Report, write_spec},
    roles::own_executable,
    watcher_handle::{WatcherHandle, Watchers},
};

/// How long to wait for the output pipes to close after the process tree is gone. Another service that inherited them from
/// the command could keep them open forever.
const PIPES_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// After this time without a heartbeat from a supervisor that was ordered to kill, others take over: first the watcher,
/// then the server.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);

/// After this time beyond the grace others take over, too, because a supervisor that is stopped again and again makes no
/// progress. One that found an unkillable process has reported it by then.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts commands, each below a supervisor of its own.
#[derive(Clone)]
pub struct Spawner {
    shared: Arc<Shared>,
}

struct Shared {
    watchers: Watchers,
    /// The longest grace of all commands so far, in milliseconds.
    longest_grace: AtomicU64,
    tasks: TaskTracker,
    problem: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Spawner {
    /// Uses this same program for supervisors and watcher: it has to call [`act_as`](crate::act_as) with its first argument
    /// before anything else. Processes that could not be killed are reported to `problem`.
    pub fn new(problem: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::with_executable(own_executable(), problem)
    }

    /// The same with another program for supervisors and watcher.
    pub fn with_executable(executable: PathBuf, problem: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let problem: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(problem);
        let watchers = Watchers::new(executable, Arc::clone(&problem));
        let (tasks, longest_grace) = (TaskTracker::new(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { watchers, longest_grace, tasks, problem }) }
    }

    /// Runs a command until its whole process tree has ended. If this future is dropped, the tree is killed in the
    /// background.
    ///
    /// `on_line` gets the lines of standard error as they come. `held` is dropped when no process is left.
    pub async fn run(
        &self,
        spec: CommandSpec,
        on_line: impl FnMut(&str) + Send + 'static,
        held: impl Send + 'static,
    ) -> Result<Finished, RunError> {
        let (stdout, theirs) = io::pipe()?;
        let finished = self.spawn(spec, Some(stdout), theirs.into(), on_line, held);
        finished.await.unwrap_or(Err(RunError::SupervisorLost))
    }

    /// Starts a command that is talked to: its standard output is one end of a socket, and the other end is returned.
    /// The command has to take its standard input from there, too (`0<&1` in a shell). Its process tree is killed when
    /// the conversation is dropped.
    pub fn converse(
        &self,
        spec: CommandSpec,
        on_line: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<Conversation> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        Ok(Conversation { stream, ended: Ended(self.spawn(spec, None, theirs.into(), on_line, ())) })
    }

    fn spawn(
        &self,
        spec: CommandSpec,
        stdout: Option<PipeReader>,
        theirs: OwnedFd,
        on_line: impl FnMut(&str) + Send + 'static,
        held: impl Send + 'static,
    ) -> oneshot::Receiver<Result<Finished, RunError>> {
        let grace = u64::try_from(spec.grace.as_millis()).unwrap_or(u64::MAX);
        self.shared.longest_grace.fetch_max(grace, Ordering::Relaxed);
        let (reply, finished) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        // A task of its own, because the kill has to continue when the caller is dropped.
        self.shared.tasks.spawn(async move {
            let mut reply = reply;
            let outcome = shared.supervise(spec, stdout, theirs, on_line, &mut reply).await;
            drop(held);
            // An error is fine: the caller is gone.
            let _ = reply.send(outcome);
        });
        finished
    }

    /// The longest grace of all commands that were run.
    pub fn longest_grace(&self) -> Duration {
        Duration::from_millis(self.shared.longest_grace.load(Ordering::Relaxed))
    }

    /// Resolves when no command runs and none is being killed.
    pub async fn all_ended(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// A running command that is talked to.
pub struct Conversation {
    /// What the command writes, and what it reads.
    pub stream: UnixStream,
    /// Resolves when the whole process tree has ended. Dropping it kills the tree.
    pub ended: Ended,
}

/// The end of a command.
pub struct Ended(oneshot::Receiver<Result<Finished, RunError>>);

impl Future for Ended {
    type Output = Result<Finished, RunError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let finished = Pin::new(&mut self.0).poll(context);
        finished.map(|finished| finished.unwrap_or(Err(RunError::SupervisorLost)))
    }
}

/// A supervisor that was requested, and the server's ends of its socket and pipes.
struct Started {
    /// The watcher that starts it, and its id there.
    watcher: Arc<WatcherHandle>,
    id: u64,
    control: StdUnixStream,
    stderr: PipeReader,
}

impl Shared {
    async fn supervise(
        self: Arc<Self>,
        spec: CommandSpec,
        stdout: Option<PipeReader>,
        theirs: OwnedFd,
        on_line: impl FnMut(&str) + Send + 'static,
        reply: &mut oneshot::Sender<Result<Finished, RunError>>,
    ) -> Result<Finished, RunError> {
        let started = match self.watchers.is_ready() {
            true => self.start(theirs),
            // A new watcher has to be started first, which blocks for a while.
            false => {
                let starter = Arc::clone(&self);
                tokio::task::spawn_blocking(move || starter.start(theirs)).await.map_err(io::Error::other)?
            }
        };
        let Started { watcher, id, control, stderr } = started?;
        control.set_nonblocking(true)?;
        let (from, mut to) = UnixStream::from_std(control)?.into_split();
        let stdout = stdout.map(receiver).transpose()?;
        let stderr = receiver(stderr)?;
        let mut kept = (Kept::new(spec.keep_stdout), Kept::new(spec.keep_stderr));
        let mut lines = Lines::new(on_line);
        let outputs = async {
            tokio::join!(
                async {
                    if let Some(stdout) = stdout {
                        drain(stdout, |bytes| kept.0.push(bytes)).await;
                    }
                },
                drain(stderr, |bytes| {
                    kept.1.push(bytes);
                    lines.push(bytes);
                }),
            );
            lines.end();
        };
        let control = async {
            let written = write_spec(&spec);
            tokio::select! {
                // An error is fine: a supervisor that is gone shows in its reports.
                _ = to.write_all(&written) => {}
                // With half a specification the supervisor cannot handle an order, so the watcher kills it.
                () = reply.closed() => watcher.take_over(id),
            }
            self.follow(from, to, reply, &watcher, id, spec.grace).await
        };
        let exit = with_output(outputs, control).await?;
        Ok(Finished { exit, stdout: kept.0, stderr: kept.1 })
    }

    /// Starts a supervisor. The command gets `stdout`.
    fn start(&self, stdout: OwnedFd) -> io::Result<Started> {
        let (control, theirs) = StdUnixStream::pair()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let given = [theirs.as_fd(), stdout.as_fd(), stderr_writer.as_fd()];
        let (watcher, id) = self.watchers.start_supervisor(given)?;
        Ok(Started { watcher, id, control, stderr })
    }

    /// Reads a supervisor's reports to the end. Orders it to kill when the caller is gone, and lets the watcher or the server
    /// take over if it does not respond.
    async fn follow(
        &self,
        mut from: OwnedReadHalf,
        to: OwnedWriteHalf,
        reply: &mut oneshot::Sender<Result<Finished, RunError>>,
        watcher: &WatcherHandle,
        id: u64,
        grace: Duration,
    ) -> Result<Exit, RunError> {
        let mut exit = None;
        let mut is_reported = false;
        // When others take over: no heartbeat, or no end in spite of heartbeats.
        let (mut silent_at, mut overdue_at) = (None, None);
        let mut is_taken_over = false;
        loop {
            let mut frame = [0; REPORT_BYTES];
            let report = {
                let mut read = std::pin::pin!(from.read_exact(&mut frame));
                loop {
                    let deadline = [silent_at, overdue_at].into_iter().flatten().min();
                    tokio::select! {
                        read = &mut read => break read,
                        () = reply.closed(), if silent_at.is_none() => {
                            silent_at = Some(Instant::now() + HEARTBEAT_TIMEOUT);
                            overdue_at = Some(Instant::now() + grace + KILL_TIMEOUT);
                            // An error is fine: the supervisor has just ended, or does not read.
                            let _ = to.try_write(&[KILL]);
                        }
                        () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                            silent_at = Some(Instant::now() + HEARTBEAT_TIMEOUT);
                            overdue_at = None;
                            match is_taken_over {
                                false => watcher.take_over(id),
                                true => watcher.kill(),
                            }
                            is_taken_over = true;
                        }
                    }
                }
            };
            match report {
                // Supervisor and watcher are both gone.
                Err(_) => {
                    watcher.kill();
                    watcher.swept().await;
                    return Err(RunError::SupervisorLost);
                }
                Ok(_) => silent_at = silent_at.map(|_| Instant::now() + HEARTBEAT_TIMEOUT),
            }
            match Report::read(frame)? {
                Report::NotStarted(failure) => return Err(failure.into()),
                Report::Exited(how) => exit = Some(how),
                Report::Working => {}
                Report::Unkillable { count, example } => {
                    // The others could do no more.
                    overdue_at = None;
                    if !is_reported {
                        (self.problem)(&format!(
                            "{count} processes that a command started cannot be killed, among them {example}; \
                             it is being tried again"
                        ));
                    }
                    is_reported = true;
                }
                Report::Done => return exit.ok_or(RunError::SupervisorLost),
                Report::Lost { left } => {
                    if left > 0 {
                        (self.problem)(&format!(
                            "a command killed or stopped its supervisor, and {left} of its processes cannot be killed"
                        ));
                    }
                    return Err(RunError::SupervisorLost);
                }
            }
        }
    }
}

fn receiver(pipe: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(pipe.into())
}

/// Reads a pipe to its end.
async fn drain(mut pipe: pipe::Receiver, mut take: impl FnMut(&[u8])) {
    const AT_ONCE: usize = 64 << 10;
    let mut buffer = vec![0; AT_ONCE];
    // A read error means that the pipe has ended.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        take(&buffer[..count]);
    }
}

/// Follows the control socket while the output is read, then waits a little for the rest of the output.
async fn with_output<T, E>(
    outputs: impl Future<Output = ()>,
    control: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (mut outputs, mut control) = (std::pin::pin!(outputs), std::pin::pin!(control));
    tokio::select! {
        biased;
        () = &mut outputs => control.await,
        ended = &mut control => {
            let _ = tokio::time::timeout(PIPES_CLOSE_TIMEOUT, outputs).await;
            ended
        }
    }
}

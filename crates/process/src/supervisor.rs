//! The supervisor: the process between the server and one command. It starts the command, waits for it, and kills
//! everything that the command started and left behind.
//!
//! It is a *subreaper*: an orphan below it becomes its child, however often it forks, whatever session or process group
//! it creates, and whatever its environment is. So everything that the command started is below the supervisor, and when
//! `waitpid` reports no children, nothing is left.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Command, ExitCode, ExitStatus, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, setsid, wait},
};

use crate::{
    command::{CommandSpec, Exit, StartFailure},
    message::{KILL, Report, read_spec},
    reaper::{self, Reaped, Remains},
    tree::OwnChildren,
};

/// How often the supervisor reaps orphans that have ended while the command still runs.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// The same while orphans keep ending, and how often it polls for the command's end on systems without pidfds.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The longest pause between two checks of processes that are ending.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// After this time, processes that could not be killed are reported.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the supervisor reports to the server that it is carrying out an order.
const WORKING_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a supervisor process for one command, to its end. Standard input is the socket to the server; standard output and
/// error are the command's.
pub(crate) fn supervise() -> ExitCode {
    match Supervisor::start().map(|mut supervisor| supervisor.run()) {
        Ok(Remains::Nothing) => ExitCode::SUCCESS,
        // The watcher kills what is left.
        Ok(Remains::Something) | Err(_) => ExitCode::FAILURE,
    }
}

/// The order of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The command may run on.
    GoOn,
    /// Graceful: SIGTERM, then SIGKILL after the grace.
    Terminate,
    /// The server or the watcher is gone: SIGKILL everything at once.
    Kill,
}

struct Supervisor {
    control: UnixStream,
    order: Order,
    /// The command itself, until its exit code was collected.
    command: Option<Pid>,
    own: Rc<OwnChildren>,
    /// Becomes readable when the watcher ends.
    watcher_end: Option<OwnedFd>,
    /// When the last progress report was sent to the server.
    reported: Instant,
}

impl Supervisor {
    fn start() -> io::Result<Self> {
        // A session of its own, so that Ctrl-C in a terminal reaches the server only, which decides for its commands.
        let _ = setsid();
        reaper::keep_out_of_reach();
        reaper::become_subreaper()?;
        let control: OwnedFd = rustix::stdio::stdin().try_clone_to_owned()?;
        let own = Rc::new(OwnChildren::of_one_thread());
        let watcher_end = reaper::watch_parent_end();
        let control = control.into();
        Ok(Self { control, order: Order::GoOn, command: None, own, watcher_end, reported: Instant::now() })
    }

    fn run(&mut self) -> Remains {
        // The server died before it sent a command: nothing to do.
        let Some(spec) = read_spec(&self.control) else { return Remains::Nothing };
        let started = null_device().and_then(|null| {
            let started = start(&spec)?;
            // The supervisor must not keep the output pipes open: they close when the last process of the command ends.
            let _ = rustix::stdio::dup2_stdout(&null).and_then(|()| rustix::stdio::dup2_stderr(&null));
            Ok(started)
        });
        let child = match started {
            Ok(child) => child,
            Err(failure) => {
                self.report(Report::NotStarted(failure));
                return Remains::Nothing;
            }
        };
        self.command = Some(child);
        drop(spec.stdin);
        if self.wait_for_command() == Remains::Something {
            if self.order != Order::Kill {
                self.terminate(spec.grace);
            }
            if self.kill() == Remains::Something {
                return Remains::Something;
            }
        }
        self.report(Report::Done);
        Remains::Nothing
    }

    /// Waits until the command has ended or an order to end it came.
    fn wait_for_command(&mut self) -> Remains {
        let ending = self.command.and_then(reaper::watch_end);
        let longest = if ending.is_some() { REAP_INTERVAL } else { POLL_INTERVAL };
        let mut interval = longest;
        loop {
            self.listen(interval, ending.as_ref());
            let mut ended = Vec::new();
            let remains = self.reap_into(&mut ended);
            // Poll faster while orphans end: a command that forks all the time would fill the process table with zombies.
            interval = if ended.is_empty() { (2 * interval).min(longest) } else { POLL_INTERVAL };
            if remains == Remains::Nothing || self.command.is_none() || self.order != Order::GoOn {
                return remains;
            }
        }
    }

    /// Sends SIGTERM to everything and waits until it has ended or the grace is over.
    fn terminate(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        reaper::signal_all(self.command, Signal::TERM);
        // A stopped process cannot handle SIGTERM before it is continued.
        reaper::signal_all(self.command, Signal::CONT);
        let mut pause = Duration::from_millis(1);
        while self.reap() == Remains::Something && self.order != Order::Kill {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.report_working();
            self.listen(pause.min(left), None);
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }

    /// Kills until nothing is left, or until the watcher has to take over.
    fn kill(&mut self) -> Remains {
        let started = Instant::now();
        while self.reap() == Remains::Something {
            self.report_working();
            let is_all = self.kill_round();
            let mut pause = Duration::from_micros(100);
            // Killed processes need a moment to end; while something still forks there is no pause.
            while is_all && pause < MAX_PAUSE && self.reap() == Remains::Something {
                std::thread::sleep(pause);
                pause *= 2;
            }
            if started.elapsed() > KILL_TIMEOUT && self.reap() == Remains::Something {
                let left = self.own.list();
                // Something is left that this process cannot find.
                let Some(example) = left.first() else { return Remains::Something };
                let count = i32::try_from(left.len()).unwrap_or(i32::MAX);
                self.report(Report::Unkillable { count, example: example.as_raw_nonzero().get() });
                // Pause before the next round. Without a server nobody waits for this process, so the watcher takes over.
                self.listen(KILL_TIMEOUT / 5, None);
                if self.order == Order::Kill {
                    return Remains::Something;
                }
            }
        }
        Remains::Nothing
    }

    fn kill_round(&mut self) -> bool {
        let own = Rc::clone(&self.own);
        reaper::kill_round(
            &own,
            |_| false,
            || {
                let mut pids = Vec::new();
                self.reap_into(&mut pids);
                Reaped { pids, group: self.command }
            },
        )
    }

    /// Reaps all children that have ended.
    fn reap(&mut self) -> Remains {
        self.reap_into(&mut Vec::new())
    }

    fn reap_into(&mut self, pids: &mut Vec<Pid>) -> Remains {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    pids.push(pid);
                    if self.command == Some(pid) {
                        self.command = None;
                        self.report(Report::Exited(exit(ExitStatus::from_raw(status.as_raw()))));
                    }
                }
                Ok(None) => return Remains::Something,
                Err(Errno::INTR) => {}
                Err(_) => return Remains::Nothing,
            }
        }
    }

    /// Waits for an order, for the command's end, or for a timeout.
    fn listen(&mut self, time: Duration, ending: Option<&OwnedFd>) {
        let time = Timespec::try_from(time).ok();
        let mut watched: Vec<_> = ending.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        if self.order == Order::Kill {
            // A closed socket is always ready, so it is not polled any more.
            let _ = poll(&mut watched, time.as_ref());
            return;
        }
        let (control, first) = (self.control.as_fd(), watched.len());
        watched.push(PollFd::from_borrowed_fd(control, PollFlags::IN));
        watched.extend(self.watcher_end.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        if poll(&mut watched, time.as_ref()).is_err() {
            return;
        }
        let is_ready = |index: usize| watched.get(index).is_some_and(|one| !one.revents().is_empty());
        if is_ready(first + 1) {
            self.order = Order::Kill;
        } else if is_ready(first) {
            let mut order = [0];
            self.order = match (&self.control).read(&mut order) {
                Ok(1) if order == [KILL] => Order::Terminate,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.order,
                _ => Order::Kill,
            };
        }
    }

    /// Reports to the server regularly that this process is still working (a heartbeat).
    fn report_working(&mut self) {
        if self.reported.elapsed() > WORKING_INTERVAL {
            self.reported = Instant::now();
            self.report(Report::Working);
        }
    }

    fn report(&self, report: Report) {
        // An error is fine: the server is gone, and the next poll of the socket shows it.
        let _ = (&self.control).write_all(&report.write());
    }
}

/// Starts the command in a process group of its own.
fn start(spec: &CommandSpec) -> Result<Pid, StartFailure> {
    let stdin = match &spec.stdin {
        Some(bytes) => reaper::file_of(bytes).map_err(|error| other(&error))?.into(),
        None => Stdio::null(),
    };
    let started = Command::new(&spec.program)
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.folder)
        .process_group(0)
        .stdin(stdin)
        .spawn();
    match started {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) => Err(explain(spec, &error)),
    }
}

/// Why a command did not start. The system returns the same error for a missing program and a missing folder.
fn explain(spec: &CommandSpec, error: &io::Error) -> StartFailure {
    if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        return StartFailure::NulByte;
    }
    if !spec.folder.is_dir() {
        return StartFailure::NoFolder;
    }
    match (std::fs::metadata(&spec.program), Errno::from_io_error(error)) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => StartFailure::Missing,
        (Ok(there), _) if there.is_dir() => StartFailure::IsFolder,
        (_, Some(Errno::ACCESS)) => StartFailure::NotExecutable,
        (_, Some(Errno::NOEXEC | Errno::NOENT | Errno::NOTDIR)) => StartFailure::NotAProgram,
        (_, Some(Errno::TOOBIG)) => StartFailure::TooLong,
        _ => other(error),
    }
}

fn other(error: &io::Error) -> StartFailure {
    StartFailure::Other(error.raw_os_error().unwrap_or(0))
}

fn null_device() -> Result<File, StartFailure> {
    OpenOptions::new().write(true).open("/dev/null").map_err(|error| other(&error))
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_distinguished_from_a_code() {
        assert_eq!(exit(ExitStatus::from_raw(9)), Exit::Signal(9));
        assert_eq!(exit(ExitStatus::from_raw(7 << 8)), Exit::Code(7));
    }
}

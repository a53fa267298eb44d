//! The process between the server and one command: it starts the command, waits for it, and lets nothing that the
//! command started outlive it.
//!
//! It is a *subreaper*: a process below it that loses its parent becomes its child, however often it forks, whatever
//! session or group it makes for itself, and whatever its environment says. So everything that the command started is
//! below the supervisor, and when the system says that it has no children, nothing is left.

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

/// How often the supervisor looks for orphans that have ended while the command still runs.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// The same while orphans end, and how often it looks for the command's end where the system has no descriptor of a
/// process.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The longest pause between two looks at what is ending.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// After this time of killing without success, it is reported.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How often the server hears that its order is being carried out.
const WORKING_INTERVAL: Duration = Duration::from_millis(500);

/// Supervises one command: the whole life of a process that a watcher started. Standard input is the socket to the
/// server; standard output and error are the command's.
pub(crate) fn supervise() -> ExitCode {
    match Supervisor::start().map(|mut supervisor| supervisor.run()) {
        Ok(Remains::Nothing) => ExitCode::SUCCESS,
        // The watcher does the rest.
        Ok(Remains::Something) | Err(_) => ExitCode::FAILURE,
    }
}

/// What the server wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// That the command goes on.
    GoOn,
    /// That it ends, and may take its time for it.
    Terminate,
    /// Nothing any more: the server or the watcher is gone, so everything has to go at once.
    Kill,
}

struct Supervisor {
    control: UnixStream,
    order: Order,
    /// The command itself, until it has ended and its exit code was taken.
    command: Option<Pid>,
    own: Rc<OwnChildren>,
    /// Becomes readable when the watcher ends.
    watcher_end: Option<OwnedFd>,
    /// When the server last heard that its order is being carried out.
    reported: Instant,
}

impl Supervisor {
    fn start() -> io::Result<Self> {
        // Out of the terminal's reach: what a user types there is for the server, which decides for its commands.
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
        // A server that dies before it has said what to run wants nothing.
        let Some(spec) = read_spec(&self.control) else { return Remains::Nothing };
        let started = null_device().and_then(|null| {
            let started = start(&spec)?;
            // What the command holds of its output is then the only thing that holds it.
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

    /// Waits until the command has ended, or is to be ended.
    fn wait_for_command(&mut self) -> Remains {
        let ending = self.command.and_then(reaper::watch_end);
        let longest = if ending.is_some() { REAP_INTERVAL } else { LOOK_INTERVAL };
        let mut interval = longest;
        loop {
            self.listen(interval, ending.as_ref());
            let mut ended = Vec::new();
            let remains = self.reap_into(&mut ended);
            // Where some end, more may: what forks and ends all the time would fill the table of processes.
            interval = if ended.is_empty() { (2 * interval).min(longest) } else { LOOK_INTERVAL };
            if remains == Remains::Nothing || self.command.is_none() || self.order != Order::GoOn {
                return remains;
            }
        }
    }

    /// Asks everything to end, and waits until it has or the time is over.
    fn terminate(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        reaper::signal_all(self.command, Signal::TERM);
        // What was stopped could not end otherwise.
        reaper::signal_all(self.command, Signal::CONT);
        let mut pause = Duration::from_millis(1);
        while self.reap() == Remains::Something && self.order != Order::Kill {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.report_working();
            self.listen(pause.min(left), None);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Kills until nothing is left, or until others have to do it.
    fn kill(&mut self) -> Remains {
        let started = Instant::now();
        while self.reap() == Remains::Something {
            self.report_working();
            let is_all = self.kill_round();
            let mut pause = Duration::from_micros(100);
            // What was killed needs a moment to end; what still forks is not given one.
            while is_all && pause < LONGEST_PAUSE && self.reap() == Remains::Something {
                std::thread::sleep(pause);
                pause *= 2;
            }
            if started.elapsed() > KILL_PATIENCE && self.reap() == Remains::Something {
                let left = self.own.list();
                // Something is left, and this process cannot find it.
                let Some(example) = left.first() else { return Remains::Something };
                let count = i32::try_from(left.len()).unwrap_or(i32::MAX);
                self.report(Report::Unkillable { count, example: example.as_raw_nonzero().get() });
                // With the server gone there is nobody to wait for.
                self.listen(KILL_PATIENCE / 5, None);
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

    /// Takes the exit codes of all that has ended below.
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

    /// Waits for an order, for the command's end, or for a time.
    fn listen(&mut self, time: Duration, ending: Option<&OwnedFd>) {
        let time = Timespec::try_from(time).ok();
        let mut watched: Vec<_> = ending.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        if self.order == Order::Kill {
            // The socket has ended, and would be ready for ever.
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

    /// Lets the server know, now and then, that this process is not stopped.
    fn report_working(&mut self) {
        if self.reported.elapsed() > WORKING_INTERVAL {
            self.reported = Instant::now();
            self.report(Report::Working);
        }
    }

    fn report(&self, report: Report) {
        // A server that is gone needs no report, and the next look at the socket says so.
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

/// Why a command did not start: the system says the same of a missing program and of a missing folder.
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
    fn a_signal_is_told_from_a_code() {
        assert_eq!(exit(ExitStatus::from_raw(9)), Exit::Signal(9));
        assert_eq!(exit(ExitStatus::from_raw(7 << 8)), Exit::Code(7));
    }
}

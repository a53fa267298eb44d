//! The watcher: one process for each server, the parent of all its supervisors.
//!
//! It starts the supervisors, so everything that commands start is below it, and it is a subreaper, so orphans stay below
//! it. It continues a supervisor that was stopped, kills the orphans of one that has died, and kills everything when the
//! server is gone. So a command has to disable its supervisor *and* this process to escape, and the server monitors this
//! one.

use std::{
    collections::HashMap,
    io::{self, IoSliceMut, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, setsid, wait},
};

use crate::{
    command::StartFailure,
    message::{REQUEST_BYTES, Report, Request},
    reaper::{self, Reaped},
    roles::{SUPERVISOR_ARGUMENT, own_executable},
    tree::OwnChildren,
};

/// How often it checks whether a supervisor was stopped. (The end of one is reported immediately.)
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The pause between two rounds of killing.
const KILL_PAUSE: Duration = Duration::from_millis(1);

/// After this time it gives up killing.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Descriptors that are passed to this process are not inherited by those that it starts (close-on-exec).
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// Runs the watcher process of a server, to its end. A [`Spawner`](crate::Spawner) starts it. Standard input is the
/// socket to the server.
pub(crate) fn watch() -> ExitCode {
    match Watcher::start() {
        Ok(mut watcher) => {
            watcher.run();
            ExitCode::SUCCESS
        }
        // The server sees that the socket closes.
        Err(_) => ExitCode::FAILURE,
    }
}

struct Watcher {
    server: OwnedFd,
    /// Becomes readable when the server's process ends, whoever else holds the other end of the socket.
    server_end: Option<OwnedFd>,
    own: OwnChildren,
    /// The running supervisors.
    running: HashMap<Pid, Supervised>,
    /// Supervisors that died before their commands, until their orphans are gone.
    lost: Vec<Supervised>,
    /// When killing these orphans began.
    sweeping: Option<Instant>,
}

/// One supervisor.
struct Supervised {
    /// The id that the server gave it.
    id: u64,
    /// The supervisor's end of its socket to the server: the other end does not close before this one is dropped.
    control: UnixStream,
    /// Becomes readable when it ends.
    end: Option<OwnedFd>,
}

impl Watcher {
    fn start() -> io::Result<Self> {
        let _ = setsid();
        reaper::keep_out_of_reach();
        reaper::become_subreaper()?;
        Ok(Self {
            server: rustix::stdio::stdin().try_clone_to_owned()?,
            server_end: reaper::watch_parent_end(),
            own: OwnChildren::of_one_thread(),
            running: HashMap::new(),
            lost: Vec::new(),
            sweeping: None,
        })
    }

    fn run(&mut self) {
        loop {
            self.reap();
            let is_sweeping = !self.lost.is_empty();
            if is_sweeping {
                self.sweep();
            }
            let pause = match (is_sweeping, self.running.is_empty()) {
                (true, _) => Some(KILL_PAUSE),
                (false, false) => Some(POLL_INTERVAL),
                (false, true) => None,
            };
            if !self.has_server(pause) {
                return self.kill_all();
            }
        }
    }

    /// Waits for a request, for the end of a supervisor, or for a timeout. Returns whether the server is still there.
    fn has_server(&mut self, pause: Option<Duration>) -> bool {
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let ends = self.running.iter().filter_map(|(pid, one)| Some((*pid, one.end.as_ref()?)));
        let (pids, ends): (Vec<Pid>, Vec<&OwnedFd>) = ends.unzip();
        let mut watched = vec![readable(self.server.as_fd())];
        watched.extend(self.server_end.iter().map(|fd| readable(fd.as_fd())));
        let first = watched.len();
        watched.extend(ends.iter().map(|fd| readable(fd.as_fd())));
        if poll(&mut watched, pause.as_ref()).is_err() {
            return true;
        }
        let is_ready = |index: usize| !watched[index].revents().is_empty();
        let has_request = is_ready(0);
        let has_ended = first > 1 && is_ready(1);
        let ended: Vec<Pid> =
            (first..watched.len()).filter(|at| is_ready(*at)).map(|at| pids[at - first]).collect();
        self.reap();
        // A tracer of a process gets its exit status first and may withhold it from the parent.
        ended.into_iter().for_each(|pid| self.lose(pid));
        !has_ended && (!has_request || self.obey())
    }

    /// Handles one request. Returns false if the server is gone or sent something else.
    fn obey(&mut self) -> bool {
        let mut frame = [0; REQUEST_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&self.server, &mut [IoSliceMut::new(&mut frame)], &mut ancillary, RECEIVE_FLAGS);
        let received = match received {
            Ok(received) => received.bytes,
            Err(Errno::INTR | Errno::AGAIN) => return true,
            Err(_) => return false,
        };
        let mut passed = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let passed: Vec<OwnedFd> = passed.by_ref().flatten().collect();
        // For systems where `recvmsg` cannot set close-on-exec.
        #[cfg(not(target_os = "linux"))]
        passed.iter().for_each(|fd| _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC));
        match (received, Request::read(frame), <[OwnedFd; 3]>::try_from(passed)) {
            (REQUEST_BYTES, Some(Request::Start(id)), Ok(descriptors)) => {
                self.start_supervisor(id, descriptors)
            }
            (REQUEST_BYTES, Some(Request::TakeOver(id)), _) => self.take_over(id),
            _ => return false,
        }
        true
    }

    fn start_supervisor(&mut self, id: u64, [control, stdout, stderr]: [OwnedFd; 3]) {
        let control = UnixStream::from(control);
        let started = control.try_clone().and_then(|theirs| {
            let mut command = Command::new(own_executable());
            command.arg0("pintle").arg(SUPERVISOR_ARGUMENT).env_clear().current_dir("/");
            command.stdin(OwnedFd::from(theirs)).stdout(stdout).stderr(stderr).spawn()
        });
        match started {
            Ok(child) => {
                let pid = Pid::from_child(&child);
                self.running.insert(pid, Supervised { id, control, end: reaper::watch_end(pid) });
            }
            Err(error) => {
                let failure = StartFailure::Other(error.raw_os_error().unwrap_or(0));
                report(&control, Report::NotStarted(failure));
            }
        }
    }

    /// Kills a supervisor that does not respond. Its orphans become children of this process.
    fn take_over(&mut self, id: u64) {
        let silent = self.running.iter().find(|(_, supervised)| supervised.id == id);
        // A supervisor that has ended has finished, or its orphans are already being killed.
        if let Some(pid) = silent.map(|(pid, _)| *pid) {
            let _ = kill_process(pid, Signal::KILL);
            self.lose(pid);
        }
    }

    /// Marks a supervisor as lost, so that its orphans are killed.
    fn lose(&mut self, pid: Pid) {
        self.lost.extend(self.running.remove(&pid));
    }

    /// Reaps all children that have ended, and continues supervisors that were stopped.
    fn reap(&mut self) -> Reaped {
        let mut pids = Vec::new();
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if status.stopped() => {
                    if self.running.contains_key(&pid) {
                        let _ = kill_process(pid, Signal::CONT);
                    }
                }
                Ok(Some((pid, status))) => {
                    pids.push(pid);
                    self.supervisor_ended(pid, status);
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return Reaped { pids, group: None },
            }
        }
    }

    fn supervisor_ended(&mut self, pid: Pid, status: WaitStatus) {
        match status.exit_status() {
            // Exit code 0 means that nothing of its command is left.
            Some(0) => _ = self.running.remove(&pid),
            _ => self.lose(pid),
        }
    }

    /// One round of killing the orphans of dead supervisors. When none is left, it reports to the server.
    fn sweep(&mut self) {
        let began = *self.sweeping.get_or_insert_with(Instant::now);
        let left = self.orphans().len();
        if left == 0 || began.elapsed() > KILL_TIMEOUT {
            let left = i32::try_from(left).unwrap_or(i32::MAX);
            self.lost.drain(..).for_each(|lost| report(&lost.control, Report::Lost { left }));
            self.sweeping = None;
            return;
        }
        self.kill_round();
    }

    /// Kills everything below, because the server is gone.
    fn kill_all(&mut self) {
        let began = Instant::now();
        // There is no server to report to, and processes that are stopped to be killed must not be continued.
        self.running.clear();
        loop {
            self.reap();
            if self.own.list().is_empty() || began.elapsed() > KILL_TIMEOUT {
                return;
            }
            if self.kill_round() {
                std::thread::sleep(KILL_PAUSE);
            }
        }
    }

    /// One round of killing everything below, except the running supervisors and their trees.
    fn kill_round(&mut self) -> bool {
        let own = std::mem::take(&mut self.own);
        let running: Vec<Pid> = self.running.keys().copied().collect();
        let is_all = reaper::kill_round(&own, |pid| running.contains(&pid), || self.reap());
        self.own = own;
        is_all
    }

    fn orphans(&self) -> Vec<Pid> {
        self.own.list().into_iter().filter(|child| !self.running.contains_key(child)).collect()
    }
}

fn report(mut control: &UnixStream, report: Report) {
    // An error is fine: the server is gone.
    let _ = control.write_all(&report.write());
}

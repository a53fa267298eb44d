//! The server's handle on its watcher process: starts it on demand, monitors it, and cleans up after it.

use std::{
    collections::HashSet,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use rustix::{
    io::Errno,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid},
};
use tokio_util::sync::CancellationToken;

use crate::{message::Request, reaper, roles::WATCHER_ARGUMENT, tree};

/// The watcher of a server, replaced by a new one if it dies.
pub(crate) struct Watchers {
    executable: PathBuf,
    /// Whether this process is a subreaper, so that orphans of a dead watcher become its children.
    is_subreaper: bool,
    current: Arc<Mutex<Option<Arc<WatcherHandle>>>>,
    next_id: AtomicU64,
    problem: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A running watcher process.
pub(crate) struct WatcherHandle {
    pid: Pid,
    /// The pidfd of the process, so that its number cannot refer to another process.
    held: Option<OwnedFd>,
    socket: UnixStream,
    has_ended: AtomicBool,
    swept: CancellationToken,
}

impl Watchers {
    pub(crate) fn new(executable: PathBuf, problem: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        // Children from before this server (by exec) are not ours, and neither are their orphans.
        let has_children = tree::children(getpid()).is_none_or(|children| !children.is_empty());
        let is_subreaper = !has_children && reaper::become_subreaper().is_ok();
        Self { executable, is_subreaper, current: Arc::default(), next_id: AtomicU64::new(1), problem }
    }

    /// Whether a watcher is running.
    pub(crate) fn is_ready(&self) -> bool {
        let current = self.current.try_lock();
        current
            .is_some_and(|current| current.as_ref().is_some_and(|one| !one.has_ended.load(Ordering::Acquire)))
    }

    /// Starts a supervisor with these descriptors as its standard input, output and error. Returns its watcher and its id
    /// there.
    pub(crate) fn start_supervisor(
        &self,
        given: [BorrowedFd<'_>; 3],
    ) -> io::Result<(Arc<WatcherHandle>, u64)> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut is_retried = false;
        loop {
            let watched = self.current()?;
            match watched.send(Request::Start(id), &given) {
                Ok(()) => return Ok((watched, id)),
                // The watcher has just died: try once more with a new one.
                Err(_) if !is_retried => {
                    is_retried = true;
                    watched.kill();
                    *self.current.lock() = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn current(&self) -> io::Result<Arc<WatcherHandle>> {
        let mut current = self.current.lock();
        if let Some(watched) = current.as_ref().filter(|watched| !watched.has_ended.load(Ordering::Acquire)) {
            return Ok(Arc::clone(watched));
        }
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&self.executable);
        command.arg0("pintle").arg(WATCHER_ARGUMENT).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let pid = Pid::from_child(&command.spawn()?);
        let held = reaper::watch_end(pid);
        let (has_ended, swept) = (AtomicBool::new(false), CancellationToken::new());
        let watched = Arc::new(WatcherHandle { pid, held, socket, has_ended, swept });
        // Register it before the lock is released: any other child of this process is treated as an orphan.
        *current = Some(Arc::clone(&watched));
        let (its, others) = (Arc::clone(&watched), Arc::clone(&self.current));
        let (is_subreaper, problem) = (self.is_subreaper, Arc::clone(&self.problem));
        let follow = move || its.follow(&others, is_subreaper, &*problem);
        std::thread::Builder::new().name("pintle-watcher".into()).spawn(follow)?;
        Ok(watched)
    }
}

impl WatcherHandle {
    /// Kills a supervisor that does not respond, and everything below it.
    pub(crate) fn take_over(&self, id: u64) {
        // An error is fine: a watcher that does not respond either is killed next.
        let _ = self.send(Request::TakeOver(id), &[]);
    }

    /// Kills the watcher. Its orphans become children of the server, and each of its supervisors kills its own tree.
    pub(crate) fn kill(&self) {
        #[cfg(target_os = "linux")]
        if let Some(held) = &self.held {
            // An error is fine: it has already ended.
            let _ = rustix::process::pidfd_send_signal(held, Signal::KILL);
            return;
        }
        if !self.has_ended.load(Ordering::Acquire) {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    /// Resolves when the watcher has ended and its whole process tree is gone.
    pub(crate) async fn swept(&self) {
        self.swept.cancelled().await;
    }

    fn send(&self, request: Request, given: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !given.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(given));
        }
        // A dead watcher is an error here, not a signal, because Rust programs ignore SIGPIPE.
        sendmsg(&self.socket, &[IoSlice::new(&request.write())], &mut ancillary, SendFlags::DONTWAIT)
            .map(drop)
    }

    /// Monitors the watcher on a thread of its own: continues it if it is stopped, and kills its orphans when it ends.
    fn follow(
        &self,
        current: &Mutex<Option<Arc<Self>>>,
        is_subreaper: bool,
        problem: &(dyn Fn(&str) + Send + Sync),
    ) {
        loop {
            match waitpid(Some(self.pid), WaitOptions::UNTRACED) {
                Ok(Some((_, status))) if status.stopped() => _ = kill_process(self.pid, Signal::CONT),
                Err(Errno::INTR) => {}
                _ => break,
            }
        }
        self.has_ended.store(true, Ordering::Release);
        // Under the lock, so that the next watcher is not treated as an orphan.
        let current = current.lock();
        if is_subreaper {
            let next = current.as_ref().filter(|next| next.pid != self.pid);
            let spared: HashSet<Pid> = next.map(|next| next.pid).into_iter().collect();
            let left = reaper::kill_children_but(&spared);
            if left > 0 {
                problem(&format!(
                    "the watcher process of commands was killed, and {left} of their processes cannot be killed"
                ));
            }
        }
        self.swept.cancel();
    }
}

//! Kills and reaps the whole process tree below this process.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Seek, Write},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, waitpid};

use crate::tree::{self, OwnChildren, Stat};

/// Whether this process has children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    Nothing,
    Something,
}

/// How long one round searches for new processes before the known ones are killed.
const ROUND: Duration = Duration::from_millis(50);

/// How long the server itself tries to kill the orphans of a dead supervisor.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes this process a subreaper (`PR_SET_CHILD_SUBREAPER`): the new parent of all orphans below it.
#[cfg(target_os = "linux")]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

/// Other systems have no subreaper: an orphan that has left the process group is not found there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Keeps other processes of the same user from tracing this one, reading its memory or taking its descriptors. Root still
/// can.
pub(crate) fn keep_out_of_reach() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An error is fine: the other measures remain.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// A descriptor that becomes readable when this process's parent ends.
pub(crate) fn watch_parent_end() -> Option<OwnedFd> {
    watch_end(rustix::process::getppid()?)
}

/// A descriptor that becomes readable when a process ends (a pidfd), if the system has them.
pub(crate) fn watch_end(process: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    return rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// An in-memory file with these bytes (`memfd`). Unlike a pipe it needs no writer while the command reads.
#[cfg(target_os = "linux")]
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    filled(file.into(), bytes)
}

/// The same for systems without `memfd`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("pintle-stdin-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    filled(file, bytes)
}

fn filled(mut file: File, bytes: &[u8]) -> io::Result<File> {
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Sends a signal to a process group and to every process below this one that has left it. The group's leader must not
/// have been reaped, because its number could be reused.
pub(crate) fn signal_all(leader: Option<Pid>, signal: Signal) {
    if let Some(group) = leader {
        // An error is fine: no process of the group is left.
        let _ = kill_process_group(group, signal);
    }
    let found = tree::descendants();
    let outside = found.iter().filter(|(pid, _)| {
        let group = leader.map(|leader| leader.as_raw_nonzero().get());
        Stat::read(*pid).is_some_and(|stat| Some(stat.group) != group)
    });
    signal_each(&found, outside.copied(), signal);
}

/// What has been reaped during a round of killing.
pub(crate) struct Reaped {
    /// Process numbers that may be reused by now.
    pub(crate) pids: Vec<Pid>,
    /// A process group below this process whose leader has not been reaped.
    pub(crate) group: Option<Pid>,
}

/// One round of killing everything below this process except the spared children: SIGSTOP what is found until nothing new
/// is found, then SIGKILL it. A stopped process cannot fork, and ended processes are reaped all the time (`reap`), so that
/// zombies do not fill the process table. Returns whether nothing new was found at the end.
pub(crate) fn kill_round(
    own: &OwnChildren,
    is_spared: impl Fn(Pid) -> bool,
    mut reap: impl FnMut() -> Reaped,
) -> bool {
    let deadline = Instant::now() + ROUND;
    let mut stopped: HashSet<Pid> = HashSet::new();
    let mut group;
    let (is_all, found) = loop {
        let reaped = reap();
        reaped.pids.iter().for_each(|pid| _ = stopped.remove(pid));
        group = reaped.group;
        if let Some(group) = group {
            // The whole group at once; an error means that none of its processes is left.
            let _ = kill_process_group(group, Signal::STOP);
        }
        let children: Vec<Pid> = own.list().into_iter().filter(|child| !is_spared(*child)).collect();
        let new: Vec<Pid> = children.iter().filter(|child| !stopped.contains(child)).copied().collect();
        signal_children(&new, Signal::STOP);
        stopped.extend(&new);
        let is_late = Instant::now() > deadline;
        if !new.is_empty() && !is_late {
            // An orphan becomes a child of this process: these children are checked first, because their list
            // is read in a moment and a process that only forks and ends is there for no longer.
            continue;
        }
        let found = tree::below(children.iter().map(|child| (*child, getpid())).collect());
        let new: Vec<_> = found.iter().filter(|(pid, _)| !stopped.contains(pid)).copied().collect();
        if new.is_empty() || is_late {
            break (new.is_empty(), found);
        }
        signal_each(&found, new.iter().copied(), Signal::STOP);
        stopped.extend(new.iter().map(|(pid, _)| pid));
    };
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let (children, others): (Vec<_>, Vec<_>) = found.iter().partition(|(_, parent)| *parent == getpid());
    signal_children(&children.into_iter().map(|(pid, _)| pid).collect::<Vec<_>>(), Signal::KILL);
    signal_each(&found, others.into_iter(), Signal::KILL);
    is_all
}

/// Sends a signal to children of this process. A child's number is not reused before the child is reaped.
fn signal_children(children: &[Pid], signal: Signal) {
    for child in children {
        // An error is fine: a process that has ended, or belongs to another user, is found again.
        let _ = kill_process(*child, signal);
    }
}

fn signal_each(tree: &[(Pid, Pid)], which: impl Iterator<Item = (Pid, Pid)>, signal: Signal) {
    let this = getpid();
    let parents: HashSet<Pid> = tree.iter().map(|(pid, _)| *pid).chain([this]).collect();
    for (pid, _) in which {
        tree::signal_child_of(pid, |parent| parents.contains(&parent), signal);
    }
}

/// Kills and reaps every process below this one, except these children and their trees. Returns how many are left at the
/// timeout.
pub(crate) fn kill_children_but(spared: &HashSet<Pid>) -> usize {
    let deadline = Instant::now() + SWEEP_TIMEOUT;
    let own = OwnChildren::of_all_threads();
    let orphans = || own.list().into_iter().filter(|child| !spared.contains(child)).collect::<Vec<_>>();
    loop {
        let reap = || {
            // Reap only the orphans: other parts of the program wait for the other children.
            let ended = orphans().into_iter();
            let ended = ended.filter(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(Some(_))));
            Reaped { pids: ended.collect(), group: None }
        };
        kill_round(&own, |child| spared.contains(&child), reap);
        reap();
        let left = orphans().len();
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

//! Ending everything below this process.

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

/// How long a round may look for new processes before those that are known are killed.
const ROUND: Duration = Duration::from_millis(50);

/// How long the server itself kills what a dead supervisor left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process the new parent of every process below it that loses its own.
#[cfg(target_os = "linux")]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

/// Other systems have no such thing: there, what leaves the process group and its parent is not found.
#[cfg(not(target_os = "linux"))]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Refuses other processes of the same user to trace this one, to read its memory or to take its descriptors. Root may
/// do so all the same.
pub(crate) fn keep_out_of_reach() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A system that cannot refuse it has the other measures left.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// A descriptor that becomes readable when this process's parent ends.
pub(crate) fn watch_parent_end() -> Option<OwnedFd> {
    watch_end(rustix::process::getppid()?)
}

/// A descriptor that becomes readable when a process ends, where the system has such a thing.
pub(crate) fn watch_end(process: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    return rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// A file without a name that holds these bytes, at its beginning. Unlike a pipe it needs nobody who writes.
#[cfg(target_os = "linux")]
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    filled(file.into(), bytes)
}

/// The same where files in memory have a name.
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

/// Sends a signal to a process group, and to every process below this one that has left it. The group's leader must
/// not have been waited for: its number would be free.
pub(crate) fn signal_all(leader: Option<Pid>, signal: Signal) {
    if let Some(group) = leader {
        // A group without processes that can be signalled is fine.
        let _ = kill_process_group(group, signal);
    }
    let found = tree::descendants();
    let outside = found.iter().filter(|(pid, _)| {
        let group = leader.map(|leader| leader.as_raw_nonzero().get());
        Stat::read(*pid).is_some_and(|stat| Some(stat.group) != group)
    });
    signal_each(&found, outside.copied(), signal);
}

/// What a process that kills everything below itself has waited for.
pub(crate) struct Reaped {
    /// Numbers that may be another process's by now.
    pub(crate) pids: Vec<Pid>,
    /// A process group that is below this process: its leader has not been waited for.
    pub(crate) group: Option<Pid>,
}

/// One round of killing everything below this process but for the children that are spared: stop what is found until
/// nothing new is found, then kill it. What is stopped forks no more, and what has ended is waited for all the time
/// (`reap`), so the dead do not fill the list in which the living are looked for. Says whether nothing new was found.
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
            // All of a group at once; one without processes that can be signalled is fine.
            let _ = kill_process_group(group, Signal::STOP);
        }
        let children: Vec<Pid> = own.list().into_iter().filter(|child| !is_spared(*child)).collect();
        let new: Vec<Pid> = children.iter().filter(|child| !stopped.contains(child)).copied().collect();
        signal_children(&new, Signal::STOP);
        stopped.extend(&new);
        let is_late = Instant::now() > deadline;
        if !new.is_empty() && !is_late {
            // Whoever loses its parent becomes a child of this process: it is looked for here first, because this list
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

/// Sends a signal to children of this process. As long as it has not waited for a child, the child's number is no other
/// process's.
fn signal_children(children: &[Pid], signal: Signal) {
    for child in children {
        // One that has ended, or is another user's, is found again.
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

/// Kills every process below this one but for these children and what is below them, and takes their exit codes. Says
/// how many are left after a while.
pub(crate) fn kill_children_but(spared: &HashSet<Pid>) -> usize {
    let deadline = Instant::now() + SWEEP_PATIENCE;
    let own = OwnChildren::of_all_threads();
    let orphans = || own.list().into_iter().filter(|child| !spared.contains(child)).collect::<Vec<_>>();
    loop {
        let reap = || {
            // Only the orphans: the exit codes of the others are for those that wait for them.
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

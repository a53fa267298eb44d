//! Ending everything below this process.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Seek, Write},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, waitpid};

use crate::tree::{self, Stat};

/// Whether this process has children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    Nothing,
    Something,
}

/// How often in a row new processes may be found before those that are known are killed.
const CHASES: usize = 200;

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

/// A descriptor that becomes readable when a child ends, where the system has such a thing.
pub(crate) fn watch_end(child: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    return rustix::process::pidfd_open(child, rustix::process::PidfdFlags::empty()).ok();
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

/// Stops everything below this process until nothing new is found, and kills it. A process that forks while it is
/// looked for is found in the end: what is stopped forks no more. Says whether nothing new was found at last.
pub(crate) fn kill_round(leader: Option<Pid>) -> bool {
    let mut is_all = false;
    let mut known: HashSet<Pid> = HashSet::new();
    let mut found = Vec::new();
    for _ in 0..CHASES {
        found = tree::descendants();
        let new: Vec<_> = found.iter().filter(|(pid, _)| !known.contains(pid)).copied().collect();
        if new.is_empty() {
            is_all = true;
            break;
        }
        signal_each(&found, new.iter().copied(), Signal::STOP);
        known.extend(new.iter().map(|(pid, _)| pid));
    }
    if let Some(group) = leader {
        let _ = kill_process_group(group, Signal::KILL);
    }
    signal_each(&found, found.iter().copied(), Signal::KILL);
    is_all
}

/// The processes below this one that run.
pub(crate) fn alive() -> Vec<Pid> {
    let found = tree::descendants().into_iter().map(|(pid, _)| pid);
    found.filter(|pid| Stat::read(*pid).is_some_and(|stat| !stat.has_ended)).collect()
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
    let find = || {
        let children = tree::children(getpid()).unwrap_or_default();
        let orphans = children.into_iter().filter(|child| !spared.contains(child));
        tree::below(orphans.map(|orphan| (orphan, getpid())).collect())
    };
    // Only those that are this process's own can be waited for; the others become so.
    kill_found(find, |pid| _ = waitpid(Some(pid), WaitOptions::NOHANG))
}

/// Kills the processes of a session. Says how many are left after a while.
pub(crate) fn kill_session(leader: Pid) -> usize {
    kill_found(|| tree::session(leader), |_| {})
}

/// Kills what is found, until nothing is found any more or the time is over.
fn kill_found(find: impl Fn() -> Vec<(Pid, Pid)>, ended: impl Fn(Pid)) -> usize {
    let deadline = Instant::now() + SWEEP_PATIENCE;
    loop {
        let found = find();
        for signal in [Signal::STOP, Signal::KILL] {
            for (pid, parent) in &found {
                tree::signal_child_of(*pid, |actual| actual == *parent || actual == getpid(), signal);
            }
        }
        found.iter().for_each(|(pid, _)| ended(*pid));
        if found.is_empty() || Instant::now() > deadline {
            return found.len();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

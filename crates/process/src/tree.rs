//! Finds the descendants of this process and signals them safely.
//!
//! Process numbers are reused, so a number that was read a moment ago may be another process by now. Before a signal is
//! sent, the process is pinned by a pidfd and checked again: it is signalled only if its parent is still in the tree.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// The children of this process.
#[derive(Default)]
pub(crate) struct OwnChildren {
    /// The open `/proc/self/task/*/children` files of its threads. Reading them needs no new descriptor, because a command
    /// can leave its supervisor none (`prlimit`), and is faster. Empty if the kernel has no such files.
    lists: Vec<File>,
}

impl OwnChildren {
    /// The children of a process with one thread.
    pub(crate) fn of_one_thread() -> Self {
        Self { lists: File::open("/proc/thread-self/children").into_iter().collect() }
    }

    /// The children of all current threads.
    pub(crate) fn of_all_threads() -> Self {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        Self { lists: threads.filter_map(|thread| File::open(thread.path().join("children")).ok()).collect() }
    }

    pub(crate) fn list(&self) -> Vec<Pid> {
        if self.lists.is_empty() {
            let found = descendants_by_scan(getpid()).into_iter();
            return found.filter(|(_, parent)| *parent == getpid()).map(|(child, _)| child).collect();
        }
        let mut children = Vec::new();
        for list in &self.lists {
            let mut text = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = list.read_at(&mut buffer, text.len() as u64) {
                text.extend(&buffer[..count]);
            }
            children.extend(String::from_utf8_lossy(&text).split_ascii_whitespace().filter_map(parse));
        }
        children
    }
}

/// The descendants of this process with their parents, parents first. While they fork some may be missing; an orphan is a
/// child of this process by then and is found the next time.
pub(crate) fn descendants() -> Vec<(Pid, Pid)> {
    let this = getpid();
    match children(this) {
        Some(children) => below(children.into_iter().map(|child| (child, this)).collect()),
        None => descendants_by_scan(this),
    }
}

/// These processes and everything below them.
pub(crate) fn below(mut found: Vec<(Pid, Pid)>) -> Vec<(Pid, Pid)> {
    let mut seen: HashSet<Pid> = found.iter().map(|(child, _)| *child).collect();
    let mut next = 0;
    while let Some((parent, _)) = found.get(next).copied() {
        next += 1;
        let children = children(parent).unwrap_or_default();
        found.extend(children.into_iter().filter(|child| seen.insert(*child)).map(|child| (child, parent)));
    }
    found
}

/// The children of all threads of a process. `None` if the system does not list them.
pub(crate) fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?;
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(parse)),
            // Not found is normal for a process that has ended; for this process it means that the kernel has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound && pid == getpid() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// The same from the parents of all processes of the system, in time proportional to their number.
fn descendants_by_scan(this: Pid) -> Vec<(Pid, Pid)> {
    let mut by_parent: HashMap<Pid, Vec<Pid>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    for pid in entries.flatten().filter_map(|entry| parse(entry.file_name().to_str()?)) {
        if let Some(stat) = Stat::read(pid) {
            by_parent.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found: Vec<(Pid, Pid)> = Vec::new();
    let mut parents = vec![this];
    while let Some(parent) = parents.pop() {
        let children = by_parent.remove(&parent).unwrap_or_default();
        parents.extend(&children);
        found.extend(children.into_iter().map(|child| (child, parent)));
    }
    found
}

/// Sends a signal to a process if its parent is still one of these. Returns whether it was sent.
pub(crate) fn signal_child_of(pid: Pid, parents: impl Fn(Pid) -> bool, signal: Signal) -> bool {
    let is_ours = || Stat::read(pid).is_some_and(|stat| parents(stat.parent));
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) => return is_ours() && pidfd_send_signal(&held, signal).is_ok(),
            Err(rustix::io::Errno::SRCH) => return false,
            // Old kernels and some containers have no pidfds.
            Err(_) => {}
        }
    }
    is_ours() && kill_process(pid, signal).is_ok()
}

fn parse(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// The fields of `/proc/PID/stat` that are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) parent: Pid,
    pub(crate) group: i32,
}

impl Stat {
    pub(crate) fn read(pid: Pid) -> Option<Self> {
        let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name, in parentheses, can contain anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let _state = fields.next()?;
        let parent = parse(fields.next()?)?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { parent, group })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_name_of_a_process_cannot_pass_for_its_parent() {
        let stat = Stat::parse("7 (a) R 1 (b) S 5 6 7 8 9").expect("a line");
        assert_eq!((stat.parent.as_raw_nonzero().get(), stat.group), (5, 6));
        assert!(Stat::parse("7 (a").is_none());
    }

    #[test]
    fn both_ways_find_children_and_grandchildren_and_only_they_are_signalled() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let mut stdout = io::BufReader::new(child.stdout.take().expect("stdout"));
        io::BufRead::read_line(&mut stdout, &mut line).expect("a line");
        let (shell, sleep) = (Pid::from_child(&child), parse(line.trim()).expect("a number"));
        for found in [descendants(), descendants_by_scan(getpid())] {
            assert!(found.contains(&(shell, getpid())) && found.contains(&(sleep, shell)), "{found:?}");
        }
        assert!(!signal_child_of(sleep, |parent| parent == getpid(), Signal::KILL), "another's child");
        assert!(signal_child_of(sleep, |parent| parent == shell, Signal::KILL));
        assert!(signal_child_of(shell, |parent| parent == getpid(), Signal::KILL));
        child.wait().expect("ends");
        assert!(!signal_child_of(shell, |parent| parent == getpid(), Signal::KILL), "it has ended");
    }
}

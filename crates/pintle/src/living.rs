//! Whether a process that somebody noted is still there, and is still the same one.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

/// Times of processes are counted from when the machine started, which is known to the second.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Whether a process lives that was there at a time. A younger one only has its number.
pub fn since_before(pid: u32, time: SystemTime) -> bool {
    let Some(known) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // A process of another user cannot be signalled, but is there.
    if !matches!(test_kill_process(known), Ok(()) | Err(Errno::PERM)) {
        return false;
    }
    match Stat::read(pid) {
        Some(stat) if stat.has_ended => false,
        Some(stat) => stat.started().is_none_or(|started| started <= time + TOLERANCE),
        // Not every system reports it.
        None => true,
    }
}

/// What Linux reports of a process.
struct Stat {
    /// It has ended, and its parent has not asked for its exit code yet.
    has_ended: bool,
    /// Clock ticks from the start of the machine to its own.
    start: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        // The state is the third field of all, the start the 22nd.
        let start = fields.nth(18)?.parse().ok()?;
        Some(Self { has_ended: matches!(state, "Z" | "X"), start })
    }

    fn started(&self) -> Option<SystemTime> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let after_boot = Duration::from_millis(self.start.checked_mul(1000)? / ticks);
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(after_boot)
    }
}

//! Two processors for everyone, on machines that have more.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// What this thread, and every process that it starts, is bound to as long as this lives.
pub struct Processors {
    before: CpuSet,
}

impl Processors {
    pub fn take_two() -> Self {
        let before = sched_getaffinity(None).expect("processors");
        let mut two = CpuSet::new();
        let allowed = (0..CpuSet::MAX_CPU).filter(|number| before.is_set(*number));
        allowed.take(2).for_each(|number| two.set(number));
        sched_setaffinity(None, &two).expect("two of the processors");
        Self { before }
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

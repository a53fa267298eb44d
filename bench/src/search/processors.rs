//! Limits all measured programs to two processors.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Binds this thread and the processes that it starts to two processors, until dropped.
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

//! How many calls of one tool run at the same time.
//!
//! A limit is the tool's, not its manifest's: calls that run when the manifest is read again still count.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits of all tools, by name.
#[derive(Default)]
pub struct ParallelLimits(Mutex<HashMap<String, Arc<ParallelLimit>>>);

/// The limit of one tool.
pub(crate) struct ParallelLimit {
    permits: Arc<Semaphore>,
    size: Mutex<Size>,
}

struct Size {
    allowed: usize,
    /// How many of those that run are too many, because the limit was lowered meanwhile.
    excess: usize,
}

/// A place among the calls that run.
pub(crate) struct ParallelPermit {
    permit: Option<OwnedSemaphorePermit>,
    limit: Arc<ParallelLimit>,
}

impl ParallelLimits {
    /// The limit of a tool, which from now on is this one.
    pub(crate) fn of(&self, tool: &str, allowed: usize) -> Arc<ParallelLimit> {
        let mut limits = self.0.lock();
        let new = || {
            let size = Mutex::new(Size { allowed, excess: 0 });
            Arc::new(ParallelLimit { permits: Arc::new(Semaphore::new(allowed)), size })
        };
        let limit = limits.entry(tool.to_owned()).or_insert_with(new);
        limit.resize(allowed);
        Arc::clone(limit)
    }
}

impl ParallelLimit {
    /// Waits until another call may run.
    pub(crate) async fn acquire(self: &Arc<Self>) -> ParallelPermit {
        // It is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        ParallelPermit { permit, limit: Arc::clone(self) }
    }

    fn resize(&self, allowed: usize) {
        let mut size = self.size.lock();
        if allowed >= size.allowed {
            let more = allowed - size.allowed;
            let kept = size.excess.min(more);
            size.excess -= kept;
            self.permits.add_permits(more - kept);
        } else {
            let fewer = size.allowed - allowed;
            size.excess += fewer - self.permits.forget_permits(fewer);
        }
        size.allowed = allowed;
    }
}

impl Drop for ParallelPermit {
    fn drop(&mut self) {
        let mut size = self.limit.size.lock();
        if size.excess > 0
            && let Some(permit) = self.permit.take()
        {
            size.excess -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many more calls may run now.
    fn free(limit: &ParallelLimit) -> usize {
        limit.permits.available_permits()
    }

    #[tokio::test]
    async fn a_limit_that_changes_counts_the_calls_that_run() {
        let limits = ParallelLimits::default();
        let limit = limits.of("a", 3);
        let (first, second) = (limit.acquire().await, limit.acquire().await);
        assert_eq!(free(&limits.of("a", 3)), 1, "read again");
        assert_eq!(free(&limits.of("b", 3)), 3, "another tool");
        assert_eq!(free(&limits.of("a", 1)), 0, "lowered");
        drop(first);
        assert_eq!(free(&limit), 0, "one too many has ended");
        assert_eq!(free(&limits.of("a", 2)), 1, "raised");
        drop(second);
        assert_eq!(free(&limit), 2);
        let (first, second) = (limit.acquire().await, limit.acquire().await);
        assert_eq!(free(&limits.of("a", 1)), 0);
        assert_eq!(free(&limits.of("a", 4)), 2, "two of four run");
        drop((first, second));
        assert_eq!(free(&limit), 4);
    }
}

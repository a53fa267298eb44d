//! What is there now, of things that come and go: each is in the list for as long as its registration lives.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use slab::Slab;

/// A list that whoever registers leaves by dropping the registration.
pub(crate) struct Registry<T> {
    entries: Mutex<Slab<T>>,
}

/// One entry of a registry, removed when dropped.
pub(crate) struct Registered<T> {
    registry: Arc<Registry<T>>,
    key: usize,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self { entries: Mutex::new(Slab::new()) }
    }
}

impl<T> Registry<T> {
    /// Adds an entry.
    pub(crate) fn register(self: &Arc<Self>, entry: T) -> Registered<T> {
        let key = self.entries.lock().insert(entry);
        Registered { registry: Arc::clone(self), key }
    }

    /// All entries. Nothing can be registered while this is held.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Slab<T>> {
        self.entries.lock()
    }
}

impl<T> Drop for Registered<T> {
    fn drop(&mut self) {
        self.registry.entries.lock().remove(self.key);
    }
}

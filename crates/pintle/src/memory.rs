//! Where memory comes from.
//!
//! Replies of several MiB are made by one thread and dropped by another, and the system's allocator keeps most of what
//! was freed; docs/design/engine.md, "Memory", has the figures.

#![allow(unsafe_code)]

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` in mimalloc's header, which its Rust bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// Lets freed memory go back to the system after 10 ms instead of a second. What a flood of large replies took would
/// otherwise stay with an idle server, which frees nothing more and so never looks how old it is.
pub fn give_back_soon() {
    // SAFETY: the call stores a number in a table, and may be made at any time.
    unsafe { mi_option_set(PURGE_DELAY, 10) };
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn the_number_of_the_option_is_that_of_the_purge_delay() {
        // SAFETY: the call reads a number from a table. No other option is a second by default.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 1000);
    }
}

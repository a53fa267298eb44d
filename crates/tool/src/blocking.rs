//! Work that would keep other calls off a thread of the runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From how many bytes on a text is better written or parsed off the runtime.
pub const LARGE: usize = 64 << 10;

/// Does work that takes some milliseconds if there is much of it. Then it runs in place on a thread that the runtime
/// has handed its other tasks away from (`tokio::task::block_in_place`).
pub fn block_in_place_if<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if is_large => tokio::task::block_in_place(work),
        _ => work(),
    }
}

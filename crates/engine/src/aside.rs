//! Work that would keep others off a thread of the runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From how many bytes on a text is better written or parsed aside.
pub const LARGE: usize = 64 << 10;

/// Does something that may take some milliseconds, if there is much of it. Whatever else waits for this thread goes on
/// elsewhere meanwhile.
pub fn aside_if<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if is_large => tokio::task::block_in_place(work),
        _ => work(),
    }
}

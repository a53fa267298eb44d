//! Runs long synchronous work without blocking the async runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this size on a text is serialized or parsed with `block_in_place`.
pub const LARGE: usize = 64 << 10;

/// Runs `work`, which takes milliseconds if `is_large`. Then it uses `tokio::task::block_in_place`, which moves the other
/// tasks of this thread to another one first.
pub fn block_in_place_if<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if is_large => tokio::task::block_in_place(work),
        _ => work(),
    }
}

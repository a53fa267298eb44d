//! How a failure of the file system is reported.

use std::io;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

/// The fault of a file system that failed, with the reason for programs in its details.
///
/// ```
/// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// let fault = pintle_root::storage_failed("the index could not be written", &full);
/// assert_eq!(fault.details, Some(serde_json::json!({"reason": "no_space"})));
/// ```
pub fn storage_failed(message: impl Into<String>, error: &io::Error) -> Fault {
    Fault::new(ErrorCode::UpstreamFailed, message).details(json!({"reason": failure_reason(error)}))
}

/// Why the file system failed: `no_space` for a full disk or quota, otherwise `io`.
pub fn failure_reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no_space",
        _ => "io",
    }
}

//! The **root**: the workspace folder that a server was started for, held open, and everything that is asked of it.
//!
//! - A [`Directory`] is a folder held open. What lies beneath it is reached from its handle by the kernel (`openat2`), so
//!   no path is put together as text, checked and then opened. Older kernels get a fallback (`beneath.rs`).
//! - The [`Root`] is the directory that callers see as `/`. Opening a [`WorkspacePath`](pintle_contract::WorkspacePath)
//!   beneath it also returns the **resolved path**: where the file is once all links are followed.
//! - A [`Stamp`] distinguishes one version of a file from the next without reading it. [`Clocks`] says which file
//!   systems take their times from the clock of this machine, on which the trust in a stamp depends.
//! - [`scan`] is all that an index needs of a root: its files with their stamps, a version of one of them to be read, and
//!   what has changed.
//!
//! Nothing here writes. The files toolset changes files by itself, on the handles that it gets here.

mod beneath;
mod clocks;
mod failure;
mod root;
pub mod scan;
mod stamp;

pub use beneath::{Directory, open_any_in, open_file_in, open_folder_anywhere, open_folder_in};
pub use clocks::Clocks;
pub use failure::{failure_reason, storage_failed};
pub use root::{
    Root, RootProblem, STAGING_FOLDER, TEMPORARY_FILE, handle_path, is_reserved, is_reserved_name,
    is_reserved_path,
};
pub use stamp::{Reading, Sighting, Stamp, identity};

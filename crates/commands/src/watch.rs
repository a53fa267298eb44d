//! Changes to the folder of manifests.

use std::{io, path::Path};

/// Calls back, in a thread of its own, whenever a file of a folder was written, moved or removed.
#[cfg(target_os = "linux")]
pub fn watch(folder: &Path, mut act: impl FnMut() + Send + 'static) -> io::Result<()> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    let events = init(CreateFlags::CLOEXEC)?;
    let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO | WatchFlags::DELETE;
    add_watch(&events, folder, flags | WatchFlags::ONLYDIR)?;
    let wait = move || {
        // What the events say is not looked at: the folder is read anew, as it is then.
        let mut buffer = [0_u8; 4096];
        loop {
            match rustix::io::read(&events, &mut buffer) {
                Ok(1..) => act(),
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("pintle-manifests".into()).spawn(wait)?;
    Ok(())
}

/// Other systems are not watched: there, a changed manifest is read when the server is restarted.
#[cfg(not(target_os = "linux"))]
pub fn watch(_: &Path, _: impl FnMut() + Send + 'static) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

//! Changes to the folder of manifests.
//!
//! The system reports what changes in the folder itself, where it can (inotify). It does not report what happens to the
//! folder's own name, nor to a file that a link in it leads to; so all of it is looked at now and then, too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crate::folder::MANIFEST_SUFFIX;

/// How often the folder is looked at without an event.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// After an event nothing is done before it has been quiet for this long: files are often written several at a time.
const QUIET: Duration = Duration::from_millis(50);

/// It is not waited longer than this for quiet.
const LONGEST_UNREST: Duration = Duration::from_secs(1);

/// When what is not settled is looked at again.
const SETTLE: Duration = Duration::from_millis(200);

/// Whether a change was taken in as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was.
    Yes,
    /// A file may still be being written; it is to be looked at again soon.
    No,
}

/// Calls back, in a thread of its own, whenever the manifests of a folder have changed.
pub fn watch(folder: &Path, mut act: impl FnMut() -> Settled + Send + 'static) -> io::Result<()> {
    let folder = folder.to_owned();
    let mut seen = Seen::of(&folder);
    let mut events = Events::of(&folder);
    let follow = move || {
        // What changed before this began was not seen.
        let mut settled = Settled::No;
        loop {
            let pause = if settled == Settled::Yes { LOOK_INTERVAL } else { SETTLE };
            if events.wait(pause) {
                let deadline = Instant::now() + LONGEST_UNREST;
                while events.wait(QUIET) && Instant::now() < deadline {}
            }
            let now = Seen::of(&folder);
            if now.folder != seen.folder {
                events = Events::of(&folder);
            }
            if now != seen || settled == Settled::No {
                seen = now;
                settled = act();
            }
        }
    };
    std::thread::Builder::new().name("pintle-manifests".into()).spawn(follow)?;
    Ok(())
}

/// What a folder of manifests looks like: another one is not the same, nor is one with another file.
#[derive(PartialEq, Eq)]
struct Seen {
    folder: Option<Identity>,
    files: Vec<(PathBuf, Option<Identity>)>,
}

#[derive(PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    number: (u64, u64, i64, i64),
    /// A folder's changes are those of its files.
    changed: Option<(u64, Option<SystemTime>)>,
}

impl Seen {
    fn of(folder: &Path) -> Self {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_manifest = |path: &PathBuf| path.to_string_lossy().ends_with(MANIFEST_SUFFIX);
        let mut files: Vec<_> =
            paths.filter(is_manifest).map(|path| (path.clone(), Identity::of(&path))).collect();
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { folder: Identity::of(folder), files }
    }
}

impl Identity {
    /// Of what a path leads to, through all links.
    fn of(path: &Path) -> Option<Self> {
        let there = fs::metadata(path).ok()?;
        let is_file = !there.is_dir();
        Some(Self {
            #[cfg(unix)]
            number: {
                use std::os::unix::fs::MetadataExt;
                let (seconds, nanoseconds) = (there.ctime(), there.ctime_nsec());
                (
                    there.dev(),
                    there.ino(),
                    if is_file { seconds } else { 0 },
                    if is_file { nanoseconds } else { 0 },
                )
            },
            changed: is_file.then(|| (there.len(), there.modified().ok())),
        })
    }
}

/// What the system reports of a folder.
struct Events {
    #[cfg(target_os = "linux")]
    source: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Events {
    fn of(folder: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let flags =
            WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO | WatchFlags::DELETE;
        let flags = flags | WatchFlags::MOVE_SELF | WatchFlags::ATTRIB | WatchFlags::ONLYDIR;
        let open = || {
            let source = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            add_watch(&source, folder, flags).ok()?;
            Some(source)
        };
        Self { source: open() }
    }

    /// Waits for an event, or for a time. Says whether there was one. What it says is not looked at: the folder is read
    /// again, as it is then.
    fn wait(&mut self, time: Duration) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(source) = &self.source else {
            std::thread::sleep(time);
            return false;
        };
        let time = Timespec::try_from(time).ok();
        let mut watched = [PollFd::new(source, PollFlags::IN)];
        let is_there = poll(&mut watched, time.as_ref()).is_ok_and(|ready| ready > 0);
        let mut buffer = [0_u8; 4096];
        while is_there && rustix::io::read(source, &mut buffer).is_ok_and(|count| count > 0) {}
        is_there
    }
}

#[cfg(not(target_os = "linux"))]
impl Events {
    fn of(_: &Path) -> Self {
        Self {}
    }

    fn wait(&mut self, time: Duration) -> bool {
        std::thread::sleep(time);
        false
    }
}

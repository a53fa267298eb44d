//! The servers under test.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::drive;

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pintle,
    /// The bare server.
    Bare,
    /// The bare server with the SDK's faster pipes.
    BarePipes,
}

/// A server that runs until it is dropped.
pub struct Server {
    pub child: Child,
}

impl Server {
    pub fn stdio(kind: Kind, folder: &Path) -> Self {
        let mut command = command(kind, folder);
        if kind == Kind::BarePipes {
            command.arg("--pipes");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command, folder)
    }

    /// A server, and where it listens.
    pub fn http(kind: Kind, folder: &Path) -> (Self, SocketAddr) {
        let mut command = command(kind, folder);
        command.arg("--http");
        if kind == Kind::Pintle {
            command.args(["127.0.0.1:0", "--auth", "none"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let server = Self::spawn(command, folder);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let said = fs::read_to_string(folder.join("stderr")).expect("what the server says");
            let mut lines = said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            if let Some(address) = lines.find_map(|line| line.strip_prefix("mcp:ready mode=http addr=")) {
                return (server, address.parse().expect("an address"));
            }
            assert!(Instant::now() < deadline, "the server did not get ready: {said}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn spawn(mut command: Command, folder: &Path) -> Self {
        let stderr = File::create(folder.join("stderr")).expect("a file");
        Self { child: command.stderr(stderr).spawn().expect("the server starts") }
    }

    /// What `work` gives, how long it takes, and the processor time that it costs the server.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, Duration, Duration) {
        let (processor, started) = (self.processor_time(), Instant::now());
        let result = work();
        let elapsed = started.elapsed();
        (result, elapsed, self.processor_time() - processor)
    }

    /// Processor time so far, in the kernel's ticks of 10 ms.
    fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("stat");
        let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
        let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().expect("ticks"));
        let (user, system) = (ticks.next().expect("user time"), ticks.next().expect("system time"));
        Duration::from_millis(10 * (user + system))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(kind: Kind, folder: &Path) -> Command {
    match kind {
        Kind::Pintle => drive::pintle(folder),
        // Another build of the peer can be named, as with another allocator.
        Kind::Bare | Kind::BarePipes => match std::env::var_os("BENCH_BARE_RMCP") {
            Some(path) => Command::new(path),
            None => Command::new(drive::binary("bare_rmcp")),
        },
    }
}

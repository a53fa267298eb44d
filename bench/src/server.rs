//! A server under test, as a process.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A server that runs until it is dropped.
pub struct Server {
    pub child: Child,
}

impl Server {
    /// Starts it; its standard error, and with it Pintle's log, goes to a file in the folder.
    pub fn spawn(mut command: Command, folder: &Path) -> Self {
        let stderr = File::create(folder.join("stderr")).expect("a file");
        Self { child: command.stderr(stderr).spawn().expect("the server starts") }
    }

    /// Starts one that serves over HTTP, and returns its address, too.
    pub fn spawn_http(mut command: Command, folder: &Path) -> (Self, SocketAddr) {
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

    /// The result of `work`, how long it took, and the server's processor time.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, Duration, Duration) {
        let (processor, started) = (self.processor_time(), Instant::now());
        let result = work();
        let elapsed = started.elapsed();
        (result, elapsed, self.processor_time() - processor)
    }

    /// Processor time so far, in the kernel's ticks of 10 ms.
    fn processor_time(&self) -> Duration {
        let stat = self.proc_file("stat");
        let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
        let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().expect("ticks"));
        let (user, system) = (ticks.next().expect("user time"), ticks.next().expect("system time"));
        Duration::from_millis(10 * (user + system))
    }

    /// Processor time so far of the threads that there are, in nanoseconds. It is exact, but forgets threads that end.
    pub fn threads_time(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("a process that runs");
        let time = |task: fs::DirEntry| {
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(time).sum()
    }

    /// The peak resident memory so far, in MiB.
    pub fn peak_mebibytes(&self) -> f64 {
        let status = self.proc_file("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("peak memory");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
    }

    /// A file of the process below `/proc`.
    fn proc_file(&self, what: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{what}", self.child.id())).expect("a process that runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

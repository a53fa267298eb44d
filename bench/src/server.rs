//! A server under test, as a process.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command},
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

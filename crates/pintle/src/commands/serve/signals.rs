//! The signals that end a server, or a call.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// All of them.
pub(in crate::commands) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None for a process that is to outlive its terminal (`nohup`).
    hangup: Option<Signal>,
}

impl Signals {
    pub(in crate::commands) fn listen() -> std::io::Result<Self> {
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    pub(in crate::commands) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
    }
}

/// Whether whoever started this process has it ignore SIGHUP. Other systems than Linux do not say.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

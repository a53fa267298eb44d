//! Where calls are logged.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt};

use pintle_engine::{CallLog, Level};
use pintle_positions::Located;
use pintle_wire::{Outlet, PatientFile};

use super::panel::{call_line, is_watched};
use crate::{error::CompositionError, notices, settings::Serve};

/// The call log, and its file if it has one of its own.
pub(super) struct Log {
    pub(super) calls: CallLog,
    pub(super) file: Option<Outlet>,
}

impl Log {
    pub(super) fn open(serve: &Serve, stderr: Outlet) -> Result<Self, Located<CompositionError>> {
        let level = serve.log_level;
        if level == Level::Off {
            return Ok(Self { calls: CallLog::off(), file: None });
        }
        let Some(path) = &serve.log_file else {
            let calls = CallLog::lossy(stderr, level);
            let calls = if is_watched(&serve.listen) { calls.for_people(call_line) } else { calls };
            return Ok(Self { calls, file: None });
        };
        // A pipe that nobody reads is an error now, instead of a start that never ends.
        let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().create(true).append(true).custom_flags(no_wait).open(path);
        let outlet = file.and_then(|file| Outlet::for_log(PatientFile::from(file)));
        let outlet = outlet.map_err(|error| {
            serve.log_file_set_at.error(CompositionError::LogFile { file: path.clone(), error })
        })?;
        Ok(Self { calls: CallLog::lossless(outlet.clone(), level), file: Some(outlet) })
    }
}

/// Says so when the call log cannot be written any more.
pub(super) async fn report_when_lost(log: Outlet) {
    log.closed().await;
    let reason = log.failure().unwrap_or_else(|| "nobody reads it".into());
    notices::error(&format!("the call log is lost from here on: {reason}"));
}

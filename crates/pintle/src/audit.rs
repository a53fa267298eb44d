//! The audit log as a file: one line for each decision on permissions, sealed so that no line can be changed unseen.
//!
//! Beside the log `FILE` lies `FILE.head`, which says where the log ends. The key is in the state folder, for its owner
//! alone. A server that was killed between a line and its head goes on behind that line.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use pintle_auth::{AuditError, AuditHead, AuditKey};
use pintle_contract::Fault;
use pintle_engine::{AuditSink, not_recorded};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};
use thiserror::Error;

const OWNER_ONLY: u32 = 0o600;
/// The longest line that is read.
const LONGEST_LINE: u64 = 1 << 20;

/// Why an audit log cannot be written or is not what was written.
#[derive(Debug, Error)]
pub enum AuditLogError {
    #[error("{}: {error}", file.display())]
    Io { file: PathBuf, error: io::Error },
    #[error("another server writes the audit log {}", .0.display())]
    InUse(PathBuf),
    #[error("{}: {error}", file.display())]
    Line { file: PathBuf, error: AuditError },
    #[error("{}: the log ends after {found} lines, but {expected} were written; the rest was cut off", file.display())]
    CutOff { file: PathBuf, found: u64, expected: u64 },
    #[error("{}: the last line is incomplete", .0.display())]
    Incomplete(PathBuf),
    #[error("{} is not the head that was written for the log", .0.display())]
    WrongHead(PathBuf),
    #[error("{} is missing; without it nobody can tell whether the log was cut off", .0.display())]
    NoHead(PathBuf),
}

/// An audit log that is being written.
pub struct AuditLog {
    key: AuditKey,
    state: Mutex<Written>,
}

struct Written {
    log: File,
    head_file: File,
    head: AuditHead,
}

impl AuditLog {
    /// Opens a log, or begins one. What is in it is checked first, so that nothing is added to a log that was changed.
    pub fn open(path: &Path, key: &[u8]) -> Result<Self, AuditLogError> {
        let failed = |error| AuditLogError::Io { file: path.to_owned(), error };
        let key = AuditKey::new(key);
        let open = |path: &Path| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY).open(path)
        };
        let mut log = open(path).map_err(failed)?;
        flock(&log, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| AuditLogError::InUse(path.to_owned()))?;
        let Checked { head, end, .. } = match check(path, &key) {
            // A new log has no head yet.
            Err(AuditLogError::NoHead(_)) if log.metadata().map_err(failed)?.len() == 0 => Checked::default(),
            checked => checked?,
        };
        // A line that a killed server did not finish is no line.
        log.set_len(end).and_then(|()| log.seek(SeekFrom::End(0))).map_err(failed)?;
        let head_path = head_path(path);
        let head_file = open(&head_path).map_err(|error| AuditLogError::Io { file: head_path, error })?;
        let mut written = Written { log, head_file, head };
        written.write_head(&key).map_err(failed)?;
        Ok(Self { key, state: Mutex::new(written) })
    }
}

impl Written {
    fn write_head(&mut self, key: &AuditKey) -> io::Result<()> {
        let text = self.head.to_text(key);
        self.head_file.write_all_at(text.as_bytes(), 0)?;
        self.head_file.set_len(text.len() as u64)
    }
}

impl AuditSink for AuditLog {
    fn record(&self, decision: Map<String, Value>) -> Result<(), Fault> {
        let mut written = self.state.lock();
        let (mut line, head) = self.key.append(&written.head, decision);
        line.push('\n');
        let end = written.log.stream_position();
        if let Err(error) = written.log.write_all(line.as_bytes()) {
            // A half line would make the next one unreadable.
            if let Ok(end) = end {
                let _ = written.log.set_len(end).and_then(|()| written.log.seek(SeekFrom::Start(end)));
            }
            return Err(not_recorded(&error.to_string()));
        }
        written.head = head;
        written.write_head(&self.key).map_err(|error| not_recorded(&error.to_string()))
    }
}

/// Checks a log. Returns how many lines it has.
pub fn verify(path: &Path, key: &[u8]) -> Result<u64, AuditLogError> {
    let checked = check(path, &AuditKey::new(key))?;
    if checked.is_incomplete {
        return Err(AuditLogError::Incomplete(path.to_owned()));
    }
    Ok(checked.head.lines)
}

/// What a log holds.
struct Checked {
    head: AuditHead,
    /// Where the last complete line ends.
    end: u64,
    is_incomplete: bool,
}

impl Default for Checked {
    fn default() -> Self {
        Self { head: AuditHead::empty(), end: 0, is_incomplete: false }
    }
}

fn check(path: &Path, key: &AuditKey) -> Result<Checked, AuditLogError> {
    let failed = |error| AuditLogError::Io { file: path.to_owned(), error };
    let head_path = head_path(path);
    let mut log = BufReader::new(File::open(path).map_err(failed)?);
    let kept = match std::fs::read_to_string(&head_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(AuditLogError::NoHead(head_path));
        }
        kept => kept.map_err(|error| AuditLogError::Io { file: head_path.clone(), error })?,
    };
    let kept = AuditHead::parse(&kept, key).ok_or(AuditLogError::WrongHead(head_path.clone()))?;
    let mut checked = Checked::default();
    let mut has_met_head = kept == checked.head;
    loop {
        let mut line = Vec::new();
        let read = (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            checked.is_incomplete = true;
            break;
        };
        // What is not UTF-8 was not written here. It becomes an empty line, which is no record.
        let checked_line = key.check(&checked.head, std::str::from_utf8(text).unwrap_or_default());
        checked.head = checked_line.map_err(|error| AuditLogError::Line { file: path.to_owned(), error })?;
        checked.end += line.len() as u64;
        has_met_head |= kept == checked.head;
    }
    if checked.head.lines < kept.lines {
        let (found, expected) = (checked.head.lines, kept.lines);
        return Err(AuditLogError::CutOff { file: path.to_owned(), found, expected });
    }
    // A server that was killed may have written a line whose head it did not write; but the head is of a line there.
    if has_met_head { Ok(checked) } else { Err(AuditLogError::WrongHead(head_path)) }
}

/// The file beside a log that says where the log ends.
pub fn head_path(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".head");
    PathBuf::from(name)
}

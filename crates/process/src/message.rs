//! The messages between a server, its watcher and its supervisors, over Unix sockets.
//!
//! A server sends requests to its watcher. It sends a supervisor one specification and at most one [`KILL`]; a closed
//! socket means that the server is gone. Every message of a supervisor, and of the watcher on behalf of one, is a frame: a
//! type byte and two numbers.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    time::Duration,
};

use crate::{
    command::{CommandSpec, Exit, StartFailure},
    kept::Keep,
};

/// The order to end the command.
pub(crate) const KILL: u8 = b'K';

/// The size limit of a specification, which no request reaches.
const MAX_SPEC_BYTES: usize = 64 << 20;

/// Serializes a specification with a length prefix, without the limits of the kept output, which the server applies.
pub(crate) fn write_spec(spec: &CommandSpec) -> Vec<u8> {
    let mut parts = vec![spec.program.as_os_str().as_bytes(), spec.folder.as_os_str().as_bytes()];
    let grace = u64::try_from(spec.grace.as_millis()).unwrap_or(u64::MAX).to_le_bytes();
    parts.push(&grace);
    let has_stdin = [u8::from(spec.stdin.is_some())];
    parts.push(&has_stdin);
    parts.push(spec.stdin.as_deref().unwrap_or_default());
    let arguments = (spec.arguments.len() as u64).to_le_bytes();
    parts.push(&arguments);
    parts.extend(spec.arguments.iter().map(|argument| argument.as_bytes()));
    parts.extend(spec.environment.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    let mut body = Vec::new();
    for part in parts {
        body.extend((part.len() as u64).to_le_bytes());
        body.extend(part);
    }
    let mut message = (body.len() as u64).to_le_bytes().to_vec();
    message.extend(body);
    message
}

/// Reads a specification. `None` if the server closed the socket or sent something else.
pub(crate) fn read_spec(mut from: impl Read) -> Option<CommandSpec> {
    let mut length = [0; 8];
    from.read_exact(&mut length).ok()?;
    let length =
        usize::try_from(u64::from_le_bytes(length)).ok().filter(|length| *length <= MAX_SPEC_BYTES)?;
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    parse_spec(&body)
}

fn parse_spec(body: &[u8]) -> Option<CommandSpec> {
    let mut rest = body;
    let program = os_string(part(&mut rest)?);
    let folder = os_string(part(&mut rest)?);
    let grace = number(part(&mut rest)?)?;
    let has_stdin = part(&mut rest)? == [1];
    let stdin = part(&mut rest)?.to_vec();
    let count = number(part(&mut rest)?)?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        arguments.push(os_string(part(&mut rest)?));
    }
    let mut environment = Vec::new();
    while !rest.is_empty() {
        environment.push((os_string(part(&mut rest)?), os_string(part(&mut rest)?)));
    }
    Some(CommandSpec {
        program: program.into(),
        arguments,
        environment,
        folder: folder.into(),
        stdin: has_stdin.then_some(stdin),
        grace: Duration::from_millis(grace),
        keep_stdout: Keep::whole(0),
        keep_stderr: Keep::whole(0),
    })
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_at_checked(8)?;
    let (part, after) = after.split_at_checked(usize::try_from(number(length)?).ok()?)?;
    *rest = after;
    Some(part)
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A request of a server to its watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Start a supervisor with this id. Its standard input, output and error are passed along.
    Start(u64),
    /// Kill a supervisor that does not respond, and everything below it.
    TakeOver(u64),
}

/// The length of every request.
pub(crate) const REQUEST_BYTES: usize = 9;

impl Request {
    pub(crate) fn write(self) -> [u8; REQUEST_BYTES] {
        let (kind, id) = match self {
            Self::Start(id) => (b'S', id),
            Self::TakeOver(id) => (b'T', id),
        };
        let mut frame = [kind; REQUEST_BYTES];
        frame[1..].copy_from_slice(&id.to_le_bytes());
        frame
    }

    pub(crate) fn read(frame: [u8; REQUEST_BYTES]) -> Option<Self> {
        let id = number(&frame[1..])?;
        match frame[0] {
            b'S' => Some(Self::Start(id)),
            b'T' => Some(Self::TakeOver(id)),
            _ => None,
        }
    }
}

/// A report of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command could not be started; this is the last report.
    NotStarted(StartFailure),
    /// The command itself has ended; what it started may still run.
    Exited(Exit),
    /// The order is being carried out (heartbeat).
    Working,
    /// Some processes cannot be killed: how many, and one of them. The supervisor keeps trying.
    Unkillable { count: i32, example: i32 },
    /// No process is left; this is the last report.
    Done,
    /// The supervisor was killed or stopped, and its command was killed; `left` processes could not be. The last report.
    Lost { left: i32 },
}

/// The length of every report.
pub(crate) const REPORT_BYTES: usize = 9;

impl Report {
    pub(crate) fn write(self) -> [u8; REPORT_BYTES] {
        let (kind, first, second) = match self {
            Self::NotStarted(failure) => {
                let (kind, number) = failure_number(failure);
                (b'N', kind, number)
            }
            Self::Exited(Exit::Code(code)) => (b'E', 0, code),
            Self::Exited(Exit::Signal(signal)) => (b'E', 1, signal),
            Self::Working => (b'W', 0, 0),
            Self::Unkillable { count, example } => (b'U', count, example),
            Self::Done => (b'D', 0, 0),
            Self::Lost { left } => (b'L', left, 0),
        };
        let mut frame = [kind; REPORT_BYTES];
        frame[1..5].copy_from_slice(&first.to_le_bytes());
        frame[5..].copy_from_slice(&second.to_le_bytes());
        frame
    }

    pub(crate) fn read(frame: [u8; REPORT_BYTES]) -> io::Result<Self> {
        let [kind, a, b, c, d, e, f, g, h] = frame;
        let (first, second) = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
        Ok(match (kind, first) {
            (b'N', kind) => Self::NotStarted(failure_of(kind, second)),
            (b'E', 0) => Self::Exited(Exit::Code(second)),
            (b'E', _) => Self::Exited(Exit::Signal(second)),
            (b'W', _) => Self::Working,
            (b'U', count) => Self::Unkillable { count, example: second },
            (b'D', _) => Self::Done,
            (b'L', left) => Self::Lost { left },
            _ => return Err(io::Error::other("a supervisor sent an unknown message")),
        })
    }
}

/// The failures that are encoded by their index in this list.
const FAILURES: [StartFailure; 7] = [
    StartFailure::Missing,
    StartFailure::IsFolder,
    StartFailure::NotExecutable,
    StartFailure::NotAProgram,
    StartFailure::NoFolder,
    StartFailure::NulByte,
    StartFailure::TooLong,
];

fn failure_number(failure: StartFailure) -> (i32, i32) {
    match (FAILURES.iter().position(|known| *known == failure), failure) {
        (Some(position), _) => (i32::try_from(position).unwrap_or(-1), 0),
        (None, StartFailure::Other(number)) => (-1, number),
        (None, _) => (-1, 0),
    }
}

fn failure_of(kind: i32, number: i32) -> StartFailure {
    let known = usize::try_from(kind).ok().and_then(|position| FAILURES.get(position));
    known.copied().unwrap_or(StartFailure::Other(number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = OsString> {
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn a_specification_arrives_as_it_was_sent(
            program in text(),
            folder in text(),
            arguments in proptest::collection::vec(text(), 0..5),
            environment in proptest::collection::vec((text(), text()), 0..5),
            stdin in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
            grace in 0..100_000_u64,
        ) {
            let spec = CommandSpec {
                program: program.into(),
                arguments,
                environment,
                folder: folder.into(),
                stdin,
                grace: Duration::from_millis(grace),
                keep_stdout: Keep::whole(0),
                keep_stderr: Keep::whole(0),
            };
            let written = write_spec(&spec);
            prop_assert_eq!(read_spec(&written[..]), Some(spec));
            // A server that dies while it sends has asked for nothing.
            prop_assert_eq!(read_spec(&written[..written.len() - 1]), None);
        }

        #[test]
        fn garbage_is_no_specification_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_spec(&bytes);
        }
    }

    #[test]
    fn every_report_and_request_arrives_as_it_was_sent() {
        let failures = FAILURES.into_iter().chain([StartFailure::Other(5)]).map(Report::NotStarted);
        let others = [
            Report::Exited(Exit::Code(-3)),
            Report::Exited(Exit::Signal(9)),
            Report::Working,
            Report::Unkillable { count: 2, example: 77 },
            Report::Done,
            Report::Lost { left: 3 },
        ];
        for report in failures.chain(others) {
            assert_eq!(Report::read(report.write()).expect("a report"), report);
        }
        assert!(Report::read([0; REPORT_BYTES]).is_err());
        for request in [Request::Start(7), Request::TakeOver(u64::MAX)] {
            assert_eq!(Request::read(request.write()), Some(request));
        }
        assert_eq!(Request::read([0; REQUEST_BYTES]), None);
    }
}

//! Standard streams and special files as plain byte streams.
//!
//! Whoever started the process may have made them non-blocking; here they block all the same. Nothing
//! is buffered: frames are gathered elsewhere.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
    fs::{FileType, fstat},
};

/// A file that blocks, even if its descriptor does not.
pub struct PatientFile(File);

impl From<File> for PatientFile {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl Read for PatientFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking(&self.0, PollFlags::IN, |mut file| file.read(buffer))
    }
}

impl Write for PatientFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        blocking(&self.0, PollFlags::OUT, |mut file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A handle of its own to standard input.
pub fn standard_input() -> io::Result<PatientFile> {
    own(rustix::stdio::stdin())
}

/// A handle of its own to standard output.
pub fn standard_output() -> io::Result<PatientFile> {
    own(rustix::stdio::stdout())
}

/// A handle of its own to standard error.
pub fn standard_error() -> io::Result<PatientFile> {
    own(rustix::stdio::stderr())
}

/// Writes a little to standard output, if that can be done at once; none if that cannot be known. A pipe that has capacity
/// takes a page whole.
pub fn standard_output_at_once()
-> io::Result<Option<impl Fn(&[u8]) -> io::Result<bool> + Send + Sync + 'static>> {
    let stream = standard_output()?.0;
    let kind = FileType::from_raw_mode(fstat(&stream)?.st_mode);
    Ok((kind == FileType::Fifo).then_some(move |bytes: &[u8]| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut watched = [PollFd::new(&stream, PollFlags::OUT)];
        match poll(&mut watched, Some(&now)) {
            // A reader that has left is for the thread to find out about.
            Ok(1) if watched[0].revents() == PollFlags::OUT => match (&stream).write(bytes) {
                Ok(count) if count == bytes.len() => Ok(true),
                Ok(_) => Err(io::ErrorKind::WriteZero.into()),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    Ok(false)
                }
                Err(error) => Err(error),
            },
            _ => Ok(false),
        }
    }))
}

fn own(stream: BorrowedFd<'_>) -> io::Result<PatientFile> {
    Ok(PatientFile(stream.try_clone_to_owned()?.into()))
}

/// Waits, in a thread of its own, until nobody can read standard output any more, and acts on it. A
/// stream that cannot lose its reader, such as a file, never does.
pub fn on_output_hangup(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let stream = standard_output()?.0;
    let wait = move || {
        loop {
            let mut watched = [PollFd::new(&stream, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    return act();
                }
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // Not a stream that can be watched.
                Ok(_) | Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("pintle-hangup".into()).spawn(wait)?;
    Ok(())
}

/// Tries until the stream is ready.
fn blocking(
    file: &File,
    ready: PollFlags,
    mut attempt: impl FnMut(&File) -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match attempt(file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match poll(&mut [PollFd::new(file, ready)], None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            result => return result,
        }
    }
}

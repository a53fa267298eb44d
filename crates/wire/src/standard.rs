//! Standard input and output as plain byte streams.
//!
//! Whoever started the process may have made them non-blocking; here they block all the same. Nothing
//! is buffered: frames are gathered elsewhere.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::event::{PollFd, PollFlags, poll};

/// Standard input.
pub struct StandardInput(File);

/// Standard output.
pub struct StandardOutput(File);

impl StandardInput {
    /// A handle of its own to the stream.
    pub fn open() -> io::Result<Self> {
        Ok(Self(rustix::stdio::stdin().try_clone_to_owned()?.into()))
    }
}

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking(&self.0, PollFlags::IN, |mut file| file.read(buffer))
    }
}

impl StandardOutput {
    /// A handle of its own to the stream.
    pub fn open() -> io::Result<Self> {
        Ok(Self(rustix::stdio::stdout().try_clone_to_owned()?.into()))
    }

    /// Waits, in a thread of its own, until nobody can read the stream any more, and says so.
    /// A stream that cannot lose its reader, such as a file, never says so.
    pub fn on_hangup(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let stream = Self::open()?.0;
        let wait = move || {
            loop {
                let mut watched = [PollFd::new(&stream, PollFlags::empty())];
                match poll(&mut watched, None) {
                    Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                        return act();
                    }
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
            }
        };
        std::thread::Builder::new().name("pintle-hangup".into()).spawn(wait)?;
        Ok(())
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        blocking(&self.0, PollFlags::OUT, |mut file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

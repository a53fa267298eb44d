//! Measures what comes out of an archive while it is read, whatever the archive says about itself.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read},
    rc::Rc,
};

use crate::{ArchiveError, Limits};

/// What was read of an archive so far, and whether it was too much.
pub(super) struct Meter {
    limits: Limits,
    packed: Cell<u64>,
    unpacked: Cell<u64>,
    /// How much more may be read before the next file; none within a file.
    headers_left: Cell<Option<u64>>,
    /// Decoders pass on only that reading failed, so the reason is kept here.
    refusal: RefCell<Option<ArchiveError>>,
}

impl Meter {
    pub(super) fn new(limits: &Limits) -> Rc<Self> {
        Rc::new(Self {
            limits: *limits,
            packed: Cell::new(0),
            unpacked: Cell::new(0),
            headers_left: Cell::new(None),
            refusal: RefCell::new(None),
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts bytes of the archive.
    pub(super) fn add_packed(&self, count: u64) {
        self.packed.set(self.packed.get().saturating_add(count));
    }

    /// From here on headers are read, which the decoder keeps in memory.
    pub(super) fn begin_headers(&self) {
        self.headers_left.set(Some(self.limits.header_bytes));
    }

    /// From here on something is read piece by piece.
    pub(super) fn end_headers(&self) {
        self.headers_left.set(None);
    }

    /// The reason why reading failed: what exceeded a limit, or else damage.
    pub(super) fn refusal_or(&self, error: io::Error) -> ArchiveError {
        self.refusal.borrow_mut().take().unwrap_or_else(|| ArchiveError::Damaged(error.to_string()))
    }

    fn add_unpacked(&self, count: u64) -> io::Result<()> {
        let unpacked = self.unpacked.get().saturating_add(count);
        self.unpacked.set(unpacked);
        let refusal = if self.limits.is_bomb(unpacked, self.packed.get()) {
            ArchiveError::Unsafe(format!(
                "more than {} bytes come out of each byte of it, so it is a bomb",
                self.limits.ratio
            ))
        } else if unpacked > self.limits.total_bytes {
            ArchiveError::TooLarge(format!("unpacked it has more than {} bytes", self.limits.total_bytes))
        } else {
            match self.headers_left.get().map(|left| left.checked_sub(count)) {
                Some(None) => {
                    ArchiveError::TooLarge("the names or attributes of an entry are too long".into())
                }
                Some(left) => {
                    self.headers_left.set(left);
                    return Ok(());
                }
                None => return Ok(()),
            }
        };
        *self.refusal.borrow_mut() = Some(refusal);
        Err(io::Error::other("a limit of the archive was exceeded"))
    }
}

/// Counts the bytes of the archive that are read.
pub(super) struct Packed<R> {
    pub(super) inner: R,
    pub(super) meter: Rc<Meter>,
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.add_packed(count as u64);
        Ok(count)
    }
}

/// Counts the unpacked bytes, and fails when there are too many.
pub(super) struct Unpacked<R> {
    pub(super) inner: R,
    pub(super) meter: Rc<Meter>,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.add_unpacked(count as u64)?;
        Ok(count)
    }
}

//! How large an archive, and what is in it, may be.

/// The limits of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The archive itself, in bytes.
    pub archive_bytes: u64,
    /// Files and folders.
    pub entries: usize,
    /// One unpacked file, in bytes.
    pub file_bytes: u64,
    /// All that is unpacked, in bytes. Of a `.tar.gz` the headers count, too.
    pub total_bytes: u64,
    /// How many names a path may have.
    pub depth: usize,
    /// One name, in bytes.
    pub name_bytes: usize,
    /// A whole path, in bytes.
    pub path_bytes: usize,
    /// How many bytes one byte of the archive may become, as soon as more than `ratio_free_bytes` were unpacked.
    pub ratio: u64,
    /// Small files may be compressed by any ratio: a kilobyte of spaces is no attack.
    pub ratio_free_bytes: u64,
    /// What may stand between two files of a `.tar.gz`: headers, long names, attributes.
    pub header_bytes: u64,
}

impl Limits {
    /// The limits of packs. Files, their number and their depth have the limits of a folder of schemas.
    pub const PACK: Self = Self {
        archive_bytes: 64 << 20,
        entries: 10_000,
        file_bytes: 8 << 20,
        total_bytes: 256 << 20,
        depth: 16,
        name_bytes: 255,
        path_bytes: 1024,
        ratio: 200,
        ratio_free_bytes: 1 << 20,
        header_bytes: 64 << 10,
    };

    /// Whether so much came out of so little that the archive was made to fill a disk.
    pub(crate) fn is_bomb(&self, unpacked: u64, packed: u64) -> bool {
        unpacked > self.ratio_free_bytes && unpacked > packed.saturating_mul(self.ratio)
    }
}

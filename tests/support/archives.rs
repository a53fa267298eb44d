//! Archives, made byte by byte, so that they can be wrong in every way.

use std::io::Write;

use flate2::{
    Compression, Crc,
    write::{DeflateEncoder, GzEncoder},
};
use tar::{EntryType, Header};

/// A tar archive that is being written.
#[derive(Default)]
pub struct Tar(Vec<u8>);

impl Tar {
    /// A regular file.
    pub fn file(self, name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        self.entry(name, EntryType::Regular, "", content)
    }

    /// An entry of any type, with a name of at most 100 bytes.
    pub fn entry(mut self, name: impl AsRef<[u8]>, kind: EntryType, link: &str, content: &[u8]) -> Self {
        let mut header = Header::new_ustar();
        let name = name.as_ref();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The end of the archive, which more may follow.
    pub fn end(mut self) -> Self {
        self.0.extend_from_slice(&[0; 1024]);
        self
    }

    /// The archive, not compressed.
    pub fn bytes(self) -> Vec<u8> {
        self.end().0
    }

    /// The archive, compressed.
    pub fn gz(self) -> Vec<u8> {
        gz(&self.bytes())
    }
}

/// Compresses bytes.
pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(bytes).expect("memory");
    gz.finish().expect("memory")
}

/// A zip archive that is being written: the files, and the directory of them.
#[derive(Default)]
pub struct Zip {
    files: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

/// What a zip archive says about a file.
pub struct ZipEntry<'a> {
    /// The name in the directory.
    pub name: &'a [u8],
    /// The name before the content.
    pub local_name: &'a [u8],
    pub content: &'a [u8],
    /// The size that it claims to have.
    pub size: u32,
    pub is_compressed: bool,
    pub mode: u32,
    pub flags: u16,
    /// Where the file is, if not where it was written.
    pub offset: Option<u32>,
}

impl<'a> ZipEntry<'a> {
    /// A regular file.
    pub fn file(name: &'a [u8], content: &'a [u8]) -> Self {
        let size = u32::try_from(content.len()).expect("small");
        let mode = 0o100_644;
        Self { name, local_name: name, content, size, is_compressed: true, mode, flags: 0, offset: None }
    }
}

impl Zip {
    /// A regular file.
    pub fn file(self, name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        self.entry(&ZipEntry::file(name.as_ref(), content))
    }

    /// Any entry.
    pub fn entry(mut self, entry: &ZipEntry<'_>) -> Self {
        let mut crc = Crc::new();
        crc.update(entry.content);
        let mut packed = entry.content.to_vec();
        if entry.is_compressed {
            let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
            deflate.write_all(entry.content).expect("memory");
            packed = deflate.finish().expect("memory");
        }
        let common = |name: &[u8]| {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&20_u16.to_le_bytes());
            bytes.extend_from_slice(&entry.flags.to_le_bytes());
            bytes.extend_from_slice(&(if entry.is_compressed { 8_u16 } else { 0 }).to_le_bytes());
            bytes.extend_from_slice(&[0, 0, 0x21, 0]);
            bytes.extend_from_slice(&crc.sum().to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(packed.len()).expect("small").to_le_bytes());
            bytes.extend_from_slice(&entry.size.to_le_bytes());
            bytes.extend_from_slice(&u16::try_from(name.len()).expect("short").to_le_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes
        };
        let offset = entry.offset.unwrap_or(u32::try_from(self.files.len()).expect("small"));
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        self.directory.extend_from_slice(&common(entry.name));
        self.directory.extend_from_slice(&[0; 6]);
        self.directory.extend_from_slice(&(entry.mode << 16).to_le_bytes());
        self.directory.extend_from_slice(&offset.to_le_bytes());
        self.directory.extend_from_slice(entry.name);
        self.files.extend_from_slice(b"PK\x03\x04");
        self.files.extend_from_slice(&common(entry.local_name));
        self.files.extend_from_slice(entry.local_name);
        self.files.extend_from_slice(&packed);
        self.count += 1;
        self
    }

    /// The archive.
    pub fn bytes(self) -> Vec<u8> {
        let [offset, size] = [&self.files, &self.directory]
            .map(|part| u32::try_from(part.len()).expect("small").to_le_bytes());
        let count = self.count.to_le_bytes();
        let end = [b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &size, &offset, &[0, 0]].concat();
        [self.files, self.directory, end].concat()
    }
}

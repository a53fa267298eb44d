//! An archive on its way in: it is written to a file of our own while its checksum is computed, so that exactly the bytes
//! that were verified are unpacked.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    str::FromStr,
};

use pintle_contract::{ErrorCode, Fault};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{Limits, archive::too_large_archive, error::not_stored};

/// A SHA-256 checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sha256Sum([u8; 32]);

/// A text that is not a checksum.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a SHA-256 checksum has 64 hexadecimal digits, as `sha256sum` prints them")]
pub struct NotAChecksum;

impl FromStr for Sha256Sum {
    type Err = NotAChecksum;

    /// Reads 64 hexadecimal digits, with or without `sha256:` before them.
    fn from_str(text: &str) -> Result<Self, NotAChecksum> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let mut bytes = [0; 32];
        match base16ct::mixed::decode(digits, &mut bytes).map(<[u8]>::len) {
            Ok(32) => Ok(Self(bytes)),
            _ => Err(NotAChecksum),
        }
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base16ct::lower::encode_string(&self.0))
    }
}

/// A file that an archive is written to.
pub struct Spool {
    file: File,
    hash: Sha256,
    size: u64,
    limits: Limits,
}

/// An archive with the checksum that it must have, if one was given.
pub struct Spooled {
    pub(crate) file: File,
    pub(crate) sha256: Sha256Sum,
}

impl Spool {
    pub(crate) fn new(file: File, limits: Limits) -> Self {
        Self { file, hash: Sha256::new(), size: 0, limits }
    }

    /// Refuses an archive that says beforehand that it is too large.
    pub fn expect(&self, size: u64) -> Result<(), Fault> {
        match size > self.limits.archive_bytes {
            true => Err(too_large_archive(&self.limits).into()),
            false => Ok(()),
        }
    }

    /// Appends bytes of the archive. Too many are refused as soon as they come, whatever was said.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.size += bytes.len() as u64;
        self.expect(self.size)?;
        self.hash.update(bytes);
        self.file.write_all(bytes).map_err(|error| not_stored("the archive cannot be stored", &error))
    }

    /// Appends all that a reader has.
    pub fn append_from(&mut self, reader: &mut impl Read) -> Result<(), Fault> {
        let mut buffer = [0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.append(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let message = format!("the archive cannot be read: {error}");
                    return Err(Fault::new(ErrorCode::InvalidRequest, message)
                        .hint("name a `.tar.gz` or a `.zip` that you can read"));
                }
            }
        }
    }

    /// Ends the archive and compares its checksum.
    pub fn finish(self, expected: Option<Sha256Sum>) -> Result<Spooled, Fault> {
        let sha256 = Sha256Sum(self.hash.finalize().into());
        match expected {
            Some(expected) if expected != sha256 => {
                let message = format!(
                    "the archive's checksum is wrong: its SHA-256 is {sha256}, but {expected} was expected"
                );
                Err(Fault::new(ErrorCode::DownloadVerifyFailed, message).hint(
                    "nothing was installed; download it again, and compare the checksum with the publisher's",
                ))
            }
            _ => Ok(Spooled { file: self.file, sha256 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_read_in_any_case_and_printed_in_small_letters() {
        let digits = "E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for text in [digits.to_owned(), format!("sha256:{digits}")] {
            let sum: Sha256Sum = text.parse().expect(&text);
            assert_eq!(sum.to_string(), digits.to_lowercase());
        }
        for bad in ["", "sha256:", &digits[1..], &format!("{digits}0"), &digits.replace('e', "g"), "sha1:00"]
        {
            assert_eq!(bad.parse::<Sha256Sum>(), Err(NotAChecksum), "{bad}");
        }
    }
}

//! Object ids, and how they are computed.

use std::fmt::{self, Display, Formatter};

use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The length of the longest object id, in bytes.
const LONGEST: usize = 32;

/// The id of an object: the hash of its kind, size and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectId {
    bytes: [u8; LONGEST],
    kind: HashKind,
}

impl ObjectId {
    /// The first bytes of `bytes` as an id, if there are enough.
    pub(crate) fn from_start(bytes: &[u8], kind: HashKind) -> Option<Self> {
        let own = bytes.get(..kind.length())?;
        let mut id = Self { bytes: [0; LONGEST], kind };
        id.bytes[..own.len()].copy_from_slice(own);
        Some(id)
    }

    /// Parses an id that is written as hexadecimal digits.
    pub(crate) fn from_digits(digits: &[u8], kind: HashKind) -> Option<Self> {
        let mut id = Self { bytes: [0; LONGEST], kind };
        let decoded = base16ct::mixed::decode(digits, &mut id.bytes).ok()?;
        (decoded.len() == kind.length()).then_some(id)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.length()]
    }
}

impl Display for ObjectId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", base16ct::HexDisplay(self.as_bytes()))
    }
}

/// The hash function of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    Sha1,
    Sha256,
}

impl HashKind {
    /// How long an id is, in bytes.
    pub(crate) const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub(crate) fn hasher(self) -> Hasher {
        match self {
            Self::Sha1 => Hasher::Sha1(Sha1::new()),
            Self::Sha256 => Hasher::Sha256(Sha256::new()),
        }
    }

    /// A hasher that has taken the header of an object.
    pub(crate) fn object_hasher(self, kind: &str, size: u64) -> Hasher {
        let mut hasher = self.hasher();
        hasher.update(format!("{kind} {size}\0").as_bytes());
        hasher
    }

    /// The id of an object.
    pub(crate) fn name_of(self, kind: &str, content: &[u8]) -> ObjectId {
        let mut hasher = self.object_hasher(kind, content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }
}

/// A hash of which not all bytes have come yet.
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> ObjectId {
        let mut bytes = [0; LONGEST];
        let kind = match self {
            Self::Sha1(hasher) => {
                bytes[..HashKind::Sha1.length()].copy_from_slice(&hasher.finalize());
                HashKind::Sha1
            }
            Self::Sha256(hasher) => {
                bytes.copy_from_slice(&hasher.finalize());
                HashKind::Sha256
            }
        };
        ObjectId { bytes, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_has_the_name_that_git_gives_it() {
        assert_eq!(
            HashKind::Sha1.name_of("blob", b"").to_string(),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
        assert_eq!(
            HashKind::Sha256.name_of("blob", b"").to_string(),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
    }

    #[test]
    fn digits_are_read_back_and_anything_else_is_refused() {
        let id = HashKind::Sha1.name_of("blob", b"x");
        assert_eq!(ObjectId::from_digits(id.to_string().as_bytes(), HashKind::Sha1), Some(id));
        assert_eq!(ObjectId::from_digits(&[b'g'; 40], HashKind::Sha1), None);
        assert_eq!(ObjectId::from_digits(&[b'a'; 39], HashKind::Sha1), None);
        assert_eq!(ObjectId::from_digits(&[b'a'; 40], HashKind::Sha256), None);
    }
}

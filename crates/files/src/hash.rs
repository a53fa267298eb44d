//! The version of a file: the SHA-256 of its bytes.

use std::fmt;

use sha2::{Digest, Sha256};

/// The hash of a file's stored bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let decoded = base16ct::mixed::decode(text, &mut bytes).ok()?;
        (decoded.len() == bytes.len()).then_some(Self(bytes))
    }

    /// The raw bytes of the hash, for storing it.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// A hash from its raw bytes.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", base16ct::HexDisplay(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes a hash incrementally.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all added bytes.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written_and_nothing_else_is() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Hash::of(b"").to_string(), empty);
        assert_eq!(Hash::parse(empty), Some(Hash::of(b"")));
        assert_eq!(Hash::parse(&empty.to_uppercase()), Some(Hash::of(b"")));
        for text in ["", "e3", &empty[1..], &format!("{empty}0"), &empty.replace('e', "g"), &"é".repeat(32)]
        {
            assert_eq!(Hash::parse(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_that_come_in_pieces_have_the_same_hash() {
        let mut hasher = Hasher::default();
        hasher.update(b"he");
        hasher.update(b"llo");
        assert_eq!(hasher.finish(), Hash::of(b"hello"));
    }
}

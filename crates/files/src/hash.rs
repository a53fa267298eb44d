//! The version of a file: the SHA-256 of its bytes.

use std::{fmt, io};

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

/// How a caller names the version of a file: by its hash, or by the first digits of it (a tag).
///
/// A tag guards against accidents, such as an edit of a version that another agent has replaced. Somebody can make a file
/// whose hash begins with the same eight digits, but only on purpose, and it takes write access to put it there.
#[derive(Clone, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// The fewest digits.
    const SHORTEST: usize = 8;

    /// Parses 8 to 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_length = (Self::SHORTEST..=64).contains(&text.len());
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_length && is_hex).then(|| Self(text.to_ascii_lowercase()))
    }

    /// Names every version, for a change that has another guard than the version.
    pub fn any() -> Self {
        Self(String::new())
    }

    /// Whether it names the version with this hash.
    pub fn names(&self, hash: Hash) -> bool {
        hash.to_string().starts_with(&self.0)
    }

    /// Whether both can name one version: one is the beginning of the other.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }

    /// The number of digits.
    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }
}

impl From<Hash> for Tag {
    fn from(hash: Hash) -> Self {
        Self(hash.to_string())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

    /// The hash of what is left to read of a file.
    pub(crate) fn hash_file(mut file: impl io::Read) -> io::Result<Hash> {
        let (mut hasher, mut buffer) = (Self::default(), vec![0; 256 << 10]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.finish()),
                count => hasher.update(&buffer[..count]),
            }
        }
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
    fn a_tag_is_the_hash_or_at_least_its_first_eight_digits() {
        let hash = Hash::of(b"");
        for text in ["e3b0c442", "E3B0C442", "e3b0c44298fc1c14", &hash.to_string()] {
            assert!(Tag::parse(text).is_some_and(|tag| tag.names(hash)), "{text}");
        }
        assert!(Tag::parse("e3b0c443").is_some_and(|tag| !tag.names(hash)));
        for text in ["", "e3b0c44", "e3b0c44g", &format!("{hash}0"), "éééé", " e3b0c442"] {
            assert_eq!(Tag::parse(text), None, "{text}");
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

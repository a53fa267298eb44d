//! The names of packs.

use std::{fmt, str::FromStr};

use thiserror::Error;

const LONGEST: usize = 64;

/// The name of a pack, which is also that of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackName(String);

/// A text that cannot be the name of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` cannot be the name of a pack; a name has at most 64 letters, digits, `.`, `_` and `-` and begins with a \
     letter or a digit"
)]
pub struct NotAPackName(String);

impl PackName {
    /// The name that the name of an archive suggests: `lamps-1.2.tar.gz` is `lamps-1.2`.
    ///
    /// ```
    /// use pintle_packs::PackName;
    ///
    /// assert_eq!(PackName::of_archive("lamps-1.2.tar.gz").unwrap().to_string(), "lamps-1.2");
    /// assert!(PackName::of_archive(".zip").is_err());
    /// ```
    pub fn of_archive(file_name: &str) -> Result<Self, NotAPackName> {
        let lower = file_name.to_ascii_lowercase();
        let ending = [".tar.gz", ".tgz", ".zip"].into_iter().find(|ending| lower.ends_with(ending));
        file_name[..file_name.len() - ending.map_or(0, str::len)].parse()
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackName {
    type Err = NotAPackName;

    fn from_str(text: &str) -> Result<Self, NotAPackName> {
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let allowed = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        match begins && text.len() <= LONGEST && text.chars().all(allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(NotAPackName(text.to_owned())),
        }
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_a_visible_folder() {
        for good in ["a", "7", "lamps-1.2_x", &"x".repeat(64)] {
            assert!(good.parse::<PackName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".a", "-a", "a/b", "a b", "a\\b", "ä", "a:b", &"x".repeat(65)] {
            assert!(bad.parse::<PackName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_name_of_an_archive_loses_its_ending_alone() {
        let name = |file| PackName::of_archive(file).map(|name| name.0);
        assert_eq!(name("lamps.TGZ"), Ok("lamps".into()));
        assert_eq!(name("lamps.zip.zip"), Ok("lamps.zip".into()));
        assert_eq!(name("lamps"), Ok("lamps".into()));
        assert!(name("ä.zip").is_err());
    }
}

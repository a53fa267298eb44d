//! The index: what the next commit would hold, and what the files looked like when that was last compared.

use std::ops::Range;

use pintle_root::Stamp;
use rustix::io::Errno;

use crate::{
    cached_trees::CachedTrees,
    directory::{name_of, read_all},
    hash::{HashKind, ObjectId},
    problem::{HasEnded, Problem, go_on},
    repository::Repository,
};

/// The largest index that is read: some two and a half million files.
const LIMIT: u64 = 256 << 20;
/// The limit of all paths together. In version 4 a path is stored as its difference to the one before it, so the paths
/// can be far longer than the file.
const NAMES_LIMIT: usize = 512 << 20;
/// The longest path that the system accepts (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

/// The kinds of things that an index or a tree can hold, as git writes them.
pub(crate) mod mode {
    pub(crate) const FILE: u32 = 0o100_644;
    pub(crate) const EXECUTABLE: u32 = 0o100_755;
    pub(crate) const LINK: u32 = 0o120_000;
    pub(crate) const SUBMODULE: u32 = 0o160_000;
    pub(crate) const FOLDER: u32 = 0o040_000;
}

/// The index of a repository.
#[derive(Default)]
pub(crate) struct Index {
    /// Sorted by path and stage.
    pub(crate) entries: Vec<Entry>,
    /// The ids of the trees that the folders would be written as, where git has cached them (`TREE`).
    pub(crate) trees: Option<CachedTrees>,
    /// When the index was written. A file that was changed at that time or later may have changed unseen.
    pub(crate) written: Time,
    paths: Vec<u8>,
}

/// One path in the index, at one stage.
pub(crate) struct Entry {
    path: Range<usize>,
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    /// The lower 32 bits of the file's size; zero if it is not known.
    pub(crate) size: u32,
    /// Zero, or a side of a merge that is not yet resolved.
    pub(crate) stage: u8,
    /// The flag assume-unchanged: the file is not compared.
    pub(crate) is_assumed_unchanged: bool,
    /// The flag skip-worktree: the file is meant to be absent (sparse checkout).
    pub(crate) is_skipped: bool,
    /// The flag intent-to-add: the path is known, but no content is staged.
    pub(crate) is_intended: bool,
}

/// A time of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    /// Its lower 32 bits, as the index keeps them.
    pub(crate) seconds: u32,
    pub(crate) nanoseconds: u32,
}

impl Time {
    /// A time of a stamp.
    pub(crate) fn new(nanoseconds: i64) -> Self {
        const SECOND: i64 = 1_000_000_000;
        // The index stores the lower 32 bits as well.
        Self {
            seconds: nanoseconds.div_euclid(SECOND) as u32,
            nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
        }
    }
}

impl Index {
    /// Reads the index. Before the first file is added there is none, which is an empty one.
    pub(crate) fn read(repository: &Repository, has_ended: HasEnded<'_>) -> Result<Self, Problem> {
        let name = ".git/index";
        let file = match repository.git_dir().open_file(b"index") {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Self::default()),
            Err(error) => return Err(Problem::unreadable(name, error)),
        };
        let stamp = Stamp::of_file(&file).map_err(|error| Problem::unreadable(name, error))?;
        let content = read_all(&file, name, LIMIT)?;
        let mut index = Self::parse(&content, repository.config.hash, has_ended)?;
        index.written = Time::new(stamp.modified);
        Ok(index)
    }

    pub(crate) fn parse(content: &[u8], hash: HashKind, has_ended: HasEnded<'_>) -> Result<Self, Problem> {
        let body_length = content.len().checked_sub(hash.length()).ok_or_else(|| damaged("it is cut off"))?;
        let (body, checksum) = content.split_at(body_length);
        // With `index.skipHash` git writes zeros instead of a checksum.
        if checksum.iter().any(|byte| *byte != 0) {
            let mut hasher = hash.hasher();
            hasher.update(body);
            if hasher.finish().as_bytes() != checksum {
                return Err(damaged("its checksum does not match"));
            }
        }
        let mut reader = IndexReader { rest: body };
        if reader.take(4)? != b"DIRC" {
            return Err(damaged("it does not begin as an index does"));
        }
        let version = reader.number()?;
        if !(2..=4).contains(&version) {
            return Err(Problem::unsupported(format!("version {version} of the index")));
        }
        let count = reader.number()? as usize;
        let mut index = Self::default();
        // A crafted count must not decide how much memory is reserved.
        index.entries.reserve(count.min(body.len() / (42 + hash.length())));
        for number in 0..count {
            if number.is_multiple_of(4096) {
                go_on(has_ended)?;
            }
            index.read_entry(&mut reader, version, hash)?;
        }
        index.read_extensions(&mut reader, hash)?;
        Ok(index)
    }

    pub(crate) fn path(&self, entry: &Entry) -> &[u8] {
        &self.paths[entry.path.clone()]
    }

    /// The entries below the root, whose path is empty or ends with a slash.
    pub(crate) fn beneath(&self, prefix: &[u8]) -> Range<usize> {
        self.range_of(0..self.entries.len(), 0, prefix)
    }

    /// The entry of a path, in any stage.
    pub(crate) fn find(&self, path: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| self.path(entry).cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// Which of the entries in `range`, all of which begin with the same `depth` bytes, go on with `start`.
    pub(crate) fn range_of(&self, range: Range<usize>, depth: usize, start: &[u8]) -> Range<usize> {
        let rest = |entry: &Entry| self.path(entry).get(depth..).unwrap_or_default();
        let entries = &self.entries[range.clone()];
        let first = entries.partition_point(|entry| rest(entry) < start);
        let count = entries[first..].partition_point(|entry| rest(entry).starts_with(start));
        range.start + first..range.start + first + count
    }

    fn read_entry(
        &mut self,
        reader: &mut IndexReader<'_>,
        version: u32,
        hash: HashKind,
    ) -> Result<(), Problem> {
        const ASSUMED_UNCHANGED: u16 = 0x8000;
        const EXTENDED: u16 = 0x4000;
        const SKIPPED: u16 = 0x4000;
        const INTENDED: u16 = 0x2000;
        let before = reader.rest.len();
        let changed = reader.time()?;
        let modified = reader.time()?;
        // The device and the inode.
        reader.take(8)?;
        let mode = reader.number()?;
        // The owner and the group.
        reader.take(8)?;
        let size = reader.number()?;
        let id = ObjectId::from_start(reader.take(hash.length())?, hash).ok_or_else(cut_off)?;
        let flags = reader.short()?;
        let more = if version >= 3 && flags & EXTENDED != 0 { reader.short()? } else { 0 };
        let path = self.read_path(reader, version)?;
        if version < 4 {
            // One zero ends the path, and up to seven more make the length a multiple of eight.
            let length = before - reader.rest.len();
            reader.take(length.next_multiple_of(8) - length)?;
        }
        if mode == mode::FOLDER {
            return Err(sparse());
        }
        let is_known = [mode::FILE, mode::EXECUTABLE, mode::LINK, mode::SUBMODULE].contains(&mode);
        if !is_known {
            return Err(damaged(format!("an entry has the mode {mode:o}")));
        }
        let entry = Entry {
            path,
            mode,
            id,
            modified,
            changed,
            size,
            stage: u8::try_from(flags >> 12 & 3).unwrap_or_default(),
            is_assumed_unchanged: flags & ASSUMED_UNCHANGED != 0,
            is_skipped: more & SKIPPED != 0,
            is_intended: more & INTENDED != 0,
        };
        if self.path(&entry).is_empty() {
            // An empty path stands for an entry of the shared index.
            return Err(split());
        }
        if let Some(last) = self.entries.last()
            && (self.path(last), last.stage) >= (self.path(&entry), entry.stage)
        {
            return Err(damaged("its entries are not in order"));
        }
        if !is_plain(self.path(&entry)) {
            // The path is not shown: it may lie outside of the root.
            return Err(damaged("it holds a path that leads out of the work tree, or into a `.git`"));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Reads a path, which in version 4 begins as the one before it.
    fn read_path(&mut self, reader: &mut IndexReader<'_>, version: u32) -> Result<Range<usize>, Problem> {
        let last = self.entries.last().map_or(0..0, |last| last.path.clone());
        let kept = if version < 4 {
            0
        } else {
            let dropped = reader.offset()?;
            let kept = usize::try_from(dropped).ok().and_then(|dropped| last.len().checked_sub(dropped));
            kept.ok_or_else(|| damaged("a path is shorter than what is cut off from it"))?
        };
        let end = memchr::memchr(0, reader.rest).ok_or_else(cut_off)?;
        let added = reader.take(end)?;
        reader.take(1)?;
        if kept + added.len() > LONGEST_PATH {
            return Err(damaged("a path is longer than paths can be"));
        }
        let start = self.paths.len();
        if start > NAMES_LIMIT {
            return Err(Problem::too_many_bytes("all paths in the index", NAMES_LIMIT as u64));
        }
        self.paths.extend_from_within(last.start..last.start + kept);
        self.paths.extend_from_slice(added);
        Ok(start..self.paths.len())
    }

    fn read_extensions(&mut self, reader: &mut IndexReader<'_>, hash: HashKind) -> Result<(), Problem> {
        while !reader.rest.is_empty() {
            let name = reader.take(4)?;
            let length = reader.number()? as usize;
            let content = reader.take(length)?;
            match name {
                // This extension only saves time, so one that cannot be parsed is ignored.
                b"TREE" => self.trees = CachedTrees::parse(content, hash),
                b"link" => return Err(split()),
                b"sdir" => return Err(sparse()),
                [first, ..] if first.is_ascii_uppercase() => {}
                other => {
                    return Err(Problem::unsupported(format!("the index extension `{}`", name_of(other))));
                }
            }
        }
        Ok(())
    }
}

/// Whether a path leads to something in the work tree, and to nothing of git's own.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|name| !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git"))
}

fn damaged(reason: impl Into<String>) -> Problem {
    Problem::damaged("the index", reason)
}

fn split() -> Problem {
    Problem::Unsupported {
        what: "a split index".into(),
        remedy: Some("`git update-index --no-split-index` changes it"),
    }
}

fn sparse() -> Problem {
    Problem::Unsupported {
        what: "a sparse index".into(),
        remedy: Some("`git sparse-checkout reapply --no-sparse-index` changes it"),
    }
}

fn cut_off() -> Problem {
    damaged("it is cut off")
}

struct IndexReader<'a> {
    rest: &'a [u8],
}

impl<'a> IndexReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], Problem> {
        self.take(COUNT)?.try_into().map_err(|_| cut_off())
    }

    fn number(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_be_bytes)
    }

    fn short(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_be_bytes)
    }

    fn time(&mut self) -> Result<Time, Problem> {
        Ok(Time { seconds: self.number()?, nanoseconds: self.number()? })
    }

    fn offset(&mut self) -> Result<u64, Problem> {
        let (value, length) = crate::pack::parse_offset(self.rest).ok_or_else(cut_off)?;
        self.take(length)?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(body: &[u8]) -> String {
        let content = [body, &[0; 20]].concat();
        Index::parse(&content, HashKind::Sha1, &|| false).err().expect("a problem").to_string()
    }

    fn entry(path: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes.extend(mode::FILE.to_be_bytes());
        bytes.extend([0; 12 + 20 + 2]);
        bytes.extend(path);
        let length = bytes.len() + 1;
        bytes.resize(length.next_multiple_of(8), 0);
        bytes
    }

    fn index(count: u32, entries: &[&[u8]]) -> Vec<u8> {
        let entries: Vec<u8> = entries.iter().flat_map(|path| entry(path)).collect();
        [b"DIRC", &2_u32.to_be_bytes()[..], &count.to_be_bytes(), &entries].concat()
    }

    /// Version 4, in which each path begins as the one before it: few bytes that stand for many.
    fn repeated(count: u32, length: usize) -> Vec<u8> {
        let mut bytes = [b"DIRC", &4_u32.to_be_bytes()[..], &count.to_be_bytes()].concat();
        for number in 0..count {
            bytes.extend([0; 24]);
            bytes.extend(mode::FILE.to_be_bytes());
            bytes.extend([0; 12 + 20 + 2 + 1]);
            bytes.extend(std::iter::repeat_n(b'a', if number == 0 { length } else { 1 }));
            bytes.push(0);
        }
        bytes
    }

    #[test]
    fn what_is_not_an_index_is_reported() {
        assert!(problem(b"").contains("cut off"));
        assert!(problem(b"DIRX").contains("does not begin"));
        assert!(problem(b"DIRC\0\0\0\x05").contains("version 5"));
        assert!(problem(&index(u32::MAX, &[b"a"])).contains("cut off"));
        assert!(problem(&index(2, &[b"b", b"a"])).contains("order"));
        assert!(problem(&index(1, &[b"../a"])).contains("out of the work tree"));
        assert!(problem(&index(1, &[b"a/.GIT/b"])).contains("into a `.git`"));
        assert!(problem(&index(1, &[&[b'a'; 5000]])).contains("longer"));
        assert!(problem(&repeated(2, 1 << 20)).contains("longer"));
        assert!(problem(&[&index(1, &[b"a"])[..], b"link\0\0\0\0"].concat()).contains("split"));
        assert!(problem(&[&index(1, &[b"a"])[..], b"sdir\0\0\0\0"].concat()).contains("sparse"));
        assert!(problem(&[&index(1, &[b"a"])[..], b"TREE\xff\0\0\0"].concat()).contains("cut off"));
    }

    #[test]
    fn entries_below_a_folder_are_found_by_how_they_go_on() {
        let content = [&index(5, &[b"a-b", b"a/b", b"a/c/d", b"a/c/e", b"b"])[..], &[0; 20]].concat();
        let index = Index::parse(&content, HashKind::Sha1, &|| false).expect("an index");
        assert_eq!(index.range_of(0..5, 0, b"a/"), 1..4);
        assert_eq!(index.range_of(1..4, 2, b"c/"), 2..4);
        assert_eq!(index.range_of(1..4, 2, b"x/"), 4..4);
    }
}

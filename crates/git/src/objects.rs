//! The objects of a repository, as far as they are needed: commits and trees.

use std::fs::File;

use pintle_root::open_file_in;
use rustix::{fs::Dir, io::Errno};

use crate::{
    directory::joined,
    hash::ObjectId,
    index::mode,
    pack::{Pack, inflate},
    problem::Problem,
    repository::Repository,
};

/// The largest object that is read.
pub(crate) const OBJECT_LIMIT: usize = 64 << 20;
/// The most packs that are opened. Each of them takes two file descriptors.
const MOST_PACKS: usize = 200;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Tree,
    /// A blob or a tag, which is never read.
    Other,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Other => "other",
        }
    }
}

/// The objects of a repository.
pub(crate) struct Objects<'a> {
    repository: &'a Repository,
    packs: Option<Vec<Pack>>,
}

impl<'a> Objects<'a> {
    pub(crate) fn new(repository: &'a Repository) -> Self {
        Self { repository, packs: None }
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&mut self, commit: &ObjectId) -> Result<ObjectId, Problem> {
        let content = self.read(commit, Kind::Commit)?;
        let line = content.strip_prefix(b"tree ").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
        line.and_then(|digits| ObjectId::from_digits(digits, self.repository.config.hash))
            .ok_or_else(|| Problem::damaged(format!("the commit {commit}"), "it names no tree"))
    }

    /// What is in a tree, in its order.
    pub(crate) fn tree(&mut self, id: &ObjectId) -> Result<Vec<TreeEntry>, Problem> {
        let content = self.read(id, Kind::Tree)?;
        let (mut rest, mut entries) = (&content[..], Vec::<TreeEntry>::new());
        let damaged = |reason: &str| Problem::damaged(format!("the tree {id}"), reason);
        while !rest.is_empty() {
            let entry =
                TreeEntry::parse(&mut rest, self.repository).ok_or_else(|| damaged("it is cut off"))?;
            if entries.last().is_some_and(|last| last.key >= entry.key) {
                return Err(damaged("it is not in order"));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn read(&mut self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, Problem> {
        let mut found = self.find(id)?;
        if found.is_none() {
            // Meanwhile git may have packed loose objects, or replaced a pack by another.
            self.packs = None;
            found = self.find(id)?;
        }
        let Some((own, content)) = found else { return Err(self.missing(id)) };
        let what = || format!("the object {id}");
        if own != kind {
            return Err(Problem::damaged(what(), format!("it is no {}", kind.name())));
        }
        if self.repository.config.hash.name_of(kind.name(), &content) != *id {
            return Err(Problem::damaged(what(), "its content does not match its name"));
        }
        Ok(content)
    }

    /// Why an object is not there. Alternates are not followed: a file that comes with the repository names them, and
    /// nothing at the other end says that this repository may have its objects.
    fn missing(&self, id: &ObjectId) -> Problem {
        let alternates = self.repository.common_dir().open_file(b"objects/info/alternates");
        if alternates.is_ok_and(|file| file.metadata().is_ok_and(|metadata| metadata.len() > 0)) {
            return Problem::Unsupported {
                what: "alternates (objects that are kept in another repository)".into(),
                remedy: Some(
                    "`git repack -a -d` copies the objects, after which .git/objects/info/alternates can be removed",
                ),
            };
        }
        Problem::MissingObject(id.to_string())
    }

    fn find(&mut self, id: &ObjectId) -> Result<Option<(Kind, Vec<u8>)>, Problem> {
        if let Some(object) = self.read_loose(id)? {
            return Ok(Some(object));
        }
        if self.packs.is_none() {
            self.packs = Some(open_packs(self.repository)?);
        }
        for pack in self.packs.iter().flatten() {
            if let Some(offset) = pack.find(id)? {
                return pack.read(offset).map(Some);
            }
        }
        Ok(None)
    }

    fn read_loose(&self, id: &ObjectId) -> Result<Option<(Kind, Vec<u8>)>, Problem> {
        let digits = id.to_string();
        let directory = self.repository.common_dir();
        let path = format!("objects/{}/{}", &digits[..2], &digits[2..]).into_bytes();
        // Compressed bytes are hardly ever longer than their content.
        let limit = OBJECT_LIMIT as u64 * 2;
        let Some(packed) = directory.read(&path, limit)? else { return Ok(None) };
        let damaged = || Problem::damaged(directory.name_of(&path), "it cannot be unpacked");
        let size = loose_size(&packed).ok_or_else(damaged)?;
        if size.content > OBJECT_LIMIT {
            return Err(Problem::too_many_bytes(format!("the object {id}"), OBJECT_LIMIT as u64));
        }
        let mut object = inflate(&packed[..], size.header + size.content).ok_or_else(damaged)?;
        let kind = match &object[..size.header] {
            header if header.starts_with(b"commit ") => Kind::Commit,
            header if header.starts_with(b"tree ") => Kind::Tree,
            _ => Kind::Other,
        };
        object.drain(..size.header);
        Ok(Some((kind, object)))
    }
}

/// The sizes that the header of a loose object gives.
struct LooseSize {
    header: usize,
    content: usize,
}

fn loose_size(packed: &[u8]) -> Option<LooseSize> {
    use std::io::Read;
    let mut start = Vec::new();
    // An object that ends within these bytes is complete; one that does not is cut off here.
    flate2::read::ZlibDecoder::new(packed).take(64).read_to_end(&mut start).ok()?;
    let end = memchr::memchr(0, &start)?;
    let space = memchr::memchr(b' ', &start[..end])?;
    let content = std::str::from_utf8(&start[space + 1..end]).ok()?.parse().ok()?;
    Some(LooseSize { header: end + 1, content })
}

fn open_packs(repository: &Repository) -> Result<Vec<Pack>, Problem> {
    let (directory, path) = (repository.common_dir(), &b"objects/pack"[..]);
    let unreadable = |path: &[u8], error: Errno| Problem::unreadable(directory.name_of(path), error);
    let folder = match directory.open_folder(path) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(path, error)),
    };
    let entries = Dir::read_from(&folder).map_err(|error| unreadable(path, error))?;
    let mut packs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(path, error))?;
        let Some(stem) = entry.file_name().to_bytes().strip_suffix(b".idx") else { continue };
        let open = |ending: &[u8]| -> Result<Option<File>, Problem> {
            let name = [stem, ending].concat();
            match open_file_in(&folder, &name) {
                Ok(file) => Ok(Some(file)),
                // It may have been removed since, or its other half is not yet there.
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(unreadable(&joined(path, &name), error)),
            }
        };
        let (Some(index), Some(data)) = (open(b".idx")?, open(b".pack")?) else { continue };
        if packs.len() == MOST_PACKS {
            return Err(Problem::TooLarge {
                what: directory.name_of(path),
                limit: MOST_PACKS as u64,
                unit: "packs",
            });
        }
        packs.push(Pack::open(directory.name_of(&joined(path, stem)), index, data, repository.config.hash)?);
    }
    Ok(packs)
}

/// One entry of a tree.
pub(crate) struct TreeEntry {
    /// Its name; that of a folder ends with a slash. So trees and the index are in the same order.
    pub(crate) key: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
}

impl TreeEntry {
    fn parse(rest: &mut &[u8], repository: &Repository) -> Option<Self> {
        let hash = repository.config.hash;
        let space = memchr::memchr(b' ', rest)?;
        let digits = std::str::from_utf8(&rest[..space]).ok()?;
        let written = u32::from_str_radix(digits, 8).ok()?;
        let after = &rest[space + 1..];
        let end = memchr::memchr(0, after)?;
        let name = &after[..end];
        if name.is_empty() || name.contains(&b'/') {
            return None;
        }
        let id = ObjectId::from_start(&after[end + 1..], hash)?;
        *rest = &after[end + 1 + hash.length()..];
        // Old versions of git wrote more of a file's mode than they do now.
        let mode = match written & 0o170_000 {
            0o040_000 => mode::FOLDER,
            0o120_000 => mode::LINK,
            0o160_000 => mode::SUBMODULE,
            _ if written & 0o100 != 0 => mode::EXECUTABLE,
            _ => mode::FILE,
        };
        let slash: &[u8] = if mode == mode::FOLDER { b"/" } else { b"" };
        Some(Self { key: [name, slash].concat(), mode, id })
    }
}

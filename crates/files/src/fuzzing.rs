//! What must hold of edits, globs and addresses whatever bytes come: the properties that the fuzz targets assert.

mod model;

use std::{cell::Cell, io};

use pintle_contract::WorkspacePath;
use pintle_tool::decode_address;

use crate::{
    Globs, Hash, Source, StoreError, files,
    store::spliced,
    text::{self, Change, Planned, Replace},
};
use model::Lines;

/// Bytes that come in pieces, as those of a large file do.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
}

impl Source for Pieces<'_> {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest =
            usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(self.piece);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Edits a file and compares what comes out with a plain list of lines. The input is four bytes (the edit, the first
/// line, the line behind the last, how much of the file is read at a time), then the file, what is to be replaced or
/// the anchor, and the new text, with a byte `ff` between them.
pub fn edits(bytes: &[u8]) {
    let Some(([kind, start, end, piece], rest)) = bytes.split_first_chunk::<4>() else { return };
    let mut parts = rest.splitn(3, |byte| *byte == 0xff);
    let file = parts.next().unwrap_or_default();
    let texts = [parts.next().unwrap_or_default(), parts.next().unwrap_or_default()].map(std::str::from_utf8);
    let [Ok(old), Ok(new)] = texts else { return };
    let lines = [*start, *end].map(|line| i64::from(line.cast_signed()));
    let source = Pieces { bytes: file, piece: usize::from(*piece) + 1 };
    let asked = Cell::new(0_u64);
    let has_ended = || {
        asked.set(asked.get() + 1);
        // Four walks are what an edit takes that does not fit: counting, surveying, and explaining twice.
        assert!(asked.get() < 16 + 8 * file.len() as u64, "the walk over the file does not end");
        false
    };
    let model = std::str::from_utf8(file).ok().map(Lines::new);
    // The upper bits say which arguments are left out, and how the text is looked for.
    let (all, within) = (kind & 0x10 != 0, kind & 0x20 != 0);
    let (has_lines, has_old) = (kind & 0x40 == 0, kind & 0x80 == 0);
    let (change, expected) = match kind % 4 {
        0 => {
            let old = has_old.then_some(old);
            let range = if has_lines { lines } else { [1, 0] };
            if !has_lines && old.is_none() || (all || within) && old.is_none_or(str::is_empty) {
                return;
            }
            let expected = model.and_then(|model| match old {
                Some(old) if within => model.replace_within(range, old, new, all),
                Some(old) if all => model.replace_all(range, old, new),
                Some(old) => model.replace(range, old, new),
                None => model.replace_range(range, new),
            });
            let (old, new) = (old.map(str::to_owned), new.to_owned());
            (Change::Replace(Replace { lines: has_lines.then_some(lines), old, new, all, within }), expected)
        }
        1 => {
            let anchor = has_old.then_some(old);
            let expected = model.and_then(|model| model.insert(lines[0], anchor, new));
            let (anchor, content) = (anchor.map(str::to_owned), new.to_owned());
            (Change::Insert { line: lines[0], anchor, content }, expected)
        }
        2 => (Change::Append { content: new.to_owned() }, model.map(|model| model.append(new))),
        _ => return assert_read(&source, lines, model, &has_ended),
    };
    let edit = text::plan(&source, &[change], &Hash::of(file).into(), &mut text::Used::default(), &has_ended);
    assert_edit(file, edit, expected);
}

fn assert_edit(file: &[u8], edit: Result<Planned, StoreError>, expected: Option<Vec<u8>>) {
    let edit = edit.expect("bytes at hand can be read");
    assert_eq!(edit.found, Hash::of(file));
    match edit.change {
        Ok(edit) => {
            let bytes = spliced(file, &edit.splices);
            assert_eq!(
                Some(String::from_utf8_lossy(&bytes)),
                expected.as_deref().map(String::from_utf8_lossy)
            );
            let text = std::str::from_utf8(&bytes).expect("an edit leaves text behind");
            assert_eq!(edit.total_lines, Lines::new(text).count() as u64, "{text:?}");
        }
        Err(problems) => {
            let problem = problems.first().expect("a problem");
            assert!(expected.is_none(), "refused: {}", problem.fault.message);
            assert!(!problem.fault.message.is_empty());
        }
    }
}

fn assert_read(source: &Pieces<'_>, lines: [i64; 2], model: Option<Lines<'_>>, has_ended: &dyn Fn() -> bool) {
    let read = text::read(source, lines, has_ended).ok();
    let expected = model.and_then(|model| model.read(lines));
    assert_eq!(read.as_ref().map(|read| read.content.as_str()), expected.as_deref());
    if let Some(read) = read {
        assert_eq!(read.hash, Hash::of(source.bytes));
    }
}

/// Reads a glob, the folder that it counts from and a path, one a line. What the glob admits lies where it says, and
/// the glob as it counts from the root means the same in any folder.
pub fn glob(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (glob, folder, path) = (next(), next(), next());
    let (Ok(folder), Ok(path)) = (WorkspacePath::parse(folder), WorkspacePath::parse(path)) else { return };
    let is_folder = |path: &WorkspacePath| path.as_str().ends_with('d');
    let Ok(globs) = Globs::new(glob, &folder, is_folder) else { return };
    let admits = globs.admit_file(path.as_str());
    if !path.is_root() {
        let mut above = path.split_last().map(|(folder, _)| folder);
        // A walk enters every folder on the way to a file that it is to find, unless the glob leaves that folder out.
        while let Some(folder) = above.filter(|folder| !folder.is_root()) {
            let is_left_out = glob.starts_with('!') || !admits;
            assert!(is_left_out || globs.admit_content(folder.as_str()), "{glob:?} {folder} {path}");
            above = folder.split_last().map(|(folder, _)| folder);
        }
    }
    // What begins with `#` is a remark at the root, and a glob elsewhere.
    if glob.trim_start_matches('!').trim_start_matches("./").starts_with('#') {
        return;
    }
    let other = WorkspacePath::parse("some/other").expect("a path");
    let again = Globs::new(globs.from_root(), &other, is_folder).expect("what was a glob stays one");
    assert_eq!(again.from_root(), globs.from_root());
}

/// Reads the path in an address such as `list:///a%20b`, and a hash. A path that is found is one that could have been
/// written plainly; a hash is read as it is printed.
pub fn address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let path_of = |address: &str| decode_address(address).and_then(|decoded| files::path(&decoded)).ok();
    if let Some(path) = path_of(text) {
        assert_eq!(files::path(&path.to_string()).ok().as_ref(), Some(&path));
        let encoded: String = path.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(path_of(&encoded), Some(path));
    }
    if let Some(hash) = Hash::parse(text) {
        assert_eq!(hash.to_string(), text.to_ascii_lowercase());
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("edits", edits);
        seeds::each_seed("glob", glob);
        seeds::each_seed("address", address);
    }
}

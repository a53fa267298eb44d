//! The mark (an extended attribute) that proves that a temporary file is Pintle's own.
//!
//! A writer that is killed leaves a file under the name of temporary files. That may be what the writer was writing, the
//! file that it had just replaced, or, if another program had saved in that instant, that program's save. Only the
//! first two may be deleted, and the dead writer cannot say which one it is. So a writer records it on the file that it
//! writes, in an attribute: the number of that file's inode, which a copy of the file does not have, and the size and hash of the
//! file that it is to replace. The attribute is removed when the file has its final name.

use std::{
    fs::{File, Metadata},
    os::unix::fs::MetadataExt,
};

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};

use crate::hash::Hash;

/// The name of the attribute. It is short so that the attribute fits into the inode.
pub(super) const ATTRIBUTE: &str = "user.pintle";

/// The file that a temporary file is going to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) size: u64,
    pub(super) hash: Hash,
}

/// Marks a file as Pintle's own. On file systems without extended attributes there is no mark, and what a killed writer
/// leaves there counts as foreign.
pub(super) fn set(file: &File, own: &Metadata, replaced: Option<Replaced>) {
    let _ = fsetxattr(file, ATTRIBUTE, &encode(own.ino(), replaced), XattrFlags::empty());
}

/// Removes the mark.
pub(super) fn clear(file: &File) {
    let _ = fremovexattr(file, ATTRIBUTE);
}

/// Reads the mark of a file; none if the attribute was copied from another file.
pub(super) fn get(file: &File) -> Option<Option<Replaced>> {
    let mut buffer = [0; LENGTH + 1];
    let count = fgetxattr(file, ATTRIBUTE, &mut buffer[..]).ok()?;
    let (inode, replaced) = decode(&buffer[..count])?;
    (inode == file.metadata().ok()?.ino()).then_some(replaced)
}

/// The length of a mark: inode number, size and hash.
const LENGTH: usize = 8 + 8 + 32;

fn encode(inode: u64, replaced: Option<Replaced>) -> Vec<u8> {
    let mut bytes = inode.to_le_bytes().to_vec();
    if let Some(Replaced { size, hash }) = replaced {
        bytes.extend(size.to_le_bytes());
        bytes.extend(hash.to_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<(u64, Option<Replaced>)> {
    let (inode, rest) = bytes.split_first_chunk::<8>()?;
    let inode = u64::from_le_bytes(*inode);
    if rest.is_empty() {
        return Some((inode, None));
    }
    let (size, hash) = rest.split_first_chunk::<8>()?;
    let (size, hash) = (u64::from_le_bytes(*size), Hash::from_bytes(hash.try_into().ok()?));
    Some((inode, Some(Replaced { size, hash })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is_one() {
        let replaced = Replaced { size: 12, hash: Hash::of(b"old") };
        for mark in [(7, None), (u64::MAX, Some(replaced))] {
            let bytes = encode(mark.0, mark.1);
            assert_eq!(decode(&bytes), Some(mark));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(decode(cut), None);
            assert_eq!(decode(&[&bytes[..], b"x"].concat()), None);
        }
    }

    #[test]
    fn the_mark_of_one_file_is_none_on_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other] =
            ["one", "other"].map(|name| File::create_new(folder.path().join(name)).expect("new"));
        set(&one, &one.metadata().expect("there"), None);
        // Where the file system keeps no attributes there is nothing to show.
        let mut bytes = [0; LENGTH];
        let Ok(count) = fgetxattr(&one, ATTRIBUTE, &mut bytes[..]) else { return };
        assert_eq!(get(&one), Some(None));
        fsetxattr(&other, ATTRIBUTE, &bytes[..count], XattrFlags::empty()).expect("copies");
        assert_eq!(get(&other), None);
        clear(&one);
        assert_eq!(get(&one), None);
    }
}

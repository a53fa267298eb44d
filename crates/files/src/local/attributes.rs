//! Copies a file's access control list and extended attributes to the file that replaces it.

use std::fs::File;

use rustix::{
    fs::{Mode, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io::Errno,
};

use super::mark;
use crate::store::StoreError;

/// The extended attribute that holds the POSIX access control list (ACL).
const ACL: &str = "system.posix_acl_access";

/// Copies the mode and the extended attributes of a file to the new one. An attribute that cannot be copied is skipped,
/// unless that would let others use the new file who could not use the old one.
pub(super) fn copy(from: &File, to: &File, mode: Mode) -> Result<(), StoreError> {
    // The new file may have inherited a default ACL from its folder, which is meant for new files only.
    if names(to).iter().any(|name| name == ACL) {
        fremovexattr(to, ACL)?;
    }
    rustix::fs::fchmod(to, mode)?;
    for name in names(from) {
        let is_access = name == ACL;
        if !is_access && (!name.starts_with("user.") || name == mark::ATTRIBUTE) {
            continue;
        }
        let copied = value(from, &name).and_then(|value| fsetxattr(to, &name, &value, XattrFlags::empty()));
        if is_access {
            copied?;
        }
    }
    Ok(())
}

/// The names of a file's extended attributes; none on file systems without them.
fn names(file: &File) -> Vec<String> {
    let mut buffer = Vec::new();
    let list = sized(&mut buffer, |buffer| flistxattr(file, buffer)).unwrap_or_default();
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

fn value(file: &File, name: &str) -> Result<Vec<u8>, Errno> {
    let mut buffer = Vec::new();
    sized(&mut buffer, |buffer| fgetxattr(file, name, buffer)).map(<[u8]>::to_vec)
}

/// Calls `ask` with growing buffers until the result fits.
fn sized(buffer: &mut Vec<u8>, ask: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<&[u8], Errno> {
    const MOST: usize = 64 << 10;
    buffer.resize(256, 0);
    loop {
        match ask(buffer) {
            Ok(count) => return Ok(&buffer[..count]),
            Err(Errno::RANGE) if buffer.len() < MOST => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

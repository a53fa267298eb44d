//! What says who may use a file, and what people have noted on it.

use std::fs::File;

use rustix::{
    fs::{Mode, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io::Errno,
};

use super::mark;
use crate::store::StoreError;

/// Who may use a file, besides what its mode says.
const ACCESS: &str = "system.posix_acl_access";

/// Gives a new file a mode, and the attributes of another file. What cannot be kept on the new file is left out, unless
/// others could use it then who could not use the old one.
pub(super) fn copy(from: &File, to: &File, mode: Mode) -> Result<(), StoreError> {
    // A folder may say who is to have access to what is made in it. That was meant for new files.
    if names(to).iter().any(|name| name == ACCESS) {
        fremovexattr(to, ACCESS)?;
    }
    rustix::fs::fchmod(to, mode)?;
    for name in names(from) {
        let is_access = name == ACCESS;
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

/// The names of a file's attributes; none where there can be none.
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

/// Asks with a small buffer, and with a larger one as long as that is too small.
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

//! Whether a path lies in a folder, whatever it is called.

use std::path::{Path, PathBuf};

/// Whether a path leads into a folder: by its name once all links are followed, or by a mount. The folder's own path has
/// no links.
pub fn is_within(path: &Path, folder: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    real.starts_with(folder)
        || real.ancestors().any(|above| is_same_folder(above, folder))
        || is_mounted_within(&real, folder)
}

/// Whether two paths are one folder, perhaps by a mount.
#[cfg(unix)]
fn is_same_folder(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|there| (there.dev(), there.ino())).ok();
    identity(one).is_some_and(|known| identity(other) == Some(known))
}

#[cfg(not(unix))]
fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other
}

/// Whether a folder below the other is mounted at a path, or above it.
fn is_mounted_within(path: &Path, folder: &Path) -> bool {
    // Only Linux has this table.
    let Ok(table) = std::fs::read_to_string("/proc/self/mountinfo") else { return false };
    let mounts: Vec<Mount> = table.lines().filter_map(Mount::parse).collect();
    match (on_device(path, &mounts), on_device(folder, &mounts)) {
        (Some((device, path)), Some((other, folder))) => device == other && path.starts_with(folder),
        _ => false,
    }
}

/// Where a path leads: a device, and the path from the top of its file system.
fn on_device<'a>(path: &Path, mounts: &'a [Mount]) -> Option<(&'a str, PathBuf)> {
    // Of several mounts at one point the last is seen.
    let over = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let mount = over.max_by_key(|mount| mount.point.components().count())?;
    Some((&mount.device, mount.top.join(path.strip_prefix(&mount.point).ok()?)))
}

/// A line of the table of mounts.
struct Mount {
    device: String,
    /// What of the file system is mounted.
    top: PathBuf,
    point: PathBuf,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        let (top, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Self { device, top, point })
    }
}

/// A path of the table, in which blanks and backslashes are written as octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let text = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, character)| text.replace(code, character));
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_a_folder_below_is_within_it() {
        let table = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     30 21 8:1 /home/me/root/sub /mnt/my\\040tools rw - ext4 /dev/sda1 rw\n\
                     31 21 8:1 /home/me/other /mnt/other rw - ext4 /dev/sda1 rw\n\
                     32 21 8:2 /home/me/root/sub /mnt/disk rw - ext4 /dev/sda2 rw\n";
        let mounts: Vec<Mount> = table.lines().filter_map(Mount::parse).collect();
        let root = on_device(Path::new("/home/me/root"), &mounts).expect("a mount");
        for (path, expected) in [
            ("/mnt/my tools", true),
            ("/mnt/my tools/deeper", true),
            ("/mnt/other", false),
            ("/mnt/disk", false),
            ("/home/me/tools", false),
            ("/home/me/root/sub", true),
        ] {
            let found = on_device(Path::new(path), &mounts).expect("a mount");
            assert_eq!(found.0 == root.0 && found.1.starts_with(&root.1), expected, "{path}");
        }
    }
}

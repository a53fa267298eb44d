//! Which file systems take the times of their files from the clock of this machine: `statfs`.

use std::{
    fs::File,
    time::{Instant, SystemTime},
};

use rustix::fs::{fstat, fstatfs};

use crate::stamp::Reading;

/// Which file systems take their times from the clock of this machine, asked once for each.
#[derive(Default)]
pub struct Clocks {
    known: Vec<(u64, bool)>,
    trusts_none: bool,
}

impl Clocks {
    /// Takes all files for those of other machines: of them only how long a stamp was seen counts.
    pub fn of_other_machines() -> Self {
        Self { trusts_none: true, ..Self::default() }
    }

    /// The beginning of a reading of an open file.
    pub fn reading(&mut self, file: &File) -> Reading {
        let by_its_clock = self.is_ours(file).then(SystemTime::now);
        Reading { at: Instant::now(), by_its_clock }
    }

    fn is_ours(&mut self, file: &File) -> bool {
        if self.trusts_none {
            return false;
        }
        let Ok(device) = fstat(file).map(|stat| stat.st_dev) else { return false };
        if let Some((_, is_ours)) = self.known.iter().find(|(known, _)| *known == device) {
            return *is_ours;
        }
        let is_ours = fstatfs(file).is_ok_and(|system| OURS.contains(&(system.f_type as u32)));
        self.known.push((device, is_ours));
        is_ours
    }
}

/// The file systems that run in this kernel on storage of its own, by the numbers of `statfs(2)`. Of all others (network
/// and user-space file systems, folders that a virtual machine shares with its host) somebody else may set the times.
const OURS: [u32; 20] = [
    0x0000_4d44, // FAT
    0x0000_482b, // HFS+
    0x0000_3434, // NILFS
    0x0000_9660, // ISO 9660
    0x0000_ef53, // ext2, ext3, ext4
    0x0102_1994, // tmpfs
    0x1501_3346, // UDF
    0x2011_bab0, // exFAT
    0x2fc1_2fc1, // ZFS
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x5846_5342, // XFS
    0x7366_746e, // NTFS
    0x7371_7368, // SquashFS
    0x794c_7630, // overlayfs
    0x8584_58f6, // ramfs
    0x9123_683e, // Btrfs
    0xca45_1a4e, // bcachefs
    0xe0f5_e1e2, // EROFS
    0xf2f5_2010, // F2FS
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_asked_once_whose_clock_it_has() {
        let file = tempfile::tempfile().expect("a file");
        let mut clocks = Clocks::default();
        let first = clocks.reading(&file).by_its_clock.is_some();
        assert_eq!(clocks.reading(&file).by_its_clock.is_some(), first);
        assert_eq!(clocks.known.len(), 1);
    }
}

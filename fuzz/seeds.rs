//! Runs a property over the seeds of its fuzz target, without a fuzzer. The unit tests of the crates that have such
//! properties include this file, so that no target can stop compiling, or fail on its own seeds, unseen.

use std::{fs, path::Path};

/// How many prefixes and how many changed copies of a seed are tried besides the seed itself.
const VARIANTS: usize = 48;

/// Gives the property each file in `fuzz/seeds/TARGET`, then prefixes of it and copies with one byte changed.
pub(crate) fn each_seed(target: &str, property: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.expect("an entry").path();
        println!("{}", path.display());
        let seed = fs::read(&path).expect("a readable seed");
        property(&seed);
        let step = seed.len().div_ceil(VARIANTS).max(1);
        for position in (0..seed.len()).step_by(step) {
            property(&seed[..position]);
            let mut changed = seed.clone();
            changed[position] ^= [0x01, 0x20, 0x80, 0xff][position / step % 4];
            property(&changed);
        }
        count += 1;
    }
    assert!(count > 0, "{} holds no seeds", folder.display());
}

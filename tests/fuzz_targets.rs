//! The fuzz targets in `fuzz/`: each list of targets contains all of them.

use std::{collections::BTreeSet, fs, path::Path};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The names in a folder, without this ending.
fn names(folder: &str, ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
}

#[test]
fn every_fuzz_target_is_built_has_seeds_and_runs_over_them_in_the_tests_of_its_crate() {
    let targets = names("fuzz/fuzz_targets", ".rs");
    assert!(!targets.is_empty());
    assert_eq!(targets, names("fuzz/seeds", ""), "folders of seeds");
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
    let built = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
    assert_eq!(targets, built.map(str::to_owned).collect(), "programs in fuzz/Cargo.toml");
    let crates = names("crates", "");
    let properties = crates.iter().map(|name| root().join("crates").join(name).join("src/fuzzing.rs"));
    let tested: String = properties.filter_map(|file| fs::read_to_string(file).ok()).collect();
    for target in &targets {
        assert!(
            tested.contains(&format!("each_seed(\"{target}\", ")),
            "no unit test runs {target} over its seeds"
        );
    }
    let unknown: Vec<_> = names("fuzz/dictionaries", ".dict").difference(&targets).cloned().collect();
    assert!(unknown.is_empty(), "dictionaries of no target: {unknown:?}");
}

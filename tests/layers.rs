//! The layers of ARCHITECTURE.md: a crate depends only on crates below it, and none needs a newer compiler than promised.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

/// The crates from top to bottom. Crates on one line do not depend on each other.
const LAYERS: &[&[&str]] = &[
    &["pintle", "pintle-bench"],
    &["pintle-fixtures"],
    &["pintle-wire"],
    &["pintle-engine"],
    &[
        "pintle-files",
        "pintle-search",
        "pintle-assets",
        "pintle-commands",
        "pintle-workspace",
        "pintle-client",
    ],
    &["pintle-ranked", "pintle-symbols", "pintle-process", "pintle-git", "pintle-positions", "pintle-packs"],
    &["pintle-root", "pintle-tool", "pintle-rpc", "pintle-auth", "pintle-surface"],
    &["pintle-schema"],
    &["pintle-contract"],
];

/// The output of `cargo metadata` with these arguments.
fn metadata(arguments: &[&str]) -> Value {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(arguments)
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&output.stdout).expect("metadata")
}

/// The dependencies within the workspace, of every kind: for building, for tests and for build scripts.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let names: Vec<_> = packages.iter().map(name).collect();
    let own = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        dependencies.iter().map(name).filter(|dependency| names.contains(dependency)).collect()
    };
    packages.iter().map(|package| (name(package), own(package))).collect()
}

fn layer(name: &str) -> usize {
    let layer = LAYERS.iter().position(|layer| layer.contains(&name));
    layer.unwrap_or_else(|| panic!("{name} has no layer: add it to the list here and to ARCHITECTURE.md"))
}

#[test]
fn a_crate_depends_only_on_crates_below_it() {
    let dependencies = dependencies();
    assert_eq!(dependencies.len(), LAYERS.iter().map(|layer| layer.len()).sum::<usize>(), "{dependencies:?}");
    for (name, below) in &dependencies {
        for dependency in below {
            assert!(layer(dependency) > layer(name), "{name} depends on {dependency}, which is not below it");
        }
    }
}

#[test]
fn what_a_toolset_implements_needs_no_metrics_and_no_validator() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    for name in ["pintle-tool", "pintle-rpc", "pintle-contract"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "-p",
                name,
                "--manifest-path",
            ])
            .arg(&manifest)
            .output()
            .expect("cargo runs");
        let tree = String::from_utf8(output.stdout).expect("text");
        assert!(tree.starts_with(name), "{tree}");
        for unwanted in ["prometheus ", "jsonschema ", "rmcp ", "axum "] {
            assert!(!tree.lines().any(|line| line.starts_with(unwanted)), "{name} needs {unwanted}");
        }
    }
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_the_oldest_that_is_supported() {
    let version =
        |text: &str| text.split('.').map(|part| part.parse::<u64>().expect("a number")).collect::<Vec<_>>();
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let packages = metadata["packages"].as_array().expect("packages");
    let own = packages.iter().find(|package| package["name"] == "pintle").expect("pintle");
    let promised = own["rust_version"].as_str().expect("a version");
    for package in packages {
        let Some(needed) = package["rust_version"].as_str() else { continue };
        let mut promised = version(promised);
        promised.resize(3, 0);
        assert!(version(needed) <= promised, "{} needs Rust {needed}", package["name"]);
    }
}

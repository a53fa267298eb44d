//! Tells the binary which commit it was built from, and how it is linked.

use std::{env, path::Path, process::Command};

fn main() {
    link_at_a_fixed_place();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=PINTLE_COMMIT={commit}");
    println!("cargo:rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit and every checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo:rerun-if-changed={log}");
    }
}

/// A program that may lie anywhere has 44,000 addresses to correct before it starts, which takes longer than a search
/// (docs/design/search.md has the figures). Its libraries, heap and stacks still lie anywhere.
fn link_at_a_fixed_place() {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

//! Tells the binary which commit it was built from, and how it is linked.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        link_at_a_fixed_place();
        if env::var_os("HOST") == env::var_os("TARGET") {
            link_the_unwinder();
        }
    }
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
    println!("cargo:rustc-link-arg-bins=-no-pie");
}

/// The library that unwinds after a panic takes as long to load as a search; most of that, it asks what the processor
/// is. The same code can be a part of the program: where the compiler has it, its name stands for that.
fn link_the_unwinder() {
    println!("cargo:rerun-if-env-changed=CC");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let Ok(output) = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output() else { return };
    let archive = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if archive.is_absolute() && archive.exists() {
        let script = format!("INPUT(\"{}\")\n", archive.display());
        if fs::write(out.join("libgcc_s.so"), script).is_ok() {
            println!("cargo:rustc-link-search=native={}", out.display());
        }
    }
}

//! What the README shows is what happens.

use std::{path::Path, process::Command};

use crate::support::run;

#[test]
fn the_transcripts_of_the_readme_are_true() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(project.join("README.md")).expect("the README");
    let blocks: Vec<&str> =
        readme.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "the README shows nothing");
    let script: String = blocks.concat();
    let commands: Vec<&str> = script.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let expected: String =
        script.lines().filter(|line| !line.starts_with("$ ")).map(|line| format!("{line}\n")).collect();
    let folder = Path::new(env!("CARGO_BIN_EXE_pintle")).parent().expect("a folder");
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let scratch = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", path.expect("a path")).current_dir(project);
    shell.env("MCP_READY_FILE", scratch.path().join("ready"));
    let (_, output, errors) = run(shell.arg("-c").arg(format!("exec 2>&1\n{}", commands.join("\n"))), b"");
    // Standard output and standard error arrive in no certain order.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&output), sorted(&expected), "{errors}");
}

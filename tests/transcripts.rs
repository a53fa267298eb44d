//! Transcripts: `> ` is a line that is sent, `< ` is the expected reply, `# ` is a comment.
//!
//! `UPDATE_GOLDEN=1` rewrites the replies. Review the difference afterwards.

use std::fs;

use crate::support::{Setup, golden};

fn check(name: &str, setup: Setup) {
    let path = golden().join(name);
    let text = fs::read_to_string(&path).expect("the transcript");
    let mut server = setup.arg("--deterministic").arg("--log-level=off").start();
    let mut found = String::new();
    let mut sent = 0;
    for line in text.lines() {
        if let Some(request) = line.strip_prefix("> ") {
            server.write(format!("{request}\n").as_bytes());
            found.push_str(&format!("{line}\n< {}\n", server.line()));
            sent += 1;
        } else if !line.starts_with("< ") {
            found.push_str(&format!("{line}\n"));
        }
    }
    server.finish();
    assert!(sent > 0, "{name} sends nothing");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &found).expect("writes");
    }
    assert_eq!(found, fs::read_to_string(&path).expect("text"), "{name}; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn schemas_are_listed_and_returned() {
    check("schemas.transcript", Setup::assets());
}

#[test]
fn examples_are_listed_and_returned_and_never_from_outside() {
    check("examples.transcript", Setup::assets());
}

#[test]
fn assets_are_validated() {
    check("validate_asset.transcript", Setup::assets());
}

#[test]
fn assets_are_diffed() {
    check("diff_assets.transcript", Setup::assets());
}

#[test]
fn files_are_created_edited_moved_and_removed() {
    check("files.transcript", Setup::new());
}

#[test]
fn publishing_without_a_backend_is_unsupported() {
    check("populate_backend.transcript", Setup::assets());
}

#[test]
fn without_folders_there_is_nothing_to_list() {
    check("no_folders.transcript", Setup::new());
}

#[test]
fn test_tools_do_what_they_say() {
    check("test_tools.transcript", Setup::fixtures());
}

#[test]
fn refusals_say_what_to_do() {
    check("refusals.transcript", Setup::assets().arg("--fixtures"));
}

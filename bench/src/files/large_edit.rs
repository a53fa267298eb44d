//! Replacing one line of a large file, against two digests, a copy and a sync of the copy.
//!
//! That is the minimal work of an edit: the old hash is checked, a new file is written, its hash is returned, and it is on
//! disk (fsync) when the reply comes.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use super::{
    in_turn,
    large_file::{LargeFile, line},
    large_read::digest,
    shown_milliseconds, timed,
    workspace::{self, Workspace},
};
use crate::report::{Bar, Report};

pub fn run(report: &mut Report, workspace: &Workspace, file: &LargeFile, quick: bool) {
    let name =
        format!("one line of {} MiB replaced, against two digests, cp and sync of the copy", file.mebibytes);
    let Some(mut hash) = digest(&file.path) else {
        report.leave_out(&name, "there is no openssl");
        return;
    };
    let (server, mut client) = workspace.serve(&[]);
    workspace::call(&mut client, "file.list", &json!({}));
    let before = server.peak_mebibytes();
    let copy = workspace.folder().join("copy");
    let number = file.lines / 2;
    let mut old = line(number).trim_end().to_owned();
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for round in 0..if quick { 3 } else { 9 } {
        let new = format!("line {number} as round {round} has written it");
        let params = json!({
            "path": file.name, "hash": hash, "lines": [number, number + 1], "old": old, "new": new
        });
        let (((), of_peer), (reply, of_us)) = in_turn(
            round,
            || timed(|| copy_with_digests(&file.path, &copy)),
            || timed(|| workspace::call(&mut client, "text.replace", &params)),
        );
        fs::remove_file(&copy).expect("the copy is there");
        hash = workspace::hash(&reply);
        assert_eq!(Some(&hash), digest(&file.path).as_ref(), "the file does not have the returned hash");
        assert_eq!(reply["total_lines"], file.lines);
        old = new;
        peer.push(of_peer);
        ours.push(of_us);
    }
    report.compare(&name, &shown_milliseconds, &ours, &peer, Bar::AtMost(1.5));
    let after = server.peak_mebibytes();
    report.add(
        &format!("growth of the server's peak memory while {} MiB were edited, in MiB", file.mebibytes),
        format!("{before:.1} to {after:.1} MiB"),
        String::new(),
        after - before,
        Bar::Reported,
    );
}

fn copy_with_digests(file: &Path, copy: &Path) {
    digest(file);
    digest(file);
    run_program(Command::new("cp").arg(file).arg(copy));
    run_program(Command::new("sync").arg(copy));
}

fn run_program(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status().expect("a program that every system has");
    assert!(status.success(), "{command:?} failed");
}

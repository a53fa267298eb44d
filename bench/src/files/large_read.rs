//! Reading ten lines of a large file, whose hash the reply needs: against a digest of the file alone.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    in_turn,
    large_file::{LargeFile, line},
    shown_milliseconds, timed,
    workspace::{self, Workspace},
};
use crate::report::{Bar, Report};

pub fn run(report: &mut Report, workspace: &Workspace, file: &LargeFile, quick: bool) {
    let name = |what: &str| format!("{what} of {} MiB, against openssl dgst -sha256", file.mebibytes);
    let (Some(expected), rounds) = (digest(&file.path), if quick { 3 } else { 9 }) else {
        report.leave_out(&name("ten lines"), "there is no openssl");
        return;
    };
    let (server, mut client) = workspace.serve(&[]);
    // Initialize the server before its memory is measured.
    workspace::call(&mut client, "file.list", &json!({}));
    let before = server.peak_mebibytes();
    let middle = file.lines / 2;
    let ranges = [
        ("ten lines in the middle", [i64::try_from(middle).expect("few lines"), 0], middle),
        ("the ten last lines", [-10, 0], file.lines - 9),
    ];
    for (what, mut range, first) in ranges {
        if range[0] > 0 {
            range[1] = range[0] + 10;
        }
        let content: String = (first..first + 10).map(line).collect();
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        let params = json!({"path": file.name, "lines": range});
        for round in 0..rounds {
            let ((hash, of_peer), (reply, of_us)) = in_turn(
                round,
                || timed(|| digest(&file.path)),
                || timed(|| workspace::call(&mut client, "text.read", &params)),
            );
            assert_eq!(hash.as_ref(), Some(&expected));
            check(&reply, &content, &expected, file.lines);
            peer.push(of_peer);
            ours.push(of_us);
        }
        report.compare(&name(what), &shown_milliseconds, &ours, &peer, Bar::AtMost(1.6));
    }
    let after = server.peak_mebibytes();
    report.add(
        &format!("growth of the server's peak memory while {} MiB were read, in MiB", file.mebibytes),
        format!("{before:.1} to {after:.1} MiB"),
        String::new(),
        after - before,
        Bar::Below(64.0),
    );
}

fn check(reply: &Value, content: &str, hash: &str, lines: u64) {
    assert_eq!(reply["content"], content);
    assert_eq!(reply["hash"], hash);
    assert_eq!(reply["total_lines"], lines);
}

/// The hash of a file by openssl, as a whole process; none if it is not installed.
pub fn digest(path: &Path) -> Option<String> {
    let output = Command::new("openssl").args(["dgst", "-sha256"]).arg(path).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    Some(said.split_whitespace().last().expect("a hash").to_owned())
}

//! Listing a folder of many entries, against a loop of `readdir` and `lstat`.

use std::{fs, path::Path};

use memchr::memmem;
use serde_json::json;

use super::{
    in_turn, timed,
    workspace::{Workspace, direct},
};
use crate::{
    mcp,
    report::{Bar, Report},
};

pub fn run(report: &mut Report, quick: bool) {
    let (count, rounds) = if quick { (10_000, 3) } else { (100_000, 9) };
    let workspace = Workspace::new();
    let folder = workspace.root().join("many");
    fs::create_dir(&folder).expect("a folder");
    for number in 0..count {
        fs::write(folder.join(format!("entry-{number:06}.txt")), "hello").expect("a file");
    }
    let (_direct_server, mut direct_client) = workspace.serve(&[]);
    let (_mcp_server, mut mcp_client) = workspace.serve(&[]);
    mcp::shake_hands(&mut mcp_client);
    let list = format!("{}\n", direct(1, "file.list", &json!({"path": "many"})));
    let params = json!({"uri": "list://many"});
    let resource =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}).to_string() + "\n";
    for (what, client, request) in
        [("file.list, direct", &mut direct_client, list), ("list://, MCP", &mut mcp_client, resource)]
    {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        // One more round, to warm up the cache.
        for round in 0..=rounds {
            let ((looked_at, of_peer), (listed, of_us)) = in_turn(
                round,
                || timed(|| look_at_each(&folder)),
                || timed(|| names(client.ask(request.as_bytes()))),
            );
            assert_eq!((looked_at, listed), (count, count), "entries were lost");
            if round > 0 {
                peer.push(of_peer);
                ours.push(of_us);
            }
        }
        let name = format!("{what}: {count} entries, against a loop of readdir and lstat");
        let shown = |figure: f64| format!("{figure:.1} ms, {:.0}/s", count as f64 * 1000.0 / figure);
        report.compare(&name, &shown, &ours, &peer, Bar::Reported);
    }
}

/// How many entries a reply has: each has one name, and the names are plain.
fn names(reply: &[u8]) -> usize {
    assert!(memmem::find(reply, b"\"error\"").is_none(), "{}", String::from_utf8_lossy(reply));
    memmem::find_iter(reply, b"entry-").count()
}

fn look_at_each(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut found: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let size = entry.metadata().expect("an entry that stays").len();
            (entry.file_name(), size)
        })
        .collect();
    found.sort();
    found.len()
}

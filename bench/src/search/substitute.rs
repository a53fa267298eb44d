//! A word that is replaced wherever it stands, in one call, against `rg -l | xargs sed -i` and a `sync` of all disks.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{Bench, groups::Query, program, tree};
use crate::{
    files::{
        in_turn, shown_milliseconds, timed,
        workspace::{Workspace, call},
    },
    pipe::Client,
    report::Bar,
};

pub fn run(bench: &mut Bench<'_>) {
    let Some(word) = bench.tree.renamed else { return };
    // The peer has a copy of its own. Both replace a file by another one, so hard links keep the old ones.
    let peer_workspace = Workspace::new();
    let peer_root = peer_workspace.root();
    tree::copy(&bench.tree.root(), &peer_root, &mut |file, target| {
        fs::hard_link(file, target).expect("a link");
    });
    fs::create_dir(peer_root.join(".git")).expect("a folder");
    let names = [word.to_owned(), format!("{word}_renamed")];
    for (is_synced, what) in
        [(true, "with fsync, against rg, sed and sync"), (false, "without fsync, against rg and sed")]
    {
        let (_server, mut client) = bench.tree.workspace.serve(if is_synced { &[] } else { &["--no-fsync"] });
        call(&mut client, "index_build", &json!({"mode": "incremental"}));
        let shown = call(&mut client, "text.substitute", &params(&names, &json!({"dry_run": true})));
        let (matches, files) = (&shown["matches"], shown["files"].as_array().map_or(0, Vec::len));
        let name = bench.tree.row(&format!("a word replaced {matches} times in {files} files, {what}"));
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        let mut names = names.clone();
        for round in 0..12 {
            let mut replace = bench.peers.substitute(&peer_root, &names[0], &names[1], is_synced);
            let (of_peer, of_us) = in_turn(
                round,
                || program::time(&mut replace),
                || {
                    let call =
                        || call(&mut client, "text.substitute", &params(&names, &json!({"expect": matches})));
                    timed(call).1
                },
            );
            names.reverse();
            // The first round warms both up.
            if round > 0 {
                peer.push(of_peer);
                ours.push(of_us);
            }
            if round == 0
                && let Err(why) = check(bench, &mut client, &peer_root, &names[0])
            {
                bench.report.fail(&bench.tree.row(&why));
                return;
            }
        }
        if names[0] != word {
            call(&mut client, "text.substitute", &params(&names, &json!({"expect": matches})));
            program::time(&mut bench.peers.substitute(&peer_root, &names[0], &names[1], false));
        }
        let bar = if is_synced { bench.tree.bar(Bar::AtMost(3.0)) } else { Bar::Reported };
        bench.report.compare(&name, &shown_milliseconds, &ours, &peer, bar);
    }
}

fn params(names: &[String], more: &Value) -> Value {
    let mut params = json!({"query": names[0], "word": true, "replacement": names[1]});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    params
}

/// Checks that both trees have the same lines with the new word.
fn check(bench: &Bench<'_>, client: &mut Client, peer_root: &Path, word: &str) -> Result<(), String> {
    let found = call(client, "search", &json!({"query": word, "word": true, "count": true}));
    let query = Query::literal(word);
    let lines_in = |root: &Path| {
        let mut ripgrep = bench.peers.ripgrep(bench.tree, &query, true);
        let output = program::output(ripgrep.arg(".").current_dir(root))?;
        let mut lines: Vec<Vec<u8>> = output.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Ok::<_, String>(lines)
    };
    let (ours, peers) = (lines_in(&bench.tree.root())?, lines_in(peer_root)?);
    match (ours == peers, found["total"].as_u64()) {
        (false, _) => Err(format!("`{word}` does not stand in the same lines of both trees")),
        (true, Some(0) | None) => Err(format!("`{word}` is not found: {found}")),
        (true, Some(_)) => Ok(()),
    }
}

//! The memory of a server with many tenants, of whom few are active.

use std::{
    collections::BTreeSet,
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::mint;
use crate::{
    drive,
    http::{Client, post},
    report::{Bar, Report},
    server::Server,
};

/// How many workspaces a server keeps loaded at most.
const LOADED: usize = 64;
const ACTIVE: usize = 50;

pub fn run(report: &mut Report, quick: bool) {
    let (tenants, rounds) = if quick { (200, 2) } else { (1_000, 20) };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let names: Vec<String> = (0..tenants).map(|number| format!("tenant-{number}")).collect();
    for name in &names {
        write_files(&folder.join("srv").join(name), name);
    }
    let tokens: Vec<String> = names.iter().map(|name| mint(&folder.join("state"), name)).collect();
    let (server, address) = start(folder);
    let mut readings = vec![("with no tenant", Reading::of(&server))];
    let call = |which: std::ops::Range<usize>| {
        for (name, token) in names[which.clone()].iter().zip(&tokens[which]) {
            use_workspace(address, name, token);
        }
    };
    call(0..LOADED);
    readings.push(("after 64 tenants", Reading::of(&server)));
    call(LOADED..tenants);
    readings.push(("after all tenants", Reading::of(&server)));
    for _ in 0..rounds {
        call(0..ACTIVE);
    }
    readings.push(("with 50 active tenants", Reading::of(&server)));
    for (when, reading) in &readings {
        eprintln!("{when}: {reading}");
    }
    let [_, (_, loaded), .., (_, active)] = &readings[..] else { return };
    if readings.iter().any(|(_, reading)| reading.roots > LOADED) {
        report.fail("more workspaces are loaded than may be");
    }
    let shown = |reading: &Reading| format!("{:.1} MiB", reading.mebibytes);
    report.add(
        &format!("{tenants} tenants, then 50 active: memory, against 64 tenants called once"),
        shown(active),
        shown(loaded),
        active.mebibytes / loaded.mebibytes,
        Bar::Reported,
    );
    report.add(
        &format!("{tenants} tenants: peak memory, in MiB"),
        format!("{:.1} MiB", server.peak_mebibytes()),
        String::new(),
        server.peak_mebibytes(),
        Bar::Reported,
    );
}

/// A workspace with a few files.
fn write_files(root: &Path, name: &str) {
    fs::create_dir_all(root.join("src")).expect("a folder");
    for file in ["notes.txt", "todo.txt", "src/main.rs", "src/lib.rs", "src/util.rs"] {
        let text = format!("// {file} of {name}\n{}", "fn a_line_like_any_other() {}\n".repeat(60));
        fs::write(root.join(file), text).expect("a file");
    }
}

fn start(folder: &Path) -> (Server, SocketAddr) {
    let mut command = Command::new(drive::binary("pintle"));
    command.arg("serve").arg("--root").arg(folder.join("srv/{sub}"));
    command.args(["--http", "127.0.0.1:0", "--auth", "local", "--state-dir"]).arg(folder.join("state"));
    command.env("MCP_READY_FILE", folder.join("ready"));
    Server::spawn_http(command, folder)
}

/// Reads and searches in the workspace of a tenant, on a connection of its own.
fn use_workspace(address: SocketAddr, name: &str, token: &str) {
    let mut client = Client::connect(address);
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let mut call = |tool: &str, arguments: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments});
        let reply = client.exchange(&post(address, "/rpc", &authorization, &body));
        assert!(reply.contains(&format!("of {name}")), "{reply}");
    };
    call("text.read", json!({"path": "notes.txt"}));
    call("search", json!({"query": format!("of {name}")}));
}

/// What a process holds.
struct Reading {
    mebibytes: f64,
    /// The tenants whose roots are open.
    roots: usize,
    descriptors: usize,
    threads: usize,
}

impl Reading {
    fn of(server: &Server) -> Self {
        let process = Path::new("/proc").join(server.child.id().to_string());
        let entries = |what: &str| fs::read_dir(process.join(what)).expect("a process").flatten();
        let targets = entries("fd").filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        let is_root = |target: &PathBuf| {
            target.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tenant-"))
        };
        Self {
            mebibytes: drive::resident_mebibytes(&server.child),
            roots: targets.filter(is_root).collect::<BTreeSet<_>>().len(),
            descriptors: entries("fd").count(),
            threads: entries("task").count(),
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mebibytes, roots, descriptors, threads } = self;
        write!(f, "{mebibytes:.1} MiB, {roots} roots, {descriptors} descriptors, {threads} threads")
    }
}

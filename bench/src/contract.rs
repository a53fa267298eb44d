//! The bar of the contract: what a comparison of two long lists of tools takes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    drive,
    report::{Bar, Report},
};

const TOOLS: usize = 100;

pub fn run(report: &mut Report, quick: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    // Two versions of real tools, whose schemas differ in most of them.
    let old = write(folder.path(), "old.json", &surface("tests/surface/before.json"));
    let new = write(folder.path(), "new.json", &surface("contract.lock.json"));
    let mut times = Vec::new();
    for _ in 0..if quick { 3 } else { 9 } {
        let mut command = Command::new(drive::binary("pintle"));
        let started = Instant::now();
        let output = command.args(["contract", "diff", "--json"]).args([&old, &new]).output();
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        check(report, &output.expect("pintle starts").stdout);
    }
    let time = drive::median(times);
    let name = format!("contract diff of two lists of {TOOLS} tools, in ms");
    report.add(&name, format!("{time:.0} ms"), String::new(), time, Bar::Below(1000.0));
}

/// A list of the tools of a lock, repeated under other names until there are enough.
fn surface(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let lock: Value = serde_json::from_slice(&fs::read(path).expect("a lock")).expect("JSON");
    let tools = lock["tools"].as_array().expect("tools");
    let named = |(index, tool): (usize, &Value)| {
        let mut tool = tool.clone();
        let name = tool["name"].as_str().expect("a name");
        tool["name"] = json!(format!("{name}_{}", index / tools.len()));
        tool
    };
    json!({"tools": tools.iter().cycle().take(TOOLS).enumerate().map(named).collect::<Vec<_>>()})
}

fn write(folder: &Path, name: &str, surface: &Value) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, surface.to_string()).expect("writes");
    path
}

/// Most tools changed, and what each change means is known.
fn check(report: &mut Report, printed: &[u8]) {
    let printed: Value = serde_json::from_slice(printed).unwrap_or_default();
    let findings = printed["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_known = |finding: &Value| ["compatible", "breaks"].map(Value::from).contains(&finding["verdict"]);
    if findings.len() < TOOLS || !findings.iter().all(is_known) {
        report.fail("contract diff leaves changes out or undecided");
    }
}

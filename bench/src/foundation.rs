//! The basic bars: validation, overhead of the engine, start time and memory.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    corpus, drive,
    report::{Bar, Report},
};

pub fn run(report: &mut Report, quick: bool) {
    let rounds = if quick { 3 } else { 7 };
    let folder = tempfile::tempdir().expect("a folder");
    let schemas = folder.path().join("schemas");
    fs::create_dir(&schemas).expect("a folder");
    corpus::write_schemas(&schemas, 50);
    echo(report, folder.path(), rounds, if quick { 20_000 } else { 100_000 });
    validate(report, folder.path(), &schemas, rounds, if quick { 2_000 } else { 10_000 });
    start(report, folder.path(), &schemas, 3 * rounds);
}

/// The two servers take turns, so that other load on the machine affects both.
fn echo(report: &mut Report, folder: &Path, rounds: usize, count: usize) {
    let mut requests = Vec::new();
    for id in 0..count {
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "test_echo", "params": {"value": "hello"}});
        requests.extend_from_slice(format!("{request}\n").as_bytes());
    }
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(drive::pipelined(&mut Command::new(drive::binary("plain_loop")), requests.clone(), count));
        ours.push(drive::pipelined(&mut drive::pintle(folder), requests.clone(), count));
    }
    let (ours, plain) = (drive::median(ours), drive::median(plain));
    report.add(
        "test_echo over stdio, pipelined, against a plain loop",
        format!("{ours:.0}/s"),
        format!("{plain:.0}/s"),
        ours / plain,
        Bar::AtLeast(0.4),
    );
}

fn validate(report: &mut Report, folder: &Path, schemas: &Path, rounds: usize, count: usize) {
    let asset = corpus::asset();
    let asset_path = folder.join("asset.json");
    fs::write(&asset_path, asset.to_string()).expect("the asset can be written");
    let mut requests = Vec::new();
    for id in 0..count {
        let params = json!({"asset": asset, "schema": "scene"});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "validate_asset", "params": params});
        requests.extend_from_slice(format!("{request}\n").as_bytes());
    }
    let (mut ours, mut python) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        python.push(python_baseline(schemas, &asset_path));
        let mut command = drive::pintle(folder);
        command.env("SYN_SCHEMAS_DIR", schemas);
        ours.push(drive::pipelined(&mut command, requests.clone(), count));
    }
    let (ours, python) = (drive::median(ours), drive::median(python));
    report.add(
        &format!(
            "validate_asset of {} bytes over stdio, against Python jsonschema alone",
            asset.to_string().len()
        ),
        format!("{ours:.0}/s"),
        format!("{python:.0}/s"),
        ours / python,
        Bar::AtLeast(50.0),
    );
}

fn python_baseline(schemas: &Path, asset: &Path) -> f64 {
    let python = std::env::var_os("BENCH_PYTHON").expect("BENCH_PYTHON is set by scripts/bench");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/validate_baseline.py");
    let output = Command::new(python).arg(script).arg(schemas).arg("scene").arg(asset).arg("1.5").output();
    let output = output.expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn start(report: &mut Report, folder: &Path, schemas: &Path, rounds: usize) {
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut command = drive::pintle(folder);
        command.env("SYN_SCHEMAS_DIR", schemas);
        let (mut child, time) = drive::start_to_ready(&mut command);
        times.push(time.as_secs_f64() * 1000.0);
        sizes.push(drive::resident_mebibytes(&child));
        drop(child.stdin.take());
        assert!(child.wait().expect("ends").success());
    }
    let (time, size) = (drive::median(times), drive::median(sizes));
    let add = |report: &mut Report, name: &str, text: String, figure, bar| {
        report.add(name, text, String::new(), figure, bar);
    };
    add(report, "start to ready with 50 schemas, in ms", format!("{time:.1} ms"), time, Bar::Below(30.0));
    add(report, "idle memory, in MiB", format!("{size:.1} MiB"), size, Bar::Below(20.0));
}

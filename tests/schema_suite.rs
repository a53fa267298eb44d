//! The official JSON Schema test suite for draft 2020-12, run through `validate_asset`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::support::{Setup, request};

/// Files of the suite that test what this server does differently by design.
const DIFFERENT_BY_DESIGN: &[(&str, &str)] =
    &[("format.json", "formats are asserted here, and tested by optional/format")];

/// Groups that refer to a file by a web address other than its `$id`. Here a file is identified by its `$id` or by its
/// path in the folder; none has a web address.
const FETCHED_BY_ADDRESS: &[&str] = &[
    "remote HTTP ref with different $id",
    "remote HTTP ref with nested absolute ref",
    "remote HTTP ref with different URN $id",
];

/// Files of the suite that test what a validator need not do by default.
const OPTIONAL_EXCLUDED: &[&str] = &[
    "bignum.json",
    "cross-draft.json",
    "dependencies-compatibility.json",
    "float-overflow.json",
    "format-assertion.json",
    "no-schema.json",
    "unknownKeyword.json",
];

fn suite() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/json-schema-test-suite");
    folder.canonicalize().expect("the suite is fetched by ./scripts/test (or scripts/schema-suite)")
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// The remotes of the suite are on a web server that does not exist: each gets its address as its `$id`.
fn write_remotes(from: &Path, to: &Path, address: &str) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = file_name(&path);
        if path.is_dir() {
            write_remotes(&path, &to.join(&name), &format!("{address}/{name}"));
            continue;
        }
        let mut schema: Value =
            serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
        if let Value::Object(map) = &mut schema {
            map.entry("$id").or_insert(json!(format!("{address}/{name}")));
        }
        fs::write(to.join(name), schema.to_string()).expect("writes");
    }
}

/// Runs one group. Returns the number of tests and those with another verdict.
fn run_group(group: &Value, remotes: &Path) -> (usize, Vec<String>) {
    let setup = Setup::new();
    let schemas = setup.path("schemas");
    fs::create_dir(&schemas).expect("a folder");
    fs::write(schemas.join("under-test.schema.json"), group["schema"].to_string()).expect("writes");
    std::process::Command::new("cp")
        .arg("-r")
        .arg(remotes)
        .arg(schemas.join("remotes"))
        .status()
        .expect("copies");
    let mut server = setup.arg("--log-level=off").env("SYN_SCHEMAS_DIR", &schemas).start();
    let tests = group["tests"].as_array().expect("tests");
    for (number, test) in tests.iter().enumerate() {
        let params = json!({"asset": test["data"], "schema": "under-test"});
        server.send(&request(json!(number), "validate_asset", params));
    }
    let mut wrong = Vec::new();
    for test in tests {
        let frame = server.frame();
        if frame["result"]["ok"] != test["valid"] {
            wrong.push(format!("{} / {}: {frame}", group["description"], test["description"]));
        }
    }
    server.finish();
    (tests.len(), wrong)
}

#[test]
fn every_verdict_agrees_with_the_official_suite() {
    let tests = suite().join("tests/draft2020-12");
    let remotes = tempfile::tempdir().expect("a folder");
    write_remotes(
        &suite().join("remotes/draft2020-12"),
        &remotes.path().join("draft2020-12"),
        "http://localhost:1234/draft2020-12",
    );
    let mut files = json_files(&tests);
    files.retain(|path| !DIFFERENT_BY_DESIGN.iter().any(|(name, _)| *name == file_name(path)));
    let mut optional = json_files(&tests.join("optional"));
    optional.retain(|path| !OPTIONAL_EXCLUDED.contains(&file_name(path).as_str()));
    files.extend(optional);
    files.extend(json_files(&tests.join("optional/format")));
    let groups: Vec<(String, Value)> = files
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(path).expect("text");
            let groups: Vec<Value> = serde_json::from_str(&text).expect("JSON");
            let by_address = |group: &Value| {
                group["description"].as_str().is_some_and(|name| FETCHED_BY_ADDRESS.contains(&name))
            };
            let groups = groups.into_iter().filter(|group| !by_address(group));
            groups.map(|group| (file_name(path), group)).collect::<Vec<_>>()
        })
        .collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((file, group)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (tests, found) = run_group(group, remotes.path());
                    count.fetch_add(tests, Ordering::Relaxed);
                    wrong
                        .lock()
                        .expect("unpoisoned")
                        .extend(found.iter().map(|text| format!("{file}: {text}")));
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("unpoisoned");
    let count = count.into_inner();
    assert!(count > 1_500, "only {count} tests were found");
    assert!(wrong.is_empty(), "{} of {count} verdicts differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} verdicts agree");
}

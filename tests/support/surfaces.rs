//! Surfaces for `pintle contract`, as files, and what it prints about them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{pintle, run};

/// A folder for surfaces.
pub struct Surfaces(TempDir);

impl Surfaces {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, surface: &Value) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, surface.to_string()).expect("writes");
        path
    }

    /// Compares two surfaces. Returns the exit code and what was printed.
    pub fn diff(&self, old: &Value, new: &Value) -> (i32, Value) {
        let (old, new) = (self.write("old.json", old), self.write("new.json", new));
        contract(&["diff".as_ref(), &old, &new, "--json".as_ref()])
    }
}

pub fn contract(arguments: &[&Path]) -> (i32, Value) {
    let (code, output, errors) = run(pintle().arg("contract").args(arguments), b"");
    let printed = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{errors}"));
    (code.expect("an exit code"), printed)
}

/// The exit code and the message of a call that is refused.
pub fn refused(arguments: &[&str]) -> (i32, String) {
    let (code, output, errors) = run(pintle().arg("contract").args(arguments), b"");
    assert_eq!(output, "");
    (code.expect("an exit code"), errors)
}

pub fn tool(name: &str, input: Value) -> Value {
    json!({"name": name, "inputSchema": input})
}

pub fn tools(tools: &[Value]) -> Value {
    json!({ "tools": tools })
}

pub fn findings<'a>(printed: &'a Value, tool: &str) -> Vec<&'a Value> {
    let all = ["findings", "texts"].into_iter().flat_map(|list| printed[list].as_array().expect("a list"));
    all.filter(|finding| finding["tool"] == tool).collect()
}

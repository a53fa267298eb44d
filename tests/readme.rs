//! The README is true: its transcripts, its links, its figures and its length.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{Setup, run};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

fn readme() -> String {
    fs::read_to_string(project().join("README.md")).expect("the README")
}

/// The text between two comments of the README.
fn marked(readme: &str, name: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let inner = readme.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    inner.unwrap_or_else(|| panic!("no part {name}")).0.trim().to_owned()
}

#[test]
fn the_transcripts_of_the_readme_are_true() {
    let readme = readme();
    let blocks: Vec<&str> =
        readme.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let script: String = blocks.concat();
    let commands: Vec<&str> = script.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert_eq!(commands.len(), 5, "the tour has five commands");
    let expected: String =
        script.lines().filter(|line| !line.starts_with("$ ")).map(|line| format!("{line}\n")).collect();
    let folder = Path::new(env!("CARGO_BIN_EXE_pintle")).parent().expect("a folder");
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let scratch = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", path.expect("a path")).current_dir(project());
    shell.env("HOME", scratch.path()).env("MCP_READY_FILE", scratch.path().join("ready"));
    let (_, output, errors) = run(shell.arg("-c").arg(format!("exec 2>&1\n{}", commands.join("\n"))), b"");
    assert_eq!(output, expected, "{errors}");
}

#[test]
fn the_readme_is_short_and_begins_with_the_two_commands() {
    let readme = readme();
    let words = readme.split_whitespace().count();
    assert!(words <= 1500, "{words} words");
    let first_screen: Vec<&str> = readme.lines().take(24).collect();
    for command in ["cargo run --release -- serve", "./scripts/test"] {
        assert!(first_screen.iter().any(|line| line.starts_with(command)), "{command}");
    }
}

/// The links of a page to other files of the project: the path and fragment of each.
fn links(page: &str) -> Vec<(String, Option<String>)> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| match target.split_once('#') {
            Some((path, fragment)) => (path.to_owned(), Some(fragment.to_owned())),
            None => (target.to_owned(), None),
        })
        .collect()
}

/// The fragments of the headings of a page.
fn fragments(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            text.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
        })
        .collect()
}

#[test]
fn every_link_in_the_documentation_has_a_target() {
    let project = project();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
            .map(|name| project.join(name))
            .into();
    for folder in ["docs", "docs/design"] {
        let entries = fs::read_dir(project.join(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for (path, fragment) in links(&text) {
            let target = if path.is_empty() { page.clone() } else { page.with_file_name("").join(&path) };
            assert!(target.exists(), "{}: {path} does not exist", page.display());
            let Some(fragment) = fragment else { continue };
            let headings = fragments(&fs::read_to_string(&target).expect("a page"));
            assert!(headings.contains(&fragment), "{}: {path}#{fragment}: {headings:?}", page.display());
        }
    }
}

#[test]
fn the_page_on_tools_has_every_error_code_that_a_tool_returns() {
    let page = fs::read_to_string(project().join("docs/tools.md")).expect("a page");
    // These are no errors of a tool: they are about tokens and packs.
    let unused = ["UNAUTHORIZED", "ARCHIVE_TOO_LARGE", "ARCHIVE_UNSAFE", "DOWNLOAD_VERIFY_FAILED"];
    for row in pintle_contract::ERROR_TABLE.iter().filter(|row| !unused.contains(&row.name)) {
        assert!(page.contains(&format!("`{}`", row.name)), "{} is missing", row.name);
    }
}

#[test]
fn every_promise_has_a_page_and_a_test_of_the_suite() {
    let readme = readme();
    let table = readme.split("## What it promises").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows: Vec<&str> = table
        .expect("promises")
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("]("))
        .collect();
    assert!(rows.len() >= 10, "{rows:?}");
    let suite = fs::read_to_string(project().join("tests/main.rs")).expect("the suite");
    for row in rows {
        let links = links(row);
        assert!(links.iter().any(|(path, _)| path.starts_with("docs/")), "{row}");
        let tests: Vec<&String> =
            links.iter().map(|(path, _)| path).filter(|path| path.starts_with("tests/")).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            let module = Path::new(test).file_stem().and_then(|stem| stem.to_str()).expect("a name");
            assert!(suite.contains(&format!("mod {module};")), "{module} is not part of the suite");
        }
    }
}

#[test]
fn the_tools_cost_as_much_context_as_the_readme_says() {
    let mut server = Setup::new().start();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    server.result("initialize", params);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = server.result("tools/list", json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    let shown: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]}))
        .collect();
    let kilobytes = serde_json::to_string(&shown).expect("JSON").len().div_ceil(1000);
    let expected = format!("{} tools, {kilobytes} KB of names, descriptions and input schemas", tools.len());
    assert_eq!(marked(&readme(), "context"), expected);
}

/// The rows of the README's table of figures: what was measured, against whom, and the name of the figure in the
/// benchmark.
const FIGURES: [(&str, &str, &str); 8] = [
    (
        "1 KiB reads a second, one at a time",
        "server-filesystem",
        "1 KiB read, MCP, 1 in flight: calls, against server-filesystem",
    ),
    (
        "1 KiB reads a second, 64 at a time",
        "server-filesystem",
        "1 KiB read, MCP, 64 in flight: calls, against server-filesystem",
    ),
    (
        "Linux 6.1: a word that is nowhere",
        "ripgrep",
        "Linux 6.1: absent and rare literals, against rg: `pm_runtime_never_put`, 0 hits",
    ),
    (
        "Linux 6.1: all 1,070,738 lines with `return`",
        "ripgrep",
        "Linux 6.1: all lines of a very common literal, against rg: `return`, 1070738 hits",
    ),
    (
        "Linux 6.1: a pattern without fixed text",
        "ripgrep",
        "Linux 6.1: other queries, against rg: `\\w{5}\\s+\\w{5}\\s+\\w{5}\\s+\\w{5}\\s+\\w{5}`, 724 hits",
    ),
    (
        "Linux 6.1: a rare word, before there is an index",
        "ripgrep",
        "Linux 6.1: without an index, time, against rg: `ntfs_attr_make_non_resident`",
    ),
    (
        "65 MB of crates: a rare word",
        "ripgrep",
        "crates: absent and rare literals, against rg: `planted_for_the_search_1`, 3 hits",
    ),
    (
        "files with very long lines: a rare word",
        "ripgrep",
        "long lines: absent and rare literals, against rg: `planted_for_the_search_1`, 18 hits",
    ),
];

/// The table of figures as it follows from the benchmark's results.
fn table_of_figures() -> String {
    let results = fs::read_to_string(project().join("bench/figures.json")).expect("the results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let rows = results["rows"].as_array().expect("rows");
    let mut table = format!("| on {} | Pintle | |\n| --- | --- | --- |\n", text(&results["date"]));
    for (what, peer, name) in FIGURES {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no figure {name}"));
        table += &format!("| {what} | {} | {peer}: {} |\n", text(&row["pintle"]), text(&row["peer"]));
    }
    table.trim_end().to_owned()
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmark() {
    assert_eq!(marked(&readme(), "figures"), table_of_figures());
}

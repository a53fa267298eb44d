//! Files that are bound to schemas: no operation writes content there that does not match the schema.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup, data,
    folder::{tree, write},
    hash, pintle, run,
};

/// Lamps are bound in their folder. Nothing else is bound.
const LAMPS: &[(&str, &str)] = &[("lamps/**/*.json", "lamp")];

const GOOD: &str = "{\n  \"name\": \"Desk\",\n  \"watts\": 5\n}\n";
/// The result of each mutation below: a lamp without watts.
const NO_WATTS: &str = "{\n  \"name\": \"Desk\"\n}\n";

fn config(bindings: &[(&str, &str)]) -> String {
    let tables =
        bindings.iter().map(|(path, schema)| format!("[[bind]]\npath = {path:?}\nschema = {schema:?}\n"));
    tables.collect()
}

/// A server with bindings to the schemas of the test data, and with files in its root.
fn bound(bindings: &[(&str, &str)], files: &[(&str, &str)]) -> Server {
    let setup = Setup::assets();
    let (root, file) = (setup.path("root"), setup.path("pintle.toml"));
    fs::write(&file, config(bindings)).expect("writes");
    for (path, content) in files {
        write(&root, path, content);
    }
    setup.arg("--config").arg(file).start()
}

fn content(server: &Server, path: &str) -> String {
    fs::read_to_string(server.path("root").join(path)).expect("there")
}

/// Asserts that a call is refused with errors and changes nothing. Returns the errors.
fn refused(server: &mut Server, tool: &str, params: Value) -> Vec<Value> {
    let before = tree(&server.path("root"));
    let error = server.error(tool, params.clone());
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{tool} {params}: {error}");
    assert_eq!(tree(&server.path("root")), before, "{tool} {params} has changed something");
    let errors = error["details"]["errors"].as_array().cloned();
    let errors = errors.unwrap_or_else(|| panic!("{tool} {params}: no list of errors: {error}"));
    assert!(!errors.is_empty(), "{tool} {params}: {error}");
    for error in &errors {
        assert!(error["path"].is_string() && error["msg"].is_string(), "{error}");
        assert!(error["line"].as_u64() >= Some(1) && error["column"].as_u64() >= Some(1), "{error}");
    }
    errors
}

/// The JSON pointer, line and column of each error.
fn positions(errors: &[Value]) -> Vec<(String, u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    errors
        .iter()
        .map(|error| {
            let path = error["path"].as_str().expect("a pointer").to_owned();
            (path, number(&error["line"]), number(&error["column"]))
        })
        .collect()
}

fn position(path: &str, line: u64, column: u64) -> (String, u64, u64) {
    (path.to_owned(), line, column)
}

const FILES: &[(&str, &str)] =
    &[("lamps/a.json", GOOD), ("free/watts.json", NO_WATTS), ("free/good.json", GOOD), ("free/b.txt", "x\n")];

#[test]
fn each_mutation_that_would_make_a_bound_file_invalid_is_refused_and_changes_nothing() {
    let mut server = bound(LAMPS, FILES);
    let good = hash(GOOD);
    let create = |content: &str, encoding: &str| json!({"path": "lamps/new/deep/b.json", "content": content, "encoding": encoding});
    // The Base64 is `{"name": 1}`.
    for (tool, params, expected) in [
        ("file.create", create(NO_WATTS, "utf-8"), vec![position("", 1, 1)]),
        ("file.create", create("{\"watts\": 1,\n \"name\": 7}", "utf-8"), vec![position("/name", 2, 10)]),
        (
            "file.create",
            create("eyJuYW1lIjogMX0=", "base64"),
            vec![position("", 1, 1), position("/name", 1, 10)],
        ),
        (
            "file.move",
            json!({"path": "free/watts.json", "hash": hash(NO_WATTS), "to": "lamps/new/deep/b.json"}),
            vec![position("", 1, 1)],
        ),
        (
            "text.replace",
            json!({
                "path": "lamps/a.json", "hash": good, "lines": [1, 0],
                "old": "  \"watts\": 5", "new": "  \"watts\": 0",
            }),
            vec![position("/watts", 3, 12)],
        ),
        (
            "text.replace",
            json!({
                "path": "lamps/a.json", "hash": good, "lines": [1, 0],
                "old": "  \"name\": \"Desk\",", "new": "",
            }),
            vec![position("", 1, 1)],
        ),
        (
            "text.insert",
            json!({
                "path": "lamps/a.json", "hash": good, "line": 3, "anchor": "  \"watts\": 5",
                "content": "  \"shade\": {\n    \"colours\": [\"#ffffff\", \"red\"]\n  },",
            }),
            vec![position("/shade/colours/1", 4, 28)],
        ),
        (
            "text.append",
            json!({"path": "lamps/a.json", "hash": good, "content": "{}"}),
            vec![position("", 5, 1)],
        ),
    ] {
        let errors = refused(&mut server, tool, params.clone());
        assert_eq!(positions(&errors), expected, "{tool} {params}");
    }
    server.finish();
}

#[test]
fn each_mutation_whose_result_is_valid_passes() {
    let mut server = bound(LAMPS, FILES);
    server.result("file.create", json!({"path": "lamps/new/deep/b.json", "content": GOOD}));
    let params = json!({
        "path": "lamps/c.json", "encoding": "base64", "content": "eyJuYW1lIjogIngiLCAid2F0dHMiOiAxfQ==",
    });
    server.result("file.create", params);
    assert_eq!(content(&server, "lamps/c.json"), r#"{"name": "x", "watts": 1}"#);
    let params = json!({"path": "free/good.json", "hash": hash(GOOD), "to": "lamps/d.json"});
    server.result("file.move", params);
    let edited = server.result(
        "text.replace",
        json!({
            "path": "lamps/d.json", "hash": hash(GOOD), "lines": [3, 4],
            "old": "  \"watts\": 5", "new": "  \"watts\": 7.5",
        }),
    );
    let edited = server.result(
        "text.insert",
        json!({
            "path": "lamps/d.json", "hash": edited["hash"], "line": 2, "anchor": "  \"name\": \"Desk\",",
            "content": "  \"bought\": \"2026-01-31\",",
        }),
    );
    server.result("text.append", json!({"path": "lamps/d.json", "hash": edited["hash"], "content": "\n"}));
    assert_eq!(
        content(&server, "lamps/d.json"),
        "{\n  \"bought\": \"2026-01-31\",\n  \"name\": \"Desk\",\n  \"watts\": 7.5\n}\n\n"
    );
    server.finish();
}

#[test]
fn a_bound_file_may_be_removed_or_moved_away() {
    let mut server = bound(LAMPS, &[("lamps/a.json", GOOD), ("lamps/bad.json", NO_WATTS)]);
    server.result("file.remove", json!({"path": "lamps/a.json", "hash": hash(GOOD)}));
    // A file that was invalid before can also be moved away: outside the folder it need not be a lamp.
    let away = json!({"path": "lamps/bad.json", "hash": hash(NO_WATTS), "to": "free/bad.json"});
    server.result("file.move", away);
    assert_eq!(tree(&server.path("root")).keys().collect::<Vec<_>>(), ["free", "free/bad.json", "lamps"]);
    // Anything may be written outside the folder, but it cannot be moved back.
    let text = json!({"path": "free/bad.json", "hash": hash(NO_WATTS), "content": "not JSON"});
    let edited = server.result("text.append", text);
    refused(
        &mut server,
        "file.move",
        json!({"path": "free/bad.json", "hash": edited["hash"], "to": "lamps/bad.json"}),
    );
    server.finish();
}

#[test]
fn content_that_is_not_json_or_not_text_is_refused_with_its_position() {
    let mut server = bound(LAMPS, &[("lamps/a.json", GOOD)]);
    for (content, line, column) in
        [("", 1, 1), ("{\n  \"name\": }", 2, 11), ("{\"name\": \"x\", \"watts\": 1} 2", 1, 27)]
    {
        let params = json!({"path": "lamps/b.json", "content": content});
        assert_eq!(
            positions(&refused(&mut server, "file.create", params)),
            [position("", line, column)],
            "{content}"
        );
    }
    // The bytes `{"name": "`, 0xff, `"}`.
    let params = json!({"path": "lamps/b.json", "encoding": "base64", "content": "eyJuYW1lIjogIv8ifQ=="});
    let errors = refused(&mut server, "file.create", params);
    assert_eq!((&errors[0]["line"], &errors[0]["column"]), (&json!(1), &json!(11)), "{errors:?}");
    let params = json!({
        "path": "lamps/a.json", "hash": hash(GOOD), "lines": [-1, 0], "old": "}", "new": "",
    });
    refused(&mut server, "text.replace", params);
    server.finish();
}

#[test]
fn a_byte_order_mark_is_refused_with_its_position_and_an_existing_one_hides_no_errors() {
    let marked = format!("\u{feff}{GOOD}");
    let files = [("lamps/a.json", GOOD), ("lamps/marked.json", &marked), ("free/marked.json", &marked)];
    let mut server = bound(LAMPS, &files);
    let replace = |path: &str, before: &str, old: &str, new: &str| json!({"path": path, "hash": hash(before), "lines": [1, 0], "old": old, "new": new});
    // The Base64 encodes a byte order mark and `{"name": "x", "watts": 1}`.
    let base64 = json!({"path": "lamps/b.json", "encoding": "base64", "content": "77u/eyJuYW1lIjogIngiLCAid2F0dHMiOiAxfQ=="});
    for (tool, params) in [
        ("file.create", json!({"path": "lamps/b.json", "content": marked})),
        ("file.create", base64),
        ("file.move", json!({"path": "free/marked.json", "hash": hash(&marked), "to": "lamps/b.json"})),
        ("text.replace", replace("lamps/a.json", GOOD, "{", "\u{feff}{")),
    ] {
        let errors = refused(&mut server, tool, params);
        assert_eq!(positions(&errors), [position("", 1, 1)], "{errors:?}");
        assert!(errors[0]["msg"].as_str().is_some_and(|msg| msg.contains("byte order mark")), "{errors:?}");
    }
    // The file that already has a byte order mark is otherwise valid. An edit must not add errors to it.
    let spoil = replace("lamps/marked.json", &marked, "  \"watts\": 5", "  \"watts\": 0");
    assert_eq!(positions(&refused(&mut server, "text.replace", spoil)), [position("/watts", 3, 12)]);
    server.result("text.replace", replace("lamps/marked.json", &marked, "\u{feff}{", "{"));
    assert_eq!(content(&server, "lamps/marked.json"), GOOD);
    server.finish();
}

#[test]
fn all_bindings_of_one_file_apply() {
    let files = [("lamps/a.json", GOOD), ("both/x.json", "[]")];
    // No file can be both a lamp and a shade.
    let bindings =
        [("lamps/*.json", "anything"), ("**/a.json", "lamp"), ("both/*", "lamp"), ("both/*", "shade")];
    let mut server = bound(&bindings, &files);
    let params = json!({"path": "lamps/b.json", "content": "[1]"});
    server.result("file.create", params);
    refused(&mut server, "file.create", json!({"path": "lamps/deep/a.json", "content": "[1]"}));
    refused(&mut server, "text.append", json!({"path": "lamps/a.json", "hash": hash(GOOD), "content": ","}));
    for content in [GOOD, r#"{"colours": []}"#] {
        refused(&mut server, "file.create", json!({"path": "both/new.json", "content": content}));
    }
    server.finish();
}

#[test]
fn a_link_is_bound_by_its_own_path_and_by_its_target() {
    let files = [("free/a.json", GOOD), ("free/b.json", GOOD), ("lamps/c.json", GOOD), ("free/text", "no\n")];
    let mut server = bound(LAMPS, &files);
    let root = server.path("root");
    symlink("../free/a.json", root.join("lamps/link.json")).expect("a link");
    symlink("lamps/c.json", root.join("plain.json")).expect("a link");
    symlink("lamps", root.join("alias")).expect("a link");
    symlink("../free", root.join("lamps/inner")).expect("a link");
    symlink("../free/text", root.join("lamps/text")).expect("a link");
    let spoil = |path: &str| json!({"path": path, "hash": hash(GOOD), "content": "spoiled"});
    for path in ["lamps/link.json", "plain.json", "alias/c.json", "lamps/inner/b.json"] {
        refused(&mut server, "text.append", spoil(path));
    }
    for path in ["alias/new.json", "alias/new/deep/er.json", "lamps/inner/new.json"] {
        refused(&mut server, "file.create", json!({"path": path, "content": "{}"}));
        let params = json!({"path": "free/text", "hash": hash("no\n"), "to": path});
        refused(&mut server, "file.move", params);
    }
    // A link that is moved to a bound name is validated by its target.
    let params = json!({"path": "lamps/text", "hash": hash("no\n"), "to": "lamps/text.json"});
    refused(&mut server, "file.move", params);
    // A link that the call does not name is not checked. The README says to bind its target.
    server.result("text.append", spoil("free/b.json"));
    server.result("file.create", json!({"path": "lamps/inner/new.txt", "content": "{}"}));
    let valid = json!({
        "path": "lamps/link.json", "hash": hash(GOOD), "lines": [3, 4],
        "old": "  \"watts\": 5", "new": "  \"watts\": 6",
    });
    server.result("text.replace", valid);
    assert_eq!(content(&server, "free/a.json"), GOOD.replace('5', "6"));
    server.finish();
}

#[test]
fn a_bound_name_keeps_its_bytes_when_a_hard_link_to_the_file_is_edited_under_a_free_name() {
    let mut server = bound(LAMPS, &[("lamps/a.json", GOOD)]);
    fs::hard_link(server.path("root/lamps/a.json"), server.path("root/free.json")).expect("a hard link");
    server.result("text.append", json!({"path": "free.json", "hash": hash(GOOD), "content": "spoiled"}));
    assert_eq!(content(&server, "lamps/a.json"), GOOD);
    // Conversely, a bound name stays bound, whatever other names the file has.
    let error = server.error(
        "file.move",
        json!({"path": "free.json", "hash": hash(format!("{GOOD}spoiled\n")), "to": "lamps/b.json"}),
    );
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    refused(
        &mut server,
        "text.append",
        json!({"path": "lamps/a.json", "hash": hash(GOOD), "content": "spoiled"}),
    );
    server.finish();
}

#[test]
fn an_invalid_file_can_be_fixed_step_by_step_but_not_made_worse() {
    let broken = "{\n  \"name\": 7,\n  \"watts\": 0,\n  \"colour\": \"red\"\n}\n";
    let mut server = bound(LAMPS, &[("lamps/a.json", broken)]);
    let replace = |guard: &Value, old: &str, new: &str| json!({"path": "lamps/a.json", "hash": guard, "lines": [1, 0], "old": old, "new": new});
    let first = json!(hash(broken));
    // The edit adds a fourth error to three. Only the new one is reported.
    let errors = refused(
        &mut server,
        "text.replace",
        replace(&first, "  \"watts\": 0,", "  \"watts\": 0, \"bought\": \"x\","),
    );
    assert_eq!(positions(&errors), [position("/bought", 3, 25)]);
    // An error that replaces another one is a new error.
    refused(&mut server, "text.replace", replace(&first, "  \"name\": 7,", "  \"name\": \"\","));
    refused(&mut server, "text.replace", replace(&first, "}", ""));
    // An edit that changes none of the errors passes, and so does each edit that removes one.
    let mut guard = first;
    for (old, new) in [
        ("{", "{\n"),
        ("  \"watts\": 0,", "  \"watts\": 5,"),
        ("  \"name\": 7,", "  \"name\": \"Desk\","),
        ("  \"watts\": 5,\n  \"colour\": \"red\"", "  \"watts\": 5"),
    ] {
        guard = server.result("text.replace", replace(&guard, old, new))["hash"].clone();
    }
    // What has been fixed cannot be broken again.
    refused(&mut server, "text.replace", replace(&guard, "  \"watts\": 5", "  \"watts\": 0"));
    assert_eq!(content(&server, "lamps/a.json"), GOOD);
    server.finish();
}

#[test]
fn a_file_that_is_not_json_can_be_fixed_step_by_step() {
    let broken = "{\n  \"name\": \"Desk\"\n  \"watts\": 5,\n}\n";
    let mut server = bound(LAMPS, &[("lamps/a.json", broken)]);
    let replace = |guard: &str, old: &str, new: &str| json!({"path": "lamps/a.json", "hash": guard, "lines": [1, 0], "old": old, "new": new});
    // There are two mistakes; each edit fixes one.
    let step = server
        .result("text.replace", replace(&hash(broken), "  \"name\": \"Desk\"", "  \"name\": \"Desk\","));
    let guard = step["hash"].as_str().expect("a hash");
    server.result("text.replace", replace(guard, "  \"watts\": 5,", "  \"watts\": 5"));
    assert_eq!(content(&server, "lamps/a.json"), GOOD);
    server.finish();
}

#[test]
fn a_glob_binds_what_it_names_and_nothing_else() {
    for (glob, bound_paths, free_paths) in [
        (
            "**/*.json",
            &["a.json", "x/a.json", "x/y/z/a.json", ".hidden/a.json", "x/.a.json"][..],
            &["a.txt"][..],
        ),
        ("/x/**/*.json", &["x/a.json", "x/y/z/a.json"], &["a.json", "y/x/a.json"]),
        ("x/*.json", &["x/a.json"], &["x/y/a.json", "a.json", "X/a.json", "x/a.JSON"]),
        ("*.json", &["a.json"], &["x/a.json"]),
        ("x/**", &["x/a", "x/y/z.txt"], &["y/a", "xx/a"]),
        ("x/{a,b}?.[jt]son", &["x/a1.json", "x/b2.tson"], &["x/a.json", "x/c1.json"]),
        ("deep/**/deep/**/*.lamp", &["deep/deep/a.lamp", "deep/1/2/deep/3/a.lamp"], &["deep/1/a.lamp"]),
        ("exact.json", &["exact.json"], &["x/exact.json", "exact.json5"]),
    ] {
        let mut server = bound(&[(glob, "lamp")], &[]);
        for path in bound_paths {
            refused(&mut server, "file.create", json!({"path": path, "content": "{}"}));
            // The path may be written in any form.
            let written = format!("/.//up/../{path}");
            refused(&mut server, "file.create", json!({"path": written, "content": "{}"}));
        }
        for path in free_paths {
            server.result("file.create", json!({"path": path, "content": "{}"}));
        }
        server.finish();
    }
}

#[test]
fn a_binding_that_cannot_be_applied_stops_the_start_and_says_why() {
    for (text, wanted) in [
        (config(&[("*.json", "lmp")]), vec!["*.json", "lmp", "`lamp`"]),
        (config(&[("a[.json", "lamp")]), vec!["a[.json"]),
        (config(&[("{a,b.json", "lamp")]), vec!["{a,b.json"]),
        (config(&[("", "lamp")]), vec!["lamp", "path"]),
        ("[[bind]]\npath = \"*.json\"\nschemas = \"lamp\"\n".into(), vec!["line 3", "`schemas`", "`schema`"]),
        ("[[bind]]\npath = \"*.json\"\n".into(), vec!["`schema`", "missing"]),
        ("[[bind]]\npath = 7\nschema = \"lamp\"\n".into(), vec!["line 2", "path"]),
        ("[[binds]]\npath = \"*\"\nschema = \"lamp\"\n".into(), vec!["line 1", "`binds`", "`bind`"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("pintle.toml"), &text).expect("writes");
        for arguments in [&["serve"][..], &["validate", "pintle.toml"], &["--validate", "pintle.toml"]] {
            let mut command = pintle();
            command
                .current_dir(folder.path())
                .env("SYN_SCHEMAS_DIR", data().join("schemas"))
                .env("PINTLE_STATE_DIR", folder.path().with_extension("state"))
                .env("MCP_READY_FILE", folder.path().join("ready"));
            let (code, output, errors) = run(command.args(arguments), b"");
            assert!(code.is_some_and(|code| code != 0), "{text}{arguments:?} goes on: {output}{errors}");
            assert!(errors.contains("pintle.toml"), "the file is not named: {errors}");
            for part in &wanted {
                assert!(errors.contains(part), "{text}{arguments:?}: nothing of {part}: {errors}");
            }
        }
    }
}

/// A folder with files, and with a configuration that binds them.
fn workspace(bindings: &[(&str, &str)], files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pintle.toml"), config(bindings)).expect("writes");
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("writes");
    }
    folder
}

fn command(folder: &Path) -> Command {
    let mut command = pintle();
    command.current_dir(folder).env("SYN_SCHEMAS_DIR", data().join("schemas"));
    command
}

#[test]
fn the_validate_command_applies_the_bindings_and_a_named_schema_overrides_them() {
    let folder = workspace(
        &[("desk/**", "lamp"), ("desk/both.json", "shade")],
        &[
            ("desk/good.json", GOOD),
            ("desk/bad.json", NO_WATTS),
            ("desk/deep/bad.conf", NO_WATTS),
            ("desk/both.json", GOOD),
            ("free.json", "{}"),
        ],
    );
    let validate = |arguments: &[&str]| {
        let (code, output, _) = run(command(folder.path()).arg("validate").args(arguments), b"");
        (code, output)
    };
    assert_eq!(validate(&["desk/good.json"]), (Some(0), "desk/good.json: valid (schema lamp)\n".into()));
    let (code, output) = validate(&["desk/bad.json"]);
    assert_eq!(code, Some(1));
    assert!(output.starts_with("desk/bad.json: invalid (schema lamp)\n  1:1  (root)  "), "{output}");
    // If a file has several bindings, all of them apply.
    let (code, output) = validate(&["desk/both.json"]);
    assert!(code == Some(1) && output.contains("schema shade"), "{output}");
    // The path may be written in any form.
    let absolute = folder.path().join("desk/../desk/bad.json");
    let (code, output) = validate(&[absolute.to_str().expect("text")]);
    assert!(code == Some(1) && output.contains("schema lamp"), "{output}");
    // Below a folder, every bound file is validated, whatever its name ends with.
    let (code, output) = validate(&["--json", "desk"]);
    assert_eq!(code, Some(1));
    let report: Value = serde_json::from_str(&output).expect("JSON");
    let verdicts: Vec<_> = report["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| (file["path"].as_str().expect("a path"), &file["schema"], &file["ok"]))
        .collect();
    let expected = [
        ("desk/bad.json", &json!("lamp"), &json!(false)),
        ("desk/both.json", &json!("shade"), &json!(false)),
        ("desk/deep/bad.conf", &json!("lamp"), &json!(false)),
        ("desk/good.json", &json!("lamp"), &json!(true)),
    ];
    assert_eq!(verdicts, expected);
    // A schema that is named overrides the bindings, both for valid and for invalid files.
    assert_eq!(validate(&["--schema", "anything", "desk/bad.json"]).0, Some(0));
    assert_eq!(validate(&["--schema", "shade", "desk/good.json"]).0, Some(1));
}

#[test]
fn the_validate_flag_applies_the_bindings() {
    let folder = workspace(&[("desk/**", "lamp")], &[("desk/a.conf", NO_WATTS), ("desk/b.conf", GOOD)]);
    let flag = |file: &str| {
        let (code, output, _) = run(command(folder.path()).args(["--validate", file]), b"");
        (code, serde_json::from_str::<Value>(&output).expect("JSON"))
    };
    assert_eq!(flag("desk/b.conf"), (Some(0), json!({"ok": true, "errors": []})));
    let (code, result) = flag("desk/a.conf");
    assert_eq!((code, &result["reason"]), (Some(1), &json!("validation_failed")));
    assert_eq!(positions(result["errors"].as_array().expect("a list")), [position("", 1, 1)]);
}

#[test]
fn the_validate_command_applies_the_bindings_of_a_link_and_of_its_target() {
    let files = [("free/bad.json", NO_WATTS), ("lamps/bad.json", NO_WATTS), ("lamps/good.json", GOOD)];
    let folder = workspace(LAMPS, &files);
    symlink("../free/bad.json", folder.path().join("lamps/link.json")).expect("a link");
    symlink("../lamps/bad.json", folder.path().join("free/link.json")).expect("a link");
    for path in ["free/link.json", "lamps/link.json"] {
        let (code, output, _) = run(command(folder.path()).args(["validate", path]), b"");
        assert!(code == Some(1) && output.contains("(schema lamp)"), "{path}: {output}");
    }
}

#[test]
fn a_refusal_is_the_same_in_both_dialects() {
    let mut server = bound(LAMPS, FILES);
    let params = json!({
        "path": "lamps/a.json", "hash": hash(GOOD), "lines": [1, 0],
        "old": "  \"watts\": 5", "new": "  \"watts\": \"five\"",
    });
    let direct = server.error("text.replace", params.clone());
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    server.request(json!("init"), "initialize", hello);
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let frame = server.call("tools/call", json!({"name": "text.replace", "arguments": params}));
    assert_eq!(frame["result"]["isError"], json!(true), "{frame}");
    let text = frame["result"]["content"][0]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), direct);
    let errors = direct["details"]["errors"].as_array().expect("a list");
    assert_eq!(positions(errors), [position("/watts", 3, 12)]);
    let message = direct["message"].as_str().expect("a message");
    for wanted in ["/lamps/a.json", "`lamp`", "ine 3", "olumn 12", "/watts"] {
        assert!(message.contains(wanted), "{wanted} is missing: {message}");
    }
    // The hint names the tool that returns the schema.
    assert!(direct["hint"].as_str().is_some_and(|hint| hint.contains("get_schema")), "{direct}");
    assert_eq!(content(&server, "lamps/a.json"), GOOD);
    server.finish();
}

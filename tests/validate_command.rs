//! `pintle validate`: a report for people, JSON for programs, and three exit codes.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{data, pintle, run};

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    write("Lamp_Good.json", r#"{"name": "Desk", "watts": 5}"#);
    write(
        "Lamp_Bad.json",
        "{\n  \"name\": \"Désk\", \"watts\": \"five\",\n\t\"shade\": {\"colours\": [\"red\"]}\n}\n",
    );
    write("Lamp_Broken.json", "{\n  \"name\": \"x\",\n  \"watts\": }\n");
    write("mystery.json", "{}");
    folder
}

fn validate(folder: &tempfile::TempDir) -> Command {
    let mut command = pintle();
    command.arg("validate").current_dir(folder.path()).env("SYN_SCHEMAS_DIR", data().join("schemas"));
    command
}

#[test]
fn people_get_file_pointer_message_line_and_column() {
    let folder = workspace();
    let (code, output, _) = run(validate(&folder).args(["Lamp_Good.json", "Lamp_Bad.json"]), b"");
    assert_eq!(code, Some(1));
    assert_eq!(
        output,
        "Lamp_Good.json: valid (schema lamp)\n\
         Lamp_Bad.json: invalid (schema lamp)\n\
         \x20 3:24  /shade/colours/0  \"red\" does not match \"^#[0-9a-f]{6}$\"\n\
         \x20 2:28  /watts  \"five\" is not of type \"number\"\n\
         2 files: 1 valid, 1 invalid, 0 unreadable\n"
    );
}

#[test]
fn exit_codes_distinguish_valid_invalid_and_unreadable() {
    let folder = workspace();
    for (arguments, expected) in [
        (vec!["Lamp_Good.json"], 0),
        (vec!["Lamp_Bad.json"], 1),
        (vec!["Lamp_Broken.json"], 2),
        (vec!["missing.json"], 2),
        (vec!["Lamp_Bad.json", "missing.json", "Lamp_Good.json"], 2),
        (vec!["mystery.json"], 1),
        (vec!["mystery.json", "--schema", "anything"], 0),
        (vec!["Lamp_Good.json", "--schema", "nothing"], 1),
        (vec!["."], 2),
    ] {
        let (code, output, _) = run(validate(&folder).args(&arguments), b"");
        assert_eq!(code, Some(expected), "{arguments:?}: {output}");
    }
}

#[test]
fn programs_get_json_with_the_same_facts() {
    let folder = workspace();
    let arguments = ["--json", "Lamp_Good.json", "Lamp_Bad.json", "Lamp_Broken.json", "missing.json"];
    let (code, output, _) = run(validate(&folder).args(arguments), b"");
    assert_eq!(code, Some(2));
    let report: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(report["ok"], json!(false));
    let file = |index: usize| &report["files"][index];
    assert_eq!(file(0), &json!({"ok": true, "errors": [], "path": "Lamp_Good.json", "schema": "lamp"}));
    assert_eq!(file(1)["errors"][1]["path"], json!("/watts"));
    assert_eq!((&file(1)["errors"][1]["line"], &file(1)["errors"][1]["column"]), (&json!(2), &json!(28)));
    assert_eq!(file(2)["reason"], json!("not_json"));
    assert_eq!(file(2)["errors"][0]["line"], json!(3));
    assert_eq!(file(3)["reason"], json!("io_error"));
}

#[test]
fn the_flag_prints_one_result_as_json() {
    let folder = workspace();
    let flag = |file: &str| {
        let mut command = pintle();
        command.current_dir(folder.path()).env("SYN_SCHEMAS_DIR", data().join("schemas"));
        let (code, output, _) = run(command.args(["--validate", file]), b"");
        (code, serde_json::from_str::<Value>(&output).expect("JSON"))
    };
    assert_eq!(flag("Lamp_Good.json"), (Some(0), json!({"ok": true, "errors": []})));
    let (code, result) = flag("Lamp_Bad.json");
    assert_eq!((code, &result["reason"]), (Some(1), &json!("validation_failed")));
    assert_eq!(flag("Lamp_Broken.json").0, Some(2));
    assert_eq!(flag("missing.json").0, Some(2));
}

#[test]
fn an_asset_that_names_no_schema_is_validated_as_a_nested_asset_where_that_schema_exists() {
    let folder = workspace();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    write("evening.json", r#"{"name": "Evening", "lamps": []}"#);
    write("nameless.json", r#"{"lamps": []}"#);
    write("lost.json", r#"{"$schemaRef": "jsonschema/gone.schema.json", "name": "x"}"#);
    fs::create_dir(folder.path().join("schemas")).expect("a folder");
    write("schemas/lamp.schema.json", "true");
    let flag = |file: &str, schemas: &Path| {
        let mut command = pintle();
        command.current_dir(folder.path()).env("SYN_SCHEMAS_DIR", schemas);
        let (code, output, _) = run(command.args(["--validate", file]), b"");
        (code, serde_json::from_str::<Value>(&output).expect("JSON"))
    };
    let schemas = data().join("schemas");
    assert_eq!(flag("evening.json", &schemas), (Some(0), json!({"ok": true, "errors": []})));
    let (code, result) = flag("nameless.json", &schemas);
    assert_eq!((code, &result["errors"][0]["keyword"]), (Some(1), &json!("required")), "{result}");
    // An asset that names an unknown schema is not validated by another schema.
    for (file, schemas) in [("lost.json", &schemas), ("evening.json", &folder.path().join("schemas"))] {
        let (code, result) = flag(file, schemas);
        assert_eq!((code, &result["errors"][0]["msg"]), (Some(1), &json!("schema_not_found")), "{result}");
    }
    // The report for people names the schema.
    let (code, output, _) = run(validate(&folder).arg("evening.json"), b"");
    assert_eq!((code, output.as_str()), (Some(0), "evening.json: valid (schema nested-synesthetic-asset)\n"));
}

#[test]
fn the_flag_takes_a_schema_which_overrides_the_one_that_the_file_names() {
    let folder = workspace();
    let flag = |arguments: &[&str]| {
        let mut command = pintle();
        command.current_dir(folder.path()).env("SYN_SCHEMAS_DIR", data().join("schemas"));
        let (code, output, errors) = run(command.args(arguments), b"");
        (
            code,
            serde_json::from_str::<Value>(&output).unwrap_or_else(|_| panic!("not JSON: {output}{errors}")),
        )
    };
    let valid = (Some(0), json!({"ok": true, "errors": []}));
    assert_eq!(flag(&["--validate", "mystery.json", "--schema", "anything"]), valid);
    assert_eq!(flag(&["--schema", "anything", "--validate", "Lamp_Bad.json"]), valid);
    let (code, result) = flag(&["--validate", "Lamp_Good.json", "--schema=shade"]);
    assert_eq!((code, &result["reason"]), (Some(1), &json!("validation_failed")));
    let (code, result) = flag(&["--validate", "Lamp_Good.json", "--schema", "nothing"]);
    assert_eq!((code, &result["errors"][0]["msg"]), (Some(1), &json!("schema_not_found")));
}

//! The assets toolset beyond its transcripts: arbitrary values, hostile folders.

use std::{fs, os::unix::fs::symlink};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use crate::support::{Server, Setup, data, wait_until};

/// Any JSON value, including keys and numbers that are easy to get wrong.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(vec!["", "a", "b", "~", "/", "~0", "~1", "a/b", "m~n", "0", "-", "é", "\u{0}"])
            .prop_map(str::to_owned),
        ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![json!(0), json!(0.0), json!(-0.0), json!(1), json!(1.0)]),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

#[test]
fn a_diff_applied_to_base_gives_new_and_is_sorted() {
    let mut server = Setup::new().arg("--log-level=off").start();
    let mut runner = TestRunner::deterministic();
    let values = any_json();
    for _ in 0..400 {
        let value = |runner: &mut TestRunner| values.new_tree(runner).expect("a value").current();
        let (mut base, new) = (value(&mut runner), value(&mut runner));
        let result = server.result("diff_assets", json!({"base": base, "new": new}));
        assert_eq!(result["ok"], json!(true));
        let operations = result["patch"].as_array().expect("a patch");
        let rank = |operation: &Value| match operation["op"].as_str() {
            Some("remove") => 0,
            Some("add") => 1,
            Some("replace") => 2,
            other => panic!("{other:?} is not allowed"),
        };
        let order: Vec<_> =
            operations.iter().map(|item| (item["path"].as_str().expect("a path"), rank(item))).collect();
        assert!(order.is_sorted(), "{order:?}");
        let patch: json_patch::Patch = serde_json::from_value(result["patch"].clone()).expect("a patch");
        json_patch::patch(&mut base, &patch).unwrap_or_else(|error| panic!("{error}: {result}"));
        assert_eq!(base, new, "{result}");
    }
    server.finish();
}

#[test]
fn every_example_that_should_be_valid_is() {
    let mut server = Setup::assets().start();
    let listed = server.result("list_examples", json!({}));
    for example in listed["examples"].as_array().expect("examples") {
        let path = example["path"].as_str().expect("a path");
        let got = server.result("get_example", json!({"path": path}));
        let expected = !path.starts_with("Unknown") && path != "lamp/broken.json";
        assert_eq!(got["validated"], json!(expected), "{path}: {got}");
    }
    server.finish();
}

#[test]
fn a_link_out_of_the_folders_is_not_followed() {
    let setup = Setup::new();
    let (schemas, examples) = (setup.path("schemas"), setup.path("examples"));
    for folder in [&schemas, &examples] {
        fs::create_dir(folder).expect("a folder");
        symlink(data().join("schemas/lamp.schema.json"), folder.join("linked.json")).expect("a link");
        symlink(data().join("schemas"), folder.join("folder")).expect("a link");
        fs::write(folder.join("inside.json"), "{}").expect("writes");
    }
    let mut server = setup.env("SYN_SCHEMAS_DIR", &schemas).env("SYN_EXAMPLES_DIR", &examples).start();
    let listed = server.result("list_schemas", json!({}));
    assert_eq!(listed["schemas"], json!([{"name": "inside", "version": "", "path": "inside.json"}]));
    let listed = server.result("list_examples", json!({}));
    assert_eq!(listed["examples"], json!([{"component": "inside", "path": "inside.json"}]));
    for path in ["linked.json", "folder/lamp.schema.json", "folder"] {
        let got = server.result("get_example", json!({"path": path}));
        assert_eq!(got, json!({"ok": false, "reason": "not_found"}), "{path}");
    }
    server.finish();
}

#[test]
fn files_are_read_at_start_only() {
    let setup = Setup::new();
    let schemas = setup.path("schemas");
    fs::create_dir(&schemas).expect("a folder");
    fs::write(schemas.join("one.json"), "true").expect("writes");
    let mut server = setup.env("SYN_SCHEMAS_DIR", &schemas).start();
    let before = server.result("list_schemas", json!({}));
    fs::write(schemas.join("two.json"), "true").expect("writes");
    fs::remove_file(schemas.join("one.json")).expect("removes");
    assert_eq!(server.result("list_schemas", json!({})), before);
    assert_eq!(server.result("validate_asset", json!({"asset": 1, "schema": "one"}))["ok"], json!(true));
    server.finish();
}

/// A server with these schemas, outside the root.
fn with_schemas(setup: Setup, files: &[(&str, Value)]) -> Setup {
    let schemas = setup.path("schemas");
    fs::create_dir(&schemas).expect("a folder");
    for (path, schema) in files {
        fs::write(schemas.join(path), schema.to_string()).expect("writes");
    }
    setup.env("SYN_SCHEMAS_DIR", &schemas)
}

#[test]
fn a_rule_of_the_schema_about_schema_ref_is_applied_except_through_the_alias() {
    let constant = json!({"properties": {"$schemaRef": {"const": "abc"}}});
    let closed = json!({"additionalProperties": false, "properties": {"name": true}});
    let files = [
        ("required.json", json!({"required": ["$schemaRef"]})),
        (
            "pattern.json",
            json!({"patternProperties": {"Ref$": {"const": "abc"}}, "additionalProperties": false}),
        ),
        ("through.json", json!({"$ref": "constant.json", "unevaluatedProperties": false})),
        ("constant.json", constant.clone()),
        ("closed.json", closed),
        ("synesthetic-asset.schema.json", constant),
    ];
    let mut server = with_schemas(Setup::new(), &files).start();
    for (schema, asset, errors) in [
        ("required", json!({"$schemaRef": "x"}), &[][..]),
        ("required", json!({}), &[""]),
        ("constant", json!({"$schemaRef": "abc"}), &[]),
        ("constant", json!({"$schemaRef": "x"}), &["/$schemaRef"]),
        ("pattern", json!({"$schemaRef": "abc", "$schema": "x"}), &[]),
        ("pattern", json!({"$schemaRef": "x", "$schema": "x"}), &["/$schemaRef"]),
        ("through", json!({"$schemaRef": "abc", "$schema": "x"}), &[]),
        ("through", json!({"$schemaRef": "x"}), &["/$schemaRef"]),
        ("closed", json!({"$schemaRef": "x", "$schema": "x", "name": 1}), &[]),
        ("closed", json!({"name": {}, "$ref": "x"}), &[""]),
        ("synesthetic-asset", json!({"$schemaRef": "x"}), &["/$schemaRef"]),
        ("nested-synesthetic-asset", json!({"$schemaRef": "x"}), &[]),
    ] {
        let result = server.result("validate_asset", json!({"schema": schema, "asset": asset}));
        let reported: Vec<_> =
            result["errors"].as_array().expect("errors").iter().map(|error| &error["path"]).collect();
        assert_eq!(
            reported,
            errors.iter().map(|path| json!(path)).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
            "{schema} {asset}: {result}"
        );
    }
    server.finish();
}

#[test]
fn assets_inside_the_root_are_listed_by_paths_that_the_files_tools_take() {
    for (schemas, examples, named) in [
        // The default folders.
        ("libs/synesthetic-schemas/jsonschema", "libs/synesthetic-schemas/examples", false),
        ("schemas", "examples", true),
    ] {
        let setup = Setup::new();
        let root = setup.path("root");
        for (path, text) in [
            (format!("{schemas}/sub/lamp.schema.json"), r#"{"required": ["watts"]}"#),
            (format!("{examples}/lamp/good.json"), r#"{"watts": 5}"#),
            (format!("{examples}/Lamp_Bad.json"), "{}"),
        ] {
            let file = root.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("writes");
        }
        // The resolved path of a folder counts.
        symlink(&root, setup.path("link")).expect("a link");
        let through = |folder: &str| setup.path("link").join(folder);
        let (schemas_dir, examples_dir) = (through(schemas), through(examples));
        let setup = match named {
            true => setup.env("SYN_SCHEMAS_DIR", schemas_dir).env("SYN_EXAMPLES_DIR", examples_dir),
            false => setup,
        };
        let mut server = setup.start();
        let path = format!("{schemas}/sub/lamp.schema.json");
        let listed = server.result("list_schemas", json!({}));
        assert_eq!(listed["schemas"], json!([{"name": "lamp", "version": "", "path": path}]));
        assert_eq!(
            server.result("text.read", json!({"path": path}))["content"],
            json!(r#"{"required": ["watts"]}"#)
        );
        let listed = server.result("list_examples", json!({}));
        let paths = [format!("{examples}/Lamp_Bad.json"), format!("{examples}/lamp/good.json")];
        let expected =
            json!([{"component": "lamp", "path": paths[0]}, {"component": "lamp", "path": paths[1]}]);
        assert_eq!(listed["examples"], expected);
        for (path, relative, validated) in
            [(&paths[0], "Lamp_Bad.json", false), (&paths[1], "lamp/good.json", true)]
        {
            server.result("text.read", json!({"path": path}));
            let example = server.result("get_example", json!({"path": path}));
            assert_eq!(
                (&example["schema"], &example["validated"]),
                (&json!("lamp"), &json!(validated)),
                "{path}"
            );
            assert_eq!(server.result("get_example", json!({"path": relative})), example, "{path}");
        }
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let listed = server.result("resources/list", json!({"_meta": meta}));
        let uris: Vec<_> =
            listed["resources"].as_array().expect("a list").iter().map(|one| &one["uri"]).collect();
        for path in &paths {
            assert!(uris.contains(&&json!(format!("example://{path}"))), "{uris:?}");
        }
        for path in [&paths[1], "lamp/good.json"] {
            let read =
                server.result("resources/read", json!({"uri": format!("example://{path}"), "_meta": meta}));
            assert_eq!(read["contents"][0]["text"], json!(r#"{"watts":5}"#), "{read}");
        }
        server.finish();
    }
}

#[test]
fn an_endless_validation_can_be_cancelled() {
    // Each definition refers to the next one twice, so that a verdict takes 2^60 steps.
    let mut definitions = Map::from_iter([("d60".to_owned(), json!({"type": "number"}))]);
    for number in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(format!("d{number}"), json!({"allOf": [next, next]}));
    }
    let files = [("doubled.json", json!({"$ref": "#/$defs/d0", "$defs": definitions}))];
    let setup = with_schemas(Setup::new().args(["--running", "1", "--waiting", "0"]), &files);
    let mut server = setup.start();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    server.call("initialize", hello);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    // There is one slot and the queue has no capacity, so a call is refused exactly while another one runs.
    let is_busy = |server: &mut Server| {
        let frame = server.call("tools/call", json!({"name": "list_schemas", "arguments": {}}));
        let text = frame["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        assert!(text.contains("QUEUE_OVERLOADED") || text.contains(r#""ok":true"#), "{frame}");
        text.contains("QUEUE_OVERLOADED")
    };
    assert!(!is_busy(&mut server));
    server.request(json!("endless"), "validate_asset", json!({"asset": 1, "schema": "doubled"}));
    wait_until("the validation runs", || is_busy(&mut server));
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "endless"}}));
    let frame = server.frame();
    assert_eq!(
        (&frame["id"], &frame["error"]["data"]["code"]),
        (&json!("endless"), &json!("CANCELLED")),
        "{frame}"
    );
    // The slot is free only after the validation has stopped.
    wait_until("the validation has stopped", || !is_busy(&mut server));
    server.finish();
}

#[test]
fn the_errors_of_a_large_asset_are_sorted() {
    let mut server = Setup::assets().start();
    let lamps: Vec<Value> = (0..20_000).map(|number| json!({"name": number})).collect();
    let result = server.result(
        "validate_asset",
        json!({"asset": {"name": "x", "lamps": lamps}, "schema": "synesthetic-asset"}),
    );
    assert_eq!(result["reason"], json!("validation_failed"));
    let paths: Vec<_> =
        result["errors"].as_array().expect("errors").iter().map(|error| error["path"].as_str()).collect();
    assert!(paths.is_sorted());
    server.finish();
}

/// A schema of a tree whose inner nodes are one of several kinds.
fn tree_of_choices() -> Value {
    let kind = |name: &str| {
        let properties = json!({"kind": {"const": name}, "child": {"$ref": "node.json"}});
        json!({"properties": properties, "required": ["kind", "child"]})
    };
    let leaf = json!({"properties": {"size": {"type": "number"}}, "required": ["size"]});
    json!({"oneOf": [leaf, kind("translate"), kind("rotate"), kind("scale")]})
}

#[test]
fn nested_choices_are_validated_and_the_list_of_their_errors_is_limited() {
    let setup = Setup::new();
    let schemas = setup.path("schemas");
    fs::create_dir(&schemas).expect("a folder");
    fs::write(schemas.join("node.json"), tree_of_choices().to_string()).expect("writes");
    let mut server = setup.env("SYN_SCHEMAS_DIR", &schemas).start();
    for (size, ok) in [(json!(1), true), (json!("x"), false)] {
        let nested =
            (0..40).fold(json!({"size": size}), |child, _| json!({"kind": "rotate", "child": child}));
        let result = server.result("validate_asset", json!({"asset": nested, "schema": "node"}));
        assert_eq!(result["ok"], json!(ok), "{result}");
        if !ok {
            assert_eq!(result["errors"].as_array().map(Vec::len), Some(1), "{result}");
            assert!(result["errors"][0]["msg"].to_string().contains("too many to list"), "{result}");
        }
    }
    server.finish();
}

#[test]
fn a_reference_means_the_file_with_its_path_and_not_another_version() {
    let setup = Setup::new();
    let (schemas, examples) = (setup.path("schemas"), setup.path("examples"));
    fs::create_dir(&examples).expect("a folder");
    for (version, kind) in [("v1", "string"), ("v2", "number")] {
        fs::create_dir_all(schemas.join(version)).expect("a folder");
        let schema = json!({"version": version, "properties": {"a": {"type": kind}}}).to_string();
        fs::write(schemas.join(version).join("tone.schema.json"), schema).expect("writes");
        let example = json!({"$schemaRef": format!("{version}/tone.schema.json"), "a": "x"}).to_string();
        fs::write(examples.join(format!("{version}.json")), example).expect("writes");
    }
    let mut server = setup.env("SYN_SCHEMAS_DIR", &schemas).env("SYN_EXAMPLES_DIR", &examples).start();
    for (path, valid) in [("v1.json", true), ("v2.json", false)] {
        let result = server.result("get_example", json!({"path": path}));
        assert_eq!(result["validated"], json!(valid), "{result}");
    }
    server.finish();
}

//! Helpers for the tests of this crate.

use std::{path::PathBuf, sync::Arc};

use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_schema::SchemaRegistry;
use pintle_tool::{Answer, CallContext, Caller};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Assets, AssetsConfig, BackendConfig, folder::Folder, schemas::Schemas, warnings::Warnings};

pub(crate) mod http;

/// A folder with these files.
pub(crate) fn folder_of(files: &[(&str, String)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        std::fs::write(file, text).expect("written");
    }
    folder
}

/// The schemas in these files, and the warnings.
pub(crate) fn schemas_of(files: &[(&str, Value)]) -> (Schemas, Vec<String>) {
    load_schemas(&files.iter().map(|(path, value)| (*path, value.to_string())).collect::<Vec<_>>())
}

/// The same, for files of any text.
pub(crate) fn load_schemas(files: &[(&str, String)]) -> (Schemas, Vec<String>) {
    let folder = folder_of(files);
    let mut warnings = Warnings::about("schema");
    let schemas = Schemas::load(&Folder::open(folder.path()).expect("a folder"), &mut warnings);
    (schemas, warnings.into_lines())
}

/// The issues of an asset, as `path: message`.
pub(crate) fn issues(schemas: &Schemas, name: &str, asset: Value) -> Vec<String> {
    let found = schemas.find(name).expect("a schema");
    found.issues(asset, &|| false).into_iter().map(|issue| format!("{}: {}", issue.path, issue.msg)).collect()
}

/// Assets with these schemas and examples, and no backend.
pub(crate) fn assets_of(schemas: &[(&str, Value)], examples: &[(&str, Value)]) -> Arc<Assets> {
    assets_with(schemas, examples, None, false)
}

/// Assets with every option.
pub(crate) fn assets_with(
    schemas: &[(&str, Value)],
    examples: &[(&str, Value)],
    backend: Option<String>,
    allow_unvalidated: bool,
) -> Arc<Assets> {
    let write = |files: &[(&str, Value)]| {
        folder_of(&files.iter().map(|(path, value)| (*path, value.to_string())).collect::<Vec<_>>())
    };
    // Everything is read at once, so the folders need not stay.
    let (schemas, examples) = (write(schemas), write(examples));
    let path = |folder: &TempDir| Some(PathBuf::from(folder.path()));
    let backend = backend.map(|url| BackendConfig { url, assets_path: "/assets/".into() });
    let config = AssetsConfig {
        schemas_dir: path(&schemas),
        examples_dir: path(&examples),
        backend,
        allow_unvalidated,
        ..AssetsConfig::default()
    };
    Arc::new(Assets::load(config))
}

/// Assets whose schemas and examples lie in the folders `schemas` and `examples` of the workspace.
pub(crate) fn assets_in_workspace(schemas: &[(&str, Value)], examples: &[(&str, Value)]) -> Arc<Assets> {
    let within = |folder: &'static str, files: &[(&str, Value)]| {
        let path = |path: &str| format!("{folder}/{path}");
        files.iter().map(|(file, value)| (path(file), value.to_string())).collect::<Vec<_>>()
    };
    let files = [within("schemas", schemas), within("examples", examples)].concat();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let root = folder_of(&files);
    let path = |folder: &str| Some(root.path().join(folder));
    let config = AssetsConfig {
        root: Some(root.path().to_owned()),
        schemas_dir: path("schemas"),
        examples_dir: path("examples"),
        ..AssetsConfig::default()
    };
    Arc::new(Assets::load(config))
}

/// Calls a tool as a server would, with all checks of arguments and results.
pub(crate) async fn call(assets: &Arc<Assets>, tool: &str, arguments: Value) -> Result<Answer, Fault> {
    call_within(CallContext::detached(Caller::local()), assets, tool, arguments).await
}

/// The same with a given context.
pub(crate) async fn call_within(
    context: CallContext,
    assets: &Arc<Assets>,
    tool: &str,
    arguments: Value,
) -> Result<Answer, Fault> {
    let schemas = SchemaRegistry::default();
    let tools = assets.tools();
    let tool = tools.iter().find(|known| known.definition().name == tool).expect("a tool");
    let input = schemas.declare(&tool.definition().input_schema);
    if let Some(fault) = input.check(&arguments, Stage::Arguments, "the arguments do not match", "argument") {
        return Err(fault);
    }
    let answer = (tool.prepare(arguments)?.run)(context).await?;
    let output = schemas.declare(&tool.definition().output_schema);
    assert!(output.check(&answer.value, Stage::Run, "the result does not match", "field").is_none());
    Ok(answer)
}

/// The JSON of a call's result and the code of its failure.
pub(crate) async fn answer(
    assets: &Arc<Assets>,
    tool: &str,
    arguments: Value,
) -> (String, Option<ErrorCode>) {
    match call(assets, tool, arguments).await {
        Ok(answer) => (answer.value.to_string(), answer.failure.map(|failure| failure.code)),
        Err(fault) => (fault.message.clone(), Some(fault.code)),
    }
}

/// The message of a call's failure, as a model sees it.
pub(crate) async fn failure_message(assets: &Arc<Assets>, tool: &str, arguments: Value) -> String {
    match call(assets, tool, arguments).await {
        Ok(Answer { failure: Some(failure), .. }) => failure.message,
        Ok(answer) => answer.value.to_string(),
        Err(fault) => fault.to_string(),
    }
}

/// Any JSON value, with keys that need escaping in a JSON Pointer. Two values often share keys.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just(String::new()),
        Just("a".to_owned()),
        Just("~".to_owned()),
        Just("/".to_owned()),
        Just("~1/~0".to_owned()),
        Just("0".to_owned()),
        Just("-".to_owned()),
        Just("é\u{1f3b5}".to_owned()),
        "\\PC{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-2.0..2.0_f64).prop_map(Value::from),
        Just(Value::from(1.0)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

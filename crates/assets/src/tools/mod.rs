//! The tools, one a file: definition, input, output and `run`.

mod diff_assets;
mod get_example;
mod get_schema;
mod list_examples;
mod list_schemas;
mod populate_backend;
mod validate_asset;

use std::sync::Arc;

use pintle_tool::{DynTool, erase};

use crate::Assets;

/// All tools of the toolset.
pub(crate) fn all(assets: &Arc<Assets>) -> Vec<Arc<dyn DynTool>> {
    let assets = || Arc::clone(assets);
    vec![
        erase(diff_assets::DiffAssets),
        erase(get_example::GetExample(assets())),
        erase(get_schema::GetSchema(assets())),
        erase(list_examples::ListExamples(assets())),
        erase(list_schemas::ListSchemas(assets())),
        erase(populate_backend::PopulateBackend(assets())),
        erase(validate_asset::ValidateAsset(assets())),
    ]
}

#[cfg(test)]
mod tests {
    use crate::testing::assets_of;
    use serde_json::Value;

    /// Every object schema inside a schema.
    fn objects<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
        match schema {
            Value::Object(keywords) => {
                if keywords.contains_key("properties") {
                    found.push(schema);
                }
                keywords.values().for_each(|value| objects(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| objects(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_object_in_a_definition_forbids_additional_properties() {
        for tool in assets_of(&[], &[]).tools() {
            let definition = tool.definition();
            for schema in [&definition.input_schema, &definition.output_schema] {
                let mut found = Vec::new();
                objects(schema, &mut found);
                assert!(schema["type"] == "object", "{}", definition.name);
                for object in found {
                    assert_eq!(object["additionalProperties"], false, "{}: {object}", definition.name);
                }
            }
        }
    }

    #[test]
    fn every_argument_is_described() {
        for tool in assets_of(&[], &[]).tools() {
            let definition = tool.definition();
            let properties = definition.input_schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                assert!(schema["description"].is_string(), "{} {name}: {schema}", definition.name);
            }
        }
    }
}

//! `schema://{name}`: a schema by its name.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault, Permission};
use pintle_tool::{Boxed, CallContext, ResourceContent, ResourceEntry, Resources, decode_address};

use super::encode_segment;
use crate::Assets;

const MIME_TYPE: &str = "application/schema+json";

pub(crate) struct SchemaResources(pub(crate) Arc<Assets>);

impl Resources for SchemaResources {
    fn scheme(&self) -> &'static str {
        "schema"
    }

    fn template(&self) -> Option<&'static str> {
        Some("schema://{name}")
    }

    fn permission(&self) -> Permission {
        Permission::AnyCaller
    }

    fn list<'a>(&'a self, _: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>> {
        let entry = |name: &str| ResourceEntry {
            uri: format!("schema://{}", encode_segment(name)),
            name: name.to_owned(),
            mime_type: MIME_TYPE,
        };
        let entries = self.0.schemas().names().map(entry).collect();
        Box::pin(async { Ok(entries) })
    }

    fn read<'a>(&'a self, _: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>> {
        Box::pin(async move {
            let name = decode_address(rest)?;
            let schemas = self.0.schemas();
            let schema = schemas
                .get(&name)
                .ok_or_else(|| Fault::new(ErrorCode::NotFound, schemas.unknown_message(&name)))?;
            Ok(ResourceContent { mime_type: MIME_TYPE, text: schema.document.to_string() })
        })
    }

    fn complete<'a>(&'a self, _: &'a CallContext, prefix: &'a str) -> Boxed<'a, Vec<String>> {
        let names = self.0.schemas().names().filter(|name| name.starts_with(prefix)).map(str::to_owned);
        let names = names.collect();
        Box::pin(async { names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assets_of;
    use pintle_tool::Caller;
    use serde_json::json;

    fn resources() -> SchemaResources {
        SchemaResources(assets_of(
            &[
                ("synesthetic-asset.schema.json", json!({"z": 1, "a": 2})),
                ("1/two words.json", json!({"version": "1"})),
                ("2/two words.json", json!({"version": "2"})),
            ],
            &[],
        ))
    }

    #[tokio::test]
    async fn each_name_is_listed_once_and_can_be_read() {
        let (resources, caller) = (resources(), Caller::local());
        let list = resources.list(&CallContext::detached(caller.clone())).await.expect("a list");
        let uris: Vec<_> = list.iter().map(|entry| entry.uri.as_str()).collect();
        assert_eq!(uris, ["schema://synesthetic-asset", "schema://two%20words"]);
        for (rest, text) in [
            ("synesthetic-asset", r#"{"z":1,"a":2}"#),
            ("nested-synesthetic-asset", r#"{"z":1,"a":2}"#),
            ("two%20words", r#"{"version":"2"}"#),
        ] {
            let content = resources.read(&CallContext::detached(caller.clone()), rest).await.expect("there");
            assert_eq!((content.text.as_str(), content.mime_type), (text, "application/schema+json"));
        }
    }

    #[tokio::test]
    async fn an_unknown_name_is_not_found_and_a_bad_one_invalid() {
        let (resources, caller) = (resources(), Caller::local());
        let fault = resources
            .read(&CallContext::detached(caller.clone()), "synesthetic-aset")
            .await
            .expect_err("unknown");
        assert_eq!(fault.code, ErrorCode::NotFound);
        assert!(fault.message.contains("`synesthetic-asset`"), "{fault}");
        let fault =
            resources.read(&CallContext::detached(caller.clone()), "%ff").await.expect_err("no UTF-8");
        assert_eq!(fault.code, ErrorCode::InvalidRequest);
    }

    #[tokio::test]
    async fn names_are_completed() {
        let (resources, caller) = (resources(), Caller::local());
        assert_eq!(
            resources.complete(&CallContext::detached(caller.clone()), "syn").await,
            ["synesthetic-asset"]
        );
        assert!(resources.complete(&CallContext::detached(caller.clone()), "x").await.is_empty());
    }
}

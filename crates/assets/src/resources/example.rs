//! `example://{+path}`: an example by its path.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault, Permission};
use pintle_tool::{Boxed, CallContext, ResourceContent, ResourceEntry, Resources, decode_address};

use super::encode_path;
use crate::Assets;

const MIME_TYPE: &str = "application/json";

pub(crate) struct ExampleResources(pub(crate) Arc<Assets>);

impl Resources for ExampleResources {
    fn scheme(&self) -> &'static str {
        "example"
    }

    fn template(&self) -> Option<&'static str> {
        Some("example://{+path}")
    }

    fn permission(&self) -> Permission {
        Permission::AnyCaller
    }

    fn list<'a>(&'a self, _: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>> {
        let entry = |path: &str| ResourceEntry {
            uri: format!("example://{}", encode_path(path)),
            name: path.to_owned(),
            mime_type: MIME_TYPE,
        };
        let entries = self.0.examples().paths().map(entry).collect();
        Box::pin(async { Ok(entries) })
    }

    fn read<'a>(&'a self, _: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>> {
        Box::pin(async move {
            let path = decode_address(rest)?;
            let examples = self.0.examples();
            let example = examples
                .get(&path)
                .ok_or_else(|| Fault::new(ErrorCode::NotFound, examples.unknown_message(&path)))?;
            Ok(ResourceContent { mime_type: MIME_TYPE, text: example.document.to_string() })
        })
    }

    fn complete<'a>(&'a self, _: &'a CallContext, prefix: &'a str) -> Boxed<'a, Vec<String>> {
        let paths = self.0.examples().paths_that_begin_with(prefix);
        Box::pin(async { paths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assets_in_workspace, assets_of};
    use pintle_tool::Caller;
    use serde_json::json;

    fn resources() -> ExampleResources {
        ExampleResources(assets_of(
            &[],
            &[("a b/Tone_1.json", json!({"z": 1, "a": 2})), ("c%41.json", json!(1))],
        ))
    }

    #[tokio::test]
    async fn what_is_listed_can_be_read() {
        let (resources, caller) = (resources(), Caller::local());
        let list = resources.list(&CallContext::detached(caller.clone())).await.expect("a list");
        let uris: Vec<_> = list.iter().map(|entry| entry.uri.as_str()).collect();
        assert_eq!(uris, ["example://a%20b/Tone_1.json", "example://c%2541.json"]);
        for (uri, text) in uris.iter().zip([r#"{"z":1,"a":2}"#, "1"]) {
            let rest = uri.strip_prefix("example://").expect("the scheme");
            let content = resources.read(&CallContext::detached(caller.clone()), rest).await.expect("there");
            assert_eq!((content.text.as_str(), content.mime_type), (text, "application/json"));
        }
    }

    #[tokio::test]
    async fn an_address_holds_the_path_from_the_root_or_from_the_examples_folder() {
        let examples = [("shader/foo.json", json!(1))];
        let (resources, caller) = (ExampleResources(assets_in_workspace(&[], &examples)), Caller::local());
        let list = resources.list(&CallContext::detached(caller.clone())).await.expect("a list");
        assert_eq!(
            (list[0].uri.as_str(), list[0].name.as_str()),
            ("example://examples/shader/foo.json", "examples/shader/foo.json")
        );
        for rest in ["examples/shader/foo.json", "shader/foo.json"] {
            let content = resources.read(&CallContext::detached(caller.clone()), rest).await.expect("there");
            assert_eq!(content.text, "1");
        }
        assert_eq!(
            resources.complete(&CallContext::detached(caller.clone()), "exam").await,
            ["examples/shader/foo.json"]
        );
        assert_eq!(
            resources.complete(&CallContext::detached(caller.clone()), "sha").await,
            ["shader/foo.json"]
        );
        assert_eq!(
            resources.complete(&CallContext::detached(caller.clone()), "").await,
            ["examples/shader/foo.json"]
        );
    }

    #[tokio::test]
    async fn an_address_is_decoded_once_and_only_looked_up() {
        let (resources, caller) = (resources(), Caller::local());
        for rest in ["c%41.json", "a%2520b/Tone_1.json", "../x", "%2e%2e/x", "/etc/passwd", ""] {
            let fault = resources.read(&CallContext::detached(caller.clone()), rest).await.expect_err(rest);
            assert_eq!(fault.code, ErrorCode::NotFound, "{rest}");
        }
        assert!(resources.read(&CallContext::detached(caller.clone()), "a%20b%2FTone_1.json").await.is_ok());
    }

    #[tokio::test]
    async fn paths_are_completed() {
        let (resources, caller) = (resources(), Caller::local());
        assert_eq!(
            resources.complete(&CallContext::detached(caller.clone()), "a b/").await,
            ["a b/Tone_1.json"]
        );
    }
}

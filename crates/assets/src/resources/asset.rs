//! `asset://` and `asset://{id}`: a read-only proxy to the backend.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault, Permission};
use pintle_tool::{Boxed, CallContext, ResourceContent, ResourceEntry, Resources, decode_address};
use serde_json::json;

use crate::{Assets, backend::Failed};

const MIME_TYPE: &str = "application/json";

pub(crate) struct AssetResources(pub(crate) Arc<Assets>);

impl Resources for AssetResources {
    fn scheme(&self) -> &'static str {
        "asset"
    }

    fn template(&self) -> Option<&'static str> {
        Some("asset://{id}")
    }

    fn list<'a>(&'a self, _: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>> {
        let collection = ResourceEntry {
            uri: "asset://".into(),
            name: "assets of the backend".into(),
            mime_type: MIME_TYPE,
        };
        let entries = self.0.backend().map(|_| collection).into_iter().collect();
        Box::pin(async { Ok(entries) })
    }

    fn permission(&self) -> Permission {
        Permission::Named("assets:read".into())
    }

    fn read<'a>(&'a self, _: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>> {
        Box::pin(async move {
            let id = id_in(rest)?;
            let backend = self.0.backend().ok_or_else(|| {
                Fault::new(ErrorCode::CapabilityMissing, "backend disabled")
                    .hint("start the server with the backend's address (SYN_BACKEND_URL)")
            })?;
            let text = backend.fetch(id.as_deref()).await.map_err(|failed| fault(&failed))?;
            Ok(ResourceContent { mime_type: MIME_TYPE, text })
        })
    }

    fn complete<'a>(&'a self, _: &'a CallContext, _: &'a str) -> Boxed<'a, Vec<String>> {
        // The backend has no request for ids by prefix.
        Box::pin(async { Vec::new() })
    }
}

/// The id in a URI; none means the whole collection.
fn id_in(rest: &str) -> Result<Option<String>, Fault> {
    if rest.is_empty() {
        return Ok(None);
    }
    let id = decode_address(rest)?;
    // `.` and `..` would be resolved as path steps.
    if rest.contains(['/', '?', '#']) || matches!(id.as_str(), "." | "..") {
        return Err(Fault::new(ErrorCode::InvalidRequest, "an asset's id is one segment of the URI")
            .hint("percent-encode the id: `a/b` is asset://a%2Fb"));
    }
    Ok(Some(id))
}

fn fault(failed: &Failed) -> Fault {
    let code = match failed.status {
        404 | 410 => ErrorCode::NotFound,
        _ => ErrorCode::UpstreamFailed,
    };
    Fault::new(code, format!("the backend failed with {}: {}", failed.status, failed.detail))
        .details(json!({"status": failed.status, "detail": failed.detail}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        assets_of, assets_with,
        http::{Reply, Server},
    };
    use pintle_tool::Caller;

    #[tokio::test]
    async fn assets_are_read_through_from_the_backend() {
        let server = Server::start(vec![
            Reply::json(200, "[1]"),
            Reply::json(200, r#"{"name":"x"}"#),
            Reply::empty(404),
            Reply::text(500, "broken"),
            Reply::empty(302).with("Location", "http://localhost:{port}/"),
        ]);
        let resources = AssetResources(assets_with(&[], &[], Some(server.url()), false));
        let caller = Caller::local();
        assert_eq!(
            resources.list(&CallContext::detached(caller.clone())).await.expect("a list")[0].uri,
            "asset://"
        );
        let content = resources.read(&CallContext::detached(caller.clone()), "").await.expect("there");
        assert_eq!((content.text.as_str(), content.mime_type), ("[1]", "application/json"));
        assert_eq!(
            resources.read(&CallContext::detached(caller.clone()), "a%2Fb").await.expect("there").text,
            r#"{"name":"x"}"#
        );
        for (code, status) in
            [(ErrorCode::NotFound, 404), (ErrorCode::UpstreamFailed, 500), (ErrorCode::UpstreamFailed, 302)]
        {
            let fault = resources.read(&CallContext::detached(caller.clone()), "c").await.expect_err("fails");
            assert_eq!(
                (fault.code, &fault.details.as_ref().expect("details")["status"]),
                (code, &json!(status))
            );
        }
        let requests = server.finish();
        assert!(requests[0].starts_with("GET /assets/ HTTP/1.1\r\n"), "{}", requests[0]);
        assert!(requests[1].starts_with("GET /assets/a%2Fb HTTP/1.1\r\n"), "{}", requests[1]);
        assert_eq!(requests.len(), 5);
    }

    #[tokio::test]
    async fn an_id_is_one_segment() {
        let resources = AssetResources(assets_with(&[], &[], Some("http://127.0.0.1:1".into()), false));
        for rest in ["a/b", "a/", "/a", "a?b", "a#b", "..", "%2e%2E", ".", "%ff"] {
            let fault = resources.read(&CallContext::detached(Caller::local()), rest).await.expect_err(rest);
            assert_eq!(fault.code, ErrorCode::InvalidRequest, "{rest}");
        }
    }

    #[tokio::test]
    async fn without_a_backend_there_is_nothing() {
        let resources = AssetResources(assets_of(&[], &[]));
        let caller = Caller::local();
        assert!(resources.list(&CallContext::detached(caller.clone())).await.expect("a list").is_empty());
        assert_eq!(
            resources.read(&CallContext::detached(caller.clone()), "x").await.expect_err("off").code,
            ErrorCode::CapabilityMissing
        );
    }
}

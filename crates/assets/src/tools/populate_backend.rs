//! `populate_backend`: validates an asset and publishes it to the backend.

use std::borrow::Cow;

use std::sync::Arc;

use pintle_contract::{Annotations, ErrorCode, Fault, Permission};
use pintle_tool::{CallContext, Failure, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Assets,
    backend::{Failed, Published},
    issue::Issue,
    output::{No, ValidationFailed, Yes},
    schema::SCHEMA_REF,
    schemas::NESTED_ASSET,
};

pub(crate) struct PopulateBackend(pub(crate) Arc<Assets>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The asset: any JSON value.
    asset: Value,
    /// Whether to validate the asset first. Without it nothing is published unless the server allows it.
    #[serde(default = "yes")]
    validate_first: bool,
    /// The schema to validate against; by default what `$schemaRef` names, else `nested-synesthetic-asset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    schema: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output {
    Stored(Stored),
    Invalid(RefusedAsset),
    Unsupported(Unsupported),
    Failed(BackendError),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Stored {
    ok: Yes,
    /// The asset's id in the backend.
    asset_id: String,
    /// The asset's URL.
    backend_url: String,
}

/// The asset does not match; nothing was sent.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RefusedAsset {
    ok: No,
    reason: ValidationFailed,
    /// What is wrong, sorted by path, then message; 1,000 at most.
    errors: Vec<Issue>,
    #[serde(skip)]
    message: String,
}

/// This server does not support that; nothing was sent.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Unsupported {
    ok: No,
    reason: UnsupportedReason,
    /// Why, and what to do.
    detail: String,
}

#[derive(Serialize, JsonSchema)]
enum UnsupportedReason {
    #[serde(rename = "unsupported")]
    Unsupported,
}

/// The backend refused, or could not be reached.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BackendError {
    ok: No,
    reason: BackendErrorReason,
    /// The backend's HTTP status; 503 if there was none.
    status: u16,
    /// What the backend said.
    detail: String,
    #[serde(skip)]
    took_effect: bool,
}

#[derive(Serialize, JsonSchema)]
enum BackendErrorReason {
    #[serde(rename = "backend_error")]
    BackendError,
}

impl ToolOutput for Output {
    fn failure(&self) -> Option<Failure> {
        let (code, message) = match self {
            Self::Stored(_) => return None,
            Self::Invalid(invalid) => (ErrorCode::InvalidRequest, invalid.message.clone()),
            Self::Unsupported(unsupported) => (ErrorCode::CapabilityMissing, unsupported.detail.clone()),
            Self::Failed(failed) => (
                ErrorCode::UpstreamFailed,
                format!("the backend failed with {}: {}", failed.status, failed.detail),
            ),
        };
        let took_effect = matches!(self, Self::Failed(failed) if failed.took_effect);
        Some(Failure { code, message, took_effect })
    }
}

impl Tool for PopulateBackend {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "populate_backend";
    const TITLE: &'static str = "Publish an asset";
    const DESCRIPTION: &'static str = "Validates an asset and, if it is valid, sends it to the backend, which \
        stores it. Returns its id and URL there. A failed call is not retried.";
    const ANNOTATIONS: Annotations = Annotations {
        read_only_hint: false,
        destructive_hint: false,
        idempotent_hint: false,
        open_world_hint: true,
    };
    const PERMISSIONS: &'static [Permission] = &[Permission::Named(Cow::Borrowed("assets:publish"))];

    fn read_input(mut arguments: Value) -> Result<Input, serde_json::Error> {
        let asset = arguments["asset"].take();
        Ok(Input { asset, ..serde_json::from_value(arguments)? })
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Some(backend) = self.0.backend() else {
            return Ok(Output::unsupported("backend disabled"));
        };
        if !input.validate_first && !self.0.allows_unvalidated() {
            return Ok(Output::unsupported(
                "assets are validated before they are stored: leave out `validate_first`, \
                 or restart the server with --allow-unvalidated",
            ));
        }
        // The asset is sent as it came, with the members that validation ignores.
        let body = serde_json::to_vec(&input.asset)
            .map_err(|_| Fault::internal("the asset could not be written as JSON"))?;
        if input.validate_first
            && let Some(invalid) = self.validate(input.asset, input.schema, &call).await?
        {
            return Ok(Output::Invalid(invalid));
        }
        Ok(match backend.publish(body).await {
            Ok(Published { asset_id, backend_url }) => {
                Output::Stored(Stored { ok: Yes, asset_id, backend_url })
            }
            Err(Failed { status, detail, took_effect }) => Output::Failed(BackendError {
                ok: No,
                reason: BackendErrorReason::BackendError,
                status,
                detail,
                took_effect,
            }),
        })
    }
}

impl PopulateBackend {
    /// Validates the asset; returns the refusal if it is invalid.
    async fn validate(
        &self,
        asset: Value,
        schema: Option<String>,
        call: &CallContext,
    ) -> Result<Option<RefusedAsset>, Fault> {
        let schemas = self.0.schemas();
        let named = asset.get(SCHEMA_REF).and_then(Value::as_str);
        // An asset that names an unknown schema is refused, not validated against another schema.
        let (name, found) = match (schema, named) {
            (Some(name), _) => (name.clone(), schemas.find(&name)),
            (None, Some(reference)) => (reference.to_owned(), schemas.find_reference(reference)),
            (None, None) => (NESTED_ASSET.to_owned(), schemas.find(NESTED_ASSET)),
        };
        let Some(found) = found else {
            return Ok(Some(RefusedAsset::new(
                vec![Issue::schema_not_found()],
                schemas.unknown_message(&name),
            )));
        };
        let name = found.document_name().to_owned();
        let errors = found.issues_in_call(Arc::new(asset), call).await?;
        let Some(first) = errors.first() else { return Ok(None) };
        let message = format!(
            "the asset does not match `{name}`, so it was not sent: {}{}{} ({} in all; fix the asset and call again)",
            first.path,
            if first.path.is_empty() { "" } else { ": " },
            first.msg,
            errors.len(),
        );
        Ok(Some(RefusedAsset::new(errors, message)))
    }
}

impl Output {
    fn unsupported(detail: &str) -> Self {
        Self::Unsupported(Unsupported {
            ok: No,
            reason: UnsupportedReason::Unsupported,
            detail: detail.to_owned(),
        })
    }
}

impl RefusedAsset {
    fn new(errors: Vec<Issue>, message: String) -> Self {
        Self { ok: No, reason: ValidationFailed::ValidationFailed, errors, message }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{
        Assets,
        testing::{
            answer, assets_with, call, failure_message,
            http::{Reply, Server},
        },
    };
    use pintle_contract::ErrorCode;
    use serde_json::{Value, json};

    fn schemas() -> Vec<(&'static str, Value)> {
        let asset = json!({"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}}});
        vec![("synesthetic-asset.schema.json", asset), ("tone.schema.json", json!({"required": ["pitch"]}))]
    }

    fn assets(backend: Option<String>, allow_unvalidated: bool) -> Arc<Assets> {
        assets_with(&schemas(), &[], backend, allow_unvalidated)
    }

    /// Calls with a backend that accepts anything; returns the result and the requests that reached the backend.
    async fn populate(arguments: Value, allow_unvalidated: bool) -> (String, Option<ErrorCode>, Vec<String>) {
        let server = Server::start(vec![Reply::json(201, r#"{"id": "7"}"#)]);
        let assets = assets(Some(server.url()), allow_unvalidated);
        let url = server.url();
        let (result, code) = answer(&assets, "populate_backend", arguments).await;
        (result.replace(&url, "URL"), code, server.finish())
    }

    #[tokio::test]
    async fn a_valid_asset_is_sent_whole_and_its_url_is_returned() {
        let asset = json!({"$schemaRef": "x/synesthetic-asset.schema.json", "name": "n"});
        let (result, code, requests) = populate(json!({"asset": asset}), false).await;
        assert_eq!(result, r#"{"ok":true,"asset_id":"7","backend_url":"URL/assets/7"}"#);
        assert_eq!(code, None);
        assert!(requests[0].ends_with(&asset.to_string()), "{}", requests[0]);
    }

    #[tokio::test]
    async fn an_invalid_asset_is_not_sent() {
        for (arguments, path, msg) in [
            (json!({"asset": {"name": 1}}), "/name", r#"1 is not of type \"string\""#),
            (json!({"asset": {}, "schema": "tone"}), "", r#"\"pitch\" is a required property"#),
            (json!({"asset": {"$schemaRef": "tone.json"}}), "", r#"\"pitch\" is a required property"#),
            (json!({"asset": {}, "schema": "none"}), "", "schema_not_found"),
            (json!({"asset": {"$schemaRef": "none.json"}}), "", "schema_not_found"),
        ] {
            let (result, code, requests) = populate(arguments, true).await;
            let expected = format!(
                r#"{{"ok":false,"reason":"validation_failed","errors":[{{"path":"{path}","msg":"{msg}""#
            );
            assert!(result.starts_with(&expected), "{result}");
            assert_eq!(code, Some(ErrorCode::InvalidRequest));
            assert!(requests.is_empty(), "{requests:?}");
        }
    }

    #[tokio::test]
    async fn an_unvalidated_asset_is_sent_only_if_the_server_allows_it() {
        let arguments = json!({"asset": {"name": 1}, "validate_first": false});
        let (result, code, requests) = populate(arguments.clone(), false).await;
        assert!(
            result.starts_with(r#"{"ok":false,"reason":"unsupported","detail":"assets are validated"#),
            "{result}"
        );
        assert_eq!((code, requests.len()), (Some(ErrorCode::CapabilityMissing), 0));
        let (result, code, requests) = populate(arguments, true).await;
        assert!(result.starts_with(r#"{"ok":true"#), "{result}");
        assert_eq!((code, requests.len()), (None, 1));
    }

    #[tokio::test]
    async fn without_a_backend_nothing_else_is_looked_at() {
        let expected = r#"{"ok":false,"reason":"unsupported","detail":"backend disabled"}"#;
        for arguments in [json!({"asset": {"name": 1}}), json!({"asset": 1, "validate_first": false})] {
            let result = answer(&assets(None, false), "populate_backend", arguments).await;
            assert_eq!(result, (expected.into(), Some(ErrorCode::CapabilityMissing)));
        }
    }

    #[tokio::test]
    async fn a_refusal_of_the_backend_is_passed_on() {
        let server = Server::start(vec![Reply::json(500, r#"{"detail": "internal error"}"#)]);
        let result =
            answer(&assets(Some(server.url()), false), "populate_backend", json!({"asset": {}})).await;
        let expected = r#"{"ok":false,"reason":"backend_error","status":500,"detail":"internal error"}"#;
        assert_eq!(result, (expected.into(), Some(ErrorCode::UpstreamFailed)));
    }

    #[tokio::test]
    async fn an_asset_that_was_taken_is_not_sent_again_for_want_of_an_id() {
        for (reply, took_effect) in [(Reply::empty(201), true), (Reply::empty(500), false)] {
            let assets = assets(Some(Server::start(vec![reply]).url()), false);
            let answer = call(&assets, "populate_backend", json!({"asset": {}})).await.expect("an answer");
            let failure = answer.failure.expect("it failed");
            assert_eq!(failure.took_effect, took_effect, "{failure:?}");
        }
    }

    #[tokio::test]
    async fn a_failure_says_what_to_do_next() {
        let assets = assets(Some("http://127.0.0.1:1".into()), false);
        let message = |arguments| failure_message(&assets, "populate_backend", arguments);
        let result = message(json!({"asset": {"name": 1}})).await;
        assert!(
            result.contains("`nested-synesthetic-asset`") && result.contains("/name: 1 is not"),
            "{result}"
        );
        let result = message(json!({"asset": {}, "schema": "tune"})).await;
        assert!(result.contains("the nearest is `tone`"), "{result}");
        let result = message(json!({"asset": {}})).await;
        assert!(result.contains("503") && result.contains("network_unreachable"), "{result}");
    }

    #[tokio::test]
    async fn the_schema_may_be_left_out_but_not_null() {
        let (_, code, _) = populate(json!({"asset": {}, "schema": null}), false).await;
        assert_eq!(code, Some(ErrorCode::InvalidRequest));
    }
}

//! Conversions from the engine's outcomes and faults to the SDK's results and errors.

use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Outcome;
use pintle_tool::Failure;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode as McpErrorCode, ErrorData};
use serde_json::json;

/// A call's outcome as a result, or as an error of the protocol. The object of a success goes past the SDK
/// (`ResultBody`), so its content is empty here.
pub(crate) fn tool_result(outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    match outcome {
        Outcome::Success(_) => {
            let mut result = CallToolResult::success(Vec::new());
            result.is_error = None;
            Ok(result)
        }
        Outcome::Declined(json, failure) => {
            Ok(CallToolResult::error(vec![ContentBlock::text(with_failure(json.get(), &failure))]))
        }
        Outcome::Fault(fault) if is_protocol_failure(&fault) => Err(error(&fault)),
        Outcome::Fault(fault) => {
            Ok(CallToolResult::error(vec![ContentBlock::text(json!(fault).to_string())]))
        }
    }
}

/// The text of a toolset's own object with the failure's code and message behind its members.
fn with_failure(object: &str, failure: &Failure) -> String {
    let added = json!({"code": failure.code, "message": failure.message}).to_string();
    match (object.strip_suffix('}'), added.strip_prefix('{')) {
        (Some("{"), _) | (None, _) | (_, None) => added,
        (Some(members), Some(added)) => [members, ",", added].concat(),
    }
}

/// What a model cannot correct by calling the tool in another way.
fn is_protocol_failure(fault: &Fault) -> bool {
    fault.code == ErrorCode::InvalidRequest && fault.stage < Stage::Arguments
}

/// Whether the caller lacks a scope. A path that nobody may change is another matter.
pub(crate) fn is_missing_scope(fault: &Fault) -> bool {
    fault.code == ErrorCode::Forbidden && fault.stage == Stage::Authorize
}

/// A fault as an error of the protocol.
pub(crate) fn error(fault: &Fault) -> ErrorData {
    ErrorData::new(McpErrorCode(fault.json_rpc_code()), fault.message.clone(), Some(json!(fault)))
}

/// A resource's fault: it names the resource, and "not found" has a number of its own.
pub(crate) fn resource_error(fault: &Fault, uri: &str) -> ErrorData {
    let mut error = error(fault);
    if fault.code == ErrorCode::NotFound {
        error.code = McpErrorCode::RESOURCE_NOT_FOUND;
    }
    if let Some(data) = &mut error.data {
        data["uri"] = json!(uri);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_s_code_and_message_stand_behind_the_members_of_the_toolset_s_object() {
        let failure = Failure { code: ErrorCode::NotFound, message: "no \"x\"".into(), took_effect: false };
        let added = r#""code":"NOT_FOUND","message":"no \"x\""}"#;
        assert_eq!(with_failure(r#"{"ok":false}"#, &failure), format!(r#"{{"ok":false,{added}"#));
        assert_eq!(with_failure("{}", &failure), format!("{{{added}"));
    }
}

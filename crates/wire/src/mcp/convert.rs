//! Between the engine's words and the SDK's.

use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Outcome;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode as McpErrorCode, ErrorData};
use serde_json::{Value, json};

/// A call's outcome as a result, or as an error of the protocol. The object of a success goes past the SDK
/// (`HeldReply`), so its content is empty here.
pub(crate) fn tool_result(outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    match outcome {
        Outcome::Success(_) => {
            let mut result = CallToolResult::success(Vec::new());
            result.is_error = None;
            Ok(result)
        }
        Outcome::Declined(json, failure) => {
            let mut object: Value = serde_json::from_str(json.get()).unwrap_or_default();
            object["code"] = json!(failure.code);
            object["message"] = json!(failure.message);
            Ok(CallToolResult::error(vec![ContentBlock::text(object.to_string())]))
        }
        Outcome::Fault(fault) if is_protocol_failure(&fault) => Err(error(&fault)),
        Outcome::Fault(fault) => {
            Ok(CallToolResult::error(vec![ContentBlock::text(json!(fault).to_string())]))
        }
    }
}

/// What a model cannot mend by calling the tool in another way.
fn is_protocol_failure(fault: &Fault) -> bool {
    fault.code == ErrorCode::InvalidRequest && fault.stage < Stage::Arguments
}

/// Whether the caller lacks a scope. A place that nobody may change is another matter.
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

//! Conversions between JSON-RPC frames and the SDK's messages.

use pintle_contract::{Fault, Stage};
use pintle_engine::{Outcome, unread_replies};
use pintle_rpc::{PROTOCOL_VERSION_KEY, RequestId};
use rmcp::model::{
    CacheScope, CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode,
    ErrorData, JsonRpcMessage, MetaObject, ProtocolVersion, RequestMetaObject, ResultType,
    ServerJsonRpcMessage, ServerResult,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use thiserror::Error;

use super::{
    clients::ResultForm,
    convert,
    request::ResultBody,
    tasks::{TASK_SUPPORT_KEY, is_legacy_method, legacy_capability},
};
use crate::json_rpc;

/// The method of the handshake.
pub(crate) const INITIALIZE: &str = "initialize";
/// The method of a request that waits for notifications.
pub(crate) const LISTEN: &str = "subscriptions/listen";
const SUBSCRIPTION_KEY: &str = "\"io.modelcontextprotocol/subscriptionId\":";

/// What is wrong with the params of a request.
#[derive(Debug, Error)]
pub(crate) enum ParamsError {
    #[error("the params of `{0}` do not match the protocol")]
    Mismatch(String),
    #[error("this is not a request")]
    NotARequest,
    #[error("`name` must be the name of a tool")]
    NoToolName,
    #[error("`arguments` must be an object")]
    ArgumentsNotAnObject,
    #[error("`_meta` must be an object")]
    MetaNotAnObject,
}

impl From<ParamsError> for Fault {
    fn from(error: ParamsError) -> Self {
        Self::invalid(Stage::Arguments, error.to_string())
    }
}

/// The SDK's form of a request.
///
/// The most frequent request is built by hand: the SDK would copy its arguments several times while it
/// tries what kind of message it is.
pub(crate) fn client_request(method: &str, mut params: Value) -> Result<ClientRequest, ParamsError> {
    let plain = params.as_object().is_some_and(|params| {
        params.keys().all(|key| matches!(key.as_str(), "name" | "arguments" | "task" | "_meta"))
    });
    if method == "tools/call" && plain {
        return call_request(&mut params);
    }
    if is_legacy_method(method, &params) {
        let request = serde_json::from_value(json!({"method": method, "params": params}));
        return request.map(ClientRequest::CustomRequest).map_err(|_| ParamsError::MetaNotAnObject);
    }
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    let is_stateless = params_name_protocol(&message["params"]);
    match serde_json::from_value::<ClientJsonRpcMessage>(message) {
        // The SDK takes a method whose params it cannot read for one that it does not know.
        Ok(JsonRpcMessage::Request(request))
            if matches!(request.request, ClientRequest::CustomRequest(_))
                && is_offered(method, is_stateless) =>
        {
            Err(ParamsError::Mismatch(method.to_owned()))
        }
        Ok(JsonRpcMessage::Request(request)) => Ok(request.request),
        Ok(_) => Err(ParamsError::NotARequest),
        Err(_) => Err(ParamsError::Mismatch(method.to_owned())),
    }
}

fn params_name_protocol(params: &Value) -> bool {
    params["_meta"].get(PROTOCOL_VERSION_KEY).is_some()
}

/// The methods that are there for every client. The handshake is not, without sessions.
fn is_offered(method: &str, is_stateless: bool) -> bool {
    match method {
        "tools/list"
        | "tools/call"
        | "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "completion/complete" => true,
        "server/discover" | "tasks/get" | "tasks/update" | "tasks/cancel" => is_stateless,
        INITIALIZE | "ping" => !is_stateless,
        _ => false,
    }
}

fn call_request(params: &mut Value) -> Result<ClientRequest, ParamsError> {
    let Some(name) = params["name"].as_str() else {
        return Err(ParamsError::NoToolName);
    };
    let mut call = CallToolRequestParams::new(name.to_owned());
    call.arguments = match params["arguments"].take() {
        Value::Null => None,
        Value::Object(arguments) => Some(arguments),
        _ => return Err(ParamsError::ArgumentsNotAnObject),
    };
    let mut request = CallToolRequest::new(call);
    if let Some(meta) = params.get_mut("_meta") {
        let meta: RequestMetaObject =
            serde_json::from_value(meta.take()).map_err(|_| ParamsError::MetaNotAnObject)?;
        request.extensions.insert(meta);
    }
    Ok(ClientRequest::CallToolRequest(request))
}

/// The SDK's form of a notification; none if it cannot read it.
pub(crate) fn notification(method: &str, params: Value) -> Option<ClientJsonRpcMessage> {
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    match serde_json::from_value(message) {
        Ok(message @ JsonRpcMessage::Notification(_)) => Some(message),
        _ => None,
    }
}

/// The SDK's form of the notification that a request is cancelled. Params that are no object come from a wrong envelope
/// that was let through; they can name the call all the same, and nothing else.
pub(crate) fn cancelled(params: Value, number: i64) -> Option<ClientJsonRpcMessage> {
    let mut params = if params.is_object() { params } else { json!({}) };
    params["requestId"] = json!(number);
    notification("notifications/cancelled", params)
}

/// The SDK's form of a client's response; none if it cannot read it.
pub(crate) fn response(message: Value) -> Option<ClientJsonRpcMessage> {
    serde_json::from_value(message).ok()
}

/// The frame of a success. A result may be given as JSON; then the SDK's object only adds what stands beside it.
pub(crate) fn result_frame(
    id: Option<&RequestId>,
    result: &ServerResult,
    body: Option<&ResultBody>,
) -> String {
    let written = match (result, body) {
        (ServerResult::CallToolResult(sdk), Some(ResultBody::Tool(json, form))) => {
            tool_result_frame(id, sdk.result_type.as_ref(), sdk.meta.as_ref(), json, *form).ok()
        }
        (ServerResult::ReadResourceResult(sdk), Some(ResultBody::Resource(json))) => {
            let result = ResourceResult {
                result_type: sdk.result_type.as_ref(),
                ttl_ms: sdk.ttl_ms,
                cache_scope: sdk.cache_scope.as_ref(),
                contents: [json],
            };
            json_rpc::serialized_reply(id, "result", json.get().len() + 256, &result).ok()
        }
        (_, Some(ResultBody::Whole(json))) => Some(json_rpc::reply(id, "result", json.get())),
        _ => None,
    };
    written.unwrap_or_else(|| {
        let ends_listening = matches!(result, ServerResult::SubscriptionsListenResult(_));
        let mut json = result_json(result);
        if ends_listening {
            name_subscription(&mut json, |_| id.cloned());
        }
        json_rpc::reply(id, "result", &json)
    })
}

/// The frame of a tool's result. As JSON it stands in it twice: as structured content, and again as text.
fn tool_result_frame(
    id: Option<&RequestId>,
    result_type: Option<&ResultType>,
    meta: Option<&MetaObject>,
    json: &RawValue,
    form: ResultForm,
) -> serde_json::Result<String> {
    let text = json.get();
    let is_structured = form == ResultForm::Json;
    let result = ToolResult::new(json, form, result_type.cloned(), meta.cloned());
    // In a string, each quote and each backslash of the JSON takes one byte more.
    let escapes = memchr::memchr2_iter(b'"', b'\\', text.as_bytes()).count();
    let copies = if is_structured { 2 } else { 1 };
    json_rpc::serialized_reply(id, "result", copies * text.len() + escapes + 256, &result)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    content: [TextBlock<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<MetaObject>,
}

impl<'a> ToolResult<'a> {
    /// The result whose JSON this is.
    pub(crate) fn new(
        json: &'a RawValue,
        form: ResultForm,
        result_type: Option<ResultType>,
        meta: Option<MetaObject>,
    ) -> Self {
        Self {
            result_type,
            content: [TextBlock { r#type: "text", text: json.get() }],
            structured_content: (form == ResultForm::Json).then_some(json),
            meta,
        }
    }
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a ResultType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'a CacheScope>,
    contents: [&'a RawValue; 1],
}

/// The short reply that replaces an evicted one.
pub(crate) fn evicted_frame(id: Option<&RequestId>, result: &ServerResult) -> String {
    let fault = unread_replies();
    let ServerResult::CallToolResult(sdk) = result else { return error_frame(id, &convert::error(&fault)) };
    match convert::tool_result(Outcome::Fault(fault)) {
        Ok(mut result) => {
            result.result_type = sdk.result_type.clone();
            json_rpc::reply(id, "result", &to_json(&result))
        }
        Err(error) => error_frame(id, &error),
    }
}

/// The frame of a notification or a request of the server. A notification names the request that listens for it, which
/// the client knows by its own id.
pub(crate) fn notice_frame(
    message: &ServerJsonRpcMessage,
    id_of: impl FnOnce(i64) -> Option<RequestId>,
) -> String {
    let mut frame = to_json(message);
    if let JsonRpcMessage::Notification(_) = message {
        name_subscription(&mut frame, id_of);
    }
    frame
}

/// Replaces our number by the client's id. A key with its quotes cannot be part of a string.
fn name_subscription(json: &mut String, id_of: impl FnOnce(i64) -> Option<RequestId>) {
    let Some(start) = json.find(SUBSCRIPTION_KEY).map(|start| start + SUBSCRIPTION_KEY.len()) else { return };
    let digits = json[start..].bytes().take_while(u8::is_ascii_digit).count();
    if let Some(id) = json[start..start + digits].parse().ok().and_then(id_of) {
        json.replace_range(start..start + digits, id.raw());
    }
}

/// The frame of an error. The SDK's own errors get the error object that all others have, too.
pub(crate) fn error_frame(id: Option<&RequestId>, error: &ErrorData) -> String {
    json_rpc::reply(id, "error", &error_object(error).to_string())
}

/// The error object of an error.
pub(crate) fn error_object(error: &ErrorData) -> Value {
    let fault = fault_of(error);
    let mut object = json!(error);
    object["message"] = json!(fault.message);
    match &mut object["data"] {
        Value::Object(data) => {
            for (name, value) in json!(fault).as_object().into_iter().flatten() {
                data.entry(name.as_str()).or_insert(value.clone());
            }
        }
        data => *data = json!(fault),
    }
    object
}

/// What an error of the SDK's means in the words of the table.
pub(crate) fn fault_of(error: &ErrorData) -> Fault {
    let is_ours = error.data.as_ref().is_some_and(|data| data["code"].is_string());
    match error.code {
        ErrorCode::METHOD_NOT_FOUND if is_ours => Fault::invalid(Stage::Method, error.message.clone()),
        // The SDK's own error says no more than the method's name.
        ErrorCode::METHOD_NOT_FOUND => Fault::invalid(
            Stage::Method,
            format!("this server does not offer the method `{}`", error.message),
        )
        .hint("the capabilities that it named say what it offers"),
        ErrorCode::INTERNAL_ERROR => Fault::internal(error.message.clone()),
        _ => Fault::invalid(Stage::Arguments, error.message.clone()),
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The JSON of a result, with the members that the SDK has no fields for.
fn result_json(result: &ServerResult) -> String {
    match result {
        ServerResult::ListToolsResult(_) => {
            let mut value = serde_json::to_value(result).unwrap_or_default();
            value["tools"].as_array_mut().into_iter().flatten().for_each(complete_tool);
            value.to_string()
        }
        // Revisions with a handshake have tasks as a capability, or not at all; the extension came later.
        ServerResult::InitializeResult(handshake)
            if handshake.protocol_version < ProtocolVersion::V_2026_07_28 =>
        {
            let mut handshake_result = handshake.clone();
            handshake_result.capabilities.extensions = None;
            let mut value = serde_json::to_value(&handshake_result).unwrap_or_default();
            if handshake.protocol_version >= ProtocolVersion::V_2025_11_25 {
                value["capabilities"]["tasks"] = legacy_capability();
            }
            value.to_string()
        }
        _ => to_json(result),
    }
}

fn complete_tool(tool: &mut Value) {
    for name in ["schemaVersion", "toolingVersion"] {
        tool[name] = tool["_meta"][format!("pintle/{name}")].clone();
    }
    for name in ["aliases", "deprecated"] {
        if let Some(value) = tool["_meta"].get(format!("pintle/{name}")).cloned() {
            tool[name] = value;
        }
    }
    let meta = tool["_meta"].as_object_mut();
    if let Some(support) = meta.and_then(|meta| meta.shift_remove(TASK_SUPPORT_KEY)) {
        tool["execution"] = json!({"taskSupport": support});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_names_its_call_whatever_its_params_are() {
        for params in [json!({"requestId": "a", "reason": "r"}), json!([null, "a"]), json!("a"), Value::Null]
        {
            let message = json!(cancelled(params.clone(), 7).expect("a notification"));
            assert_eq!(message["params"]["requestId"], 7, "{params}");
        }
    }
}

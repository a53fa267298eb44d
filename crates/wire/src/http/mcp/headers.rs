//! Which era a request belongs to, and whether its headers say the same as its body.

use std::sync::Arc;

use axum::http::HeaderMap;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_contract::{Fault, Stage};
use pintle_rpc::{Opened, PROTOCOL_VERSION_KEY};
use rmcp::model::{ErrorCode, JsonObject, ProtocolVersion};
use serde_json::{Value, json};
use thiserror::Error;

const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision without sessions, whose requests say in their headers what they are.
const STATELESS_SINCE: &str = "2026-07-28";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a request is to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// On its own.
    Stateless,
    /// In a session.
    Session,
}

/// A request that the protocol forbids.
#[derive(Debug, Error)]
#[error("{fault}")]
pub(crate) struct Violation {
    /// The number that the protocol has for it.
    pub(crate) number: i32,
    pub(crate) fault: Fault,
    /// What the protocol wants to be said besides.
    pub(crate) data: Option<Value>,
}

impl Violation {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { number: code.0, fault: Fault::invalid(Stage::Envelope, message), data: None }
    }

    fn incomplete() -> Self {
        let message = format!(
            "params._meta must hold `{PROTOCOL_VERSION_KEY}` and `{CAPABILITIES_KEY}`; it is what this \
             revision has in place of a handshake"
        );
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    fn mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::HEADER_MISMATCH, message)
    }
}

/// Decides on the era of a request.
pub(crate) fn era(
    headers: &HeaderMap,
    opened: &Opened,
    input_schema: impl Fn(&str) -> Option<Arc<JsonObject>>,
) -> Result<Era, Violation> {
    let header = single(headers, VERSION_HEADER)?;
    let is_modern = header.is_some_and(is_stateless);
    if is_modern {
        check_names(headers, opened, input_schema)?;
    }
    if let ("initialize", Some(asked)) = (opened.method.as_str(), opened.params["protocolVersion"].as_str()) {
        return match header {
            Some(header) if header != asked => Err(Violation::new(
                ErrorCode::INVALID_REQUEST,
                "the MCP-Protocol-Version header differs from params.protocolVersion",
            )),
            _ => Ok(Era::Session),
        };
    }
    let meta = &opened.params["_meta"];
    let Some(version) = meta[PROTOCOL_VERSION_KEY].as_str() else {
        if is_modern || opened.method == "server/discover" {
            return Err(Violation::incomplete());
        }
        return known(header).map(|()| Era::Session);
    };
    match header {
        None => Err(Violation::mismatch("params._meta names a protocol version; the header must too")),
        Some(header) if header != version => Err(Violation::mismatch(format!(
            "the MCP-Protocol-Version header differs from `{PROTOCOL_VERSION_KEY}` in params._meta"
        ))),
        Some(_) => {
            // An older revision that is named without the rest is spoken in a session.
            let is_older = version < STATELESS_SINCE && known(header).is_ok();
            match (meta[CAPABILITIES_KEY].is_object(), is_older) {
                (true, _) => Ok(Era::Stateless),
                (false, true) => Ok(Era::Session),
                (false, false) => Err(Violation::incomplete()),
            }
        }
    }
}

/// Decides on the era of a message that wants no reply.
pub(crate) fn era_of_notification(headers: &HeaderMap, opened: Option<&Opened>) -> Result<Era, Violation> {
    let header = single(headers, VERSION_HEADER)?;
    if header.is_some_and(is_stateless) {
        if let Some(opened) = opened {
            check_names(headers, opened, |_| None)?;
        }
        return Ok(Era::Stateless);
    }
    known(header).map(|()| Era::Session)
}

/// Decides on the era of a request that has no body.
pub(crate) fn era_of_headers(headers: &HeaderMap) -> Result<Era, Violation> {
    era_of_notification(headers, None)
}

/// Whether this names a revision, ours or a later one, that has no sessions. Revisions are dates.
fn is_stateless(version: &str) -> bool {
    let is_date = version.len() == STATELESS_SINCE.len()
        && version
            .bytes()
            .zip(STATELESS_SINCE.bytes())
            .all(|(one, other)| if other == b'-' { one == b'-' } else { one.is_ascii_digit() });
    is_date && version >= STATELESS_SINCE
}

fn known(header: Option<&str>) -> Result<(), Violation> {
    let Some(version) = header else { return Ok(()) };
    let versions = ProtocolVersion::KNOWN_VERSIONS;
    if versions.iter().any(|known| known.as_str() == version) {
        return Ok(());
    }
    let mut violation = Violation::new(
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        "the MCP-Protocol-Version header names a revision that this server does not know",
    );
    let versions: Vec<_> = versions.iter().map(ProtocolVersion::as_str).collect();
    violation.data = Some(json!({"supported": versions, "requested": version}));
    Err(violation)
}

/// The headers that let a middle box route a request without reading its body.
fn check_names(
    headers: &HeaderMap,
    opened: &Opened,
    input_schema: impl Fn(&str) -> Option<Arc<JsonObject>>,
) -> Result<(), Violation> {
    let method = &opened.method;
    match single(headers, "mcp-method")? {
        Some(header) if header == method => {}
        // The handshake comes before the client knows that these headers are wanted.
        None if method == "initialize" => return Ok(()),
        None => return Err(Violation::mismatch("the Mcp-Method header is missing")),
        Some(_) => return Err(Violation::mismatch("the Mcp-Method header differs from the method")),
    }
    let member = match method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(name) = opened.params[member].as_str() else { return Ok(()) };
    match single(headers, "mcp-name")? {
        None => return Err(Violation::mismatch("the Mcp-Name header is missing")),
        Some(header) if plain(header)? != name => {
            return Err(Violation::mismatch(format!("the Mcp-Name header differs from params.{member}")));
        }
        Some(_) => {}
    }
    if method == "tools/call"
        && let Some(schema) = input_schema(name)
    {
        check_parameters(headers, schema.get("properties"), &opened.params["arguments"])?;
    }
    Ok(())
}

/// The arguments that a tool's schema wants repeated in headers.
fn check_parameters(
    headers: &HeaderMap,
    properties: Option<&Value>,
    arguments: &Value,
) -> Result<(), Violation> {
    for (name, property) in properties.and_then(Value::as_object).into_iter().flatten() {
        let argument = &arguments[name];
        if let Some(header) = property["x-mcp-header"].as_str() {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            let expected = match argument {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(argument.to_string()),
                _ => None,
            };
            let found = single(headers, &header)?.map(plain).transpose()?;
            if found != expected {
                return Err(Violation::mismatch(format!("the {header} header differs from the argument")));
            }
        }
        check_parameters(headers, property.get("properties"), argument)?;
    }
    Ok(())
}

/// The value of a header that may be there once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Violation> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value.trim())),
            Err(_) => Err(Violation::mismatch(format!("the {name} header is not plain text"))),
        },
        (Some(_), Some(_)) => Err(Violation::mismatch(format!("the {name} header is there twice"))),
    }
}

/// What a header's value stands for: text that a header cannot carry is wrapped.
fn plain(value: &str) -> Result<String, Violation> {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(wrapped) = wrapped else { return Ok(value.to_owned()) };
    let bytes = BASE64_STANDARD.decode(wrapped).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| Violation::mismatch("a wrapped header is not Base64 of text"))
}

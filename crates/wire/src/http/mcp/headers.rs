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
        (Some(_), Some(_)) => Err(Violation::mismatch(format!("the {name} header appears twice"))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_rpc::{EnvelopeMode, Message, open};

    const LEGACY: &str = "2025-06-18";
    const MODERN: &str = "2026-07-28";
    const FUTURE: &str = "2099-01-01";
    const UNKNOWN: &str = "1999-01-01";

    fn opened(message: &Value) -> Opened {
        match open(message.to_string().as_bytes(), |_| None, EnvelopeMode::Enforce) {
            Ok(Message::Request(opened) | Message::Notification(opened)) => opened,
            other => panic!("{other:?}"),
        }
    }

    fn header_map(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a header"));
        }
        map
    }

    fn request(method: &str, params: Value) -> Opened {
        opened(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// The era, or the number of the violation.
    fn found(era: Result<Era, Violation>) -> Result<Era, i32> {
        era.map_err(|violation| violation.number)
    }

    const SESSION: Result<Era, i32> = Ok(Era::Session);
    const STATELESS: Result<Era, i32> = Ok(Era::Stateless);
    const MISMATCH: Result<Era, i32> = Err(ErrorCode::HEADER_MISMATCH.0);
    const INCOMPLETE: Result<Era, i32> = Err(ErrorCode::INVALID_PARAMS.0);
    const UNSUPPORTED: Result<Era, i32> = Err(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0);
    const INVALID: Result<Era, i32> = Err(ErrorCode::INVALID_REQUEST.0);

    /// Every revision in the header against every revision in the body, without and with the client's capabilities.
    #[test]
    fn the_era_of_a_request_follows_from_the_revisions_in_header_and_body() {
        let bodies = [None, Some(LEGACY), Some(MODERN), Some(FUTURE), Some(UNKNOWN)];
        for (header, without, with) in [
            (
                None,
                [SESSION, MISMATCH, MISMATCH, MISMATCH, MISMATCH],
                [SESSION, MISMATCH, MISMATCH, MISMATCH, MISMATCH],
            ),
            (
                Some(LEGACY),
                [SESSION, SESSION, MISMATCH, MISMATCH, MISMATCH],
                [SESSION, STATELESS, MISMATCH, MISMATCH, MISMATCH],
            ),
            (
                Some(MODERN),
                [INCOMPLETE, MISMATCH, INCOMPLETE, MISMATCH, MISMATCH],
                [INCOMPLETE, MISMATCH, STATELESS, MISMATCH, MISMATCH],
            ),
            (
                Some(FUTURE),
                [INCOMPLETE, MISMATCH, MISMATCH, INCOMPLETE, MISMATCH],
                [INCOMPLETE, MISMATCH, MISMATCH, STATELESS, MISMATCH],
            ),
            (
                Some(UNKNOWN),
                [UNSUPPORTED, MISMATCH, MISMATCH, MISMATCH, INCOMPLETE],
                [UNSUPPORTED, MISMATCH, MISMATCH, MISMATCH, STATELESS],
            ),
            (
                Some("nonsense"),
                [UNSUPPORTED, MISMATCH, MISMATCH, MISMATCH, MISMATCH],
                [UNSUPPORTED, MISMATCH, MISMATCH, MISMATCH, MISMATCH],
            ),
        ] {
            for (capabilities, row) in [(None, without), (Some(json!({})), with)] {
                for (body, expected) in bodies.into_iter().zip(row) {
                    let mut meta = json!({});
                    if let Some(version) = body {
                        meta[PROTOCOL_VERSION_KEY] = json!(version);
                    }
                    if let Some(capabilities) = &capabilities {
                        meta[CAPABILITIES_KEY] = capabilities.clone();
                    }
                    let mut headers = header_map(&[("mcp-method", "tools/list")]);
                    if let Some(header) = header {
                        headers.append(VERSION_HEADER, header.parse().expect("a header"));
                    }
                    let era = era(&headers, &request("tools/list", json!({"_meta": meta})), |_| None);
                    assert_eq!(found(era), expected, "header {header:?}, _meta {meta}");
                }
            }
        }
    }

    #[test]
    fn a_handshake_opens_a_session_if_the_header_does_not_contradict_it() {
        for (header, version, expected) in [
            (None, json!(LEGACY), SESSION),
            (Some(LEGACY), json!(LEGACY), SESSION),
            (Some(LEGACY), json!("2025-11-25"), INVALID),
            (Some(MODERN), json!(LEGACY), INVALID),
            (Some(MODERN), json!(MODERN), SESSION),
            // One that names no revision is a request like any other.
            (None, json!(5), SESSION),
            (Some(UNKNOWN), json!(5), UNSUPPORTED),
            (Some(MODERN), json!(5), INCOMPLETE),
        ] {
            let headers: Vec<_> = header.map(|header| (VERSION_HEADER, header)).into_iter().collect();
            let handshake = request("initialize", json!({"protocolVersion": version}));
            let era = era(&header_map(&headers), &handshake, |_| None);
            assert_eq!(found(era), expected, "{header:?} {version}");
        }
    }

    #[test]
    fn a_discovery_always_names_its_revision() {
        for header in [None, Some(LEGACY), Some(MODERN)] {
            let mut headers = vec![("mcp-method", "server/discover")];
            headers.extend(header.map(|header| (VERSION_HEADER, header)));
            let era = era(&header_map(&headers), &request("server/discover", json!({})), |_| None);
            assert_eq!(found(era), INCOMPLETE, "{header:?}");
        }
    }

    #[test]
    fn a_message_without_a_reply_belongs_to_the_era_of_its_header() {
        let initialized = opened(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        for (header, expected) in [
            (None, SESSION),
            (Some(LEGACY), SESSION),
            (Some(MODERN), STATELESS),
            (Some(FUTURE), STATELESS),
            (Some(UNKNOWN), UNSUPPORTED),
            (Some("2026-07-2x"), UNSUPPORTED),
        ] {
            let mut headers = vec![("mcp-method", "notifications/initialized")];
            headers.extend(header.map(|header| (VERSION_HEADER, header)));
            let headers = header_map(&headers);
            assert_eq!(found(era_of_headers(&headers)), expected, "{header:?}");
            assert_eq!(found(era_of_notification(&headers, Some(&initialized))), expected, "{header:?}");
        }
        let twice = header_map(&[(VERSION_HEADER, LEGACY), (VERSION_HEADER, LEGACY)]);
        assert_eq!(found(era_of_headers(&twice)), MISMATCH);
    }

    /// SEP-2243: the headers of a stateless request repeat what a middle box routes by.
    #[test]
    fn headers_of_a_stateless_request_say_the_same_as_its_body() {
        let schema = json!({"properties": {
            "region": {"x-mcp-header": "Region"},
            "nested": {"properties": {"count": {"x-mcp-header": "Count"}}},
        }});
        let schema = Arc::new(schema.as_object().cloned().expect("an object"));
        let call = json!({"name": "n", "arguments": {"region": "\u{e9}u", "nested": {"count": 3}}});
        let good = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "n"),
            ("mcp-param-region", "=?base64?w6l1?="),
            ("mcp-param-count", "3"),
        ];
        let without = |name: &str| good.into_iter().filter(|header| header.0 != name).collect::<Vec<_>>();
        let with = |name, value| [without(name), vec![(name, value)]].concat();
        for (headers, is_good) in [
            (good.to_vec(), true),
            (with("mcp-name", "=?base64?bg==?="), true),
            (without("mcp-method"), false),
            (with("mcp-method", "tools/list"), false),
            (without("mcp-name"), false),
            (with("mcp-name", "other"), false),
            (with("mcp-name", "=?base64?not base64?="), false),
            (without("mcp-param-region"), false),
            (with("mcp-param-region", "eu"), false),
            (with("mcp-param-count", "4"), false),
            ([good.to_vec(), vec![("mcp-name", "n")]].concat(), false),
        ] {
            let mut params = call.clone();
            params["_meta"] = json!({PROTOCOL_VERSION_KEY: MODERN, CAPABILITIES_KEY: {}});
            let mut map = header_map(&headers);
            map.append(VERSION_HEADER, MODERN.parse().expect("a header"));
            let era =
                era(&map, &request("tools/call", params), |name| (name == "n").then(|| Arc::clone(&schema)));
            assert_eq!(found(era), if is_good { STATELESS } else { MISMATCH }, "{headers:?}");
        }
        // Where nobody names a tool, a resource or a task, there is nothing to repeat.
        for (method, member) in [("resources/read", "uri"), ("tasks/get", "taskId"), ("prompts/get", "name")]
        {
            let meta = json!({PROTOCOL_VERSION_KEY: MODERN, CAPABILITIES_KEY: {}});
            let headers = header_map(&[(VERSION_HEADER, MODERN), ("mcp-method", method)]);
            let named = request(method, json!({"_meta": meta, member: "x"}));
            assert_eq!(found(era(&headers, &named, |_| None)), MISMATCH, "{method}");
            let unnamed = request(method, json!({"_meta": meta}));
            assert_eq!(found(era(&headers, &unnamed, |_| None)), STATELESS, "{method}");
        }
    }
}

//! From the bytes of a frame to a message with a well-formed envelope.

use std::fmt;

use pintle_contract::{Fault, Meta, Stage, inexact_number};
use serde::{
    Deserialize,
    de::{Deserializer as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};
use thiserror::Error;

use crate::{Dialect, RequestId};

/// What happens to a message whose envelope is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvelopeMode {
    /// It is refused.
    #[default]
    Enforce,
    /// It is logged and let through, as far as it makes sense at all.
    Shadow,
}

/// A message with a good envelope.
#[derive(Debug)]
pub enum Message {
    /// It wants one reply. Without an id only where a wrong envelope was let through.
    Request(Opened),
    /// It wants no reply.
    Notification(Opened),
    /// It answers something that the server asked.
    Response(Value),
}

/// The parts of a message.
#[derive(Debug)]
pub struct Opened {
    /// The id, if it has one.
    pub id: Option<RequestId>,
    /// The method.
    pub method: String,
    /// The params; an object unless a wrong envelope was let through.
    pub params: Value,
    /// What the request says about itself.
    pub meta: Meta,
    /// The key under which the outcome is to be kept.
    pub idempotency_key: Option<String>,
    /// The language of the message.
    pub dialect: Dialect,
    /// The call that this message cancels, if that is what it is for.
    pub cancels: Option<RequestId>,
    /// What would have been refused, had the mode not let it through.
    pub shadowed: Option<Fault>,
}

/// A frame that gets an error reply and nothing else.
#[derive(Debug)]
pub struct Refused {
    /// The id, if the frame shows one.
    pub id: Option<RequestId>,
    /// The method, if the frame shows one.
    pub method: Option<String>,
    /// Why.
    pub fault: Fault,
}

/// Opens a frame. `judge` says what is wrong with the members of the outer object, if anything is: that is for a JSON
/// Schema to say (`pintle_contract::ENVELOPE_SCHEMA`), and this crate has no validator of its own.
///
/// ```
/// use pintle_rpc::{EnvelopeMode, Message, open};
///
/// let frame = br#"{"jsonrpc":"2.0","id":7,"method":"text.read","params":{"path":"a.txt"}}"#;
/// match open(frame, |_| None, EnvelopeMode::Enforce) {
///     Ok(Message::Request(opened)) => assert_eq!(opened.id.unwrap().raw(), "7"),
///     other => panic!("{other:?}"),
/// }
/// assert!(open(b"not JSON", |_| None, EnvelopeMode::Enforce).is_err());
/// ```
pub fn open(
    frame: &[u8],
    judge: impl FnOnce(&Value) -> Option<Fault>,
    mode: EnvelopeMode,
) -> Result<Message, Refused> {
    let text = std::str::from_utf8(frame).map_err(|error| {
        let byte = error.valid_up_to() + 1;
        let message = format!("the frame is not UTF-8: byte {byte} is wrong");
        Refused { id: None, method: None, fault: Fault::invalid(Stage::Parse, message) }
    })?;
    let mut fields = read_fields(text)?;
    if fields.is_response() {
        fields.map.insert("id".into(), fields.raw_id.map_or(Value::Null, exact_id));
        return Ok(Message::Response(Value::Object(fields.map)));
    }
    let method = match fields.map.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        _ => None,
    };
    let dialect = method.as_deref().map(|method| Dialect::of(method, fields.map.get("params")));
    if dialect == Some(Dialect::Mcp) && !fields.map.contains_key("params") {
        fields.map.insert("params".into(), Value::Object(Map::new()));
    }
    let id = fields.raw_id.and_then(RequestId::from_json);
    let cancels = method.as_deref().and_then(|method| cancelled_id(method, text));
    if cancels.is_none()
        && let Some(fault) = fields.check_numbers(text)
    {
        return Err(Refused { id, method, fault });
    }
    let fields = Value::Object(fields.map);
    let fault = judge(&fields).or_else(|| check_id(id.as_ref(), dialect));
    let (method, dialect, shadowed) = match (method, dialect, fault) {
        (Some(method), Some(dialect), None) => (method, dialect, None),
        (Some(method), Some(dialect), Some(fault)) if mode == EnvelopeMode::Shadow => {
            (method, dialect, Some(fault))
        }
        (method, _, fault) => {
            let fault = fault.unwrap_or_else(|| Fault::internal("an envelope without a method passed"));
            return Err(Refused { id, method, fault });
        }
    };
    let Value::Object(mut fields) = fields else {
        return Err(Refused { id, method: Some(method), fault: Fault::internal("not an object") });
    };
    // Taken in any order: the map is thrown away afterwards.
    let mut take = |name: &str| fields.swap_remove(name);
    let wants_reply = id.is_some() || !may_lack_id(&method);
    let params = take("params").filter(|params| !params.is_null());
    let opened = Opened {
        id,
        params: params.unwrap_or_else(|| Value::Object(Map::new())),
        meta: take("meta").map_or_else(Meta::default, |meta| Meta::from_value(&meta)),
        idempotency_key: match take("idempotencyKey") {
            Some(Value::String(key)) => Some(key),
            _ => None,
        },
        method,
        dialect,
        cancels,
        shadowed,
    };
    Ok(if wants_reply { Message::Request(opened) } else { Message::Notification(opened) })
}

/// The id of a response: the server chose it, so it can be held.
fn exact_id(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or(Value::Null)
}

/// The methods that may come without an id; the schema says the same.
fn may_lack_id(method: &str) -> bool {
    method.starts_with("notifications/") || method == "$/cancelRequest"
}

fn check_id(id: Option<&RequestId>, dialect: Option<Dialect>) -> Option<Fault> {
    let is_wrong = dialect == Some(Dialect::Mcp) && id.is_some_and(RequestId::is_fractional);
    is_wrong.then(|| {
        Fault::invalid(
            Stage::Envelope,
            "the envelope is wrong: `id` has a fractional part; MCP ids are strings or whole numbers",
        )
    })
}

/// The id that a cancel names, as it was written: reading it as a number might change it.
fn cancelled_id(method: &str, text: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        request_id: Option<&'a RawValue>,
    }
    let id = |pick: fn(Params<'_>) -> Option<&RawValue>| {
        let frame: Frame<'_> = serde_json::from_str(text).ok()?;
        RequestId::from_json(pick(frame.params)?.get())
    };
    match method {
        "$/cancelRequest" => id(|params| params.id),
        "notifications/cancelled" => id(|params| params.request_id),
        _ => None,
    }
}

/// The members of the outer object, and the id as it was written.
struct Fields<'a> {
    map: Map<String, Value>,
    raw_id: Option<&'a str>,
}

impl Fields<'_> {
    /// Responses answer what the server asked, and are never answered themselves. An error may come without
    /// an id, from a client that could not read what it was sent.
    fn is_response(&self) -> bool {
        let has = |name: &str| self.map.contains_key(name);
        let has_id = self.raw_id.and_then(RequestId::from_json).is_some();
        has("result") != has("error")
            && !has("method")
            && (has_id || has("error"))
            && self.map.get("jsonrpc").and_then(Value::as_str) == Some("2.0")
    }

    /// Refuses numbers that would be changed by being read. The id is not read, so it may be any.
    fn check_numbers(&self, text: &str) -> Option<Fault> {
        let (start, end) = match self.raw_id {
            Some(id) => {
                let start = id.as_ptr() as usize - text.as_ptr() as usize;
                (start, start + id.len())
            }
            None => (0, 0),
        };
        let before = || inexact_number(&text[..start]);
        let offset = before().or_else(|| Some(end + inexact_number(&text[end..])?))?;
        let column = text[..offset].chars().count() + 1;
        let message = format!("the number at column {column} cannot be held exactly, so it is not taken");
        Some(
            Fault::invalid(Stage::Envelope, message)
                .hint("send it as a string, or with at most 17 significant digits")
                .details(json!({"column": column})),
        )
    }
}

fn read_fields(text: &str) -> Result<Fields<'_>, Refused> {
    let refuse = |fault| Refused { id: None, method: None, fault };
    let not_json =
        |error: &serde_json::Error| refuse(Fault::invalid(Stage::Parse, parse_message(error, "is not JSON")));
    if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
        return Err(refuse(Fault::invalid(
            Stage::Envelope,
            "the frame is not an object; send exactly one request object per frame (no batches)",
        )));
    }
    match read_map(text, FieldsVisitor) {
        Ok(Ok(fields)) => Ok(fields),
        Ok(Err(duplicate)) => {
            let fault = Fault::invalid(Stage::Envelope, duplicate.to_string());
            Err(glimpse(text, fault).unwrap_or_else(refuse))
        }
        // It may be JSON all the same, with something in it that cannot be held here.
        Err(error) => {
            let message = parse_message(&error, "cannot be read");
            Err(glimpse(text, Fault::invalid(Stage::Envelope, message)).unwrap_or_else(|_| not_json(&error)))
        }
    }
}

fn read_map<'a, V: Visitor<'a>>(text: &'a str, visitor: V) -> Result<V::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = deserializer.deserialize_map(visitor)?;
    deserializer.end()?;
    Ok(value)
}

/// Refuses a frame with the id and the method that it shows, if it is JSON at all.
fn glimpse(text: &str, fault: Fault) -> Result<Refused, Fault> {
    match read_map(text, GlimpseVisitor) {
        Ok(Glimpse { id, method }) => Ok(Refused {
            id: id.and_then(RequestId::from_json),
            method: method.and_then(|method| serde_json::from_str(method).ok()),
            fault,
        }),
        Err(_) => Err(fault),
    }
}

/// What is wrong with a frame and where, without quoting it.
fn parse_message(error: &serde_json::Error, verdict: &str) -> String {
    let position = if error.line() > 1 {
        format!("line {}, column {}", error.line(), error.column())
    } else {
        format!("column {}", error.column())
    };
    if error.is_eof() {
        return format!("the frame {verdict}: it ends too early, at {position}");
    }
    let text = error.to_string();
    let reasons = [
        ("recursion limit exceeded", "it nests deeper than 127 levels"),
        ("number out of range", "a number is out of range"),
        ("lone leading surrogate", "a string holds half a surrogate pair"),
        ("unexpected end of hex escape", "a string holds half a surrogate pair"),
        ("trailing characters", "something follows the object"),
    ];
    let reason = reasons.iter().find(|(found, _)| text.starts_with(found));
    format!("the frame {verdict}: {} at {position}", reason.map_or("syntax error", |(_, message)| message))
}

/// The name of the first field that appears twice, cut short.
#[derive(Debug, Error)]
#[error("the envelope is wrong: field `{0}` appears twice")]
struct DuplicateField(String);

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    /// A field that appears twice is no error of the deserializer: the frame is JSON.
    type Value = Result<Fields<'de>, DuplicateField>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        let mut raw_id = None;
        let mut duplicate = None;
        while let Some(name) = members.next_key::<String>()? {
            let value = if name == "id" {
                let raw = members.next_value::<&RawValue>()?.get();
                raw_id = Some(raw);
                id_value(raw)
            } else {
                members.next_value()?
            };
            if map.contains_key(&name) {
                duplicate.get_or_insert(name);
            } else {
                map.insert(name, value);
            }
        }
        Ok(match duplicate {
            Some(name) => Err(DuplicateField(name.chars().take(80).collect())),
            None => Ok(Fields { map, raw_id }),
        })
    }
}

/// What a frame shows without its values being parsed.
struct Glimpse<'a> {
    /// None if there are two.
    id: Option<&'a str>,
    method: Option<&'a str>,
}

struct GlimpseVisitor;

impl<'de> Visitor<'de> for GlimpseVisitor {
    type Value = Glimpse<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut ids, mut methods) = (Vec::new(), Vec::new());
        while let Some(name) = members.next_key::<&RawValue>()? {
            let value = members.next_value::<&RawValue>()?.get();
            match name.get() {
                "\"id\"" => ids.push(value),
                "\"method\"" => methods.push(value),
                _ => {}
            }
        }
        let only = |found: Vec<&'de str>| if found.len() == 1 { found.first().copied() } else { None };
        Ok(Glimpse { id: only(ids), method: only(methods) })
    }
}

/// The id for the schema to judge. It never judges more than the type, so what Rust cannot hold (a
/// number past any float, a lone surrogate) may stand as any other of its type.
fn id_value(raw: &str) -> Value {
    match raw.as_bytes().first() {
        Some(b'"') => Value::from(""),
        Some(b'-' | b'0'..=b'9') => Value::from(0),
        _ => serde_json::from_str(raw).unwrap_or(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_schema::SchemaRegistry;

    fn open_text(frame: &[u8], mode: EnvelopeMode) -> Result<Message, Refused> {
        let schema = SchemaRegistry::default().load_envelope().expect("compiles");
        let judge = |fields: &Value| schema.check(fields, Stage::Envelope, "the envelope is wrong", "field");
        open(frame, judge, mode)
    }

    fn refusal(frame: &str) -> (i32, Option<String>) {
        let refused = open_text(frame.as_bytes(), EnvelopeMode::Enforce).expect_err(frame);
        (refused.fault.json_rpc_code(), refused.id.map(|id| id.raw().to_owned()))
    }

    #[test]
    fn a_wrong_frame_is_refused_with_its_number_and_its_id_where_it_has_one() {
        let one = || Some("1".to_owned());
        for (frame, number, id) in [
            ("{", -32700, None),
            (r#"{"jsonrpc":"2.0","id":1"#, -32700, None),
            ("[1", -32700, None),
            ("nonsense", -32700, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}} x"#, -32700, None),
            ("[]", -32600, None),
            ("1", -32600, None),
            ("\"x\"", -32600, None),
            ("{}", -32600, None),
            (r#"{"id":1}"#, -32600, one()),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m","params":{}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"params":{}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":7,"params":{}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"x":1}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"meta":{"x":1}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"idempotencyKey":""}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{}}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m","params":{}}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","method":"m","params":{}}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{}}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n","params":{}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1e400}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"\ud800"}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":123456789012345678901}}"#, -32600, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1e400}"#, -32700, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, -32600, Some("1.5".to_owned())),
            (r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","method":"$/cancelRequest"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, one()),
        ] {
            assert_eq!(refusal(frame), (number, id), "{frame}");
        }
    }

    #[test]
    fn a_frame_that_nests_too_deep_is_refused_with_its_id() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let frame = format!(r#"{{"jsonrpc":"2.0","id":"d","method":"m","params":{{"x":{deep}}}}}"#);
        assert_eq!(refusal(&frame), (-32600, Some("\"d\"".to_owned())));
    }

    #[test]
    fn a_cancel_names_its_call_as_it_was_written() {
        for (method, member) in [("$/cancelRequest", "id"), ("notifications/cancelled", "requestId")] {
            let frame = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"{member}":123456789012345678901}}}}"#
            );
            match open_text(frame.as_bytes(), EnvelopeMode::Enforce).expect("opens") {
                Message::Notification(opened) => {
                    assert_eq!(opened.cancels.expect("an id").key(), "123456789012345678901");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_good_frame_opens_with_its_id_as_written() {
        for raw in [
            "123456789012345678901234567890",
            "\"a\"",
            "0",
            "-1",
            "1.0",
            "1e3",
            "12345678901234567890",
            "\"é\"",
            "1e400",
            "\"\\ud800\"",
        ] {
            let frame = format!(r#"{{"params":{{"x":1}},"method":"m","jsonrpc":"2.0","id":{raw}}}"#);
            match open_text(frame.as_bytes(), EnvelopeMode::Enforce).expect("opens") {
                Message::Request(opened) => {
                    assert_eq!(opened.id.expect("an id").raw(), raw);
                    assert_eq!(opened.params, serde_json::json!({"x": 1}));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn notifications_need_no_id_and_responses_want_nothing() {
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let opened = open_text(notification, EnvelopeMode::Enforce);
        assert!(matches!(opened, Ok(Message::Notification(_))));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(matches!(open_text(response, EnvelopeMode::Enforce), Ok(Message::Response(_))));
    }

    #[test]
    fn what_a_message_says_about_itself_is_taken_out_of_its_envelope() {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1},"idempotencyKey":"k",
            "meta":{"traceparent":"00-a-b-01","progressToken":7}}"#;
        match open_text(frame, EnvelopeMode::Enforce).expect("opens") {
            Message::Request(opened) => {
                assert_eq!(opened.idempotency_key.as_deref(), Some("k"));
                assert_eq!(opened.meta.traceparent.as_deref(), Some("00-a-b-01"));
                assert_eq!(opened.meta.progress_token, Some(json!(7)));
                assert_eq!((opened.params, opened.dialect), (json!({"x": 1}), Dialect::Direct));
                assert!(opened.cancels.is_none() && opened.shadowed.is_none());
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_mcp_may_leave_out_the_params() {
        match open_text(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, EnvelopeMode::Enforce) {
            Ok(Message::Request(opened)) => assert_eq!(opened.params, json!({})),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":1,"method":"text.read"}"#),
            (-32600, Some("1".to_owned()))
        );
    }

    #[test]
    fn a_refusal_says_where_the_frame_is_wrong() {
        for (frame, expected) in [
            (&b"{\"a\":\"\xff\"}"[..], "the frame is not UTF-8: byte 7 is wrong"),
            (b"{\"a\":1", "the frame is not JSON: it ends too early, at column 6"),
            (b"{\"a\":1,}", "the frame is not JSON: syntax error at column 8"),
            (b"{\"a\":1,\"a\":2}", "the envelope is wrong: field `a` appears twice"),
            (
                b"{\"x\":123456789012345678901}",
                "the number at column 6 cannot be held exactly, so it is not taken",
            ),
            (b"[1]", "the frame is not an object; send exactly one request object per frame (no batches)"),
        ] {
            let refused = open_text(frame, EnvelopeMode::Enforce).expect_err("bad");
            assert_eq!(refused.fault.message, expected);
        }
    }

    #[test]
    fn shadow_lets_through_what_still_makes_sense() {
        let frame = br#"{"id":null,"method":"m","extra":1}"#;
        match open_text(frame, EnvelopeMode::Shadow).expect("let through") {
            Message::Request(opened) => assert!(opened.id.is_none() && opened.shadowed.is_some()),
            other => panic!("{other:?}"),
        }
        assert!(open_text(b"{\"id\":1}", EnvelopeMode::Shadow).is_err());
        assert!(open_text(b"\xff", EnvelopeMode::Shadow).is_err());
    }

    #[test]
    fn a_parse_error_does_not_quote_the_frame() {
        let refused = open_text(b"{\"secret-word\" 1}", EnvelopeMode::Enforce).expect_err("bad");
        assert!(!refused.fault.message.contains("secret"), "{}", refused.fault.message);
    }
}

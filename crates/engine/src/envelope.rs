//! Step 2: from the bytes of a frame to a message with a well-formed envelope.

use std::fmt;

use pintle_contract::{Dialect, Fault, Meta, RequestId, Stage};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use crate::schema::CompiledSchema;

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
    Response,
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

/// Opens a frame.
pub(crate) fn open(frame: &[u8], schema: &CompiledSchema, mode: EnvelopeMode) -> Result<Message, Refused> {
    let mut fields = read_fields(frame).map_err(|fault| Refused { id: None, method: None, fault })?;
    if fields.is_response() {
        return Ok(Message::Response);
    }
    let method = match fields.map.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        _ => None,
    };
    let dialect = method.as_deref().map(|method| Dialect::of(method, fields.map.get("params")));
    if dialect == Some(Dialect::Mcp) && !fields.map.contains_key("params") {
        fields.map.insert("params".into(), Value::Object(Map::new()));
    }
    let id = fields.raw_id.as_deref().and_then(RequestId::from_json);
    let fields = fields.into_value();
    let fault = check(&fields, schema, id.as_ref(), dialect);
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
    let opened = Opened {
        id,
        params: take("params").unwrap_or(Value::Null),
        meta: take("meta").map_or_else(Meta::default, |meta| Meta::from_value(&meta)),
        idempotency_key: match take("idempotencyKey") {
            Some(Value::String(key)) => Some(key),
            _ => None,
        },
        method,
        dialect,
        shadowed,
    };
    Ok(if wants_reply { Message::Request(opened) } else { Message::Notification(opened) })
}

/// The methods that may come without an id; the schema says the same.
fn may_lack_id(method: &str) -> bool {
    method.starts_with("notifications/") || method == "$/cancelRequest"
}

fn check(
    fields: &Value,
    schema: &CompiledSchema,
    id: Option<&RequestId>,
    dialect: Option<Dialect>,
) -> Option<Fault> {
    if !schema.accepts(fields) {
        return Some(schema.fault(fields, Stage::Envelope, "the envelope is wrong", "field"));
    }
    if dialect == Some(Dialect::Mcp) && id.is_some_and(RequestId::is_fractional) {
        return Some(Fault::invalid(
            Stage::Envelope,
            "the envelope is wrong: `id` has a fractional part; MCP ids are strings or whole numbers",
        ));
    }
    None
}

/// The members of the outer object, and the id as it was written.
struct Fields {
    map: Map<String, Value>,
    raw_id: Option<String>,
}

impl Fields {
    /// Responses answer what the server asked. Their shape is exact, so that a request that merely
    /// lacks its method is not taken for one.
    fn is_response(&self) -> bool {
        let has = |name: &str| self.map.contains_key(name);
        has("result") != has("error")
            && self.map.len() == 3
            && self.map.get("jsonrpc").and_then(Value::as_str) == Some("2.0")
            && self.raw_id.as_deref().and_then(RequestId::from_json).is_some()
    }

    fn into_value(self) -> Value {
        Value::Object(self.map)
    }
}

fn read_fields(frame: &[u8]) -> Result<Fields, Fault> {
    let text = std::str::from_utf8(frame).map_err(|error| {
        let place = error.valid_up_to() + 1;
        Fault::invalid(Stage::Parse, format!("the frame is not UTF-8: byte {place} is wrong"))
    })?;
    let not_json = |error: serde_json::Error| Fault::invalid(Stage::Parse, parse_message(&error));
    if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(not_json)?;
        return Err(Fault::invalid(
            Stage::Envelope,
            "the frame is not an object; send exactly one request object a frame (no batches)",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = deserializer.deserialize_map(FieldsVisitor).map_err(not_json)?;
    deserializer.end().map_err(not_json)?;
    match fields {
        Ok(fields) => Ok(fields),
        Err(duplicate) => Err(Fault::invalid(
            Stage::Envelope,
            format!("the envelope is wrong: field `{duplicate}` is there twice"),
        )),
    }
}

/// What is wrong with the JSON and where, without quoting it.
fn parse_message(error: &serde_json::Error) -> String {
    let place = if error.line() > 1 {
        format!("line {}, column {}", error.line(), error.column())
    } else {
        format!("column {}", error.column())
    };
    if error.is_eof() {
        return format!("the frame is not JSON: it ends too early, at {place}");
    }
    let text = error.to_string();
    let known = ["recursion limit exceeded", "number out of range", "trailing characters"];
    match known.iter().find(|reason| text.starts_with(**reason)) {
        Some(&"recursion limit exceeded") => {
            format!("the frame cannot be read: it nests deeper than 127 levels, at {place}")
        }
        Some(reason) => format!("the frame is not JSON: {reason} at {place}"),
        None => format!("the frame is not JSON: syntax error at {place}"),
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    /// The name of the first field that is there twice is an answer too: the frame is JSON.
    type Value = Result<Fields, String>;

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
                raw_id = Some(raw.to_owned());
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
            Some(name) => Err(name.chars().take(80).collect()),
            None => Ok(Fields { map, raw_id }),
        })
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
    use crate::schema::SchemaRegistry;

    fn open_text(frame: &[u8], mode: EnvelopeMode) -> Result<Message, Refused> {
        let schema = SchemaRegistry::default().load_envelope().expect("compiles");
        open(frame, &schema, mode)
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
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, -32600, Some("1.5".to_owned())),
            (r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","method":"$/cancelRequest"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, one()),
        ] {
            assert_eq!(refusal(frame), (number, id), "{frame}");
        }
    }

    #[test]
    fn a_good_frame_opens_with_its_id_as_written() {
        for raw in ["\"a\"", "0", "-1", "1.0", "1e3", "12345678901234567890", "\"é\"", "1e400", "\"\\ud800\""]
        {
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
        assert!(matches!(open_text(response, EnvelopeMode::Enforce), Ok(Message::Response)));
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

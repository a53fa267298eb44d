//! What must hold of frames, envelopes and request ids whatever bytes come: the properties that the fuzz targets assert.

use pintle_contract::{Fault, decimal, inexact_number};
use serde_json::{Value, value::RawValue};

use crate::{EnvelopeMode, Frame, FrameReader, Message, Refused, RequestId, open};

/// The longest line that [`frame_envelope`] takes.
const LIMIT: usize = 512;

/// Cuts bytes into lines and opens each one, in both modes. The lines are those of the bytes, none is held beyond the
/// limit, each one opens or is refused with a JSON-RPC number, and an id is in the line as it was written.
pub fn frame_envelope(bytes: &[u8], judge: impl Fn(&Value) -> Option<Fault>) {
    let mut expected = bytes.split(|byte| *byte == b'\n').peekable();
    let mut frames = FrameReader::new(bytes, LIMIT);
    while let Some(frame) = frames.next_frame().expect("bytes can be read") {
        let written = expected.next().expect("a line of the bytes");
        match frame {
            Frame::TooLong(line) => {
                assert!(written.len() > LIMIT && line.bytes == written.len() as u64);
                assert!(written.starts_with(&line.head) && written.ends_with(&line.tail));
                if let Some(id) = line.shown_id() {
                    assert_id(&id);
                }
            }
            Frame::Line(line) => {
                assert!(line == written && line.len() <= LIMIT);
                for mode in [EnvelopeMode::Enforce, EnvelopeMode::Shadow] {
                    assert_opens_or_is_refused(line, &judge, mode);
                }
            }
        }
    }
    // Behind the last newline there may be nothing, which is no line.
    assert!(expected.next().is_none_or(<[u8]>::is_empty) && expected.next().is_none());
}

fn assert_opens_or_is_refused(line: &[u8], judge: impl Fn(&Value) -> Option<Fault>, mode: EnvelopeMode) {
    let is_shadowed = mode == EnvelopeMode::Shadow;
    let (id, cancels) = match open(line, judge, mode) {
        Ok(Message::Request(opened)) => {
            assert!(is_shadowed || opened.id.is_some() && opened.params.is_object());
            assert!(is_shadowed || opened.shadowed.is_none());
            (opened.id, opened.cancels)
        }
        Ok(Message::Notification(opened)) => {
            assert!(opened.id.is_none());
            (None, opened.cancels)
        }
        Ok(Message::Response(response)) => {
            assert!(response.get("result").is_some() != response.get("error").is_some());
            (None, None)
        }
        Err(Refused { id, fault, .. }) => {
            assert!(matches!(fault.json_rpc_code(), -32700 | -32600), "{fault:?}");
            // What cannot be parsed has no id that could be trusted.
            assert!(fault.json_rpc_code() == -32600 || id.is_none());
            (id, None)
        }
    };
    for id in id.iter().chain(&cancels) {
        assert_id(id);
        let is_in_line = memchr::memmem::find(line, id.raw().as_bytes()).is_some();
        assert!(is_in_line, "{:?} is not what the client wrote", id.raw());
    }
}

/// Reads an id. What is a string or a number of JSON keeps its bytes, and its key is the same however it is written.
pub fn request_id(bytes: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(bytes) else { return };
    let raw = raw.get();
    let is_id = raw.starts_with(['"', '-']) || raw.starts_with(|first: char| first.is_ascii_digit());
    let id = RequestId::from_json(raw);
    assert_eq!(id.is_some(), is_id, "{raw}");
    let Some(id) = id else { return };
    assert_eq!(id.raw(), raw);
    assert_id(&id);
    match serde_json::from_str::<Value>(raw) {
        Ok(Value::String(text)) => {
            assert_eq!(id.key(), text);
            assert!(!id.is_fractional());
        }
        Ok(Value::Number(number)) => {
            if let Some(whole) = number.as_u64() {
                assert_eq!(id.key(), whole.to_string());
            } else if let Some(whole) = number.as_i64() {
                assert_eq!(id.key(), whole.to_string());
            }
            // What is called exact is read as the number that was written.
            if inexact_number(raw).is_none() {
                assert_eq!(decimal(&number.to_string()), decimal(raw), "{raw} was read as {number}");
            }
        }
        // Too large for a float, or half of a surrogate pair: it has an id all the same.
        _ => {}
    }
}

/// The key is an id of its own, and means the same.
fn assert_id(id: &RequestId) {
    if id.raw().starts_with('"') {
        return;
    }
    if decimal(id.raw()).is_some() {
        assert_eq!(decimal(id.key()), decimal(id.raw()), "{} as {}", id.raw(), id.key());
        let again = RequestId::from_json(id.key()).expect("a number is an id");
        assert_eq!((again.key(), again.is_fractional()), (id.key(), id.is_fractional()));
    } else {
        assert_eq!(id.key(), id.raw());
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use pintle_contract::Stage;
    use pintle_schema::SchemaRegistry;

    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        let schema = SchemaRegistry::default().load_envelope().expect("compiles");
        let judge = |fields: &Value| schema.check(fields, Stage::Envelope, "the envelope is wrong", "field");
        seeds::each_seed("frame_envelope", |bytes| frame_envelope(bytes, judge));
        seeds::each_seed("request_id", request_id);
    }
}

//! Whatever bytes come: lines stay within the limit, every line opens or is refused, nothing panics,
//! and what opens has an envelope.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pintle_rpc::{EnvelopeMode, Frame, FrameReader, Message, open};
use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_contract::Stage;
use std::sync::{Arc, OnceLock};

const LIMIT: usize = 512;

fn schema() -> &'static CompiledSchema {
    static SCHEMA: OnceLock<Arc<CompiledSchema>> = OnceLock::new();
    SCHEMA.get_or_init(|| SchemaRegistry::default().load_envelope().expect("it compiles"))
}

fuzz_target!(|bytes: &[u8]| {
    let mut frames = FrameReader::new(bytes, LIMIT);
    let mut length = 0;
    while let Some(frame) = frames.next_frame().expect("bytes can be read") {
        match frame {
            Frame::TooLong(line) => {
                assert!(line.bytes > LIMIT as u64);
                length += line.bytes as usize + 1;
            }
            Frame::Line(line) => {
                assert!(line.len() <= LIMIT);
                length += line.len() + 1;
                let judge = |fields: &serde_json::Value| schema().check(fields, Stage::Envelope, "the envelope is wrong", "field");
                match open(line, judge, EnvelopeMode::Enforce) {
                    Ok(Message::Request(opened)) => assert!(opened.id.is_some() && opened.params.is_object()),
                    Ok(Message::Notification(opened)) => assert!(opened.id.is_none()),
                    Ok(Message::Response(_)) => {}
                    Err(refused) => assert!(matches!(refused.fault.json_rpc_code(), -32700 | -32600)),
                }
            }
        }
    }
    assert!(length == bytes.len() || length == bytes.len() + 1);
});

//! Whatever bytes come: lines stay within the limit, every line opens or is refused, nothing panics,
//! and what opens has an envelope.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pintle_engine::{CallLog, Engine, Options};
use pintle_rpc::{Message};
use pintle_wire::{Frame, FrameReader};

const LIMIT: usize = 512;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(Vec::new(), Vec::new(), Options::default(), CallLog::off()).expect("an engine"))
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
                match engine().open(line) {
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

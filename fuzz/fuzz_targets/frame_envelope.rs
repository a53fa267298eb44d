//! Frames and envelopes: what a client writes to a pipe.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pintle_contract::Stage;
use pintle_schema::{CompiledSchema, SchemaRegistry};

static SCHEMA: LazyLock<Arc<CompiledSchema>> =
    LazyLock::new(|| SchemaRegistry::default().load_envelope().expect("it compiles"));

fuzz_target!(|bytes: &[u8]| pintle_rpc::fuzzing::frame_envelope(bytes, |fields| {
    SCHEMA.check(fields, Stage::Envelope, "the envelope is wrong", "field")
}));

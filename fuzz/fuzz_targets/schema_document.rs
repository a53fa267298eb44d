//! JSON Schemas and what is judged by them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_assets::fuzzing::schema_document(bytes));

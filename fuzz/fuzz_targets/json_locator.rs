//! Positions of values in a JSON text.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_assets::fuzzing::json_locator(bytes));

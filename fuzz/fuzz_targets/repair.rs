//! Arguments that are converted to what their schema takes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_engine::fuzzing::repair_arguments(bytes));

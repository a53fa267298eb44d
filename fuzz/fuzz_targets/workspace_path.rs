//! Paths: what every tool takes from a caller.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_contract::fuzzing::workspace_path(bytes));

//! Scopes: what a caller may do.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_contract::fuzzing::scopes(bytes));

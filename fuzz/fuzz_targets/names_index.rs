//! The index of names, built from any names and damaged in any way.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_ranked::fuzzing::names_index(bytes));

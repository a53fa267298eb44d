//! The index of words, built from any text and damaged in any way.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_ranked::fuzzing::words_index(bytes));

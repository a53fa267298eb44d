//! Queries of `search`: literals and regular expressions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_search::fuzzing::search_pattern(bytes));

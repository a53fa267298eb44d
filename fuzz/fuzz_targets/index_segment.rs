//! Segments of the search index, written well or damaged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_search::fuzzing::index_segment(bytes));

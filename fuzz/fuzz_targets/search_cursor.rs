//! Cursors: where the next page of a search begins.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_search::fuzzing::search_cursor(bytes));

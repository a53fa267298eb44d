//! Posting lists: the blocks that a trigram occurs in.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_search::fuzzing::posting_list(bytes));

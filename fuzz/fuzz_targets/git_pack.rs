//! Packs and deltas of a git repository.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_git::fuzzing::git_pack(bytes));

//! Patterns of a `.gitignore`, against a plain model.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_git::fuzzing::ignore_pattern(bytes));

//! The configuration of a git repository, and the names of objects.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_git::fuzzing::git_config(bytes));

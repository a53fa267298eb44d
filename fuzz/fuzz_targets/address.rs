//! Addresses of resources such as `list:///a%20b`, and hashes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_files::fuzzing::address(bytes));

//! Archives of packs: `.tar.gz` and `.zip`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_packs::fuzzing::archive(bytes));

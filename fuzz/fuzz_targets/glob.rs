//! Globs of `file.list`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_files::fuzzing::glob(bytes));

//! Edits of lines, against a plain list of lines.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_files::fuzzing::edits(bytes));

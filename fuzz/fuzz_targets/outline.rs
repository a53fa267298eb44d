//! Outlines: what source files define, whatever they contain.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_symbols::fuzzing::outline(bytes));

//! Manifests: files that make a program a tool.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_commands::fuzzing::tool_manifest(bytes));

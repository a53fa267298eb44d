//! MCP messages: what the SDK is given of what a client sends.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_wire::fuzzing::mcp_message(bytes));

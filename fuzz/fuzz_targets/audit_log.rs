//! The lines of an audit log, and its head.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_auth::fuzzing::audit_log(bytes));

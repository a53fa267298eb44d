//! Request ids: what replies and cancels are matched by.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_rpc::fuzzing::request_id(bytes));

//! Bearer tokens (JWTs).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_auth::fuzzing::token(bytes));

//! The public keys of an authorization server (JWKS).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_auth::fuzzing::key_set(bytes));

//! Headers of a request: the era, `Accept`, `Host`, `Origin`, `Last-Event-ID` and the request id.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_wire::fuzzing::http_headers(bytes));

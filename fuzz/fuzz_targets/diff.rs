//! Patches: what turns one asset into another.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_assets::fuzzing::diff(bytes, |base, patch| {
    let patch: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
    json_patch::patch(base, &patch).expect("it applies");
}));

//! Whatever two values: the patch turns the one into the other, and is sorted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(mut base)), Some(Ok(new))) = (values.next(), values.next()) else { return };
    let operations = pintle_assets::diff(&base, &new);
    assert!(operations.is_sorted_by(|a, b| a.path() <= b.path()));
    let patch: json_patch::Patch = serde_json::from_value(json!(operations)).expect("a patch");
    json_patch::patch(&mut base, &patch).expect("it applies");
    assert_eq!(base, new);
});

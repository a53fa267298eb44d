//! What must hold of the configuration whatever its file holds: the property that the fuzz target asserts.

use std::path::Path;

use pintle_positions::text_of;

use self::position::assert_position;
use super::ConfigFile;

const FILE: &str = "p.toml";

/// See [`crate::fuzzing::configuration`].
pub(crate) fn configuration(bytes: &[u8]) {
    let file = Path::new(FILE);
    let text = match text_of(bytes, file) {
        Ok(text) => text,
        Err(problem) => return assert_position(FILE, &String::from_utf8_lossy(bytes), &problem.to_string()),
    };
    if let Err(problem) = ConfigFile::parse(&text, file) {
        assert_position(FILE, &text, &problem.to_string());
    }
}

#[path = "../../../../fuzz/position.rs"]
mod position;

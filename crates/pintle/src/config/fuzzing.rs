//! What must hold of the configuration whatever its file holds: the property that the fuzz target asserts.

use std::path::Path;

use pintle_positions::text_of;

use super::ConfigFile;

/// See [`crate::fuzzing::configuration`].
pub(crate) fn configuration(bytes: &[u8]) {
    let file = Path::new("p.toml");
    let text = match text_of(bytes, file) {
        Ok(text) => text,
        Err(problem) => return assert_position(&String::from_utf8_lossy(bytes), &problem.to_string()),
    };
    if let Err(problem) = ConfigFile::parse(&text, file) {
        assert_position(&text, &problem.to_string());
    }
}

/// An error names the file, and a line and a column in it.
fn assert_position(text: &str, problem: &str) {
    let position = problem.strip_prefix("p.toml: line ").and_then(|rest| {
        let (line, rest) = rest.split_once(", column ")?;
        let (column, _) = rest.split_once(": ")?;
        Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?))
    });
    let (line, column) = position.unwrap_or_else(|| panic!("no position: {problem}"));
    let found = line.checked_sub(1).and_then(|index| text.split('\n').nth(index));
    let length = found.map(|line| line.chars().count());
    assert!(length.is_some_and(|length| (1..=length + 1).contains(&column)), "beyond the file: {problem}");
}

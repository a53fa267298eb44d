//! A property of every error about a configuration file, for the crates that read one.

/// Asserts that an error names the file, and a line and a column that exist in its text.
pub(crate) fn assert_position(file: &str, text: &str, problem: &str) {
    let position = problem.strip_prefix(file).and_then(|rest| {
        let (line, rest) = rest.strip_prefix(": line ")?.split_once(", column ")?;
        let (column, _) = rest.split_once(": ")?;
        Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?))
    });
    let (line, column) = position.unwrap_or_else(|| panic!("no position: {problem}"));
    let found = line.checked_sub(1).and_then(|index| text.split('\n').nth(index));
    let length = found.map(|line| line.chars().count());
    assert!(length.is_some_and(|length| (1..=length + 1).contains(&column)), "beyond the file: {problem}");
}

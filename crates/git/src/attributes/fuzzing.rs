//! What must hold of `.gitattributes` whatever bytes come: the property that the fuzz target asserts.

use std::sync::Arc;

use super::{AttributeFiles, Conversion, parse};

/// Reads the attributes, and a path from the first line. The answer is the same the second time, and a rule for all paths
/// at the end goes before all others.
pub(crate) fn git_attributes(bytes: &[u8]) {
    let (path, text) = bytes.split_at(memchr::memchr(b'\n', bytes).unwrap_or(bytes.len()));
    let found = conversion(text, path);
    assert_eq!(found, conversion(text, path));
    let closed = [text, b"\n* -text\n"].concat();
    // A pattern that has no slash is compared with the last name, which any path has.
    assert_eq!(conversion(&closed, path), Conversion::None);
    let commented = [text, b"\n# * text\n\n"].concat();
    assert_eq!(conversion(&commented, path), found);
}

fn conversion(text: &[u8], path: &[u8]) -> Conversion {
    let lists = vec![(0, Arc::new(parse(text)))];
    let mut found = AttributeFiles::default();
    for (pattern, assignments) in lists[0].1.rules.iter().rev() {
        if pattern.matches(path, false) {
            found.take(assignments, &lists);
        }
    }
    found.conversion(false)
}

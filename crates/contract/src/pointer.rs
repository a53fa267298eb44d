//! JSON pointers (RFC 6901).

/// A member name as one segment of a JSON pointer.
///
/// ```
/// assert_eq!(pintle_contract::pointer_segment("a/b~c"), "a~1b~0c");
/// ```
pub fn pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

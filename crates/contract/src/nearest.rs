//! The nearest known name, for error messages with a suggestion.

/// The candidate that is closest to `name`, if there is any candidate at all.
///
/// ```
/// use pintle_contract::nearest;
///
/// assert_eq!(nearest("shema", ["asset", "schema"]), Some("schema"));
/// assert_eq!(nearest("x", []), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A hostile name can be long; its beginning is enough to compare.
    let head: String = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let distance = |candidate: &str| {
        (1000.0 * strsim::jaro_winkler(&head, &candidate.to_lowercase())) as i64
            - 100 * strsim::damerau_levenshtein(&head, &candidate.to_lowercase()) as i64
    };
    candidates.into_iter().max_by_key(|candidate| distance(candidate))
}

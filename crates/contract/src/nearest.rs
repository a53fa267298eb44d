//! The nearest known name, for error messages with a suggestion.

/// The candidate that `name` is probably a misspelling of. A candidate that has little in common with it is none: a wrong
/// suggestion is worse than a list of what there is.
///
/// ```
/// use pintle_contract::nearest;
///
/// assert_eq!(nearest("shema", ["asset", "schema"]), Some("schema"));
/// assert_eq!(nearest("config", ["running", "waiting"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A hostile name can be long; its beginning is enough to compare.
    let head: String = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let similar =
        candidates.into_iter().filter_map(|candidate| Some((similarity(&head, candidate)?, candidate)));
    similar.max_by_key(|(similarity, _)| *similarity).map(|(_, candidate)| candidate)
}

/// How similar two names are; none if they are too different for a suggestion.
fn similarity(name: &str, candidate: &str) -> Option<i64> {
    let candidate = candidate.to_lowercase();
    let as_written = strsim::damerau_levenshtein(name, &candidate);
    // `read_file` and `file.read` are the same words in another order.
    let distance =
        as_written.min(1 + strsim::damerau_levenshtein(&sorted_words(name), &sorted_words(&candidate)));
    let longer = name.chars().count().max(candidate.chars().count());
    // At least one letter is the same, however short the names are.
    let is_typo = distance <= (longer / 3).max(1) && distance < longer;
    (is_typo || is_beginning(name, &candidate))
        .then(|| (1000.0 * strsim::jaro_winkler(name, &candidate)) as i64 - 100 * distance as i64)
}

/// Whether one of two names begins with the other, as `meta` and `metadata` do.
fn is_beginning(name: &str, other: &str) -> bool {
    const SHORTEST: usize = 3;
    name.len().min(other.len()) >= SHORTEST && (name.starts_with(other) || other.starts_with(name))
}

fn sorted_words(name: &str) -> String {
    let mut words: Vec<&str> = name.split(['.', '_', '-', ' ']).collect();
    words.sort_unstable();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_a_beginning_and_other_word_order_are_suggestions_and_nothing_else_is() {
        let settings = ["running", "waiting", "schemas_dir", "log_file", "drain", "timeouts"];
        let tools = ["file.list", "file.move", "file.read", "search", "text.read", "validate_asset"];
        let arguments = ["path", "lines", "to", "agentId"];
        for (name, candidates, expected) in [
            ("shemas_dir", &settings[..], Some("schemas_dir")),
            ("LOG_FIEL", &settings, Some("log_file")),
            ("timeout", &settings, Some("timeouts")),
            ("drian", &settings, Some("drain")),
            ("config", &settings, None),
            ("", &settings, None),
            ("text_read", &tools, Some("text.read")),
            ("read_file", &tools, Some("file.read")),
            ("list_files", &tools, Some("file.list")),
            ("serch", &tools, Some("search")),
            ("validate", &tools, Some("validate_asset")),
            ("foo", &tools, None),
            ("pth", &arguments, Some("path")),
            ("agent", &arguments, Some("agentId")),
            ("ot", &arguments, Some("to")),
            ("x", &arguments, None),
            ("range", &arguments, None),
            ("x", &["y"], None),
        ] {
            assert_eq!(nearest(name, candidates.iter().copied()), expected, "{name}");
        }
    }
}

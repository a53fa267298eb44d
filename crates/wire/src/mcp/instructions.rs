//! What models read before they choose a tool: why these tools, and how one call leads to the next.

use std::collections::HashSet;

/// The instructions for a client that is shown these tools, by their canonical names: nothing is taught that is not
/// there. Clients cut them at 2 KB.
pub fn instructions(listed: &HashSet<&str>) -> String {
    let has = |name: &str| listed.contains(name);
    let mut text = String::new();
    if has("search") || has("text.read") {
        text.push_str(
            "Use these tools for every read, search and edit in this workspace: searches have ripgrep's exact hits and answer from an index, an edit never overwrites what somebody else has changed, and no path leaves the workspace.\n\nThe loop:\n",
        );
    }
    let steps = [
        (
            has("search"),
            "`search` finds text, regular expressions, ranked words or symbols; each hit has the file's `hash` and its line. With `count` it counts.",
        ),
        (
            has("text.read"),
            "`text_read` and `show_file` read lines; `file_list` with `depth` or `glob` shows a tree or finds files.",
        ),
        (
            has("text.replace"),
            "Edit from the hit: `text_replace`, `text_insert` and `text_append` take the `hash` of a search, a read or the last edit. Read nothing again that you have just seen. Each edit returns the new `hash` for the next one. The first 8 digits of a hash are enough.",
        ),
        (
            has("text.edit"),
            "Several edits, in one file or many: one call of `text_edit`, which makes all or none.",
        ),
        (
            has("text.substitute"),
            "The same change wherever a text stands, such as a rename: `text_substitute`, with `dry_run`, then with `expect`.",
        ),
        (
            has("validate_asset"),
            "`list_schemas` and `get_schema` show the JSON Schemas; `validate_asset` checks JSON against one before it is written or published.",
        ),
        (
            true,
            "If a call is refused, the error says what was found, what was expected and what to send next: follow it. `CONFLICT` means that the file has changed since: nothing was done, read the lines again.",
        ),
    ];
    for (number, (_, step)) in (1..).zip(steps.into_iter().filter(|(is_there, _)| *is_there)) {
        text.push_str(&format!("{number}. {step}\n"));
    }
    if has("text.read") {
        text.push_str("\nPaths are relative to the workspace, such as `src/main.rs`. `lines` is [start, end), counted from 1: [3, 8] is lines 3 to 7, [1, 0] is all. `old` and `anchor` are whole lines, exactly as they stand in the file; `old` is a part of one with `within`.\n");
    }
    text.push_str("Messages may name a tool with a dot: `text.read` is `text_read`.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_taught_in_less_than_two_kilobytes() {
        let all = ["search", "text.read", "text.replace", "text.edit", "text.substitute", "validate_asset"];
        assert!(instructions(&HashSet::from(all)).len() < 2048);
        let reading = instructions(&HashSet::from(["search", "text.read"]));
        assert!(reading.contains("`search`") && !reading.contains("`text_replace`"), "{reading}");
        let assets = instructions(&HashSet::from(["validate_asset"]));
        assert!(assets.starts_with("1. `list_schemas`") && !assets.contains("`search`"), "{assets}");
    }
}

//! Suggests the argument that a caller meant by one that the tool does not have.
//!
//! Models use argument names of other tools that they know. Edit distance does not see that `glob` of one tool is `path`
//! of another, so a table comes first.

use crate::nearest;

/// An argument, the names that models write for it, and how to use it instead.
struct Meant {
    /// The row applies only to tools that also have this argument; to any tool if it is empty.
    beside: &'static str,
    argument: &'static str,
    written: &'static [&'static str],
    how: &'static str,
}

const fn meant(argument: &'static str, written: &'static [&'static str], how: &'static str) -> Meant {
    Meant { beside: "", argument, written, how }
}

/// In order of precedence: the first row whose argument the tool has wins.
const TABLE: &[Meant] = &[
    meant("path", &["file_path", "filepath", "file", "filename", "file_name"], ""),
    meant("path", &["directory", "dir", "folder"], ""),
    meant("to", &["destination", "dest", "new_path", "target"], ""),
    meant("path", &["source", "target_file"], ""),
    meant("query", &["regex", "regexp"], " with `match`: \"regex\""),
    meant("query", &["pattern"], ", with `match`: \"regex\" where it is an expression"),
    meant("query", &["q", "text", "term", "needle"], ""),
    Meant {
        beside: "replacement",
        argument: "query",
        written: &["old", "old_string", "old_str", "old_text", "search", "find", "from"],
        how: "",
    },
    meant(
        "replacement",
        &["new", "new_string", "new_str", "new_text", "replace", "with", "to", "replace_with"],
        "",
    ),
    meant(
        "expect",
        &["expected", "count", "expected_count", "expected_matches", "expected_replacements"],
        "",
    ),
    meant("glob", &["pattern", "include", "globs"], ""),
    Meant {
        beside: "query",
        argument: "path",
        written: &["glob", "include", "globs", "paths"],
        how: ", which takes globs",
    },
    meant("top", &["limit", "max_results", "head_limit", "max_count", "count_limit"], ""),
    meant(
        "lines",
        &[
            "start_line",
            "end_line",
            "offset",
            "limit",
            "line_start",
            "line_end",
            "start",
            "end",
            "line_range",
            "range",
        ],
        ": [start, end), counted from 1",
    ),
    meant("line", &["line_number", "insert_line"], ""),
    meant("case", &["ignore_case", "-i", "i", "case_insensitive"], ": \"insensitive\""),
    meant("case", &["case_sensitive"], ": \"sensitive\" or \"insensitive\""),
    meant("word", &["-w", "whole_word"], ""),
    meant("after", &["-A", "after_context"], ""),
    meant("before", &["-B", "before_context"], ""),
    meant("context", &["-C", "context_lines"], ""),
    meant("lang", &["language"], ""),
    meant("depth", &["recursive", "max_depth"], ", a number of levels"),
    meant("old", &["old_string", "old_str", "old_text", "oldText"], ""),
    meant("all", &["replace_all", "global"], ""),
    meant("dry_run", &["dry_run", "preview", "simulate"], ""),
    meant("edits", &["changes", "operations", "files", "replacements"], ""),
    meant("hash", &["sha256", "tag", "expected_hash"], ""),
    meant("new", &["new_string", "new_str", "new_text", "newText", "replacement"], ""),
    meant("content", &["file_text", "contents", "new_str", "insert_text", "text"], ""),
];

/// The known argument that an unknown one probably means, with how to use it: from the table, else the nearest in
/// spelling.
///
/// ```
/// use pintle_contract::meant_by;
///
/// assert_eq!(meant_by("file_path", &["path", "lines"]), Some(("path", "")));
/// assert_eq!(meant_by("lnes", &["path", "lines"]), Some(("lines", "")));
/// assert_eq!(meant_by("x", &[]), None);
/// ```
pub fn meant_by<'a>(written: &str, known: &[&'a str]) -> Option<(&'a str, &'static str)> {
    let snake = snake_case(written);
    let is_meant = |row: &&Meant| {
        let is_written = row.written.contains(&written) || row.written.contains(&snake.as_str());
        is_written && (row.beside.is_empty() || known.contains(&row.beside))
    };
    let rows = TABLE.iter().filter(is_meant);
    let find = |row: &Meant| Some((*known.iter().find(|known| **known == row.argument)?, row.how));
    rows.filter_map(find).next().or_else(|| Some((nearest(written, known.iter().copied())?, "")))
}

/// Converts `filePath` to `file_path`. A hostile name can be long; its beginning is enough.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars().take(64) {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_other_tools_are_understood_by_what_this_tool_has() {
        let search = ["query", "match", "case", "path", "top", "context", "before", "after", "word", "lang"];
        let read = ["path", "lines"];
        let list = ["path", "depth", "glob", "type", "ignored"];
        let replace = ["path", "hash", "lines", "old", "new"];
        let create = ["path", "content", "encoding"];
        let edit = ["path", "hash", "lines", "old", "new", "all", "within", "line", "anchor", "content"];
        let substitute = ["query", "match", "replacement", "path", "expect", "dry_run"];
        for (known, written, expected) in [
            (&search[..], "pattern", "query"),
            (&search, "regex", "query"),
            (&search, "glob", "path"),
            (&search, "include", "path"),
            (&search, "limit", "top"),
            (&search, "max_results", "top"),
            (&search, "head_limit", "top"),
            (&search, "ignore_case", "case"),
            (&search, "-i", "case"),
            (&search, "-A", "after"),
            (&search, "-B", "before"),
            (&search, "-C", "context"),
            (&read, "file_path", "path"),
            (&read, "file", "path"),
            (&read, "start_line", "lines"),
            (&read, "end_line", "lines"),
            (&read, "offset", "lines"),
            (&read, "limit", "lines"),
            (&list, "pattern", "glob"),
            (&list, "recursive", "depth"),
            (&list, "directory", "path"),
            (&list, "dir", "path"),
            (&replace, "filename", "path"),
            (&substitute, "old_string", "query"),
            (&substitute, "pattern", "query"),
            (&substitute, "newText", "replacement"),
            (&substitute, "with", "replacement"),
            (&substitute, "glob", "path"),
            (&substitute, "expectedCount", "expect"),
            (&substitute, "dryRun", "dry_run"),
            (&replace, "old_string", "old"),
            (&replace, "old_str", "old"),
            (&replace, "new_string", "new"),
            (&replace, "new_str", "new"),
            (&create, "file_text", "content"),
            (&edit, "oldText", "old"),
            (&edit, "replace_all", "all"),
            (&edit, "replaceAll", "all"),
            (&["edits", "dry_run"], "dryRun", "dry_run"),
            (&read, "filePath", "path"),
            (&search, "maxResults", "top"),
            (&replace, "oldString", "old"),
        ] {
            assert_eq!(meant_by(written, known).map(|(argument, _)| argument), Some(expected), "{written}");
        }
        // Only the path of a search takes globs.
        assert!(meant_by("glob", &read).is_none_or(|(_, how)| how.is_empty()));
    }
}

//! Which arguments of an edit go together. Schemas stay flat, so that every client understands them; what excludes what is
//! checked here.

use std::collections::HashSet;

use pintle_contract::WorkspacePath;
use pintle_tool::ArgumentProblem;
use serde_json::Value;

/// The most edits of one call, and the most files that they are in.
const MAX_EDITS: usize = 500;
const MAX_FILES: usize = 200;
/// The most bytes of new content.
const MAX_NEW: usize = 64 << 20;

/// Checks the arguments of a replacement at a JSON pointer.
pub(super) fn check_replace(arguments: &Value, pointer: &str, problems: &mut Vec<ArgumentProblem>) {
    let is_given = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
    let is_true = |name: &str| arguments.get(name) == Some(&Value::Bool(true));
    let located = if pointer.is_empty() { String::new() } else { format!("`{pointer}`: ") };
    let mut problem = |name: &str, message: String| {
        let path = if name.is_empty() { pointer.to_owned() } else { format!("{pointer}/{name}") };
        problems.push(ArgumentProblem { path, message: format!("{located}{message}") });
    };
    if !is_given("old") && !is_given("lines") {
        problem(
            "",
            "argument `lines` or `old` is missing: what to replace, by number or by its text".to_owned(),
        );
    }
    for name in ["all", "within"] {
        if is_true(name) && !is_given("old") {
            problem(name, format!("`{name}` says how `old` is replaced, and `old` is missing"));
        }
        if is_true(name) && arguments.get("old").is_some_and(|old| old == "") {
            problem("old", format!("`old` must not be empty with `{name}`"));
        }
    }
}

/// Checks the arguments of `text.edit`: each edit, and how much they are together.
pub(super) fn check_edits(arguments: &Value) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    let Some(edits) = arguments.get("edits").and_then(Value::as_array) else { return problems };
    let mut refuse = |message: String| problems.push(ArgumentProblem { path: "/edits".to_owned(), message });
    let path_of = |edit: &Value| {
        let path = edit.get("path").and_then(Value::as_str)?;
        Some(WorkspacePath::parse(path).map_or_else(|_| path.to_owned(), |path| path.as_str().to_owned()))
    };
    let files = edits.iter().filter_map(path_of).collect::<HashSet<_>>().len();
    let text = |edit: &Value, name: &str| edit.get(name).and_then(Value::as_str).map_or(0, str::len);
    let new: usize = edits.iter().map(|edit| text(edit, "new") + text(edit, "content")).sum();
    if edits.is_empty() {
        refuse("`edits` is empty: there is nothing to do".to_owned());
    }
    if edits.len() > MAX_EDITS {
        refuse(format!("{} edits are given; a call takes at most {MAX_EDITS}", edits.len()));
    }
    if files > MAX_FILES {
        refuse(format!("the edits are in {files} files; a call takes at most {MAX_FILES}"));
    }
    if new > MAX_NEW {
        refuse(format!("the edits have {new} bytes of new content; a call takes at most {MAX_NEW}"));
    }
    if problems.is_empty() {
        for (number, edit) in edits.iter().enumerate().filter(|(_, edit)| edit.is_object()) {
            check_edit(edit, &format!("/edits/{number}"), &mut problems);
        }
    }
    problems
}

/// Checks that the arguments of one edit are those of one kind of edit, and that none is missing.
fn check_edit(edit: &Value, pointer: &str, problems: &mut Vec<ArgumentProblem>) {
    let is_given =
        |name: &&str| edit.get(name).is_some_and(|value| !value.is_null() && *value != Value::Bool(false));
    let replaces: Vec<&str> = ["lines", "old", "new", "all", "within"].into_iter().filter(is_given).collect();
    let adds: Vec<&str> = ["line", "anchor", "content"].into_iter().filter(is_given).collect();
    let mut refuse = |message: String| {
        problems
            .push(ArgumentProblem { path: pointer.to_owned(), message: format!("`{pointer}`: {message}") });
    };
    match (replaces.first(), adds.first()) {
        (Some(replaces), Some(adds)) => {
            let missing = if is_given(&"new") { "" } else { ", for which `new` is missing" };
            refuse(format!(
                "`{replaces}` and `{adds}` do not go together: one is to replace{missing}, the other to insert or append; make two edits of them, or leave one out"
            ));
        }
        (Some(_), None) => {
            if !is_given(&"new") {
                refuse("argument `new` is missing: what replaces the lines".to_owned());
            }
            check_replace(edit, pointer, problems);
        }
        (None, Some(_)) => {
            if !is_given(&"content") {
                refuse("argument `content` is missing: the lines to insert or to append".to_owned());
            }
            if is_given(&"anchor") && !is_given(&"line") {
                refuse("argument `line` is missing: the number of the line that `anchor` is".to_owned());
            }
        }
        (None, None) => refuse(
            "what to do is missing: `new` with `lines` or `old` to replace, `line` and `content` to insert, `content` to append or to create the file".to_owned(),
        ),
    }
}

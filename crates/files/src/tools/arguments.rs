//! Which arguments of an edit go together. Schemas stay flat, so that every client understands them; what excludes what is
//! checked here.

use pintle_tool::ArgumentProblem;
use serde_json::Value;

/// Checks the arguments of a replacement at a JSON pointer.
pub(super) fn check_replace(arguments: &Value, pointer: &str, problems: &mut Vec<ArgumentProblem>) {
    let is_given = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
    let is_true = |name: &str| arguments.get(name) == Some(&Value::Bool(true));
    let mut problem = |name: &str, message: String| {
        let path = if name.is_empty() { pointer.to_owned() } else { format!("{pointer}/{name}") };
        problems.push(ArgumentProblem { path, message });
    };
    if !is_given("old") && !is_given("lines") {
        problem("", "argument `lines` or `old` is missing: what to replace, by number or by its text".to_owned());
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

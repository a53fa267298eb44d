//! Ranges of lines that models write as `"3-7"` instead of `[start, end)`.

use serde_json::{Value, json};

/// Converts a text in the argument `lines`, in every tool that has it: `3-7` is lines 3 to 7, both included.
///
/// ```
/// use pintle_contract::reread_lines;
/// use serde_json::json;
///
/// assert_eq!(reread_lines("lines", "3-7"), Some(json!([3, 8])));
/// assert_eq!(reread_lines("lines", "7-3"), None);
/// assert_eq!(reread_lines("path", "3-7"), None);
/// ```
pub fn reread_lines(argument: &str, text: &str) -> Option<Value> {
    let range = (argument == "lines").then(|| inclusive_range(text)).flatten();
    range.map(|lines| json!(lines))
}

/// Parses `3-7` as a range with an exclusive end, as the tools expect it.
fn inclusive_range(text: &str) -> Option<[i64; 2]> {
    let (start, last) = text.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u32>().ok().map(i64::from);
    let (start, last) = (number(start)?, number(last)?);
    (start >= 1 && last >= start).then_some([start, last + 1])
}

//! Finds the line and column of the value that a JSON Pointer (RFC 6901) names in a JSON text. `serde_json` keeps no
//! positions, so this scans the text itself, without recursion, so that deep nesting cannot overflow the stack.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use pintle_contract::pointer_segment;

/// The line and column (both from 1, the column in characters) of the value that a JSON pointer names.
///
/// ```
/// use pintle_assets::locate;
///
/// let text = "{\n  \"é\": [1, 22]\n}";
/// assert_eq!(locate(text, "/é/1"), Some((2, 12)));
/// assert_eq!(locate(text, "/x"), None);
/// ```
pub fn locate(text: &str, pointer: &str) -> Option<(usize, usize)> {
    locate_all(text, [pointer]).remove(pointer)
}

/// The positions of many values, found in one pass; a pointer to nothing is left out.
pub(crate) fn locate_all<'p>(
    text: &str,
    pointers: impl IntoIterator<Item = &'p str>,
) -> BTreeMap<&'p str, (usize, usize)> {
    let wanted: BTreeSet<&str> = pointers.into_iter().collect();
    let mut scanner = Scanner { text, position: 0, wanted, found: BTreeMap::new() };
    if scanner.scan().is_none() {
        return BTreeMap::new();
    }
    with_lines(text, scanner.found)
}

/// The line and column (both from 1, the column in characters) of an offset in bytes.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Turns offsets into lines and columns, in one pass over the text.
fn with_lines<'p>(text: &str, found: BTreeMap<&'p str, usize>) -> BTreeMap<&'p str, (usize, usize)> {
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, offset)| *offset);
    let (mut offset, mut line, mut column) = (0, 1, 1);
    let mut positions = BTreeMap::new();
    for (pointer, target) in found {
        for character in text[offset..target].chars() {
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        offset = target;
        positions.insert(pointer, (line, column));
    }
    positions
}

struct Scanner<'t, 'p> {
    text: &'t str,
    position: usize,
    wanted: BTreeSet<&'p str>,
    /// Offsets of the values found so far.
    found: BTreeMap<&'p str, usize>,
}

/// A container that the scanner is inside of.
struct Frame {
    /// The length of the container's own JSON Pointer.
    pointer_length: usize,
    /// The index of the current item; none in an object.
    item: Option<usize>,
}

impl<'p> Scanner<'_, 'p> {
    /// Scans the whole text; returns `None` if it is not JSON.
    fn scan(&mut self) -> Option<()> {
        let mut pointer = String::new();
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            let opened = self.begin_value(&pointer)?;
            if let Some(item) = opened {
                frames.push(Frame { pointer_length: pointer.len(), item });
                if self.step_into(&mut pointer, item)? {
                    continue;
                }
                frames.pop();
            }
            // A value has ended: leave every container that ends here, and go to the next value.
            loop {
                let Some(frame) = frames.last_mut() else {
                    return self.peek().is_none().then_some(());
                };
                pointer.truncate(frame.pointer_length);
                if self.step_on(&mut pointer, frame)? {
                    break;
                }
                frames.pop();
            }
        }
    }

    /// Records where a value begins. A scalar is skipped; a container is opened, and the index of its first item is
    /// returned (none in an object).
    fn begin_value(&mut self, pointer: &str) -> Option<Option<Option<usize>>> {
        let byte = self.peek()?;
        self.note(pointer);
        match byte {
            b'{' => self.take(b'{').map(|()| Some(None)),
            b'[' => self.take(b'[').map(|()| Some(Some(0))),
            b'"' => self.string().map(|_| None),
            _ => self.scalar().map(|()| None),
        }
    }

    /// Goes to the first value of a container; false if it is empty and has ended.
    fn step_into(&mut self, pointer: &mut String, item: Option<usize>) -> Option<bool> {
        let end = if item.is_some() { b']' } else { b'}' };
        if self.peek()? == end {
            self.take(end)?;
            return Some(false);
        }
        self.push_segment(pointer, item)?;
        Some(true)
    }

    /// Goes from one value of a container to the next; false if the container has ended.
    fn step_on(&mut self, pointer: &mut String, frame: &mut Frame) -> Option<bool> {
        let end = if frame.item.is_some() { b']' } else { b'}' };
        if self.peek()? == end {
            self.take(end)?;
            return Some(false);
        }
        self.take(b',')?;
        frame.item = frame.item.map(|item| item + 1);
        self.push_segment(pointer, frame.item)?;
        Some(true)
    }

    fn push_segment(&mut self, pointer: &mut String, item: Option<usize>) -> Option<()> {
        pointer.push('/');
        match item {
            Some(item) => pointer.push_str(&item.to_string()),
            None => {
                self.peek()?;
                let key = self.string()?;
                pointer.push_str(&pointer_segment(&key));
                self.peek()?;
                self.take(b':')?;
            }
        }
        Some(())
    }

    fn note(&mut self, pointer: &str) {
        // Of members with the same name the last one wins, as in serde_json, so positions inside earlier ones go.
        let within = |found: &str| matches!(found.as_bytes().get(pointer.len()), None | Some(b'/'));
        let prefixed = self.found.range(pointer..).map(|(found, _)| *found);
        let stale: Vec<&str> =
            prefixed.take_while(|found| found.starts_with(pointer)).filter(|found| within(found)).collect();
        for earlier in stale {
            self.found.remove(earlier);
        }
        if let Some(wanted) = self.wanted.get(pointer) {
            self.found.insert(wanted, self.position);
        }
    }

    /// Skips white space and returns the next byte without taking it.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.position..];
        self.position += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.text.as_bytes().get(self.position) == Some(&byte)).then(|| self.position += 1)
    }

    fn string(&mut self) -> Option<Cow<'_, str>> {
        let start = self.position;
        self.take(b'"')?;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            match bytes.get(self.position)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.position += 2;
                }
                _ => self.position += 1,
            }
        }
        self.position += 1;
        let quoted = self.text.get(start..self.position)?;
        match escaped {
            true => serde_json::from_str(quoted).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
        }
    }

    fn scalar(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.position..];
        let length =
            rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.')).count();
        self.position += length;
        (length > 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn every_value_is_found_at_its_first_character() {
        let text = "{\n  \"a\": [ 1, {\"b/c\" : \"x\"} ],\n\t\"\\u00e9~\": null,\r\n  \"\": {}\n}";
        for (pointer, expected) in [
            ("", Some((1, 1))),
            ("/a", Some((2, 8))),
            ("/a/0", Some((2, 10))),
            ("/a/1", Some((2, 13))),
            ("/a/1/b~1c", Some((2, 22))),
            ("/é~0", Some((3, 13))),
            ("/", Some((4, 7))),
            ("/a/2", None),
            ("/a/00", None),
            ("a", None),
            ("/none", None),
        ] {
            assert_eq!(locate(text, pointer), expected, "{pointer}");
        }
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        assert_eq!(locate("{\"ключ\": \"日本\", \"z\": 1}", "/z"), Some((1, 21)));
    }

    #[test]
    fn of_members_with_one_name_the_last_counts() {
        let text = r#"{"a": {"x": 1}, "ab": 5, "a": {"y": 2}}"#;
        assert_eq!(locate(text, "/a"), Some((1, 31)));
        assert_eq!(locate(text, "/a/x"), None);
        assert_eq!(locate(text, "/a/y"), Some((1, 37)));
        assert_eq!(locate(text, "/ab"), Some((1, 23)));
    }

    #[test]
    fn what_is_not_json_has_no_positions() {
        for text in ["", "{", "[1,", "{\"a\" 1}", "\"a", "\"\\", "[1] x", "{,}", "[1}", "{\"a\":}"] {
            assert_eq!(locate(text, ""), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_no_problem() {
        let depth = 100_000;
        let text = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(locate(&text, &"/0".repeat(depth)), Some((1, depth + 1)));
    }

    fn pointers(value: &Value, prefix: String, out: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| pointers(item, format!("{prefix}/{index}"), out));
            }
            Value::Object(members) => members.iter().for_each(|(key, member)| {
                let key = pointer_segment(key);
                pointers(member, format!("{prefix}/{key}"), out);
            }),
            _ => {}
        }
        out.push(prefix);
    }

    proptest! {
        #[test]
        fn the_text_at_the_position_is_the_value(value in crate::testing::any_json(), pretty: bool) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let mut all = Vec::new();
            pointers(&value, String::new(), &mut all);
            for pointer in all {
                let (line, column) = locate(&text, &pointer).expect("found");
                let offset: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
                let rest: String = text[offset..].chars().skip(column - 1).collect();
                let read = serde_json::Deserializer::from_str(&rest).into_iter::<Value>().next();
                let expected = value.pointer(&pointer).expect("there");
                prop_assert_eq!(&read.expect("a value").expect("JSON"), expected);
            }
        }

        #[test]
        fn any_text_is_survived(text in "[\\[\\]{}\",:\\\\ a1é\n]{0,40}", pointer in "(/[a1~]{0,2}){0,3}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(locate(&text, "").is_some(), true, "{}", value);
            }
            let _ = locate(&text, &pointer);
        }
    }

    #[test]
    fn many_positions_are_found_in_one_pass() {
        let value = json!({"a": [1, 2], "b": 3}).to_string();
        let found = locate_all(&value, ["/a/1", "/b", "/c", ""]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("", (1, 1)), ("/a/1", (1, 9)), ("/b", (1, 16))]);
    }
}

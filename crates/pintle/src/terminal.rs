//! Text from outside, as it may be shown on a terminal.
//!
//! Names of files and lines in them may hold anything, escape sequences too: a terminal would obey them, and move the
//! cursor, change its title or hide what it shows. So on a terminal whatever controls one is shown as an escape such as
//! `\x1b`, and so are the characters that reorder the text around them. In a pipe everything stays as it is.

use std::{borrow::Cow, fmt::Write as _, io::IsTerminal, os::fd::AsFd};

use anstream::{AutoStream, ColorChoice, stream::RawStream};

/// Whether what is written to a stream may have colours.
pub fn is_colored<S: RawStream>(stream: &S) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// How many characters a line of a terminal has; as many as most have where it does not say.
pub fn width(stream: &impl AsFd) -> u16 {
    const USUAL: u16 = 80;
    let size = rustix::termios::tcgetwinsize(stream).ok();
    size.map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(USUAL)
}

/// A message of one or more lines, for a stream: escaped if that is a terminal.
pub fn message<'a, S: IsTerminal>(text: &'a str, stream: &S) -> Cow<'a, str> {
    if stream.is_terminal() { escaped_message(text) } else { Cow::Borrowed(text) }
}

/// Adds a part of a line. Its line end is not a part of it.
pub fn push_escaped(part: &[u8], out: &mut Vec<u8>) {
    let mut text = String::with_capacity(part.len());
    for chunk in part.utf8_chunks() {
        for character in chunk.valid().chars() {
            push(character, character == '\t', &mut text);
        }
        for byte in chunk.invalid() {
            push_byte(*byte, &mut text);
        }
    }
    out.extend(text.as_bytes());
}

/// JSON with the same meaning. Most control characters are escaped in JSON anyway.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // Outside of strings there is none of them but the newline.
    if !json.chars().any(|character| character != '\n' && controls(character)) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if character != '\n' && controls(character) {
            // Writing to memory cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn escaped_message(text: &str) -> Cow<'_, str> {
    if !text.chars().any(controls) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let is_line_end = character == '\n' || (character == '\r' && rest.peek() == Some(&'\n'));
        push(character, is_line_end || character == '\t', &mut escaped);
    }
    Cow::Owned(escaped)
}

/// Whether a character does something to a terminal, or to the order of the text around it.
fn controls(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(character: char, is_kept: bool, out: &mut String) {
    match u8::try_from(character) {
        _ if is_kept || !controls(character) => out.push(character),
        Ok(byte) if byte.is_ascii() => push_byte(byte, out),
        // Writing to memory cannot fail.
        _ => _ = write!(out, "\\u{{{:x}}}", u32::from(character)),
    }
}

fn push_byte(byte: u8, out: &mut String) {
    let _ = write!(out, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_escaped(bytes, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn whatever_controls_a_terminal_is_shown_as_an_escape() {
        assert_eq!(part(b"a\x1b]0;title\x07b\r\x08\x7f\0"), r"a\x1b]0;title\x07b\x0d\x08\x7f\x00");
        assert_eq!(part("\u{9b}31m \u{202e}evil\u{2069}".as_bytes()), r"\u{9b}31m \u{202e}evil\u{2069}");
        assert_eq!(part(b"one\ntwo"), r"one\x0atwo");
        assert_eq!(part(b"\x9b31m \xe9t\xe9"), r"\x9b31m \xe9t\xe9");
        assert_eq!(escaped_message("a\rb\x1b[2J"), r"a\x0db\x1b[2J");
    }

    #[test]
    fn text_in_any_language_stays_as_it_is() {
        for text in ["", "a\tb", "Ünïcödé 日本語 עברית 👩‍👩‍👧", "C:\\x1b"] {
            assert_eq!(part(text.as_bytes()), text);
            assert_eq!(escaped_message(text), text);
            let json = serde_json::json!(text).to_string();
            assert_eq!(escaped_json(&json), json);
        }
        assert_eq!(escaped_message("one\r\ntwo\n\tthree"), "one\r\ntwo\n\tthree");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{7f}": "\u{1b}[31m \u{9b}31m \u{202e}", "b": [1, "\n"]});
        let shown = format!("{value:#}");
        let escaped = escaped_json(&shown);
        assert!(!escaped.chars().any(|character| character != '\n' && controls(character)), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("JSON"), value);
    }
}

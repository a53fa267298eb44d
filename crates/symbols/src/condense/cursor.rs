//! What C is made of, at the level of single bytes.

use memchr::memmem;

/// Whether a byte can be in a name.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// The end of the name or the number that begins at `start`.
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|byte| is_word(**byte)).count()
}

/// The end of the comment that begins at `start`, if one does.
pub(super) fn comment_end(text: &[u8], start: usize) -> Option<usize> {
    match text.get(start + 1)? {
        b'*' => {
            Some(memmem::find(&text[start + 2..], b"*/").map_or(text.len(), |length| start + 2 + length + 2))
        }
        b'/' => Some(line_end(text, start)),
        _ => None,
    }
}

/// The end of the line at `start`, where a backslash joins the next line to it.
pub(super) fn line_end(text: &[u8], start: usize) -> usize {
    let mut from = start;
    loop {
        let Some(length) = memchr::memchr(b'\n', &text[from..]) else { return text.len() };
        let end = from + length;
        if !is_joined(&text[start..end]) {
            return end;
        }
        from = end + 1;
    }
}

/// Whether a line goes on in the next one.
fn is_joined(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).ends_with(b"\\")
}

/// The end of the preprocessor line at `start`. A comment in it can go on over line ends.
pub(super) fn directive_end(text: &[u8], start: usize) -> usize {
    let mut from = start;
    loop {
        let Some(length) = memchr::memchr3(b'\n', b'/', b'"', &text[from..]) else { return text.len() };
        let at = from + length;
        from = match text[at] {
            b'\n' if is_joined(&text[start..at]) => at + 1,
            b'\n' => return at,
            b'"' => quoted_end(text, at),
            _ => comment_end(text, at).unwrap_or(at + 1),
        };
    }
}

/// The end of the string or the character that begins at `start`; where it is not closed on its line, just its quote.
pub(super) fn quoted_end(text: &[u8], start: usize) -> usize {
    let quote = text[start];
    let mut at = start + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if text.get(at + 1) == Some(&b'\r') => at += 3,
            b'\\' => at += 2,
            b'\n' => break,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    start + 1
}

/// Whether only space is before `at` on its line.
pub(super) fn is_first_on_line(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
    before.is_none_or(|byte| *byte == b'\n')
}

/// Whether nothing is before `at` on its line.
pub(super) fn is_at_line_start(text: &[u8], at: usize) -> bool {
    at == 0 || text[at - 1] == b'\n'
}

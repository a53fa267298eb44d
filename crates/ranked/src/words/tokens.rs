//! Cutting text into terms.
//!
//! - A **word** is a maximal run of letters, digits and underscores, without the underscores at its ends.
//!   Letters and digits are those of Unicode, read as UTF-8; bytes that are not UTF-8 separate words, as
//!   does everything else.
//! - A word that begins with a digit is a number (`42`, `0x1f`, `10ms`, a hash) and is no term, unless it
//!   is at most four bytes long (`404`, `3d`): then it is one term, with no parts.
//! - Every other word falls into **parts**: at underscores, where a capital follows something else
//!   (`fileOpen`), before the last capital of a run of capitals that a small letter follows
//!   (`HTTPResponse`), and between letters and digits, so `code2` is `code` and `2`.
//! - Every part is a term, in lower case. A word of several parts is a term as a **whole** too, in lower
//!   case: `getHTTPResponse_code2` is `get`, `http`, `response`, `code`, `2` and `gethttpresponse_code2`.
//! - Terms longer than 64 bytes are cut there. A word longer than 256 bytes is data, not a word.

use super::classes::{HIGH, classes_of, gather, load};
use super::term::Term;
use std::ops::Range;

/// Terms are cut after this many bytes.
const LONGEST_TERM: usize = 64;
/// A longer word is left out.
const LONGEST_WORD: usize = 256;
/// A longer number is left out.
const LONGEST_NUMBER: usize = 4;

/// One term of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The term.
    pub(crate) term: Term,
    /// Where it stands in the text.
    pub(crate) range: Range<usize>,
    /// For a whole, how many parts its word has; for a part, one.
    pub(crate) parts: u32,
}

/// Calls `emit` with every term of a text: the parts of a word in their order, then its whole.
#[inline]
pub(crate) fn tokenize(text: &[u8], mut emit: impl FnMut(Token)) {
    split(text, |found| match found {
        Split::Term(token) => emit(token),
        Split::Compound(range) => tokenize_compound(text, range, &mut emit),
    });
}

/// What a text splits into.
pub(crate) enum Split {
    /// A term.
    Term(Token),
    /// A word of ASCII that may have several parts, to be given to [`tokenize_compound`]. Most such words are
    /// often in a text, so whoever counts does better to count them first.
    Compound(Range<usize>),
}

/// Calls `emit` with every term or compound word of a text.
#[inline]
pub(crate) fn split(text: &[u8], mut emit: impl FnMut(Split)) {
    let mut position = 0;
    while position < text.len() {
        let classes = classes_of(load(text, position));
        let begins = classes.upper | classes.lower | classes.digit | classes.beyond;
        let skipped = (begins.trailing_zeros() / 8) as usize;
        position += skipped;
        if begins == 0 {
            continue;
        }
        let start = position;
        let first = begins & begins.wrapping_neg();
        // What was seen of the word: its first byte apart, the rest together.
        let begins_with_digit = classes.digit & first != 0;
        let begins_small = classes.lower & first != 0;
        let (mut upper, mut lower, mut other, mut beyond) = (0, 0, 0, first & classes.beyond);
        position += 1;
        loop {
            let classes = classes_of(load(text, position));
            let inside = classes.upper | classes.lower | classes.digit | classes.underscore;
            let outside = !inside & HIGH;
            // The first byte that is no part of the word, and all below it.
            let end = outside & outside.wrapping_neg();
            let before = end.wrapping_sub(1);
            upper |= classes.upper & before;
            lower |= classes.lower & before;
            other |= (classes.digit | classes.underscore) & before;
            if end != 0 {
                beyond |= classes.beyond & end;
                position += (end.trailing_zeros() / 8) as usize;
                break;
            }
            position += 8;
        }
        if beyond != 0 {
            position = beyond_ascii(text, start, &mut |token| emit(Split::Term(token)));
        } else if position - start > LONGEST_WORD {
            continue;
        } else if begins_with_digit {
            number(text, start..position, &mut |token| emit(Split::Term(token)));
        } else if other == 0 && (upper == 0 || lower == 0 && !begins_small) {
            emit(Split::Term(ascii(text, start, position, 1)));
        } else {
            emit(Split::Compound(start..position));
        }
    }
}

#[inline]
fn ascii(text: &[u8], start: usize, end: usize, parts: u32) -> Token {
    let end = end.min(start + LONGEST_TERM);
    Token { term: Term::of_ascii(text, start, end), range: start..end, parts }
}

#[inline]
fn number(text: &[u8], range: Range<usize>, emit: &mut impl FnMut(Token)) {
    let end = without_underscores(text, &range);
    if end - range.start <= LONGEST_NUMBER {
        emit(ascii(text, range.start, end, 1));
    }
}

#[inline]
fn without_underscores(text: &[u8], range: &Range<usize>) -> usize {
    let mut end = range.end;
    while end > range.start && text[end - 1] == b'_' {
        end -= 1;
    }
    end
}

/// Calls `emit` with the parts and the whole of a word that [`split`] found.
#[inline]
pub(crate) fn tokenize_compound(text: &[u8], range: Range<usize>, emit: &mut impl FnMut(Token)) {
    let end = without_underscores(text, &range);
    let mut parts = 0;
    // The last byte of the window before, in the lowest bit.
    let mut last = Window::default();
    let mut part_start = range.start;
    let mut window_start = range.start;
    while window_start < end {
        let window = Window::new(text, window_start, end);
        let mut bounds = window.bounds(&last);
        while bounds != 0 {
            let bound = window_start + bounds.trailing_zeros() as usize;
            bounds &= bounds - 1;
            if bound > part_start {
                emit(ascii(text, part_start, bound, 1));
                parts += 1;
            }
            // An underscore ends a part and begins none.
            part_start = bound + usize::from(text[bound] == b'_');
        }
        last = window.last();
        window_start += WINDOW;
    }
    if part_start < end {
        emit(ascii(text, part_start, end, 1));
        parts += 1;
    }
    if parts > 1 {
        emit(ascii(text, range.start, end, parts));
    }
}

/// So many bytes of a word are looked at together; one more would need a bit that is not there.
const WINDOW: usize = 56;

/// The classes of some bytes of a word, a bit for each.
#[derive(Clone, Copy, Default)]
struct Window {
    upper: u64,
    lower: u64,
    digit: u64,
    underscore: u64,
}

impl Window {
    #[inline]
    fn new(text: &[u8], start: usize, end: usize) -> Self {
        let mut window = Self::default();
        let length = (end - start).min(WINDOW + 8);
        for at in (0..length).step_by(8) {
            let classes = classes_of(load(text, start + at));
            window.upper |= gather(classes.upper) << at;
            window.lower |= gather(classes.lower) << at;
            window.digit |= gather(classes.digit) << at;
            window.underscore |= gather(classes.underscore) << at;
        }
        // What follows the word does not count; what follows the window is looked at ahead.
        let inside = u64::MAX >> (64 - length);
        window.upper &= inside;
        window.lower &= inside;
        window.digit &= inside;
        window.underscore &= inside;
        window
    }

    /// The last byte that is in the window, as the first of another.
    #[inline]
    fn last(&self) -> Self {
        let bit = |bits: u64| bits >> (WINDOW - 1) & 1;
        Self {
            upper: bit(self.upper),
            lower: bit(self.lower),
            digit: bit(self.digit),
            underscore: bit(self.underscore),
        }
    }

    /// Where a part begins that follows another at once, and all underscores.
    #[inline]
    fn bounds(&self, last: &Self) -> u64 {
        let before = |bits: u64, last: u64| bits << 1 | last;
        let letter = self.upper | self.lower;
        let letter_before = before(letter, last.upper | last.lower);
        let upper_before = before(self.upper, last.upper);
        let changes = self.digit & letter_before | letter & before(self.digit, last.digit);
        let rises = self.upper & before(self.lower, last.lower);
        let ends_capitals = self.upper & upper_before & (self.lower >> 1);
        (changes | rises | ends_capitals | self.underscore) & ((1 << WINDOW) - 1)
    }
}

/// Calls `emit` with the terms of a word with characters beyond ASCII, if it is one, and returns where to go on.
#[cold]
fn beyond_ascii(text: &[u8], start: usize, emit: &mut impl FnMut(Token)) -> usize {
    let mut characters: Vec<(usize, char)> = Vec::new();
    let mut end = start;
    while let Some(character) = character_at(text, end) {
        if !character.is_alphanumeric() && character != '_' {
            break;
        }
        // Of a word that will be left out, not all needs to be kept.
        if characters.len() <= LONGEST_WORD {
            characters.push((end, character));
        }
        end += character.len_utf8();
    }
    if characters.is_empty() {
        // No letter: a character that separates, or a byte that is no UTF-8.
        return start + character_at(text, start).map_or(1, char::len_utf8);
    }
    while characters.pop_if(|(_, character)| *character == '_').is_some() {}
    let Some(&(last, character)) = characters.last() else { return end };
    let word = start..last + character.len_utf8();
    if characters[0].1.is_numeric() {
        if word.len() <= LONGEST_NUMBER {
            emit(lower(text, word, 1));
        }
        return end;
    }
    if end - start > LONGEST_WORD {
        return end;
    }
    let mut parts = 0;
    let mut part_start = start;
    for index in 1..characters.len() {
        let (position, character) = characters[index];
        let before = characters[index - 1].1;
        let after = characters.get(index + 1).map(|&(_, after)| after);
        if before == '_' {
            part_start = position;
        } else if character == '_' || starts_part(before, character, after) {
            emit(lower(text, part_start..position, 1));
            (parts, part_start) = (parts + 1, position);
        }
    }
    emit(lower(text, part_start..word.end, 1));
    if parts > 0 {
        emit(lower(text, word, parts + 1));
    }
    end
}

/// Whether a part starts with a character, by its neighbours; none of them is an underscore.
fn starts_part(before: char, character: char, after: Option<char>) -> bool {
    if before.is_numeric() != character.is_numeric() {
        return true;
    }
    character.is_uppercase()
        && (!before.is_uppercase() && !before.is_numeric()
            || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
}

fn character_at(text: &[u8], position: usize) -> Option<char> {
    let rest = text.get(position..)?;
    let rest = &rest[..rest.len().min(4)];
    let valid = match std::str::from_utf8(rest) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next()
}

fn lower(text: &[u8], range: Range<usize>, parts: u32) -> Token {
    let mut term = String::from_utf8_lossy(&text[range.clone()]).to_lowercase();
    if term.len() > LONGEST_TERM {
        let cut = (0..=LONGEST_TERM).rev().find(|&cut| term.is_char_boundary(cut));
        term.truncate(cut.unwrap_or_default());
    }
    Token { term: Term::of_lower(&term), range, parts }
}

#[cfg(test)]
mod tests;

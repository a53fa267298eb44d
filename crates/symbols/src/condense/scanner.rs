//! The scan itself.

mod skip;

use super::cursor::{comment_end, is_first_on_line, is_word, quoted_end, word_end};
use super::pieces::Pieces;
use super::words::{defines_function, is_aggregate, is_attribute, is_capitals, is_storage};
use crate::symbol::Definition;

/// How many bytes are scanned between two questions whether to stop.
const BYTES_BETWEEN_QUESTIONS: usize = 1 << 16;
/// How often a text may be read again from where a parenthesis was not closed.
const REREADS: usize = 4;

/// A conditional of the preprocessor that is open.
#[derive(Clone, Copy)]
struct Conditional {
    /// Whether it began between two declarations.
    between: bool,
    /// Whether a branch of it has been taken.
    taken: bool,
    /// Whether the branch that is open now is taken.
    live: bool,
}

/// A brace that is open and was not left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `extern "C"`.
    Linkage,
    /// A struct or a union.
    Members,
    /// An enum.
    Enumerators,
}

/// How far a declaration is a use of a macro.
#[derive(Clone, Copy, Default)]
enum Call {
    /// Not at all.
    #[default]
    No,
    /// Its name, from where to where.
    Name(usize, usize),
    /// Its name, and these parentheses. Whether it defines the function that is named in them.
    Arguments { open: usize, close: usize, is_function: bool },
}

/// What the declaration has had so far.
#[derive(Clone, Copy, Default)]
struct Declaration {
    /// How many tokens; what is in parentheses is one.
    tokens: usize,
    /// The last word of it that begins a type with a body is `enum`, or another.
    aggregate: Option<Open>,
    /// How many names there were after that word.
    names: usize,
    /// How many words there were that can be a type or a name.
    words: usize,
    /// Whether there was something that is not before a type's body.
    other: bool,
    /// What it began with.
    call: Call,
    /// The last token was a string.
    after_string: bool,
}

/// Goes over a C text and keeps what can define something.
pub(super) struct Scanner<'text> {
    text: &'text [u8],
    at: usize,
    pieces: Pieces,
    macros: Vec<Definition>,
    conditionals: Vec<Conditional>,
    /// How many of the conditionals are in a branch that is not taken.
    dead: usize,
    open: Vec<Open>,
    /// How many parentheses are open and were not left out.
    parentheses: usize,
    /// Where the parentheses around members that are open end.
    groups: Vec<usize>,
    declaration: Declaration,
    /// The last byte that was kept.
    last: u8,
    /// Braces do not match: a closing one at the start of a line ends a function.
    trust_columns: bool,
    /// How many bytes may still be read again.
    rereads: usize,
}

impl<'text> Scanner<'text> {
    /// At the start of `text`.
    pub(super) fn new(text: &'text [u8]) -> Self {
        Self {
            text,
            at: 0,
            pieces: Pieces::new(),
            macros: Vec::new(),
            conditionals: Vec::new(),
            dead: 0,
            open: Vec::new(),
            parentheses: 0,
            groups: Vec::new(),
            declaration: Declaration::default(),
            last: b';',
            trust_columns: false,
            rereads: text.len().saturating_mul(REREADS) + BYTES_BETWEEN_QUESTIONS,
        }
    }

    /// What is kept, and the macros; nothing if `has_ended` has said yes.
    pub(super) fn run(mut self, has_ended: &dyn Fn() -> bool) -> Option<(Pieces, Vec<Definition>)> {
        let mut question = BYTES_BETWEEN_QUESTIONS;
        while let Some(&byte) = self.text.get(self.at) {
            if self.at >= question {
                if has_ended() {
                    return None;
                }
                question = self.at + BYTES_BETWEEN_QUESTIONS;
            }
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\\' => self.at += 1,
                b'/' if self.is_comment(self.at) => self.at = self.next_token(self.at),
                b'#' if is_first_on_line(self.text, self.at) => {
                    self.end_macro();
                    let between = self.is_between();
                    self.directive(Some(between));
                }
                _ if self.dead > 0 => self.pass_over(byte),
                b'"' | b'\'' => self.quoted(),
                b'{' => self.open_brace(),
                b'}' => self.close_brace(),
                b'(' => self.open_parenthesis(),
                b'[' => self.open_bracket(),
                b'=' => self.value(),
                b')' if self.groups.last() == Some(&self.at) => {
                    self.groups.pop();
                    self.at += 1;
                }
                _ if is_word(byte) => self.word(),
                _ => self.punctuation(byte),
            }
        }
        Some((self.pieces, self.macros))
    }

    /// Whether the scan is between two declarations, members or enumerators.
    fn is_between(&self) -> bool {
        self.parentheses == 0
            && (matches!(self.last, b';' | b'{' | b'}') && self.declaration.tokens == 0
                || self.last == b',' && self.open.last() == Some(&Open::Enumerators))
    }

    fn keep(&mut self, start: usize, end: usize) {
        self.pieces.push(self.text, start, end);
        self.last = self.text[end - 1];
        self.declaration.tokens += 1;
    }

    fn pass_over(&mut self, byte: u8) {
        self.at = match byte {
            b'"' | b'\'' => quoted_end(self.text, self.at),
            _ => self.at + 1,
        };
    }

    fn quoted(&mut self) {
        let end = quoted_end(self.text, self.at);
        if end > self.at + 1 {
            self.keep(self.at, end);
            self.declaration.after_string = true;
        }
        self.at = end;
    }

    fn punctuation(&mut self, byte: u8) {
        self.keep(self.at, self.at + 1);
        self.at += 1;
        let ends = byte == b';' || byte == b',' && self.open.last() == Some(&Open::Enumerators);
        match byte {
            b')' => self.parentheses = self.parentheses.saturating_sub(1),
            // A missing parenthesis must not spoil the rest.
            b';' => self.parentheses = 0,
            _ => {}
        }
        if ends && self.parentheses == 0 {
            self.declaration = Declaration::default();
        } else {
            self.declaration.other = true;
        }
    }

    /// Ends a declaration that a macro stands for, which often has no semicolon.
    fn end_macro(&mut self) {
        let end = match self.declaration.call {
            Call::Arguments { close, .. } if self.declaration.tokens == 2 => close,
            Call::Name(_, end) if self.declaration.tokens == 1 && self.is_in_members() => end - 1,
            _ => return,
        };
        self.pieces.invent(b";", end);
        self.last = b';';
        self.declaration = Declaration::default();
    }

    fn is_in_members(&self) -> bool {
        self.open.last() == Some(&Open::Members)
    }

    fn word(&mut self) {
        let (start, end) = (self.at, word_end(self.text, self.at));
        let word = &self.text[start..end];
        self.at = end;
        if is_attribute(word) {
            let next = self.next_token(end);
            if self.text.get(next) == Some(&b'(')
                && let Some(close) = self.find_close(next + 1, b'(', b')')
            {
                self.at = close + 1;
            }
            return;
        }
        if matches!(self.declaration.call, Call::Arguments { .. })
            && (is_capitals(word) || is_first_on_line(self.text, start))
        {
            self.end_macro();
        }
        if self.declaration.tokens == 0 && is_capitals(word) {
            self.declaration.call = Call::Name(start, end);
        }
        if is_aggregate(word) {
            let open = if word == b"enum" { Open::Enumerators } else { Open::Members };
            self.declaration.aggregate = Some(open);
            self.declaration.names = 0;
            self.declaration.other = false;
        } else {
            self.declaration.names += 1;
        }
        self.declaration.words += usize::from(!is_storage(word));
        self.keep(start, end);
        self.declaration.after_string = false;
    }

    fn open_brace(&mut self) {
        let start = self.at;
        let declaration = self.declaration;
        let opens = match declaration.aggregate {
            Some(aggregate) if declaration.names <= 1 && !declaration.other => Some(aggregate),
            _ if declaration.after_string && declaration.names == 1 => Some(Open::Linkage),
            _ => None,
        };
        if let Some(opens) = opens {
            self.keep(start, start + 1);
            self.at = start + 1;
            self.open.push(opens);
        } else {
            let close = self.body_close(start);
            self.function_of_macro();
            self.keep(start, start + 1);
            match close {
                Some(close) => {
                    self.keep(close, close + 1);
                    self.at = close + 1;
                }
                None => {
                    self.pieces.invent(b"}", self.text.len() - 1);
                    self.last = b'}';
                    self.at = self.text.len();
                }
            }
        }
        self.parentheses = 0;
        self.declaration = Declaration::default();
    }

    /// Writes `SYSCALL_DEFINE3(read, ...)` as the declaration that it is, once its body is seen.
    fn function_of_macro(&mut self) {
        let Call::Arguments { open, close, is_function: true } = self.declaration.call else { return };
        if self.declaration.tokens != 2 {
            return;
        }
        let name = self.next_token(open + 1);
        let end = word_end(self.text, name);
        if end > name && end < close && !self.text[name].is_ascii_digit() {
            self.pieces.invent(b"; int", name);
            self.pieces.push(self.text, name, end);
            self.pieces.invent(b"()", close);
        }
    }

    fn close_brace(&mut self) {
        self.keep(self.at, self.at + 1);
        let closed = self.open.pop();
        self.at += 1;
        self.parentheses = 0;
        // After a type's body, names of that type can follow; they are no more before a body.
        self.declaration = match closed {
            Some(Open::Members | Open::Enumerators) => {
                Declaration { tokens: 1, words: 1, other: true, ..Declaration::default() }
            }
            _ => Declaration::default(),
        };
    }

    fn open_parenthesis(&mut self) {
        let start = self.at;
        let first = self.next_token(start + 1);
        let is_declarator = matches!(self.text.get(first), Some(b'*' | b'^' | b'&'));
        let close = if is_declarator { None } else { self.find_close(start + 1, b'(', b')') };
        let Some(close) = close else {
            self.keep(start, start + 1);
            self.parentheses += 1;
            self.declaration.other = true;
            self.at = start + 1;
            return;
        };
        let tokens = self.declaration.tokens + 1;
        if tokens == 2 && self.is_in_members() && memchr::memchr(b';', &self.text[start..close]).is_some() {
            self.open_group(start, close);
            return;
        }
        if let Call::Name(from, to) = self.declaration.call
            && tokens == 2
        {
            let is_function = defines_function(&self.text[from..to]);
            self.declaration.call = Call::Arguments { open: start, close, is_function };
        }
        self.keep(start, start + 1);
        // What begins with a macro has its name in the parentheses, if anywhere: `static DEFINE_MUTEX(name);` Else
        // the name was before, and they hold parameters, which are kept only if they could be a name after all.
        let is_macro = self.declaration.words == 1;
        let end = word_end(self.text, first);
        let after = self.next_token(end);
        if end > first && (after == close || is_macro && self.text.get(after) == Some(&b',')) {
            self.keep(first, end);
        } else if is_macro {
            self.pieces.invent(b"_", start);
        }
        self.keep(close, close + 1);
        self.declaration.tokens = tokens;
        self.declaration.other = true;
        self.at = close + 1;
    }

    /// Goes on inside the parentheses of a macro that groups members: `struct_group(name, int first; int second;)`
    fn open_group(&mut self, start: usize, close: usize) {
        self.pieces.invent(b";", start);
        self.last = b';';
        self.declaration = Declaration::default();
        self.groups.push(close);
        self.at = start + 1;
        loop {
            let first = self.next_token(self.at);
            let after = self.next_token(word_end(self.text, first));
            if after >= close || self.text[after] != b',' {
                return;
            }
            self.at = after + 1;
        }
    }

    fn open_bracket(&mut self) {
        let start = self.at;
        let close = self.find_close(start + 1, b'[', b']');
        let is_left_out = self.text.get(start + 1) == Some(&b'[');
        match close {
            Some(close) if is_left_out => self.at = close + 1,
            Some(close) => {
                self.keep(start, start + 1);
                self.keep(close, close + 1);
                self.at = close + 1;
            }
            None => self.punctuation(b'['),
        }
    }

    /// Leaves out the value after `=`, up to the next name or the end of the declaration.
    fn value(&mut self) {
        let is_enumerator = self.open.last() == Some(&Open::Enumerators);
        let start = self.at;
        let mut last = start;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            let at = self.at;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\\' => {
                    self.at += 1;
                    continue;
                }
                b'/' if self.is_comment(at) => {
                    self.at = self.next_token(at);
                    continue;
                }
                b'#' if is_first_on_line(self.text, at) => {
                    self.directive(None);
                    continue;
                }
                _ if self.dead > 0 => {
                    self.pass_over(byte);
                    continue;
                }
                b';' | b',' | b'}' => break,
                b'"' | b'\'' => self.at = quoted_end(self.text, at),
                b'{' => self.at = self.body_close(at).map_or(self.text.len(), |close| close + 1),
                b'(' | b'[' => {
                    let close = if byte == b'(' { b')' } else { b']' };
                    self.at = self.find_close(at + 1, byte, close).unwrap_or(at) + 1;
                }
                _ if is_word(byte) => self.at = word_end(self.text, at),
                _ => self.at += 1,
            }
            last = self.at - 1;
        }
        if is_enumerator {
            // An enumerator ends where its value ends.
            self.pieces.push(self.text, start, start + 1);
            self.pieces.invent(b"0", last);
            self.last = b'0';
        }
        self.declaration.other = true;
    }

    /// The first byte at `from` or after that is neither space nor in a comment.
    fn next_token(&self, mut from: usize) -> usize {
        while let Some(&byte) = self.text.get(from) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\\' => from += 1,
                b'/' => match comment_end(self.text, from) {
                    Some(end) => from = end,
                    None => return from,
                },
                _ => return from,
            }
        }
        self.text.len()
    }

    fn is_comment(&self, at: usize) -> bool {
        matches!(self.text.get(at + 1), Some(b'*' | b'/'))
    }

    fn skip_space(&self, from: usize) -> usize {
        let space = self.text[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        from + space
    }
}

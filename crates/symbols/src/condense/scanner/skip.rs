//! Going over what is left out: to where it is closed, and over the preprocessor's lines.

use super::{Conditional, Scanner};
use crate::Kind;
use crate::condense::cursor::{
    comment_end, directive_end, is_at_line_start, is_first_on_line, quoted_end, word_end,
};
use crate::symbol::{Definition, is_a_name};

impl Scanner<'_> {
    /// Where the parenthesis or bracket that is open before `from` is closed, if it is before the next function.
    pub(super) fn find_close(&mut self, from: usize, open: u8, close: u8) -> Option<usize> {
        if self.rereads == 0 {
            return None;
        }
        match self.close_of(from, open, close, false) {
            Ok(close) => Some(close),
            Err(end) => {
                self.rereads = self.rereads.saturating_sub(end - from);
                None
            }
        }
    }

    /// Where the brace at `start` is closed. If braces do not match, where a line begins with a closing one; nothing
    /// if there is none.
    pub(super) fn body_close(&mut self, start: usize) -> Option<usize> {
        let by_column = self.trust_columns || is_at_line_start(self.text, start);
        if let Ok(close) = self.close_of(start + 1, b'{', b'}', by_column) {
            return Some(close);
        }
        if by_column {
            return None;
        }
        self.trust_columns = true;
        self.close_of(start + 1, b'{', b'}', true).ok()
    }

    /// Where what is open before `from` is closed; or else, how far the search went, and all is as it was before.
    fn close_of(&mut self, from: usize, open: u8, close: u8, by_column: bool) -> Result<usize, usize> {
        let text = self.text;
        let is_body = open == b'{';
        let mut before = None;
        let mut depth = 1usize;
        let mut at = from;
        let stopped_at = loop {
            let Some(length) = text[at..].iter().position(|byte| MATTERS[usize::from(*byte)]) else {
                break text.len();
            };
            at += length;
            let byte = text[at];
            match byte {
                b'/' => at = comment_end(text, at).unwrap_or(at + 1),
                b'"' | b'\'' => at = quoted_end(text, at),
                b'#' if is_first_on_line(text, at) => {
                    let now = || (self.at, self.conditionals.clone(), self.dead, self.macros.len());
                    before.get_or_insert_with(now);
                    self.at = at;
                    self.directive(None);
                    at = self.at;
                }
                _ if self.dead > 0 => at += 1,
                b'{' | b'}' if !is_body && is_at_line_start(text, at) => break at,
                b'}' if by_column && is_at_line_start(text, at) => return Ok(at),
                _ if byte == open => {
                    depth += 1;
                    at += 1;
                }
                _ if byte == close => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at);
                    }
                    at += 1;
                }
                _ => at += 1,
            }
        };
        if let Some((at, conditionals, dead, macros)) = before {
            (self.at, self.conditionals, self.dead) = (at, conditionals, dead);
            self.macros.truncate(macros);
        }
        Err(stopped_at)
    }

    /// Goes over the preprocessor line that begins here. `between` tells whether it is between two declarations;
    /// nothing, that it is inside what is left out.
    pub(super) fn directive(&mut self, between: Option<bool>) {
        let end = directive_end(self.text, self.at);
        let name = self.skip_space(self.at + 1);
        let name_end = word_end(self.text, name);
        self.at = end.max(name_end);
        match &self.text[name..name_end] {
            b"define" => {
                let start = self.skip_space(name_end);
                let end_of_name = word_end(self.text, start);
                let name = start..end_of_name;
                if is_a_name(&self.text[name.clone()]) && !self.text[start].is_ascii_digit() {
                    self.macros.push(Definition { name, kind: Kind::Macro, end: end.max(end_of_name) });
                }
            }
            directive @ (b"if" | b"ifdef" | b"ifndef") => {
                let between = between == Some(true);
                let condition = self.text.get(name_end..end).unwrap_or_default().trim_ascii();
                let live = between || directive != b"if" || condition != b"0";
                self.dead += usize::from(!live);
                self.conditionals.push(Conditional { between, taken: live, live });
            }
            b"else" | b"elif" | b"elifdef" | b"elifndef" => {
                if let Some(conditional) = self.conditionals.last_mut() {
                    self.dead -= usize::from(!conditional.live);
                    conditional.live = conditional.between && between == Some(true) || !conditional.taken;
                    conditional.taken |= conditional.live;
                    self.dead += usize::from(!conditional.live);
                }
            }
            b"endif" => {
                if let Some(conditional) = self.conditionals.pop() {
                    self.dead -= usize::from(!conditional.live);
                }
            }
            _ => {}
        }
    }
}

/// The bytes that matter on the way to where something is closed.
static MATTERS: [bool; 256] = {
    let mut matters = [false; 256];
    let bytes = b"/\"'#{}()[]";
    let mut index = 0;
    while index < bytes.len() {
        matters[bytes[index] as usize] = true;
        index += 1;
    }
    matters
};

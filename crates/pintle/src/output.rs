//! What goes to standard output: for people on a terminal, plain in a pipe, JSON when asked.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};

use anstyle::Style;
use serde_json::Value;

use crate::{notices, terminal};

/// Prints a JSON value: indented on a terminal, compact in a pipe.
pub fn json(value: &Value) {
    if is_terminal() {
        print(&terminal::escaped_json(&format!("{value:#}")));
    } else {
        print(&value.to_string());
    }
}

/// Prints a JSON text: indented on a terminal, as it is in a pipe.
pub fn json_text(text: &str) {
    match serde_json::from_str(text) {
        Ok(value) if is_terminal() => json(&value),
        _ => line(text),
    }
}

/// Prints a line, or several.
pub fn line(text: &str) {
    Line::default().text(text).print();
}

/// A name that others chose, within a line: nothing in it ends the line or controls a terminal.
pub fn name(name: &str) -> String {
    let mut shown = Vec::with_capacity(name.len());
    terminal::push_escaped(name.as_bytes(), &mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}

/// A line that is being put together: text, which may come from anywhere, and words in colour.
#[derive(Default)]
pub struct Line(String);

impl Line {
    /// Adds text. On a terminal what would control that is escaped.
    pub fn text(mut self, text: &str) -> Self {
        self.0.push_str(&terminal::message(text, &io::stdout()));
        self
    }

    /// Adds text in colour, where there are colours.
    pub fn styled(mut self, style: Style, text: &str) -> Self {
        if !terminal::is_colored(&io::stdout()) {
            return self.text(text);
        }
        // Writing to memory cannot fail.
        let _ = write!(self.0, "{style}");
        self = self.text(text);
        let _ = write!(self.0, "{style:#}");
        self
    }

    pub fn print(self) {
        print(&self.0);
    }
}

/// A reader that has left ends the printing; a line that cannot be written ends the program.
fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        notices::error(&format!("cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Whether people are looking.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

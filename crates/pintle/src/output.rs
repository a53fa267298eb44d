//! What goes to standard output: for people on a terminal, plain in a pipe, JSON when asked.

use std::io::{IsTerminal, Write};

use serde_json::Value;

/// Prints a JSON value: indented on a terminal, compact in a pipe.
pub fn json(value: &Value) {
    let text = if is_terminal() { format!("{value:#}") } else { value.to_string() };
    line(&text);
}

/// Prints a line. A reader that has left ends the printing, not the program.
pub fn line(text: &str) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// Whether people are looking.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

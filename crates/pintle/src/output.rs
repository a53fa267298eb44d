//! What goes to standard output: for people on a terminal, plain in a pipe, JSON when asked.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::notices;

/// Prints a JSON value: indented on a terminal, compact in a pipe.
pub fn json(value: &Value) {
    let text = if is_terminal() { format!("{value:#}") } else { value.to_string() };
    line(&text);
}

/// Prints a JSON text: indented on a terminal, as it is in a pipe.
pub fn json_text(text: &str) {
    match serde_json::from_str(text) {
        Ok(value) if is_terminal() => json(&value),
        _ => line(text),
    }
}

/// Prints a line. A reader that has left ends the printing; a line that cannot be written ends the program.
pub fn line(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = printed
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        notices::error(&format!("cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Whether people are looking.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

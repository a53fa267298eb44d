//! What one can do with the program, for somebody who has typed its name alone.

use std::{fmt::Write as _, io};

use anstyle::Style;

use crate::{notices, settings::PROGRAM_VERSION, terminal};

const COMMANDS: [(&str, &str); 6] = [
    ("serve", "serve this folder, and say how to connect a client"),
    ("search TEXT", "search the files in this folder"),
    ("index", "build the search index, or refresh it"),
    ("tools", "list all tools"),
    ("call TOOL JSON", "call one tool and print its result"),
    ("validate PATH", "check JSON files against their schemas"),
];

/// Shows it in ten lines, on standard error: a client that starts the program without a command takes standard output
/// for replies.
pub fn show() {
    let bold = if terminal::is_colored(&io::stderr()) { Style::new().bold() } else { Style::new() };
    let mut text =
        format!("{bold}pintle {PROGRAM_VERSION}{bold:#}: safe, fast hands on a workspace for AI agents\n\n");
    for (command, what) in COMMANDS {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "  {bold}pintle {command:<16}{bold:#}{what}");
    }
    text.push_str("\n`pintle --help` has all of it, `pintle serve --help` what one command takes");
    notices::prepared(&text);
}

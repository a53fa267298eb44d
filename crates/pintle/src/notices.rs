//! Lines for people on standard error. None of them may fail: whoever read them may be gone.

use std::{backtrace::Backtrace, io::Write};

use anstyle::{AnsiColor, Style};

/// Something that stops the program.
pub fn error(text: &str) {
    styled(AnsiColor::Red, "error", text);
}

/// Something that the user should know.
pub fn warning(text: &str) {
    styled(AnsiColor::Yellow, "warning", text);
}

/// A line as it is.
pub fn plain(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

fn styled(color: AnsiColor, label: &str, text: &str) {
    let style: Style = color.on_default().bold();
    plain(&format!("{style}{label}{style:#}: {text}"));
}

/// Tells of panics where they happened. A formatted message may quote what a caller sent, so only
/// messages that stand in the source are shown.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        let message = panic.payload().downcast_ref::<&'static str>().unwrap_or(&"(message withheld)");
        error(&format!("panic{place}: {message}\n{}", own_frames(&Backtrace::force_capture())));
    }));
}

/// The frames of a trace that are this program's own: the rest is runtime, and long.
fn own_frames(trace: &Backtrace) -> String {
    let trace = trace.to_string();
    let lines: Vec<&str> = trace.lines().collect();
    let mut kept = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.contains("pintle")
            && !line.contains("install_panic_hook")
            && !line.trim_start().starts_with("at ")
        {
            kept.push(*line);
            kept.extend(lines.get(index + 1).filter(|next| next.trim_start().starts_with("at ")));
        }
    }
    if kept.is_empty() { trace } else { kept.join("\n") }
}

//! Lines for people on standard error. None of them may fail or block for long: whoever reads them may
//! be slow, asleep or gone.

use std::{
    backtrace::Backtrace,
    io::{self, Write},
    sync::OnceLock,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use pintle_wire::Outlet;

use crate::terminal;

/// Where lines go once [`through_outlet`] was called.
static OUTLET: OnceLock<Outlet> = OnceLock::new();

/// Lets lines go through an outlet, which a server shares with its call log: from here on a line that
/// finds no room is dropped, and nobody waits.
pub fn through_outlet() -> io::Result<Outlet> {
    let outlet = Outlet::for_log(pintle_wire::standard_error()?)?;
    Ok(OUTLET.get_or_init(|| outlet).clone())
}

/// Waits for the last lines, but not for ever.
pub fn finish() {
    const PATIENCE: Duration = Duration::from_secs(2);
    if let Some(outlet) = OUTLET.get() {
        outlet.finish(PATIENCE);
    }
}

/// Something that stops the program.
pub fn error(text: &str) {
    styled(AnsiColor::Red, "error", text);
}

/// Something that the user should know.
pub fn warning(text: &str) {
    styled(AnsiColor::Yellow, "warning", text);
}

/// A line without a label.
pub fn plain(text: &str) {
    write("", text);
}

/// Several lines that may be styled: whatever in them comes from outside is escaped already.
pub fn prepared(text: &str) {
    write_prepared("", text);
}

fn styled(color: AnsiColor, label: &str, text: &str) {
    let style: Style = color.on_default().bold();
    if terminal::is_colored(&io::stderr()) {
        write(&format!("{style}{label}{style:#}: "), text);
    } else {
        write(&format!("{label}: "), text);
    }
}

/// Writes a line, whose text may quote names and contents of files.
fn write(label: &str, text: &str) {
    write_prepared(label, &terminal::message(text, &io::stderr()));
}

fn write_prepared(label: &str, text: &str) {
    match OUTLET.get() {
        // In one piece: lines of several programs may go to the same place.
        None => _ = io::stderr().lock().write_all(format!("{label}{text}\n").as_bytes()),
        Some(outlet) => _ = outlet.offer_urgently(&[label.as_bytes(), text.as_bytes(), b"\n"]),
    }
}

/// Reports where a panic happened. A formatted message may quote what a caller sent, so only
/// messages that stand in the source are shown.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        let message = panic.payload().downcast_ref::<&'static str>().unwrap_or(&"(message withheld)");
        error(&format!("panic{place}: {message}{}", own_frames(&Backtrace::force_capture())));
    }));
}

/// The frames of a trace that are this program's own, each on a new line: the rest is runtime, and long. A stripped
/// program has no names of functions, so there are none.
fn own_frames(trace: &Backtrace) -> String {
    let trace = trace.to_string();
    let lines: Vec<&str> = trace.lines().collect();
    let mut kept = String::new();
    for (index, line) in lines.iter().enumerate() {
        if line.contains("pintle")
            && !line.contains("install_panic_hook")
            && !line.trim_start().starts_with("at ")
        {
            let source = lines.get(index + 1).filter(|next| next.trim_start().starts_with("at "));
            for line in std::iter::once(line).chain(source) {
                kept.push('\n');
                kept.push_str(line);
            }
        }
    }
    kept
}

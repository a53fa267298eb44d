//! `pintle search`: lines that match, as ripgrep prints them.
//!
//! Exit code 0 if something was found, 1 if nothing, 2 if the search could not be made.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    ops::Range,
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use pintle_contract::Fault;
use pintle_search::{Answer, Case, HitSearch, LineSearch, Match, MatchedLine, Search, ShownHit};

use crate::{
    cli::{ColorWhen, SearchArguments},
    compose,
    error::StartError,
    notices, output,
    settings::{Given, Workspace},
    terminal,
};

/// Searches, and prints what is found.
pub fn run(mut arguments: SearchArguments) -> Result<ExitCode, StartError> {
    let workspace = Workspace::decide(&Given::read(std::mem::take(&mut arguments.flags))?)?;
    workspace.refuse_state_inside_root()?;
    compose::open_folder(&workspace)?;
    let search = compose::open_search(&workspace.without_background())?;
    if arguments.regex {
        arguments.matching = Match::Regex;
    }
    if arguments.kind.is_some() && arguments.matching != Match::Symbol {
        return Err(StartError::KindWithoutSymbol);
    }
    let is_text = matches!(arguments.matching, Match::Literal | Match::Regex);
    let printed = match is_text && !arguments.json {
        true => print_lines(&search, &arguments),
        false => print_hits(&search, &arguments),
    };
    let Printed { found, is_indexed } = printed?;
    match is_indexed {
        true if !arguments.fresh => notices::plain(TRUSTED),
        true => {}
        false => notices::plain(UNINDEXED),
    }
    match found {
        Ok(0) => Ok(ExitCode::from(1)),
        Ok(_) => Ok(ExitCode::SUCCESS),
        // Whoever read has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(StartError::Output(error)),
    }
}

/// New files are not seen without a walk.
const TRUSTED: &str =
    "answered from the index; what is new since it was built, in new or changed files, is found with --fresh";

/// Every file was read.
const UNINDEXED: &str =
    "answered without an index, by reading all files; `pintle index` builds one, which makes searches faster";

/// What was printed.
struct Printed {
    /// How many hits; an error if they could not be written.
    found: io::Result<u64>,
    is_indexed: bool,
}

/// How a hit is written.
struct Look {
    /// What would control the terminal is escaped.
    is_terminal: bool,
    is_colored: bool,
    has_heading: bool,
    has_numbers: bool,
    has_columns: bool,
}

impl Look {
    fn new(arguments: &SearchArguments) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_colored = match arguments.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        let has_numbers = arguments.line_number || (is_terminal && !arguments.no_line_number);
        Self {
            is_terminal,
            is_colored,
            has_heading: arguments.heading || (is_terminal && !arguments.no_heading),
            has_numbers: has_numbers || arguments.column,
            has_columns: arguments.column,
        }
    }
}

const PATH: Style = AnsiColor::Magenta.on_default();
const NUMBER: Style = AnsiColor::Green.on_default();
const MATCH: Style = AnsiColor::Red.on_default().bold();

/// All lines that match, as fast as they are found.
fn print_lines(search: &Search, arguments: &SearchArguments) -> Result<Printed, Fault> {
    let look = Look::new(arguments);
    let question = LineSearch {
        query: &arguments.query,
        is_regex: arguments.matching == Match::Regex,
        case: case(arguments).unwrap_or_default(),
        is_word: arguments.word,
        globs: &arguments.path,
        language: arguments.lang.as_deref(),
        top: arguments.top,
        around: arguments.context as usize,
        line_numbers: look.has_numbers,
        separator: match (look.has_heading, arguments.context) {
            (true, _) => b"\n",
            (false, 0) => b"",
            (false, _) => b"--\n",
        },
    };
    let format = |line: &MatchedLine<'_>, out: &mut Vec<u8>| write_line(line, &look, out);
    let mut stdout = io::stdout().lock();
    let printed = search.print_lines(&question, arguments.fresh, &format, &mut stdout)?;
    let is_indexed = printed.as_ref().map_or(true, |printed| printed.is_indexed);
    let found = printed.and_then(|printed| {
        stdout.flush()?;
        for path in printed.missed {
            notices::warning(&format!("{} could not be read", String::from_utf8_lossy(&path)));
        }
        warn_of_other_limit(printed.other_limit);
        Ok(printed.count)
    });
    Ok(Printed { found, is_indexed })
}

fn warn_of_other_limit(other_limit: Option<String>) {
    if let Some(problem) = other_limit {
        notices::warning(&format!("{problem}; `pintle index` builds it again"));
    }
}

/// Whether case counts, if a flag says so.
fn case(arguments: &SearchArguments) -> Option<Case> {
    let insensitive = arguments.ignore_case.then_some(Case::Insensitive);
    let sensitive = arguments.case_sensitive.then_some(Case::Sensitive);
    arguments.case.or(insensitive).or(sensitive)
}

fn write_line(line: &MatchedLine<'_>, look: &Look, out: &mut Vec<u8>) {
    let mark = if line.is_around { b'-' } else { b':' };
    if look.has_heading {
        if line.is_first {
            styled(line.path, PATH, look, out);
            out.push(b'\n');
        }
    } else {
        styled(line.path, PATH, look, out);
        out.push(mark);
    }
    if look.has_numbers {
        styled(line.number.to_string().as_bytes(), NUMBER, look, out);
        out.push(mark);
    }
    if look.has_columns && !line.is_around {
        out.extend(line.column().to_string().as_bytes());
        out.push(b':');
    }
    let matches = if look.is_colored && !line.is_around { line.matches() } else { Vec::new() };
    let (text, end) = without_line_end(line.text);
    highlighted(text, &matches, look, out);
    out.extend(end);
}

/// A line's text, and its end as it is written: the carriage return that ends a line is no control character in it.
fn without_line_end(line: &[u8]) -> (&[u8], &'static [u8]) {
    line.strip_suffix(b"\r").map_or((line, b"\n"), |text| (text, b"\r\n"))
}

fn styled(text: &[u8], style: Style, look: &Look, out: &mut Vec<u8>) {
    if look.is_colored && !text.is_empty() {
        // Writing to memory cannot fail.
        let _ = write!(out, "{style}");
        shown(text, look, out);
        let _ = write!(out, "{style:#}");
    } else {
        shown(text, look, out);
    }
}

/// A part of a line, which comes from a file or is its name.
fn shown(text: &[u8], look: &Look, out: &mut Vec<u8>) {
    if look.is_terminal {
        terminal::push_escaped(text, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// Ranked hits, and all as JSON.
fn print_hits(search: &Search, arguments: &SearchArguments) -> Result<Printed, Fault> {
    let is_ranked = matches!(arguments.matching, Match::Words | Match::Symbol);
    let question = HitSearch {
        query: &arguments.query,
        matching: arguments.matching,
        case: case(arguments),
        is_word: arguments.word,
        globs: &arguments.path,
        language: arguments.lang.as_deref(),
        kind: arguments.kind.as_deref(),
        around: arguments.context,
        top: arguments.top.or(is_ranked.then_some(50)),
    };
    let Answer { json, hits, other_limit, is_indexed } = search.answer(&question, arguments.fresh)?;
    warn_of_other_limit(other_limit);
    if arguments.json {
        output::json(&json);
        return Ok(Printed { found: Ok(hits.len() as u64), is_indexed });
    }
    let printer = Printer { look: Look::new(arguments), has_context: arguments.context > 0 };
    let mut out = Vec::new();
    for of_file in hits.chunk_by(|one, next| one.path == next.path) {
        printer.write(of_file, &mut out);
    }
    let mut stdout = io::stdout().lock();
    let found = stdout.write_all(&out).and_then(|()| stdout.flush()).map(|()| hits.len() as u64);
    Ok(Printed { found, is_indexed })
}

/// Writes ranked hits with the lines around them.
struct Printer {
    look: Look,
    has_context: bool,
}

impl Printer {
    /// Writes the hits of one file.
    fn write(&self, hits: &[ShownHit], out: &mut Vec<u8>) {
        let Some(path) = hits.first().map(|hit| hit.path.as_slice()) else { return };
        // By number: the column, if a line is a hit, and its text. Lines around several hits are written once.
        let mut lines = BTreeMap::new();
        for hit in hits {
            let first = hit.line.saturating_sub(hit.before.len() as u64);
            for (text, number) in hit.before.iter().zip(first..).chain(hit.after.iter().zip(hit.line + 1..)) {
                lines.entry(number).or_insert((None, text));
            }
            lines.insert(hit.line, (Some(hit.column), &hit.text));
        }
        let look = &self.look;
        if look.has_heading {
            if !out.is_empty() {
                out.push(b'\n');
            }
            styled(path, PATH, look, out);
            out.push(b'\n');
        }
        let mut last = None;
        for (number, (column, text)) in lines {
            let is_gap = last.map_or(!look.has_heading && !out.is_empty(), |last| number > last + 1);
            if self.has_context && is_gap {
                out.extend(b"--\n");
            }
            last = Some(number);
            let mark = if column.is_some() { b':' } else { b'-' };
            if !look.has_heading {
                styled(path, PATH, look, out);
                out.push(mark);
            }
            // Where the order is not that of lines, a line without its number is hard to find.
            styled(number.to_string().as_bytes(), NUMBER, look, out);
            out.push(mark);
            if let Some(column) = column.filter(|_| look.has_columns) {
                out.extend(column.to_string().as_bytes());
                out.push(b':');
            }
            let (text, end) = without_line_end(text.as_bytes());
            shown(text, look, out);
            out.extend(end);
        }
    }
}

/// A text with its matches in colour.
fn highlighted(text: &[u8], matches: &[Range<usize>], look: &Look, out: &mut Vec<u8>) {
    let mut end = 0;
    for found in matches {
        // The line's end is written apart, and a match may reach into it.
        let found = found.start.min(text.len())..found.end.min(text.len());
        shown(&text[end..found.start], look, out);
        styled(&text[found.clone()], MATCH, look, out);
        end = found.end;
    }
    shown(&text[end..], look, out);
}

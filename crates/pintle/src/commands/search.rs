//! `pintle search`: lines that match, as ripgrep prints them.
//!
//! Exit code 0 if something was found, 1 if nothing, 2 if the search could not be made.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use pintle_contract::Fault;
use pintle_search::{Case, LineSearch, MatchedLine, Search};
use serde_json::{Value, json};

use crate::{
    cli::{CaseHow, ColorWhen, MatchHow, SearchArguments},
    notices, output,
    settings::Workspace,
    workbench,
};

/// Searches, and prints what is found.
pub fn run(mut arguments: SearchArguments) -> Result<ExitCode, String> {
    let (workspace, _) = Workspace::read(std::mem::take(&mut arguments.workspace))?;
    workspace.refuse_state_inside_root()?;
    let search = workbench::open_search(&workspace)?;
    if arguments.regex {
        arguments.matching = MatchHow::Regex;
    }
    let is_text = matches!(arguments.matching, MatchHow::Literal | MatchHow::Regex);
    let printed = match is_text && !arguments.json && arguments.context == 0 {
        true => print_lines(&search, &arguments),
        false => print_hits(&search, &arguments),
    };
    let found = printed.map_err(|fault| fault.to_string())?;
    if !arguments.fresh {
        tell_what_is_trusted();
    }
    match found {
        Ok(0) => Ok(ExitCode::from(1)),
        Ok(_) => Ok(ExitCode::SUCCESS),
        // Whoever read has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(format!("cannot write to standard output: {error}")),
    }
}

/// New files are not seen without a walk.
fn tell_what_is_trusted() {
    notices::plain("answered from the index; files that are new since it was built are found with --fresh");
}

/// How a hit is written.
struct Look {
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
fn print_lines(search: &Search, arguments: &SearchArguments) -> Result<io::Result<u64>, Fault> {
    let look = Look::new(arguments);
    let question = LineSearch {
        query: &arguments.query,
        is_regex: arguments.matching == MatchHow::Regex,
        case: case(arguments),
        globs: &arguments.path,
        language: arguments.lang.as_deref(),
        top: arguments.top,
        line_numbers: look.has_numbers,
    };
    let format = |line: &MatchedLine<'_>, out: &mut Vec<u8>| write_line(line, &look, out);
    let mut stdout = io::stdout().lock();
    let printed = search.print_lines(&question, arguments.fresh, &format, &mut stdout)?;
    Ok(printed.and_then(|tally| stdout.flush().map(|()| tally.lines)))
}

fn case(arguments: &SearchArguments) -> Case {
    match (arguments.case, arguments.ignore_case, arguments.case_sensitive) {
        (Some(CaseHow::Insensitive), ..) | (_, true, _) => Case::Insensitive,
        (Some(CaseHow::Sensitive), ..) | (.., true) => Case::Sensitive,
        _ => Case::Smart,
    }
}

fn write_line(line: &MatchedLine<'_>, look: &Look, out: &mut Vec<u8>) {
    if look.has_heading {
        if line.is_first {
            if !out.is_empty() {
                out.push(b'\n');
            }
            styled(line.path, PATH, look, out);
            out.push(b'\n');
        }
    } else {
        styled(line.path, PATH, look, out);
        out.push(b':');
    }
    if look.has_numbers {
        styled(line.number.to_string().as_bytes(), NUMBER, look, out);
        out.push(b':');
    }
    if look.has_columns {
        out.extend(line.column().to_string().as_bytes());
        out.push(b':');
    }
    if look.is_colored {
        let mut end = 0;
        for found in line.matches() {
            out.extend(&line.text[end..found.start]);
            styled(&line.text[found.clone()], MATCH, look, out);
            end = found.end;
        }
        out.extend(&line.text[end..]);
    } else {
        out.extend_from_slice(line.text);
    }
    out.push(b'\n');
}

fn styled(text: &[u8], style: Style, look: &Look, out: &mut Vec<u8>) {
    if look.is_colored && !text.is_empty() {
        // Writing to memory cannot fail.
        let _ = write!(out, "{style}");
        out.extend(text);
        let _ = write!(out, "{style:#}");
    } else {
        out.extend_from_slice(text);
    }
}

/// Hits with what surrounds them, ranked ones, and all as JSON.
fn print_hits(search: &Search, arguments: &SearchArguments) -> Result<io::Result<u64>, Fault> {
    let mut question = json!({
        "query": arguments.query,
        "match": match arguments.matching {
            MatchHow::Literal => "literal",
            MatchHow::Regex => "regex",
            MatchHow::Words => "words",
            MatchHow::Symbol => "symbol",
        },
        "context": arguments.context,
    });
    let is_cased = arguments.case.is_some() || arguments.ignore_case || arguments.case_sensitive;
    if is_cased {
        question["case"] = match case(arguments) {
            Case::Smart => "smart",
            Case::Sensitive => "sensitive",
            Case::Insensitive => "insensitive",
        }
        .into();
    }
    if !arguments.path.is_empty() {
        question["path"] = json!(arguments.path);
    }
    for (name, value) in [("lang", &arguments.lang), ("kind", &arguments.kind)] {
        if let Some(value) = value {
            question[name] = json!(value);
        }
    }
    let is_ranked = matches!(arguments.matching, MatchHow::Words | MatchHow::Symbol);
    let top = arguments.top.or(is_ranked.then_some(50));
    let answer = search.answer(question, top, arguments.fresh)?;
    let hits = answer["hits"].as_array().map(Vec::as_slice).unwrap_or_default();
    if arguments.json {
        output::json(&answer);
        return Ok(Ok(hits.len() as u64));
    }
    let look = Look::new(arguments);
    let mut out = Vec::new();
    for of_file in hits.chunk_by(|one, next| one["path"] == next["path"]) {
        write_hits(of_file, &look, arguments.context > 0, is_ranked, &mut out);
    }
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(&out).and_then(|()| stdout.flush()).map(|()| hits.len() as u64))
}

/// Writes the hits of one file with the lines around them.
fn write_hits(hits: &[Value], look: &Look, has_context: bool, is_ranked: bool, out: &mut Vec<u8>) {
    let path = hits.first().and_then(|hit| hit["path"].as_str()).unwrap_or_default();
    // By number: whether a line is a hit, and its text. Lines around several hits are written once.
    let mut lines = BTreeMap::new();
    for hit in hits {
        let line = hit["line"].as_u64().unwrap_or(0);
        let around = |name: &str| hit[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        let first = line.saturating_sub(around("before").count() as u64);
        for (text, number) in around("before").zip(first..).chain(around("after").zip(line + 1..)) {
            lines.entry(number).or_insert((false, text));
        }
        lines.insert(line, (true, hit["text"].as_str().unwrap_or_default()));
    }
    if look.has_heading {
        if !out.is_empty() {
            out.push(b'\n');
        }
        styled(path.as_bytes(), PATH, look, out);
        out.push(b'\n');
    }
    let mut last = None;
    for (number, (is_hit, text)) in lines {
        let is_gap = last.map_or(!look.has_heading && !out.is_empty(), |last| number > last + 1);
        if has_context && is_gap {
            out.extend(b"--\n");
        }
        last = Some(number);
        let mark = if is_hit { b':' } else { b'-' };
        if !look.has_heading {
            styled(path.as_bytes(), PATH, look, out);
            out.push(mark);
        }
        // Where the order is not that of lines, a line without its number is hard to find.
        if look.has_numbers || is_ranked {
            styled(number.to_string().as_bytes(), NUMBER, look, out);
            out.push(mark);
        }
        out.extend(text.as_bytes());
        out.push(b'\n');
    }
}

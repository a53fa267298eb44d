//! From how a command ended to what its caller gets.

use pintle_contract::{ErrorCode, Fault, inexact_number};
use pintle_process::{Exit, Finished, Kept, RunError, StartFailure};
use pintle_schema::CompiledSchema;
use pintle_tool::{Answer, LARGE};
use serde_json::{Value, json};

/// The largest output that is read as a result, in bytes.
pub(crate) const LARGEST_RESULT: usize = 8 << 20;

/// How much of each stream an error carries, in bytes.
const SHOWN: usize = 4 << 10;

/// What a finished command gives: its output as JSON if there is a schema for it, else all that it printed.
pub(crate) fn answer(
    name: &str,
    finished: &Finished,
    output: Option<&CompiledSchema>,
) -> Result<Answer, Fault> {
    match finished.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => {
            let problem = format!("`{name}` failed with exit code {code}{}", last_words(finished));
            return Err(failed(problem, json!({"reason": "exit_code", "exitCode": code}), finished));
        }
        Exit::Signal(signal) => {
            let known = signal_name(signal);
            let problem = format!("`{name}` was ended by signal {signal} ({known}){}", last_words(finished));
            return Err(failed(
                problem,
                json!({"reason": "signal", "signal": known, "number": signal}),
                finished,
            ));
        }
    }
    let value = match output {
        Some(schema) => result(name, finished, schema)?,
        None => json!({
            "stdout": finished.stdout.text(),
            "stderr": finished.stderr.text(),
            "exitCode": 0,
            "truncated": finished.stdout.omitted() > 0 || finished.stderr.omitted() > 0,
        }),
    };
    Ok(Answer { value, failure: None, is_large: finished.stdout.total() as usize > LARGE })
}

/// The fault of a command that did not come to its end.
pub(crate) fn fault(name: &str, program: &str, error: &RunError) -> Fault {
    let upstream = |problem: String, reason: &str| {
        Fault::new(ErrorCode::UpstreamFailed, problem).details(json!({ "reason": reason }))
    };
    match error {
        RunError::Start(failure) => {
            let (reason, remedy) = match failure {
                StartFailure::Missing => ("missing", "install it, or change `command` in the manifest"),
                StartFailure::IsFolder => ("folder", "name the program itself in `command`"),
                StartFailure::NotExecutable => ("not_executable", "make it executable with chmod +x"),
                StartFailure::NotAProgram => {
                    ("not_a_program", "a script begins with `#!` and an interpreter")
                }
                StartFailure::NoFolder => ("no_folder", "create the folder, or change `cwd` in the manifest"),
                StartFailure::NulByte => ("nul_byte", "send the arguments without it"),
                StartFailure::TooLong => ("too_long", "send less, or let the manifest use stdin = \"json\""),
                StartFailure::Other(_) => {
                    ("not_started", "the server's user may lack a permission or a limit")
                }
            };
            upstream(format!("`{name}` could not start `{program}`: {failure}"), reason).hint(remedy)
        }
        RunError::SupervisorLost => upstream(
            format!("`{name}` was ended, because the process that supervised it was killed"),
            "supervisor_lost",
        )
        .hint("the command, or somebody else, ended processes of the server; call again if it was not the command"),
        RunError::System(error) => upstream(format!("`{name}` could not be run: {error}"), "io")
            .hint("the server has run out of processes, descriptors or memory; end some calls and call again"),
    }
}

/// Standard output as a result.
fn result(name: &str, finished: &Finished, schema: &CompiledSchema) -> Result<Value, Fault> {
    let invalid = |problem: String, details: Value| {
        Fault::new(ErrorCode::InvalidOutput, problem).details(details).printed(None, tail(&finished.stderr))
    };
    let Some(bytes) = finished.stdout.whole() else {
        let total = finished.stdout.total();
        let problem = format!("`{name}` printed {total} bytes; a result has at most {LARGEST_RESULT}");
        return Err(invalid(
            problem,
            json!({"reason": "too_large", "bytes": total, "limit": LARGEST_RESULT}),
        ));
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let problem = format!("the output of `{name}` is not one JSON value: {error}");
        let details = json!({"reason": "not_json", "line": error.line(), "column": error.column()});
        invalid(problem, details).printed(tail(&finished.stdout), tail(&finished.stderr))
    })?;
    // Valid JSON is UTF-8.
    let text = String::from_utf8_lossy(&bytes);
    if let Some(offset) = inexact_number(&text) {
        let number: String = text[offset..]
            .chars()
            .take_while(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .take(40)
            .collect();
        let problem = format!(
            "the output of `{name}` has the number {number}, which would be rounded; the command can print it as a text"
        );
        return Err(invalid(problem, json!({"reason": "inexact_number", "offset": offset})));
    }
    if !schema.accepts(&value) {
        let wrong = schema.mismatches(&value, "field");
        let errors: Vec<_> =
            wrong.iter().take(20).map(|one| json!({"path": one.path, "msg": one.message})).collect();
        let first = wrong.first().map(|one| one.message.as_str()).unwrap_or_default();
        let problem = format!("the output of `{name}` does not match its schema: {first}");
        return Err(invalid(problem, json!({"reason": "output_schema", "errors": errors})));
    }
    Ok(value)
}

fn failed(problem: String, details: Value, finished: &Finished) -> Fault {
    Fault::new(ErrorCode::UpstreamFailed, problem)
        .details(details)
        .printed(tail(&finished.stdout), tail(&finished.stderr))
}

/// The last line of the error output: often what went wrong.
fn last_words(finished: &Finished) -> String {
    const LONGEST: usize = 200;
    let text = finished.stderr.text();
    match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!(": {}", line.chars().take(LONGEST).collect::<String>()),
        None => String::new(),
    }
}

/// The end of a stream, from the beginning of a line where there is one.
fn tail(stream: &Kept) -> Option<String> {
    let text = stream.text();
    let text = text.trim_end();
    let mut start = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    if start > 0 {
        start += text[start..].find('\n').map_or(0, |newline| newline + 1);
    }
    (!text.is_empty()).then(|| text[start..].to_owned())
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        26 => "SIGVTALRM",
        27 => "SIGPROF",
        28 => "SIGWINCH",
        // These have other numbers on other systems, as the last of Linux have.
        7 if cfg!(target_os = "linux") => "SIGBUS",
        10 if cfg!(target_os = "linux") => "SIGUSR1",
        12 if cfg!(target_os = "linux") => "SIGUSR2",
        16 if cfg!(target_os = "linux") => "SIGSTKFLT",
        29 if cfg!(target_os = "linux") => "SIGIO",
        30 if cfg!(target_os = "linux") => "SIGPWR",
        31 if cfg!(target_os = "linux") => "SIGSYS",
        34..=64 if cfg!(target_os = "linux") => "a real-time signal",
        _ => "unnamed",
    }
}

#[cfg(test)]
mod tests {
    use pintle_process::Keep;

    use super::*;

    #[test]
    fn an_error_carries_the_end_of_a_stream_by_whole_lines() {
        let mut kept = Kept::new(Keep::whole(1 << 20));
        (0..2000).for_each(|number| kept.push(format!("line {number} é\n").as_bytes()));
        let tail = tail(&kept).expect("text");
        assert!(tail.len() <= SHOWN && tail.starts_with("line ") && tail.ends_with("line 1999 é"), "{tail}");
        assert_eq!(super::tail(&Kept::new(Keep::whole(0))), None);
    }
}

//! What a person sees who starts a server on a terminal: what is served, how a client connects, and each call.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use indicatif::HumanBytes;
use pintle_engine::{CallLine, Engine, Level};
use pintle_search::Indexing;
use serde_json::json;

use crate::{
    compose, notices,
    settings::{
        ARGUMENTS, AnySetting, Given, INDEX, Listen, MAX_REQUEST_BYTES, MAX_RESULT_BYTES, PROGRAM_VERSION,
        RESULTS, SCOPE, STATE_DIR, Serve, TIMEOUT, TOOL_NAMES, TOOLSETS, Workspace,
    },
    terminal,
};

/// Whether a person has started the server and looks at it. A client that starts one has its standard input, whatever
/// becomes of standard error.
pub(super) fn is_watched(listen: &Listen) -> bool {
    let has_keyboard = match listen {
        Listen::Stdio => io::stdin().is_terminal(),
        Listen::Http(_) => true,
    };
    has_keyboard && io::stderr().is_terminal()
}

/// What is served, and how a client would start it.
pub(super) struct Panel {
    facts: Vec<(&'static str, String)>,
    /// The program and its arguments.
    command: Vec<String>,
}

impl Panel {
    pub(super) fn new(given: &Given, workspace: &Workspace, serve: &Serve, engine: &Engine) -> Self {
        let options = &serve.engine;
        let time = match options.timeouts.general() {
            Duration::ZERO => "without a time limit".to_owned(),
            limit => format!("up to {} s each", limit.as_secs_f64()),
        };
        let limits = format!(
            "{} calls at once, {} more waiting, {time}; results up to {}",
            options.running,
            options.waiting,
            HumanBytes(options.max_result_bytes as u64).to_string().replace(".00", ""),
        );
        let listed = engine.catalogue().listed(&serve.permissions).count();
        let mut facts = vec![
            ("root", workspace.root.display().to_string()),
            ("tools", format!("{listed} (`pintle tools` shows all that there are)")),
            ("index", index(workspace)),
            ("limits", limits),
        ];
        if !serve.permissions.scopes().are_everything() {
            facts.insert(1, ("access", "only what the scopes allow".into()));
        }
        Self { facts, command: command(given, workspace) }
    }

    pub(super) fn show_for_stdio(&self) {
        let command = &self.command;
        let arguments = command.iter().skip(1).map(|word| json!(word).to_string()).collect::<Vec<_>>();
        let program = json!(command.first()).to_string();
        let quoted = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        self.show(
            "standard input and output",
            [("command", program), ("args", format!("[{}]", arguments.join(", ")))],
            &format!("claude mcp add pintle -- {quoted}"),
            "A client starts its own server with this. Here, Ctrl-C ends it.",
        );
    }

    pub(super) fn show_for_http(&self, address: SocketAddr) {
        let url = format!("http://{address}/mcp");
        self.show(
            &url,
            [("type", json!("http").to_string()), ("url", json!(url).to_string())],
            &format!("claude mcp add --transport http pintle {url}"),
            "Clients connect as long as this server runs. Ctrl-C ends it.",
        );
    }

    /// `server` are the members of its object in a client's configuration, as JSON.
    fn show(&self, place: &str, server: [(&str, String); 2], claude: &str, end: &str) {
        let (bold, dim) = match terminal::is_colored(&io::stderr()) {
            true => (Style::new().bold(), Style::new().dimmed()),
            false => (Style::new(), Style::new()),
        };
        let escaped = |text: &str| terminal::message(text, &io::stderr()).into_owned();
        let mut text = format!("{bold}pintle {PROGRAM_VERSION}{bold:#} on {}\n\n", escaped(place));
        for (name, fact) in &self.facts {
            // Writing to memory cannot fail. A name with a newline in it is still one line.
            let _ = writeln!(text, "  {dim}{name:<8}{dim:#}{}", escaped(fact).replace('\n', "\\n"));
        }
        let members = server.map(|(name, value)| format!("          \"{name}\": {value}")).join(",\n");
        let members = terminal::escaped_json(&members);
        let server = format!(
            "{{\n      \"mcpServers\": {{\n        \"pintle\": {{\n{members}\n        }}\n      }}\n    }}"
        );
        let _ = write!(
            text,
            "\n{bold}To connect Claude Code:{bold:#}\n    {}\n\n\
             {bold}To connect another client, put this into its configuration:{bold:#}\n    {server}\n\n\
             {dim}{end}{dim:#}",
            escaped(claude).replace('\n', "\\n"),
        );
        notices::prepared(&text);
    }
}

/// When the index was built.
fn index(workspace: &Workspace) -> String {
    let built_at = compose::open_search(workspace).ok().and_then(|search| search.index_built_at());
    let built_at = built_at.and_then(|time| jiff::Timestamp::try_from(time).ok());
    match built_at {
        Some(time) => {
            let local = time.to_zoned(jiff::tz::TimeZone::system());
            format!("built {}", local.strftime("%Y-%m-%d %H:%M"))
        }
        None if workspace.indexing == Indexing::Auto => {
            "not built yet; searches read the files, and the first one starts to build it".into()
        }
        None => "not built yet; `pintle index` builds it".into(),
    }
}

/// How a client starts the same server, wherever it is itself.
fn command(given: &Given, workspace: &Workspace) -> Vec<String> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.to_string_lossy().into_owned()
    };
    let program = std::env::current_exe().map_or_else(|_| "pintle".into(), |path| absolute(&path));
    let mut command = vec![program, "serve".into(), "--root".into(), absolute(&workspace.root)];
    let mut add = |flag: &str, value: String| command.extend([flag.to_owned(), value]);
    if workspace.config_file.is_file() {
        add("--config", absolute(&workspace.config_file));
    }
    for state_dir in given.as_typed(&STATE_DIR) {
        add("--state-dir", absolute(Path::new(&state_dir)));
    }
    let toolsets = given.as_typed(&TOOLSETS);
    if !toolsets.is_empty() {
        add("--toolsets", toolsets.join(","));
    }
    let repeated: [&dyn AnySetting; 8] = [
        &TOOL_NAMES,
        &ARGUMENTS,
        &RESULTS,
        &INDEX,
        &MAX_RESULT_BYTES,
        &MAX_REQUEST_BYTES,
        &TIMEOUT,
        // Without them the client could do more than here.
        &SCOPE,
    ];
    for setting in repeated {
        let flag = format!("--{}", setting.flag());
        given.as_typed(setting).into_iter().for_each(|value| add(&flag, value));
    }
    command
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// One call as one line: when, which tool, what came of it, how long it took.
pub(super) fn call_line(call: &CallLine<'_>) -> String {
    styled_line(call, terminal::is_colored(&io::stderr()))
}

fn styled_line(call: &CallLine<'_>, is_colored: bool) -> String {
    const LONGEST: usize = 40;
    let mut name = Vec::new();
    terminal::push_escaped(call.name.unwrap_or("-").as_bytes(), &mut name);
    let name = String::from_utf8_lossy(&name);
    let name = name.chars().take(LONGEST).collect::<String>();
    let status = call.error.map_or("ok", |code| code.name());
    let (dim, color) = match (is_colored, call.level) {
        (false, _) => (Style::new(), Style::new()),
        (true, Level::Error) => (Style::new().dimmed(), AnsiColor::Red.on_default()),
        (true, Level::Warn) => (Style::new().dimmed(), AnsiColor::Yellow.on_default()),
        (true, _) => (Style::new().dimmed(), AnsiColor::Green.on_default()),
    };
    let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    let took = shown(call.duration);
    format!("{dim}{time}{dim:#}  {name:<18}  {color}{status:<18}{color:#}  {took:>9}")
}

fn shown(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1000.0;
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use pintle_contract::ErrorCode;

    use super::*;

    #[test]
    fn a_word_reaches_the_shell_as_it_is() {
        assert_eq!(quoted("/usr/bin/pintle"), "/usr/bin/pintle");
        assert_eq!(quoted("/my files/it's"), r"'/my files/it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }

    #[test]
    fn the_columns_of_calls_are_aligned_and_names_cannot_control_the_terminal() {
        let line = |name, error: Option<ErrorCode>, milliseconds| {
            let level = if error.is_none() { Level::Info } else { Level::Warn };
            let duration = Duration::from_millis(milliseconds);
            styled_line(&CallLine { level, name, error, duration }, false)
        };
        let (one, other) =
            (line(Some("search"), None, 12), line(Some("text.read"), Some(ErrorCode::NotFound), 1500));
        assert!(one.contains("  search              ok                    12.0 ms"), "{one}");
        assert!(other.contains("  text.read           NOT_FOUND              1.50 s"), "{other}");
        assert!(line(Some("\u{1b}[2J"), None, 0).contains(r"\x1b[2J"));
        assert!(line(None, None, 0).contains("  -  "));
    }
}

//! The command line as it is typed. What it means is decided in `settings`.

use std::{ffi::OsStr, path::PathBuf};

use clap::{
    ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum,
    builder::{BoolishValueParser, OsStringValueParser, TypedValueParser},
    error::ErrorKind,
    parser::ValueSource,
};

use crate::{introduction, notices, rig::RigArguments, settings::PROGRAM_VERSION, terminal};

// What is asked for without a command.
#[derive(Args, Debug)]
pub struct AloneArguments {
    /// Validate one file and print the result as JSON.
    #[arg(long, value_name = "PATH", required = true)]
    pub validate: PathBuf,

    /// The schema's name [default: what the file is bound to, names, or its name says, else nested-synesthetic-asset].
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

impl Command {
    /// Reads the command line and the environment; ends the program if they make no sense.
    pub fn read() -> Self {
        let first = std::env::args_os().nth(1);
        if first.is_none() {
            introduction::show();
            std::process::exit(2);
        }
        let is_command = |first: &OsStr| !first.as_encoded_bytes().starts_with(b"-") && first != "help";
        let has_command = first.as_deref().is_some_and(is_command);
        let mut command = if has_command { commands() } else { with_all_arguments() };
        let matches =
            command.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|error| exit(error));
        // A variable may say otherwise; another flag may not.
        if let Some(("serve", serve)) = matches.subcommand()
            && serve.get_flag("stdio")
            && serve.value_source("http") == Some(ValueSource::CommandLine)
        {
            let problem = "--stdio and --http cannot be used together";
            exit(command.error(ErrorKind::ArgumentConflict, problem));
        }
        // An empty variable is none; an empty flag is a variable that somebody forgot to set, and nothing is denied.
        if let Some(("serve", serve)) = matches.subcommand()
            && serve.value_source("scope") == Some(ValueSource::CommandLine)
            && serve.get_many::<String>("scope").is_some_and(|mut scopes| scopes.any(String::is_empty))
        {
            exit(command.error(ErrorKind::InvalidValue, "--scope is empty; write it as `read:/folder/`"));
        }
        let read = match matches.subcommand() {
            Some(_) => Self::from_arg_matches(&matches),
            None => AloneArguments::from_arg_matches(&matches).map(Self::Alone),
        };
        read.unwrap_or_else(|error| exit(error))
    }

    /// The command line with the arguments of all commands.
    pub fn whole_command() -> clap::Command {
        let mut command = with_all_arguments();
        command.build();
        command
    }
}

/// Ends the program with an error, or with the help that was asked for. An error quotes arguments and variables, which
/// may have been put together from names of files.
fn exit(error: clap::Error) -> ! {
    let plain = error.render().to_string();
    if terminal::message(&plain, &std::io::stderr()) == plain {
        error.exit();
    }
    notices::plain(plain.trim_end());
    std::process::exit(error.exit_code())
}

/// The program with its commands. To describe all that goes without one, too, would take as long as a search.
fn commands() -> clap::Command {
    let program = clap::Command::new("pintle")
        .version(PROGRAM_VERSION)
        .about("Safe, fast hands on a workspace for AI agents: an MCP server")
        .override_usage("pintle <COMMAND>\n       pintle --validate <PATH> [--schema <NAME>]")
        .arg_required_else_help(true)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true);
    Command::augment_subcommands(program)
}

fn with_all_arguments() -> clap::Command {
    hide_variables(AloneArguments::augment_args(commands()))
}

/// A path; an empty one, as an empty variable gives it, counts as none.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// The commands.
#[derive(Debug)]
pub enum Command {
    Serve(ServeArguments),
    Validate(ValidateArguments),
    Tools(ToolsArguments),
    Tool(ToolArguments),
    Index(IndexArguments),
    Search(SearchArguments),
    Call(CallArguments),
    /// None: programs ask for a validation without one.
    Alone(AloneArguments),
}

/// Adds a command whose arguments are only described if it is the one that was given: describing those of all takes as
/// long as a search.
fn with<A: Args>(program: clap::Command, name: &'static str, about: &'static str) -> clap::Command {
    let command = clap::Command::new(name).about(about);
    program.subcommand(command.defer(|command| hide_variables(A::augment_args(command))))
}

/// Help does not show what variables hold: some of it is secret.
fn hide_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| argument.hide_env_values(true))
}

impl Subcommand for Command {
    fn augment_subcommands(program: clap::Command) -> clap::Command {
        let program = with::<ServeArguments>(program, "serve", "Serve the tools to a client");
        let program =
            with::<ValidateArguments>(program, "validate", "Validate JSON files against their schemas");
        let program = with::<ToolsArguments>(program, "tools", "List the tools");
        let program = with::<ToolArguments>(program, "tool", "Write or check the manifest of a tool");
        let program = with::<IndexArguments>(program, "index", "Build the search index, or refresh it");
        let program = with::<SearchArguments>(program, "search", "Search the files of the workspace");
        with::<CallArguments>(program, "call", "Call one tool and print its result")
    }

    fn augment_subcommands_for_update(program: clap::Command) -> clap::Command {
        Self::augment_subcommands(program)
    }

    fn has_subcommand(name: &str) -> bool {
        Self::augment_subcommands(clap::Command::new("")).find_subcommand(name).is_some()
    }
}

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand() {
            Some(("serve", given)) => FromArgMatches::from_arg_matches(given).map(Self::Serve),
            Some(("validate", given)) => FromArgMatches::from_arg_matches(given).map(Self::Validate),
            Some(("tools", given)) => FromArgMatches::from_arg_matches(given).map(Self::Tools),
            Some(("tool", given)) => FromArgMatches::from_arg_matches(given).map(Self::Tool),
            Some(("index", given)) => FromArgMatches::from_arg_matches(given).map(Self::Index),
            Some(("search", given)) => FromArgMatches::from_arg_matches(given).map(Self::Search),
            Some(("call", given)) => FromArgMatches::from_arg_matches(given).map(Self::Call),
            _ => Err(clap::Error::new(ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

// Which workspace, and what belongs to it.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkspaceArguments {
    /// The folder that the tools see as `/` [default: the current folder].
    #[arg(long, value_name = "DIR", env = "PINTLE_ROOT", value_parser = path())]
    pub root: Option<PathBuf>,

    /// Where Pintle keeps its own files, never inside the root [default: the user's state folder].
    #[arg(long, value_name = "DIR", env = "PINTLE_STATE_DIR", value_parser = path())]
    pub state_dir: Option<PathBuf>,

    /// The configuration file [default: pintle.toml in the current folder, if there is one].
    #[arg(long, value_name = "FILE", env = "PINTLE_CONFIG", value_parser = path())]
    pub config: Option<PathBuf>,

    /// The folder of manifests, `NAME.tool.toml`, that make programs tools; never inside the root [default: none].
    #[arg(long, value_name = "DIR", env = "PINTLE_TOOLS", value_parser = path())]
    pub tools: Option<PathBuf>,

    /// The folder of JSON Schemas [default: libs/synesthetic-schemas/jsonschema in the root].
    #[arg(long, help_heading = ASSETS, value_name = "DIR", env = "SYN_SCHEMAS_DIR", value_parser = path())]
    pub schemas_dir: Option<PathBuf>,

    /// The folder of examples [default: libs/synesthetic-schemas/examples in the root].
    #[arg(long, help_heading = ASSETS, value_name = "DIR", env = "SYN_EXAMPLES_DIR", value_parser = path())]
    pub examples_dir: Option<PathBuf>,

    /// The backend that assets are published to [default: none].
    #[arg(long, help_heading = ASSETS, value_name = "URL", env = "SYN_BACKEND_URL")]
    pub backend_url: Option<String>,

    /// The backend's path for assets [default: /synesthetic-assets/].
    #[arg(long, help_heading = ASSETS, value_name = "PATH", env = "SYN_BACKEND_ASSETS_PATH")]
    pub backend_assets_path: Option<String>,

    /// Let populate_backend publish assets that were not validated.
    #[arg(long, help_heading = ASSETS, env = "PINTLE_ALLOW_UNVALIDATED", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub allow_unvalidated: Option<bool>,

    /// Files over this size, in bytes, are not searched [default: 134217728].
    #[arg(long, help_heading = LIMITS, value_name = "N", env = "PINTLE_MAX_FILE_BYTES")]
    pub max_file_bytes: Option<u64>,

    /// Whether searches build the index by themselves; without one they read the files [default: auto].
    #[arg(long, value_name = "HOW", env = "PINTLE_INDEX")]
    pub index: Option<IndexHow>,

    /// How long a call may run: `20s` for every tool, `validate_asset=20s` for one; 0 is for ever.
    #[arg(long, help_heading = LIMITS, value_name = "[TOOL=]DURATION", env = "PINTLE_TIMEOUT", value_delimiter = ',')]
    pub timeout: Vec<String>,

    #[command(flatten)]
    pub rig: RigArguments,
}

// How to serve.
#[derive(Args, Debug)]
pub struct ServeArguments {
    #[command(flatten)]
    pub workspace: WorkspaceArguments,

    /// Serve on standard input and output; this is the default.
    #[arg(long)]
    pub stdio: bool,

    /// Serve over HTTP instead, on an address of this machine; port 0 is any that is free.
    #[arg(long, value_name = "ADDR", env = "PINTLE_HTTP", num_args = 0..=1, default_missing_value = DEFAULT_HTTP)]
    pub http: Option<String>,

    /// Who may call over HTTP: `none` asks for no token and lets every program on this machine call.
    #[arg(long, value_name = "HOW", env = "PINTLE_AUTH")]
    pub auth: Option<Auth>,

    /// A web page's origin that may call over HTTP, besides the server's own.
    #[arg(long, help_heading = HTTP, value_name = "ORIGIN", env = "PINTLE_ALLOW_ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<String>,

    /// A name by which the server may be reached over HTTP, besides the machine's own.
    #[arg(long, help_heading = HTTP, value_name = "HOST", env = "PINTLE_ALLOW_HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,

    /// What the client may do, such as `read:/` or `write:/src/` [default: everything].
    #[arg(long, value_name = "SCOPE", env = "PINTLE_SCOPE", value_delimiter = ',')]
    pub scope: Vec<String>,

    /// Which toolsets there are: `files`, `search`, `assets`, `commands`; `auto` lists those that have something to
    /// work on [default: auto].
    #[arg(long, value_name = "NAMES", env = "PINTLE_TOOLSETS", value_delimiter = ',')]
    pub toolsets: Vec<String>,

    /// How MCP clients are shown the names of tools: `text_read` or `text.read`; both can be called
    /// [default: underscore].
    #[arg(long, help_heading = PROTOCOL, value_name = "SPELLING", env = "PINTLE_TOOL_NAMES")]
    pub tool_names: Option<NameSpelling>,

    /// How arguments of MCP clients are read that do not match as they stand [default: lenient].
    #[arg(long, help_heading = PROTOCOL, value_name = "HOW", env = "PINTLE_ARGUMENTS")]
    pub arguments: Option<ArgumentsHow>,

    /// How MCP clients get results [default: auto].
    #[arg(long, help_heading = PROTOCOL, value_name = "FORM", env = "PINTLE_RESULTS")]
    pub results: Option<ResultsHow>,

    /// A file that exists while the server is ready [default: /tmp/mcp.ready].
    #[arg(long, help_heading = LOG, value_name = "FILE", env = "MCP_READY_FILE", value_parser = path())]
    pub ready_file: Option<PathBuf>,

    /// Where the call log goes [default: standard error].
    #[arg(long, help_heading = LOG, value_name = "FILE", env = "PINTLE_LOG_FILE", value_parser = path())]
    pub log_file: Option<PathBuf>,

    /// How much is logged [default: info].
    #[arg(long, help_heading = LOG, value_name = "LEVEL", env = "PINTLE_LOG_LEVEL")]
    pub log_level: Option<LogLevel>,

    /// Fix ids and times in logs and progress.
    #[arg(long, help_heading = LOG, env = "PINTLE_DETERMINISTIC", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub deterministic: Option<bool>,

    /// What happens to a request whose envelope is wrong [default: enforce].
    #[arg(long, help_heading = PROTOCOL, value_name = "MODE", env = "PINTLE_ENVELOPE")]
    pub envelope: Option<Envelope>,

    /// When progress is told in the direct dialect [default: asked].
    #[arg(long, help_heading = PROTOCOL, value_name = "WHEN", env = "PINTLE_PROGRESS")]
    pub progress: Option<ProgressWhen>,

    /// The longest request, in bytes [default: 1048576].
    #[arg(long, help_heading = LIMITS, value_name = "N", env = "PINTLE_MAX_REQUEST_BYTES")]
    pub max_request_bytes: Option<usize>,

    /// The largest result, in bytes [default: 8388608].
    #[arg(long, help_heading = LIMITS, value_name = "N", env = "PINTLE_MAX_RESULT_BYTES")]
    pub max_result_bytes: Option<usize>,

    /// How long running calls may take to finish when the server is told to stop [default: 30s].
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", env = "PINTLE_DRAIN")]
    pub drain: Option<String>,

    /// How long a client may read nothing of what is written to it before its replies are evicted [default: 30s].
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", env = "PINTLE_WRITE_TIMEOUT")]
    pub write_timeout: Option<String>,

    /// Serve on when the process that started this one is gone and its pipes are still open.
    #[arg(long, env = "PINTLE_KEEP_RUNNING", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "BOOL", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub keep_running: Option<bool>,

    /// How many calls run at the same time [default: twice the cores, at least 4].
    #[arg(long, help_heading = LIMITS, value_name = "N", env = "PINTLE_RUNNING")]
    pub running: Option<usize>,

    /// How many calls wait for their turn [default: 64].
    #[arg(long, help_heading = LIMITS, value_name = "N", env = "PINTLE_WAITING")]
    pub waiting: Option<usize>,
}

// What to validate.
#[derive(Args, Debug)]
pub struct ValidateArguments {
    /// Files, or folders whose JSON files are meant.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The schema's name [default: what each file is bound to, names, or its name says, else nested-synesthetic-asset].
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

// How to list.
#[derive(Args, Debug)]
pub struct ToolsArguments {
    /// Print the definitions as JSON.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

// What to do with a manifest.
#[derive(Args, Debug)]
pub struct ToolArguments {
    #[command(subcommand)]
    pub action: ToolAction,
}

/// What can be done with a manifest.
#[derive(Debug, Subcommand)]
pub enum ToolAction {
    /// Write a manifest to begin with: NAME.tool.toml.
    New {
        /// The name of the tool.
        name: String,

        /// The folder that it is written to: one outside the root, for `--tools`.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// Check manifests, and show the tools that they make.
    Check {
        /// The manifests.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

// What to index.
#[derive(Args, Debug)]
pub struct IndexArguments {
    /// A file or folder in the root: only what lies there is refreshed.
    pub path: Option<String>,

    /// Read everything, not only what has changed.
    #[arg(long)]
    pub full: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

// What to search for.
#[derive(Args, Debug)]
pub struct SearchArguments {
    /// What to search for.
    pub query: String,

    /// How the query is read.
    #[arg(long = "match", value_name = "HOW", default_value = "literal")]
    pub matching: MatchHow,

    /// Read the query as a regular expression; the same as `--match regex`.
    #[arg(short = 'e', long, conflicts_with = "matching")]
    pub regex: bool,

    /// Whether case counts: `smart` ignores it unless the query has a letter in upper case [default: sensitive].
    #[arg(long, value_name = "HOW", group = "casing")]
    pub case: Option<CaseHow>,

    /// Ignore case.
    #[arg(short = 'i', long, group = "casing")]
    pub ignore_case: bool,

    /// Let case count; this is the default.
    #[arg(short = 's', long, group = "casing")]
    pub case_sensitive: bool,

    /// Only find whole words.
    #[arg(short = 'w', long, visible_alias = "word-regexp")]
    pub word: bool,

    /// Only files that match a glob, or do not with `!`; a folder stands for all in it. Repeatable.
    #[arg(
        short = 'g',
        long = "path",
        visible_alias = "glob",
        value_name = "GLOB",
        allow_hyphen_values = true
    )]
    pub path: Vec<String>,

    /// Only files in this language.
    #[arg(long, value_name = "NAME")]
    pub lang: Option<String>,

    /// Only symbols of this kind.
    #[arg(long, value_name = "NAME")]
    pub kind: Option<String>,

    /// Show lines before and after each hit.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=50))]
    pub context: u32,

    /// Stop after this many hits [default: all; 50 for words and symbols].
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub top: Option<u64>,

    /// Look for new files first.
    #[arg(long)]
    pub fresh: bool,

    /// Print JSON, as the tool `search` answers.
    #[arg(long)]
    pub json: bool,

    /// Show line numbers; this is the default on a terminal.
    #[arg(short = 'n', long, overrides_with = "no_line_number")]
    pub line_number: bool,

    /// Show no line numbers.
    #[arg(short = 'N', long, overrides_with = "line_number")]
    pub no_line_number: bool,

    /// Show the column of the first match; implies line numbers.
    #[arg(long)]
    pub column: bool,

    /// Show each file's name once, above its lines; this is the default on a terminal.
    #[arg(long, overrides_with = "no_heading")]
    pub heading: bool,

    /// Show the file's name in each line.
    #[arg(long, overrides_with = "heading")]
    pub no_heading: bool,

    /// When to use colour.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

/// How an index comes to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum IndexHow {
    /// The first search begins to build it in the background.
    #[default]
    Auto,
    /// Only `index_build` and `pintle index` build it; there is no search before.
    Manual,
}

/// How a query is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatchHow {
    /// As it stands.
    Literal,
    /// As a regular expression.
    Regex,
    /// As words, ranked.
    Words,
    /// As the name of a symbol.
    Symbol,
}

/// Whether case counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CaseHow {
    /// If the query has a letter in upper case.
    Smart,
    /// Yes.
    Sensitive,
    /// No.
    Insensitive,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

// What to call.
#[derive(Args, Debug)]
pub struct CallArguments {
    /// The tool's name.
    pub tool: String,

    /// Its arguments as a JSON object, or `-` to read them from standard input.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub input: String,

    /// Print failures as JSON too.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub workspace: WorkspaceArguments,
}

// Help shows first what everybody needs, and the rest by what it is about.
const ASSETS: &str = "Assets and backend";
const LIMITS: &str = "Limits";
const HTTP: &str = "HTTP";
const LOG: &str = "Log and readiness";
const PROTOCOL: &str = "Protocol";

/// Where HTTP is served when no address is named.
pub const DEFAULT_HTTP: &str = "127.0.0.1:9999";

/// Who may call over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// Every program on this machine.
    None,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Calls that failed by the server's fault.
    Error,
    /// Also calls that failed by the caller's fault.
    Warn,
    /// Every call.
    Info,
    /// Also what the server found when it started.
    Debug,
}

/// How names of tools are spelt in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameSpelling {
    /// `text_read`, which every client takes.
    Underscore,
    /// `text.read`, as in logs and scopes.
    Dotted,
}

/// How arguments are read that do not match as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArgumentsHow {
    /// JSON texts in place of lists, numbers and booleans are converted.
    Lenient,
    /// They are refused.
    Strict,
}

/// How results are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResultsHow {
    /// As structured content, and again as text.
    Json,
    /// As one block of text, without output schemas in the list.
    Text,
    /// By the client: text for those that are known to need it, JSON for all others.
    Auto,
}

/// What happens to a request whose envelope is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Envelope {
    /// It is refused.
    Enforce,
    /// It is logged and let through.
    Shadow,
}

/// When progress is told in the direct dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressWhen {
    /// When the request carries a progress token.
    Asked,
    /// For every call.
    Always,
}

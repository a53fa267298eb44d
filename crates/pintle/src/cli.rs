//! The command line as it is typed. The flags that are settings are defined in `settings`, where it is also decided what
//! they mean.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum, error::ErrorKind, parser::ValueSource};
use pintle_commands::duration;
use pintle_packs::{PackName, Sha256Sum};
use pintle_search::{Case, Match};

use crate::{
    introduction, notices,
    settings::{Flags, HTTP, PROGRAM_VERSION, ServeFlags, problem_of_empty, word},
    terminal,
};

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
    pub flags: Flags,
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
            && serve.value_source(HTTP.key) == Some(ValueSource::CommandLine)
        {
            let problem = "--stdio and --http cannot be used together";
            exit(command.error(ErrorKind::ArgumentConflict, problem));
        }
        if let Some(("serve", serve)) = matches.subcommand()
            && let Some(problem) = problem_of_empty(serve)
        {
            exit(command.error(ErrorKind::InvalidValue, problem));
        }
        let read = match matches.subcommand() {
            Some(_) => Self::from_arg_matches(&matches),
            None => AloneArguments::from_arg_matches(&matches).map(Self::Alone),
        };
        read.unwrap_or_else(|error| exit(error))
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
    AloneArguments::augment_args(commands())
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
    Token(TokenArguments),
    Pack(PackArguments),
    Audit(AuditArguments),
    Contract(ContractArguments),
    /// None: programs ask for a validation without one.
    Alone(AloneArguments),
}

/// Adds a command whose arguments are only described if it is the one that was given: describing those of all takes as
/// long as a search.
fn with<A: Args>(program: clap::Command, name: &'static str, about: &'static str) -> clap::Command {
    let command = clap::Command::new(name).about(about);
    program.subcommand(command.defer(A::augment_args))
}

/// The same for a command with commands of its own, which all take its flags.
fn with_commands<A: Args>(program: clap::Command, name: &'static str, about: &'static str) -> clap::Command {
    let command = clap::Command::new(name).about(about);
    program.subcommand(command.defer(|command| A::augment_args(command).mut_args(|flag| flag.global(true))))
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
        let program = with::<CallArguments>(program, "call", "Call one tool and print its result");
        let program = with_commands::<TokenArguments>(
            program,
            "token",
            "Mint, inspect or end tokens for calls over HTTP",
        );
        let program =
            with_commands::<PackArguments>(program, "pack", "Install, list or remove packs of schemas");
        let program = with_commands::<AuditArguments>(program, "audit", "Check an audit log");
        with::<ContractArguments>(
            program,
            "contract",
            "Lock the tools of a server, and show what a change breaks",
        )
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
            Some(("token", given)) => FromArgMatches::from_arg_matches(given).map(Self::Token),
            Some(("pack", given)) => FromArgMatches::from_arg_matches(given).map(Self::Pack),
            Some(("audit", given)) => FromArgMatches::from_arg_matches(given).map(Self::Audit),
            Some(("contract", given)) => FromArgMatches::from_arg_matches(given).map(Self::Contract),
            _ => Err(clap::Error::new(ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

// How to serve.
#[derive(Args, Debug)]
pub struct ServeArguments {
    #[command(flatten)]
    pub flags: Flags,

    /// Serve on standard input and output; this is the default.
    #[arg(long)]
    pub stdio: bool,

    #[command(flatten)]
    pub serve: ServeFlags,
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
    pub flags: Flags,
}

// How to list.
#[derive(Args, Debug)]
pub struct ToolsArguments {
    /// Print the definitions as JSON.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub flags: Flags,
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
    pub flags: Flags,
}

// What to search for.
#[derive(Args, Debug)]
pub struct SearchArguments {
    /// What to search for.
    pub query: String,

    /// How the query is read.
    #[arg(long = "match", value_name = "HOW", default_value = "literal", value_parser = word::<Match>())]
    pub matching: Match,

    /// Read the query as a regular expression; the same as `--match regex`.
    #[arg(short = 'e', long, conflicts_with = "matching")]
    pub regex: bool,

    /// Whether case counts: `smart` ignores it unless the query has a letter in upper case [default: sensitive].
    #[arg(long, value_name = "HOW", group = "casing", value_parser = word::<Case>())]
    pub case: Option<Case>,

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
    pub flags: Flags,
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
    pub flags: Flags,
}

// What to do with tokens.
#[derive(Args, Debug)]
pub struct TokenArguments {
    #[command(subcommand)]
    pub action: TokenAction,

    #[command(flatten)]
    pub flags: Flags,
}

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Print a new token. The secret is created with the first one.
    Mint {
        /// Who bears it.
        #[arg(long, value_name = "NAME", default_value = "me")]
        sub: String,

        /// What it grants, such as `read:/` or `write:/src/`. Repeatable.
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,

        /// How long it is valid.
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = lifetime)]
        ttl: Duration,
    },
    /// Print what a token says, and whether it is valid.
    Inspect {
        /// The token, or `-` to read it from standard input.
        #[arg(allow_hyphen_values = true)]
        token: String,
    },
    /// Replace the secret: all tokens end, and running servers take new ones within a second.
    Rotate,
    /// End one token.
    Revoke {
        /// The token, its id, or `-` to read either from standard input.
        #[arg(allow_hyphen_values = true)]
        token: String,
    },
}

/// How long a token is valid.
fn lifetime(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    if let Some(days) =
        text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()).filter(|days| *days > 0)
    {
        return Ok(DAY * days);
    }
    match duration(text) {
        Ok(lifetime) if lifetime.is_zero() => Err("a token is valid for a second at least".into()),
        lifetime => lifetime.map_err(|error| error.to_string()),
    }
}

// What to do with packs.
#[derive(Args, Debug)]
pub struct PackArguments {
    #[command(subcommand)]
    pub action: PackAction,

    #[command(flatten)]
    pub flags: Flags,
}

/// What can be done with packs.
#[derive(Debug, Subcommand)]
pub enum PackAction {
    /// Install a pack: a `.tar.gz` or `.zip` of JSON Schemas and examples.
    Add {
        /// The archive, or its https address.
        #[arg(value_name = "FILE-OR-URL")]
        source: PathBuf,

        /// The SHA-256 checksum that the archive must have; required for an address.
        #[arg(long, value_name = "HEX")]
        sha256: Option<Sha256Sum>,

        /// The name to install it by [default: the archive's, without its ending].
        #[arg(long, value_name = "NAME")]
        name: Option<PackName>,

        /// Replace the pack that has this name.
        #[arg(long)]
        replace: bool,
    },
    /// List the packs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a pack.
    Remove {
        /// Its name.
        name: PackName,
    },
}

// What to do with an audit log.
#[derive(Args, Debug)]
pub struct AuditArguments {
    #[command(subcommand)]
    pub action: AuditAction,

    #[command(flatten)]
    pub flags: Flags,
}

/// What can be done with an audit log.
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Check that no line was changed, removed or added.
    Verify {
        /// The log.
        log: PathBuf,
    },
}

// What to do with a tool surface.
#[derive(Args, Debug)]
pub struct ContractArguments {
    #[command(subcommand)]
    pub action: ContractAction,
}

/// What can be done with a tool surface.
#[derive(Debug, Subcommand)]
pub enum ContractAction {
    /// Print a surface as a lock: this program's, a server's, or that of a file.
    Print {
        /// A lock, the result of `tools/list`, another program's snapshot, or a folder with a file for each tool.
        #[arg(value_name = "SURFACE")]
        surface: Option<PathBuf>,

        #[command(flatten)]
        server: ServerArguments,
    },
    /// Compare the lock with what this program, or a server, has now.
    Check {
        /// The lock [default: contract.lock.json].
        #[arg(value_name = "LOCK")]
        lock: Option<PathBuf>,

        #[command(flatten)]
        server: ServerArguments,

        #[command(flatten)]
        format: FormatArguments,
    },
    /// Write the lock.
    Accept {
        /// The lock [default: contract.lock.json].
        #[arg(value_name = "LOCK")]
        lock: Option<PathBuf>,

        #[command(flatten)]
        server: ServerArguments,
    },
    /// Compare two surfaces, the old one first; a server may be the second.
    Diff {
        /// Two files, or one and --server or --url; `-` is standard input.
        #[arg(value_name = "SURFACE", required = true, num_args = 1..=2)]
        surfaces: Vec<PathBuf>,

        #[command(flatten)]
        server: ServerArguments,

        #[command(flatten)]
        format: FormatArguments,
    },
    /// Say what a client would refuse, cut or rewrite.
    Lint {
        /// A surface, as for `print`.
        #[arg(value_name = "SURFACE")]
        surface: Option<PathBuf>,

        /// A client, or `all`.
        #[arg(long, value_name = "NAME", default_value = "all")]
        client: String,

        #[command(flatten)]
        server: ServerArguments,

        #[command(flatten)]
        format: FormatArguments,
    },
    /// Judge pairs of schemas that come by standard input.
    #[command(hide = true)]
    Judge,
}

// Which server to ask.
#[derive(Args, Clone, Debug)]
pub struct ServerArguments {
    /// Start this MCP server and ask it: a command with its arguments, as in a shell.
    #[arg(long, value_name = "COMMAND", conflicts_with = "url")]
    pub server: Option<String>,

    /// Ask the MCP server at this address.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// A header for --url, such as 'Authorization: Bearer TOKEN'; can be given several times.
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub header: Vec<String>,

    /// How long the server may take for one answer, such as 2m.
    #[arg(long, value_name = "TIME", value_parser = answer_timeout, default_value = "30s")]
    pub timeout: Duration,
}

/// How long one answer may take.
fn answer_timeout(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(timeout) if timeout.is_zero() => Err("a server needs some time to answer".into()),
        timeout => timeout.map_err(|error| error.to_string()),
    }
}

// How to show what was found.
#[derive(Args, Clone, Debug)]
pub struct FormatArguments {
    /// How to show what was found.
    #[arg(long, value_enum, default_value = "table")]
    pub format: ContractFormat,

    /// Print JSON; the same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// How to show what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContractFormat {
    Table,
    Json,
    Sarif,
}

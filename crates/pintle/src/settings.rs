//! What flags, environment, file and defaults mean together. Flags beat the environment, which beats
//! the file, which beats the defaults.

use std::{
    collections::HashMap,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};

use pintle_commands::{duration, is_within, refuse_folder};
use pintle_contract::{RootName, Scopes, WorkspacePath};
use pintle_engine::{ArgumentReading, Options, Timeouts};
use pintle_files::Durability;
use pintle_positions::{SetAt, escape};
use pintle_rpc::EnvelopeMode;

use pintle_search::{DEFAULT_MAX_FILE_BYTES, Indexing, LARGEST_MAX_FILE_BYTES};
use pintle_wire::{McpOptions, Origins, ResultsSetting, ToolNames};

use crate::{
    cli::{
        ArgumentsHow, Auth, DEFAULT_HTTP, Envelope, IndexHow, LogLevel, NameSpelling, ProgressWhen,
        ResultsHow, ServeArguments, WorkspaceArguments,
    },
    config::{Bind, FileConfig},
    rig::{self, Rig},
    toolsets::Toolsets,
};

/// SemVer and commit: which build this is.
pub const PROGRAM_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("PINTLE_COMMIT"));

const SUBMODULE: &str = "libs/synesthetic-schemas";

/// The workspace and what belongs to it.
#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    /// The root as it was given, which may lead through links.
    pub root_as_given: PathBuf,
    pub state_dir: Option<PathBuf>,
    pub state_dir_set_at: SetAt,
    pub schemas_dir: Option<PathBuf>,
    pub examples_dir: Option<PathBuf>,
    pub backend_url: Option<String>,
    pub backend_url_set_at: SetAt,
    pub backend_assets_path: String,
    pub allow_unvalidated: bool,
    /// The largest file that is searched.
    pub max_file_bytes: u64,
    /// What a search does where there is no index.
    pub indexing: Indexing,
    /// The folder of manifests that make programs tools.
    pub tools_dir: Option<PathBuf>,
    pub tools_dir_set_at: SetAt,
    /// The tools folder was set by a configuration that nobody named: it was found in the current folder.
    pub tools_dir_is_found: bool,
    pub timeouts: Timeouts,
    /// Where the timeouts of the file were written, by tool.
    pub timeouts_set_at: HashMap<String, SetAt>,
    /// Where the configuration is, or would be.
    pub config_file: PathBuf,
    /// What the server writes for itself, which may lie in the root.
    pub own_files: Vec<PathBuf>,
    pub bindings: Vec<Bind>,
    pub durability: Durability,
    pub rig: Option<&'static Rig>,
}

/// Where to serve.
#[derive(Clone, Debug)]
pub enum Listen {
    Stdio,
    Http(ListenHttp),
}

/// Where to serve over HTTP.
#[derive(Clone, Debug)]
pub struct ListenHttp {
    pub address: SocketAddr,
    pub origins: Origins,
}

/// How to serve.
#[derive(Debug)]
pub struct Serve {
    pub listen: Listen,
    pub scopes: Scopes,
    pub ready_file: PathBuf,
    pub log_file: Option<PathBuf>,
    pub log_file_set_at: SetAt,
    pub log_level: LogLevel,
    pub progress_always: bool,
    pub max_request_bytes: usize,
    pub drain: Duration,
    pub write_timeout: Duration,
    /// Serve on when the process that started this one is gone.
    pub keep_running: bool,
    pub toolsets: Toolsets,
    pub mcp: McpOptions,
    pub engine: Options,
}

impl Workspace {
    /// Reads the configuration file and decides on the workspace.
    pub fn read(arguments: WorkspaceArguments) -> Result<(Self, FileConfig), String> {
        let file = FileConfig::load(arguments.config.as_deref())?;
        Ok((Self::decide(arguments, &file)?, file))
    }

    fn decide(arguments: WorkspaceArguments, file: &FileConfig) -> Result<Self, String> {
        let timeouts = timeouts(&arguments.timeout, file)?;
        let root_set_at = set_at(file, is_named(&arguments.root), "root");
        let root = named(arguments.root, &file.root).unwrap_or_else(|| PathBuf::from("."));
        let root_as_given = std::path::absolute(&root).unwrap_or_else(|_| root.clone());
        let root = root.canonicalize().map_err(|error| {
            root_set_at.problem(format!("the root {} cannot be opened: {error}", root.display()))
        })?;
        if !root.is_dir() {
            let problem = format!("the root {} is not a folder; --root takes a folder", root.display());
            return Err(root_set_at.problem(problem));
        }
        let folder = |typed: Option<PathBuf>, written: &Option<PathBuf>, name: &str| {
            let default = root.join(SUBMODULE).join(name);
            named(typed, written).or_else(|| default.is_dir().then_some(default))
        };
        Ok(Self {
            schemas_dir: folder(arguments.schemas_dir, &file.schemas_dir, "jsonschema"),
            examples_dir: folder(arguments.examples_dir, &file.examples_dir, "examples"),
            backend_url_set_at: set_at(file, arguments.backend_url.is_some(), "backend_url"),
            backend_url: arguments
                .backend_url
                .or_else(|| file.backend_url.clone())
                .filter(|url| !url.trim().is_empty()),
            backend_assets_path: arguments
                .backend_assets_path
                .or_else(|| file.backend_assets_path.clone())
                .unwrap_or_else(|| "/synesthetic-assets/".into()),
            allow_unvalidated: arguments.allow_unvalidated.or(file.allow_unvalidated).unwrap_or(false),
            max_file_bytes: max_file_bytes(arguments.max_file_bytes.or(file.max_file_bytes)).map_err(
                |problem| set_at(file, arguments.max_file_bytes.is_some(), "max_file_bytes").problem(problem),
            )?,
            indexing: match arguments.index.or(file.index.map(|word| word.0)).unwrap_or_default() {
                IndexHow::Auto => Indexing::Auto,
                IndexHow::Manual => Indexing::Manual,
            },
            state_dir_set_at: set_at(file, is_named(&arguments.state_dir), "state_dir"),
            // Who serves the home folder has not said that the state is to lie in it: there is none then.
            state_dir: named(arguments.state_dir, &file.state_dir)
                .or_else(|| default_state_dir().filter(|state| refuse_inside(&root, state).is_ok())),
            tools_dir_set_at: set_at(file, is_named(&arguments.tools), "tools"),
            tools_dir_is_found: !is_named(&arguments.config) && !is_named(&arguments.tools),
            tools_dir: named(arguments.tools, &file.tools),
            timeouts,
            timeouts_set_at: timeouts_set_at(file),
            config_file: FileConfig::path(arguments.config.as_deref()).to_owned(),
            own_files: Vec::new(),
            bindings: file.bind.clone(),
            durability: if arguments.rig.no_fsync { Durability::Eventual } else { Durability::Synced },
            rig: rig::wanted(&arguments.rig),
            root_as_given,
            root,
        })
    }
}

impl Serve {
    /// Decides on how to serve.
    pub fn decide(arguments: &ServeArguments, file: &FileConfig, timeouts: Timeouts) -> Result<Self, String> {
        let defaults = Options::default();
        let drain = arguments.drain.as_deref().or(file.drain.as_deref()).unwrap_or("30s");
        let write_timeout =
            arguments.write_timeout.as_deref().or(file.write_timeout.as_deref()).unwrap_or("30s");
        let write_timeout = duration(write_timeout)
            .and_then(|timeout| match timeout.is_zero() {
                true => Err("it must be longer than 0".into()),
                false => Ok(timeout),
            })
            .map_err(|problem| {
                set_at(file, arguments.write_timeout.is_some(), "write_timeout")
                    .problem(format!("write_timeout: {problem}"))
            })?;
        let envelope = arguments.envelope.or(file.envelope.map(|word| word.0)).unwrap_or(Envelope::Enforce);
        const MOST: usize = 1 << 30;
        let number =
            |name: &str, typed: Option<usize>, written: Option<usize>, default: usize, least: usize| {
                let chosen = typed.or(written).unwrap_or(default);
                if (least..=MOST).contains(&chosen) {
                    return Ok(chosen);
                }
                let problem = format!("{name} is {chosen}; it must be from {least} to {MOST}");
                Err(set_at(file, typed.is_some(), name).problem(problem))
            };
        Ok(Self {
            listen: Listen::decide(arguments, file)?,
            scopes: scopes(&arguments.scope, file)?,
            ready_file: named(arguments.ready_file.clone(), &file.ready_file)
                .unwrap_or_else(|| "/tmp/mcp.ready".into()),
            log_file: named(arguments.log_file.clone(), &file.log_file),
            log_file_set_at: set_at(file, is_named(&arguments.log_file), "log_file"),
            log_level: arguments.log_level.or(file.log_level.map(|word| word.0)).unwrap_or(LogLevel::Info),
            progress_always: arguments.progress.or(file.progress.map(|word| word.0))
                == Some(ProgressWhen::Always),
            max_request_bytes: number(
                "max_request_bytes",
                arguments.max_request_bytes,
                file.max_request_bytes,
                1 << 20,
                1,
            )?,
            drain: duration(drain).map_err(|problem| {
                set_at(file, arguments.drain.is_some(), "drain").problem(format!("drain: {problem}"))
            })?,
            write_timeout,
            keep_running: arguments.keep_running.or(file.keep_running).unwrap_or(false),
            toolsets: toolsets(&arguments.toolsets, file)?,
            mcp: McpOptions { scopes: Some(scopes(&arguments.scope, file)?), ..mcp_options(arguments, file) },
            engine: Options {
                running: number("running", arguments.running, file.running, defaults.running, 1)?,
                waiting: number("waiting", arguments.waiting, file.waiting, defaults.waiting, 0)?,
                max_result_bytes: number(
                    "max_result_bytes",
                    arguments.max_result_bytes,
                    file.max_result_bytes,
                    defaults.max_result_bytes,
                    1,
                )?,
                reply_memory: defaults.reply_memory,
                // By then, whoever does not read has been evicted.
                reply_patience: 2 * write_timeout,
                timeouts,
                envelope: match envelope {
                    Envelope::Enforce => EnvelopeMode::Enforce,
                    Envelope::Shadow => EnvelopeMode::Shadow,
                },
                deterministic: arguments.deterministic.or(file.deterministic).unwrap_or(false),
                tooling_version: PROGRAM_VERSION.into(),
            },
        })
    }
}

impl Listen {
    fn decide(arguments: &ServeArguments, file: &FileConfig) -> Result<Self, String> {
        let typed = arguments.http.as_deref().filter(|address| !address.is_empty());
        let Some(address) = typed.or(file.http.as_deref()).filter(|_| !arguments.stdio) else {
            return Ok(Self::Stdio);
        };
        let http_set_at = set_at(file, typed.is_some(), "http");
        if arguments.auth.or(file.auth.map(|word| word.0)) != Some(Auth::None) {
            return Err(http_set_at.problem(
                "over HTTP every program on this machine could call the tools; \
                 say that this is meant with --auth none",
            ));
        }
        let resolved = address.to_socket_addrs().map_err(|error| {
            http_set_at.problem(format!(
                "`{address}` is not an address to serve on ({error}); write it as {DEFAULT_HTTP}"
            ))
        })?;
        let resolved: Vec<_> = resolved.collect();
        let Some(address) = resolved.iter().find(|address| address.ip().is_loopback()).copied() else {
            return Err(http_set_at.problem(format!(
                "{address} is not an address of this machine alone; with --auth none only such as \
                 {DEFAULT_HTTP} can be served"
            )));
        };
        let one_origin = |origin: &str| Origins::new(vec![origin.to_owned()], Vec::new());
        let one_host = |host: &str| Origins::new(Vec::new(), vec![host.to_owned()]);
        let origins = listed(&arguments.allow_origin, file, "allow_origin", &file.allow_origin, one_origin)?;
        let hosts = listed(&arguments.allow_host, file, "allow_host", &file.allow_host, one_host)?;
        let origins = Origins::new(origins.to_vec(), hosts.to_vec()).map_err(|error| error.to_string())?;
        Ok(Self::Http(ListenHttp { address, origins }))
    }
}

/// What was typed, or stands in a variable, or in the file.
fn named(typed: Option<PathBuf>, written: &Option<PathBuf>) -> Option<PathBuf> {
    typed.filter(|path| !path.as_os_str().is_empty()).or_else(|| written.clone())
}

/// Whether a path was typed, or stands in a variable.
fn is_named(typed: &Option<PathBuf>) -> bool {
    typed.as_ref().is_some_and(|path| !path.as_os_str().is_empty())
}

/// Where a setting was written in the file, unless it was typed, which beats the file.
fn set_at(file: &FileConfig, is_typed: bool, key: &str) -> SetAt {
    if is_typed { SetAt::default() } else { file.positions.set_at(&format!("/{key}")) }
}

/// What was typed, or stands in a variable, or in the file, where there may be several. Those of the file are checked
/// one by one, so that an error has the position of the one that is wrong.
fn listed<'a, T, E: ToString>(
    typed: &'a [String],
    file: &FileConfig,
    key: &str,
    written: &'a [String],
    check: impl Fn(&str) -> Result<T, E>,
) -> Result<&'a [String], String> {
    if !typed.iter().all(String::is_empty) {
        return Ok(typed);
    }
    for (index, item) in written.iter().enumerate() {
        check(item).map_err(|problem| {
            file.positions.set_at(&format!("/{key}/{index}")).problem(problem.to_string())
        })?;
    }
    Ok(written)
}

/// Where nobody has said anything, nothing is restricted. An empty list in the file says that nothing is allowed.
fn scopes(typed: &[String], file: &FileConfig) -> Result<Scopes, String> {
    if typed.iter().all(String::is_empty) && file.scope.is_none() {
        return Ok(Scopes::everything());
    }
    let written = file.scope.as_deref().unwrap_or_default();
    let chosen = listed(typed, file, "scope", written, |scope| Scopes::parse([scope]))?;
    // An empty variable is none; an empty scope in the file is an error that is found above.
    let chosen = chosen.iter().map(String::as_str).filter(|scope| !scope.is_empty());
    Scopes::parse(chosen).map_err(|error| error.to_string())
}

fn toolsets(typed: &[String], file: &FileConfig) -> Result<Toolsets, String> {
    let chosen = listed(typed, file, "toolsets", &file.toolsets, |name| Toolsets::parse([name]))?;
    Toolsets::parse(chosen.iter().map(String::as_str))
}

/// How MCP clients are served.
fn mcp_options(arguments: &ServeArguments, file: &FileConfig) -> McpOptions {
    let names = arguments.tool_names.or(file.tool_names.map(|word| word.0));
    let reading = arguments.arguments.or(file.arguments.map(|word| word.0));
    let results = arguments.results.or(file.results.map(|word| word.0));
    McpOptions {
        tool_names: match names.unwrap_or(NameSpelling::Underscore) {
            NameSpelling::Underscore => ToolNames::Underscore,
            NameSpelling::Dotted => ToolNames::Dotted,
        },
        argument_reading: match reading.unwrap_or(ArgumentsHow::Lenient) {
            ArgumentsHow::Lenient => ArgumentReading::Lenient,
            ArgumentsHow::Strict => ArgumentReading::Strict,
        },
        results: match results.unwrap_or(ResultsHow::Auto) {
            ResultsHow::Json => ResultsSetting::Json,
            ResultsHow::Text => ResultsSetting::Text,
            ResultsHow::Auto => ResultsSetting::Auto,
        },
        scopes: None,
    }
}

fn timeouts(typed: &[String], file: &FileConfig) -> Result<Timeouts, String> {
    let mut chosen = Timeouts::default();
    for (tool, text) in &file.timeouts {
        let set_at = file.positions.set_at(&format!("/timeouts/{}", escape(tool)));
        set_timeout(&mut chosen, tool, text).map_err(|problem| set_at.problem(problem))?;
    }
    for text in typed.iter().filter(|text| !text.is_empty()) {
        let (tool, text) = text.split_once('=').unwrap_or(("default", text));
        set_timeout(&mut chosen, tool, text)?;
    }
    Ok(chosen)
}

fn set_timeout(chosen: &mut Timeouts, tool: &str, text: &str) -> Result<(), String> {
    let timeout = duration(text).map_err(|problem| format!("timeout of {tool}: {problem}"))?;
    if tool == "default" {
        chosen.for_all = Some(timeout);
    } else {
        chosen.by_tool.insert(tool.to_owned(), timeout);
    }
    Ok(())
}

/// Where the file names the tools that it sets timeouts of.
fn timeouts_set_at(file: &FileConfig) -> HashMap<String, SetAt> {
    let key = |tool: &String| file.positions.key_set_at(&format!("/timeouts/{}", escape(tool)));
    file.timeouts.keys().map(|tool| (tool.clone(), key(tool))).collect()
}

fn max_file_bytes(chosen: Option<u64>) -> Result<u64, String> {
    let chosen = chosen.unwrap_or(DEFAULT_MAX_FILE_BYTES);
    if (1..=LARGEST_MAX_FILE_BYTES).contains(&chosen) {
        return Ok(chosen);
    }
    Err(format!("max_file_bytes is {chosen}; it must be from 1 to {LARGEST_MAX_FILE_BYTES}"))
}

fn default_state_dir() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let from_xdg = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
    let from_home = || Some(std::env::home_dir().and_then(absolute)?.join(".local/state"));
    Some(from_xdg.or_else(from_home)?.join("pintle"))
}

impl Workspace {
    /// The same for a process that ends with its call: nothing is built behind it.
    pub fn without_background(mut self) -> Self {
        if self.indexing == Indexing::Auto {
            self.indexing = Indexing::ScanOnly;
        }
        self
    }

    /// What lies in the root is the workspace's: the tools could read and change Pintle's own files there.
    pub fn refuse_state_inside_root(&self) -> Result<(), String> {
        let Some(state_dir) = &self.state_dir else { return Ok(()) };
        refuse_inside(&self.root, state_dir).map_err(|problem| self.state_dir_set_at.problem(problem))
    }
}

impl Workspace {
    /// Whoever can write a manifest can run any program, so the tools must not reach the folder of manifests.
    pub fn refuse_tools_inside_root(&self) -> Result<(), String> {
        let Some(tools_dir) = &self.tools_dir else { return Ok(()) };
        let refused = refuse_folder(tools_dir, &self.root).and_then(|()| self.refuse_found_tools(tools_dir));
        refused.map_err(|problem| self.tools_dir_set_at.problem(problem))
    }

    /// A repository that brings a configuration and manifests must not have them run by whoever starts a server in it.
    fn refuse_found_tools(&self, tools_dir: &Path) -> Result<(), String> {
        let here = self.config_file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let here = here.unwrap_or(Path::new(".")).canonicalize();
        if !self.tools_dir_is_found || !here.is_ok_and(|here| is_within(tools_dir, &here)) {
            return Ok(());
        }
        let (tools, config) = (tools_dir.display(), self.config_file.display());
        Err(format!(
            "the tools folder {tools} lies beside {config}, which was found in the current folder: what a repository \
             brings along could run any program; if you trust it, name it with --tools {tools} or --config {config}"
        ))
    }
}

impl Workspace {
    /// What callers may call the root by.
    pub fn root_name(&self) -> RootName {
        RootName::new([self.root.as_path(), self.root_as_given.as_path()])
    }

    /// The path that the tools have for a place on this machine, once all links are followed, if it lies in the root.
    pub fn place_in_root(&self, path: &Path) -> Option<WorkspacePath> {
        self.below_root(&resolve_existing(&follow_links(&std::path::absolute(path).ok()?)))
    }

    /// The same for the name itself, which may be that of a link.
    pub fn name_in_root(&self, path: &Path) -> Option<WorkspacePath> {
        let path = std::path::absolute(path).ok()?;
        self.below_root(&resolve_existing(path.parent()?).join(path.file_name()?))
    }

    fn below_root(&self, path: &Path) -> Option<WorkspacePath> {
        WorkspacePath::parse(path.strip_prefix(&self.root).ok()?.to_str()?).ok()
    }
}

fn refuse_inside(root: &Path, state_dir: &Path) -> Result<(), String> {
    let resolved = resolve_existing(&std::path::absolute(state_dir).unwrap_or(state_dir.to_owned()));
    if resolved.starts_with(root) {
        return Err(format!(
            "the state folder {} lies inside the root {}, where the tools could change it; \
             name one outside with --state-dir (PINTLE_STATE_DIR), or choose a smaller --root",
            state_dir.display(),
            root.display()
        ));
    }
    Ok(())
}

/// The real place of a path whose last parts may not exist yet.
fn resolve_existing(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}

/// Where a file would come to be that is written by this name, if links lead there and nothing is there yet.
fn follow_links(path: &Path) -> PathBuf {
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("1500ms", 1500), ("20s", 20_000), ("2m", 120_000), ("0", 0), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "20", "-5s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_beat_the_file_tool_by_tool() {
        let file = FileConfig {
            timeouts: [("default", "5s"), ("a", "1s"), ("b", "2s")]
                .map(|(tool, text)| (tool.to_owned(), text.to_owned()))
                .into(),
            ..FileConfig::default()
        };
        let chosen = timeouts(&["a=3s".into()], &file).expect("reads");
        assert_eq!(chosen.general(), Duration::from_secs(5));
        assert_eq!(chosen.by_tool["a"], Duration::from_secs(3));
        assert_eq!(chosen.by_tool["b"], Duration::from_secs(2));
    }
}

//! All settings, each of them once. The flags, the environment variables, the keys of `pintle.toml`, their checks and
//! `--help` are derived from this table; what asks for a setting gets its value typed ([`super::Given::get`]).
//!
//! To add a setting, add its definition here, in the group of the commands that take it, and read it where it is needed.

use std::{path::PathBuf, time::Duration};

use pintle_contract::Scopes;
use pintle_engine::{ArgumentReading, Level, Options};
use pintle_rpc::EnvelopeMode;
use pintle_search::{DEFAULT_MAX_FILE_BYTES, Indexing, LARGEST_MAX_FILE_BYTES};
use pintle_wire::{ResultsSetting, ToolNames};

use super::{
    definition::{AnySetting, Between, Fallback, LongerThanZero, Setting},
    value::{Address, AssetFolder},
    words::{Auth, ProgressWhen},
};
use crate::toolsets::Toolsets;

// Help shows first what everybody needs, and the rest by what it is about.
const ASSETS: &str = "Assets and backend";
const LIMITS: &str = "Limits";
const HTTP_GROUP: &str = "HTTP";
const LOG: &str = "Log and readiness";
const PROTOCOL: &str = "Protocol";

/// Where HTTP is served when no address is named.
pub const DEFAULT_HTTP: &str = "127.0.0.1:9999";

/// No count and no size can be set larger than this.
const MOST: usize = 1 << 30;

/// All settings.
pub fn all() -> impl Iterator<Item = &'static dyn AnySetting> {
    WORKSPACE.iter().chain(SERVE).copied()
}

/// Defines settings, and the list of them. What is optional comes in this order: the heading, what the flag means without
/// a value, whether the file has the key, the bounds.
macro_rules! settings {
    ($(#[$doc:meta])* $group:ident: $(
        $name:ident: $type:ty {
            key: $key:literal,
            env: $env:literal,
            value: $value:literal,
            $(heading: $heading:expr,)?
            $(bare: $bare:expr,)?
            $(is_in_file: $is_in_file:expr,)?
            $(bounds: $bounds:expr,)?
            default: $default:expr,
            help: $help:literal,
        }
    )*) => {
        $(
            #[doc = $help]
            pub static $name: Setting<$type> = Setting {
                key: $key,
                env: $env,
                value_name: $value,
                heading: settings!(@ None; $(Some($heading))?),
                bare: settings!(@ None; $(Some($bare))?),
                is_in_file: settings!(@ true; $($is_in_file)?),
                bounds: settings!(@ None; $(Some(&$bounds))?),
                default: $default,
                help: $help,
            };
        )*

        $(#[$doc])*
        pub static $group: &[&dyn AnySetting] = &[$(&$name),*];
    };
    (@ $usual:expr;) => { $usual };
    (@ $usual:expr; $value:expr) => { $value };
}

settings! {
    /// What every command takes: which workspace, and what belongs to it.
    WORKSPACE:

    ROOT: PathBuf {
        key: "root",
        env: "PINTLE_ROOT",
        value: "DIR",
        default: Fallback::Described("the current folder", || ".".into()),
        help: "The folder that the tools see as `/`",
    }
    STATE_DIR: Option<PathBuf> {
        key: "state_dir",
        env: "PINTLE_STATE_DIR",
        value: "DIR",
        default: Fallback::Described("the user's state folder", || None),
        help: "Where Pintle keeps its own files, never inside the root",
    }
    CONFIG: Option<PathBuf> {
        key: "config",
        env: "PINTLE_CONFIG",
        value: "FILE",
        is_in_file: false,
        default: Fallback::Described("pintle.toml in the current folder, if there is one", || None),
        help: "The configuration file",
    }
    TOOLS: Option<PathBuf> {
        key: "tools",
        env: "PINTLE_TOOLS",
        value: "DIR",
        default: Fallback::Described("none", || None),
        help: "The folder of manifests, `NAME.tool.toml`, that turn programs into tools; never inside the root",
    }
    SCHEMAS_DIR: AssetFolder {
        key: "schemas_dir",
        env: "SYN_SCHEMAS_DIR",
        value: "DIR",
        heading: ASSETS,
        default: Fallback::Value(|| AssetFolder::InRoot("libs/synesthetic-schemas/jsonschema")),
        help: "The folder of JSON Schemas, or `pack:NAME` for those of an installed pack",
    }
    EXAMPLES_DIR: AssetFolder {
        key: "examples_dir",
        env: "SYN_EXAMPLES_DIR",
        value: "DIR",
        heading: ASSETS,
        default: Fallback::Value(|| AssetFolder::InRoot("libs/synesthetic-schemas/examples")),
        help: "The folder of examples, or `pack:NAME`; with `--schemas-dir pack:NAME`, those of the same pack",
    }
    BACKEND_URL: Option<String> {
        key: "backend_url",
        env: "SYN_BACKEND_URL",
        value: "URL",
        heading: ASSETS,
        default: Fallback::Described("none", || None),
        help: "The backend that assets are published to",
    }
    BACKEND_ASSETS_PATH: String {
        key: "backend_assets_path",
        env: "SYN_BACKEND_ASSETS_PATH",
        value: "PATH",
        heading: ASSETS,
        default: Fallback::Value(|| "/synesthetic-assets/".into()),
        help: "The backend's path for assets",
    }
    ALLOW_UNVALIDATED: bool {
        key: "allow_unvalidated",
        env: "PINTLE_ALLOW_UNVALIDATED",
        value: "BOOL",
        heading: ASSETS,
        default: Fallback::Value(|| false),
        help: "Let populate_backend publish assets that were not validated",
    }
    MAX_FILE_BYTES: u64 {
        key: "max_file_bytes",
        env: "PINTLE_MAX_FILE_BYTES",
        value: "N",
        heading: LIMITS,
        bounds: Between(1, LARGEST_MAX_FILE_BYTES),
        default: Fallback::Value(|| DEFAULT_MAX_FILE_BYTES),
        help: "The largest file that is searched, in bytes",
    }
    INDEX: Indexing {
        key: "index",
        env: "PINTLE_INDEX",
        value: "HOW",
        default: Fallback::Value(Indexing::default),
        help: "Whether searches build the index by themselves; without one they read the files",
    }
    TIMEOUT: Vec<String> {
        key: "timeout",
        env: "PINTLE_TIMEOUT",
        value: "[TOOL=]DURATION",
        heading: LIMITS,
        // The file has a table for it, `[timeouts]`.
        is_in_file: false,
        default: Fallback::Value(Vec::new),
        help: "How long a call may run: `20s` for every tool, `validate_asset=20s` for one; 0 means no limit",
    }
}

settings! {
    /// What `pintle serve` takes besides: how to serve.
    SERVE:

    HTTP: Option<Address> {
        key: "http",
        env: "PINTLE_HTTP",
        value: "ADDR",
        bare: DEFAULT_HTTP,
        default: Fallback::Value(|| None),
        help: "Serve over HTTP instead, on an address of this machine; port 0 is any that is free",
    }
    AUTH: Auth {
        key: "auth",
        env: "PINTLE_AUTH",
        value: "HOW",
        default: Fallback::Value(|| Auth::Local),
        help: "Who may call over HTTP",
    }
    ISSUER: Option<String> {
        key: "issuer",
        env: "PINTLE_ISSUER",
        value: "URL",
        heading: HTTP_GROUP,
        default: Fallback::Value(|| None),
        help: "The authorization server whose tokens are accepted with `--auth jwks`",
    }
    AUDIENCE: Option<String> {
        key: "audience",
        env: "PINTLE_AUDIENCE",
        value: "TEXT",
        heading: HTTP_GROUP,
        default: Fallback::Value(|| None),
        help: "The audience that its tokens must have",
    }
    JWKS_URL: Option<String> {
        key: "jwks_url",
        env: "PINTLE_JWKS_URL",
        value: "URL",
        heading: HTTP_GROUP,
        default: Fallback::Described("what the issuer's metadata says", || None),
        help: "Where its keys are",
    }
    PUBLIC_URL: Option<String> {
        key: "public_url",
        env: "PINTLE_PUBLIC_URL",
        value: "URL",
        heading: HTTP_GROUP,
        default: Fallback::Described("the address that is served on", || None),
        help: "The address by which clients reach the server, such as https://pintle.example",
    }
    BEHIND_PROXY: bool {
        key: "behind_proxy",
        env: "PINTLE_BEHIND_PROXY",
        value: "BOOL",
        heading: HTTP_GROUP,
        default: Fallback::Value(|| false),
        help: "Serve on addresses beyond this machine: a proxy in front of the server does TLS",
    }
    AUDIT_LOG: Option<PathBuf> {
        key: "audit_log",
        env: "PINTLE_AUDIT_LOG",
        value: "FILE",
        default: Fallback::Value(|| None),
        help: "Record who was allowed to do what, in lines that cannot be changed unseen",
    }
    ALLOW_ORIGIN: Vec<String> {
        key: "allow_origin",
        env: "PINTLE_ALLOW_ORIGIN",
        value: "ORIGIN",
        heading: HTTP_GROUP,
        default: Fallback::Value(Vec::new),
        help: "A web page's origin that may call over HTTP, besides the server's own",
    }
    ALLOW_HOST: Vec<String> {
        key: "allow_host",
        env: "PINTLE_ALLOW_HOST",
        value: "HOST",
        heading: HTTP_GROUP,
        default: Fallback::Value(Vec::new),
        help: "A name by which the server may be reached over HTTP, besides the machine's own",
    }
    SCOPE: Scopes {
        key: "scope",
        env: "PINTLE_SCOPE",
        value: "SCOPE",
        default: Fallback::Value(Scopes::everything),
        help: "What the client may do, such as `read:/` or `write:/src/`",
    }
    TOOLSETS: Toolsets {
        key: "toolsets",
        env: "PINTLE_TOOLSETS",
        value: "NAMES",
        default: Fallback::Value(Toolsets::default),
        help: "Which toolsets there are: `files`, `search`, `assets`, `commands`; `auto` lists those that have something to work on",
    }
    TOOL_NAMES: ToolNames {
        key: "tool_names",
        env: "PINTLE_TOOL_NAMES",
        value: "SPELLING",
        heading: PROTOCOL,
        default: Fallback::Value(ToolNames::default),
        help: "How MCP clients are shown the names of tools: `text_read` or `text.read`; both can be called",
    }
    ARGUMENTS: ArgumentReading {
        key: "arguments",
        env: "PINTLE_ARGUMENTS",
        value: "HOW",
        heading: PROTOCOL,
        default: Fallback::Value(|| ArgumentReading::Lenient),
        help: "How arguments of MCP clients are read that do not match their schema as they stand",
    }
    RESULTS: ResultsSetting {
        key: "results",
        env: "PINTLE_RESULTS",
        value: "FORM",
        heading: PROTOCOL,
        default: Fallback::Value(ResultsSetting::default),
        help: "How MCP clients get results",
    }
    READY_FILE: PathBuf {
        key: "ready_file",
        env: "MCP_READY_FILE",
        value: "FILE",
        heading: LOG,
        default: Fallback::Value(|| "/tmp/mcp.ready".into()),
        help: "A file that exists while the server is ready",
    }
    LOG_FILE: Option<PathBuf> {
        key: "log_file",
        env: "PINTLE_LOG_FILE",
        value: "FILE",
        heading: LOG,
        default: Fallback::Described("standard error", || None),
        help: "Where the call log is written",
    }
    LOG_LEVEL: Level {
        key: "log_level",
        env: "PINTLE_LOG_LEVEL",
        value: "LEVEL",
        heading: LOG,
        default: Fallback::Value(|| Level::Info),
        help: "How much is logged",
    }
    DETERMINISTIC: bool {
        key: "deterministic",
        env: "PINTLE_DETERMINISTIC",
        value: "BOOL",
        heading: LOG,
        default: Fallback::Value(|| Options::default().deterministic),
        help: "Fix ids and times in logs and progress",
    }
    ENVELOPE: EnvelopeMode {
        key: "envelope",
        env: "PINTLE_ENVELOPE",
        value: "MODE",
        heading: PROTOCOL,
        default: Fallback::Value(|| Options::default().envelope),
        help: "What happens to a request whose envelope is wrong",
    }
    PROGRESS: ProgressWhen {
        key: "progress",
        env: "PINTLE_PROGRESS",
        value: "WHEN",
        heading: PROTOCOL,
        default: Fallback::Value(|| ProgressWhen::Asked),
        help: "When progress is reported in the direct dialect",
    }
    MAX_REQUEST_BYTES: usize {
        key: "max_request_bytes",
        env: "PINTLE_MAX_REQUEST_BYTES",
        value: "N",
        heading: LIMITS,
        bounds: Between(1, MOST),
        default: Fallback::Value(|| 1 << 20),
        help: "The longest request, in bytes",
    }
    MAX_RESULT_BYTES: usize {
        key: "max_result_bytes",
        env: "PINTLE_MAX_RESULT_BYTES",
        value: "N",
        heading: LIMITS,
        bounds: Between(1, MOST),
        default: Fallback::Value(|| Options::default().max_result_bytes),
        help: "The largest result, in bytes",
    }
    DRAIN: Duration {
        key: "drain",
        env: "PINTLE_DRAIN",
        value: "DURATION",
        heading: LIMITS,
        default: Fallback::Value(|| Duration::from_secs(30)),
        help: "How long running calls may take to finish when the server shuts down",
    }
    WRITE_TIMEOUT: Duration {
        key: "write_timeout",
        env: "PINTLE_WRITE_TIMEOUT",
        value: "DURATION",
        heading: LIMITS,
        bounds: LongerThanZero,
        default: Fallback::Value(|| Duration::from_secs(30)),
        help: "How long a client may read nothing of what is written to it before its replies are evicted",
    }
    KEEP_RUNNING: bool {
        key: "keep_running",
        env: "PINTLE_KEEP_RUNNING",
        value: "BOOL",
        default: Fallback::Value(|| false),
        help: "Keep serving when the process that started this one is gone and its pipes are still open",
    }
    RUNNING: usize {
        key: "running",
        env: "PINTLE_RUNNING",
        value: "N",
        heading: LIMITS,
        bounds: Between(1, MOST),
        default: Fallback::Described("twice the cores, at least 4", || Options::default().running),
        help: "How many calls run at the same time",
    }
    WAITING: usize {
        key: "waiting",
        env: "PINTLE_WAITING",
        value: "N",
        heading: LIMITS,
        bounds: Between(0, MOST),
        default: Fallback::Value(|| Options::default().waiting),
        help: "How many calls wait for their turn",
    }
    CALLS_PER_CALLER: usize {
        key: "calls_per_caller",
        env: "PINTLE_CALLS_PER_CALLER",
        value: "N",
        heading: LIMITS,
        bounds: Between(0, MOST),
        default: Fallback::Value(|| 0),
        help: "How many calls of one caller run or wait; 0 means no limit",
    }
    RATE_PER_CALLER: usize {
        key: "rate_per_caller",
        env: "PINTLE_RATE_PER_CALLER",
        value: "N",
        heading: LIMITS,
        bounds: Between(0, MOST),
        default: Fallback::Value(|| 0),
        help: "How many calls one caller may make in a second; 0 means no limit",
    }
}

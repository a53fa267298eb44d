//! How to serve.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use pintle_contract::Scopes;
use pintle_engine::{Level, Options, Timeouts};
use pintle_positions::{Located, Location};
use pintle_wire::{McpOptions, Origins};

use super::{
    Given, PROGRAM_VERSION,
    definition::Setting,
    error::SettingError,
    table::{
        ALLOW_HOST, ALLOW_ORIGIN, ARGUMENTS, AUTH, DETERMINISTIC, DRAIN, ENVELOPE, HTTP, KEEP_RUNNING,
        LOG_FILE, LOG_LEVEL, MAX_REQUEST_BYTES, MAX_RESULT_BYTES, PROGRESS, READY_FILE, RESULTS, RUNNING,
        SCOPE, TOOL_NAMES, TOOLSETS, WAITING, WRITE_TIMEOUT,
    },
    value::Address,
    words::{Auth, ProgressWhen},
};
use crate::toolsets::Toolsets;

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
    pub log_file_set_at: Location,
    pub log_level: Level,
    pub progress_always: bool,
    pub max_request_bytes: usize,
    pub drain: Duration,
    pub write_timeout: Duration,
    /// Keep serving when the process that started this one is gone.
    pub keep_running: bool,
    pub toolsets: Toolsets,
    pub mcp: McpOptions,
    pub engine: Options,
}

impl Serve {
    /// Decides on how to serve. With `is_stdio` it is on standard input and output, whatever else is set.
    pub fn decide(given: &Given, is_stdio: bool, timeouts: Timeouts) -> Result<Self, Located<SettingError>> {
        let scopes = given.get(&SCOPE)?;
        let write_timeout = given.get(&WRITE_TIMEOUT)?;
        Ok(Self {
            listen: if is_stdio { Listen::Stdio } else { Listen::decide(given)? },
            scopes: scopes.clone(),
            ready_file: given.get(&READY_FILE)?,
            log_file: given.get(&LOG_FILE)?,
            log_file_set_at: given.location(&LOG_FILE),
            log_level: given.get(&LOG_LEVEL)?,
            progress_always: given.get(&PROGRESS)? == ProgressWhen::Always,
            max_request_bytes: given.get(&MAX_REQUEST_BYTES)?,
            drain: given.get(&DRAIN)?,
            write_timeout,
            keep_running: given.get(&KEEP_RUNNING)?,
            toolsets: given.get(&TOOLSETS)?,
            mcp: McpOptions {
                tool_names: given.get(&TOOL_NAMES)?,
                argument_reading: given.get(&ARGUMENTS)?,
                results: given.get(&RESULTS)?,
                scopes: Some(scopes),
            },
            engine: Options {
                running: given.get(&RUNNING)?,
                waiting: given.get(&WAITING)?,
                max_result_bytes: given.get(&MAX_RESULT_BYTES)?,
                // By then, whoever does not read has been evicted.
                reply_patience: 2 * write_timeout,
                timeouts,
                envelope: given.get(&ENVELOPE)?,
                deterministic: given.get(&DETERMINISTIC)?,
                tooling_version: PROGRAM_VERSION.into(),
                ..Options::default()
            },
        })
    }
}

impl Listen {
    fn decide(given: &Given) -> Result<Self, Located<SettingError>> {
        let Some(Address(address)) = given.get(&HTTP)? else { return Ok(Self::Stdio) };
        let location = given.location(&HTTP);
        if given.get(&AUTH)? != Some(Auth::None) {
            return Err(location.error(SettingError::NoAuth));
        }
        let resolved: Vec<SocketAddr> = match address.to_socket_addrs() {
            Ok(resolved) => resolved.collect(),
            Err(error) => return Err(location.error(SettingError::NotAnAddress { address, error })),
        };
        let Some(socket) = resolved.into_iter().find(|socket| socket.ip().is_loopback()) else {
            return Err(location.error(SettingError::NotLoopback(address)));
        };
        let origins = checked(given, &ALLOW_ORIGIN, |origin| Origins::new(vec![origin], Vec::new()))?;
        let hosts = checked(given, &ALLOW_HOST, |host| Origins::new(Vec::new(), vec![host]))?;
        let origins = Origins::new(origins, hosts)
            .map_err(|error| Located::nowhere(SettingError::NoOrigin(error.to_string())))?;
        Ok(Self::Http(ListenHttp { address: socket, origins }))
    }
}

/// The texts of a list, checked one by one, so that an error has the position of the one that is wrong.
fn checked<T, E: ToString>(
    given: &Given,
    setting: &Setting<Vec<String>>,
    check: impl Fn(String) -> Result<T, E>,
) -> Result<Vec<String>, Located<SettingError>> {
    let texts = given.get(setting)?;
    for (index, text) in texts.iter().enumerate() {
        check(text.clone()).map_err(|error| {
            let location = given.element_location(setting, Some(index));
            location.error(SettingError::NoOrigin(error.to_string()))
        })?;
    }
    Ok(texts)
}

//! How to serve.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use pintle_contract::Permissions;
use pintle_engine::{Level, Options};
use pintle_positions::{Located, Location};
use pintle_wire::{JwksOptions, McpOptions, Origins};

use super::{
    Given, PROGRAM_VERSION,
    definition::Setting,
    error::SettingError,
    table::{
        ALLOW_HOST, ALLOW_ORIGIN, ARGUMENTS, AUDIENCE, AUDIT_LOG, AUTH, BEHIND_PROXY, CALLS_PER_CALLER,
        DETERMINISTIC, DRAIN, ENVELOPE, HTTP, ISSUER, JWKS_URL, KEEP_RUNNING, LOG_FILE, LOG_LEVEL,
        MAX_REQUEST_BYTES, MAX_RESULT_BYTES, PROGRESS, PUBLIC_URL, RATE_PER_CALLER, READY_FILE, RESULTS,
        ROOT, RUNNING, SCOPE, TOOL_NAMES, TOOLSETS, WAITING, WRITE_TIMEOUT,
    },
    value::Address,
    words::{Auth, ProgressWhen},
    workspace::Workspace,
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
    pub auth: HttpAuth,
    /// The address by which clients reach the server, if it is not the one that is served on.
    pub public_url: Option<String>,
}

/// Who may call over HTTP.
#[derive(Clone, Debug)]
pub enum HttpAuth {
    /// Every program on this machine.
    Anyone,
    /// Whoever has a token of the local secret.
    Local,
    /// Whoever has a token of an authorization server.
    Jwks(JwksOptions),
}

/// How to serve.
#[derive(Debug)]
pub struct Serve {
    pub listen: Listen,
    /// What every caller may do.
    pub permissions: Permissions,
    pub ready_file: PathBuf,
    pub log_file: Option<PathBuf>,
    pub log_file_set_at: Location,
    pub audit_log: Option<PathBuf>,
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
    pub fn decide(
        given: &Given,
        is_stdio: bool,
        workspace: &Workspace,
    ) -> Result<Self, Located<SettingError>> {
        let write_timeout = given.get(&WRITE_TIMEOUT)?;
        let listen = if is_stdio { Listen::Stdio } else { Listen::decide(given)? };
        let has_tokens = matches!(&listen, Listen::Http(listen) if !matches!(listen.auth, HttpAuth::Anyone));
        if workspace.tenants.is_some() && !has_tokens {
            return Err(given.location(&ROOT).error(SettingError::TenantsNeedTokens));
        }
        Ok(Self {
            listen,
            permissions: workspace.permissions(given.get(&SCOPE)?),
            ready_file: given.get(&READY_FILE)?,
            log_file: given.get(&LOG_FILE)?,
            log_file_set_at: given.location(&LOG_FILE),
            audit_log: given.get(&AUDIT_LOG)?,
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
            },
            engine: Options {
                running: given.get(&RUNNING)?,
                waiting: given.get(&WAITING)?,
                calls_per_caller: given.get(&CALLS_PER_CALLER)?,
                rate_per_caller: u32::try_from(given.get(&RATE_PER_CALLER)?).unwrap_or(u32::MAX),
                max_result_bytes: given.get(&MAX_RESULT_BYTES)?,
                // By then, whoever does not read has been evicted.
                reply_patience: 2 * write_timeout,
                timeouts: workspace.timeouts.clone(),
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
        let auth = HttpAuth::decide(given)?;
        let public_url = given.get(&PUBLIC_URL)?.map(|url| public_url(&url)).transpose();
        let public_url = public_url.map_err(|error| given.location(&PUBLIC_URL).error(error))?;
        let resolved: Vec<SocketAddr> = match address.to_socket_addrs() {
            Ok(resolved) => resolved.collect(),
            Err(error) => return Err(location.error(SettingError::NotAnAddress { address, error })),
        };
        let on_this_machine = resolved.iter().find(|socket| socket.ip().is_loopback());
        let socket = match (on_this_machine, resolved.first(), &auth) {
            (Some(socket), ..) => *socket,
            (None, Some(_), HttpAuth::Jwks(_)) if public_url.is_none() => {
                return Err(location.error(SettingError::NoPublicUrl(address)));
            }
            (None, Some(socket), HttpAuth::Local | HttpAuth::Jwks(_)) if given.get(&BEHIND_PROXY)? => *socket,
            (None, Some(_), HttpAuth::Local | HttpAuth::Jwks(_)) => {
                return Err(location.error(SettingError::BeyondThisMachine(address)));
            }
            (None, ..) => return Err(location.error(SettingError::NotLoopback(address))),
        };
        let mut origins = checked(given, &ALLOW_ORIGIN, |origin| Origins::new(vec![origin], Vec::new()))?;
        let mut hosts = checked(given, &ALLOW_HOST, |host| Origins::new(Vec::new(), vec![host]))?;
        if let Some(url) = &public_url {
            hosts.extend(url.split_once("://").map(|(_, host)| host.to_owned()));
            origins.push(url.clone());
        }
        let origins = Origins::new(origins, hosts)
            .map_err(|error| Located::nowhere(SettingError::NoOrigin(error.to_string())))?;
        Ok(Self::Http(ListenHttp { address: socket, origins, auth, public_url }))
    }
}

impl HttpAuth {
    fn decide(given: &Given) -> Result<Self, Located<SettingError>> {
        let auth = given.get(&AUTH)?;
        if auth != Auth::None && !given.get(&SCOPE)?.are_everything() {
            return Err(given.location(&SCOPE).error(SettingError::ScopeWithTokens));
        }
        let needed = |setting: &Setting<Option<String>>| {
            let missing = || given.location(&AUTH).error(SettingError::JwksNeeds(setting.key));
            given.get(setting)?.filter(|text| !text.is_empty()).ok_or_else(missing)
        };
        match auth {
            Auth::None => Ok(Self::Anyone),
            Auth::Local => Ok(Self::Local),
            Auth::Jwks => Ok(Self::Jwks(JwksOptions {
                issuer: needed(&ISSUER)?,
                audience: needed(&AUDIENCE)?,
                jwks_url: given.get(&JWKS_URL)?,
            })),
        }
    }
}

/// An address by which clients reach the server: an origin, to which paths are added.
fn public_url(text: &str) -> Result<String, SettingError> {
    let url = text.trim_end_matches('/');
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', '"', '\\']) => {
            Ok(url.to_owned())
        }
        _ => Err(SettingError::PublicUrl(text.to_owned())),
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

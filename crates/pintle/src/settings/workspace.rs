//! The workspace and what belongs to it.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::unix::fs::DirBuilderExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use pintle_commands::{FolderError, duration, is_within, refuse_folder};
use pintle_contract::{DenyGlobs, DenyRules, Permissions, RootName, Scopes, WorkspacePath};
use pintle_engine::Timeouts;
use pintle_files::Durability;
use pintle_positions::{Located, Location};
use pintle_search::Indexing;
use thiserror::Error;

use super::{
    Given,
    asset_folders::{AssetFolders, PackInUse},
    error::SettingError,
    table::{
        ALLOW_UNVALIDATED, BACKEND_ASSETS_PATH, BACKEND_URL, CONFIG, INDEX, MAX_FILE_BYTES, ROOT, STATE_DIR,
        TIMEOUT, TOOLS,
    },
};
use crate::{
    config::{Bind, PathRules},
    error::StartError,
    rig::{self, Rig},
    state::StateError,
};

/// The name in the place of a tool's for a timeout that holds for all tools.
const ALL_TOOLS: &str = "default";

/// The workspace and what belongs to it.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// With tenants, an empty folder of the server's own.
    pub root: PathBuf,
    /// Where the roots of tenants are, if each caller has its own.
    pub tenants: Option<RootTemplate>,
    /// The root as it was given, which may lead through links.
    pub root_as_given: PathBuf,
    pub state_dir: Option<PathBuf>,
    pub state_dir_set_at: Location,
    pub schemas_dir: Option<PathBuf>,
    pub examples_dir: Option<PathBuf>,
    /// The packs that these are of.
    pub packs: Vec<PackInUse>,
    pub backend_url: Option<String>,
    pub backend_url_set_at: Location,
    /// What it was set by, for messages that ask to change it.
    pub backend_url_name: String,
    pub backend_assets_path: String,
    pub allow_unvalidated: bool,
    /// The largest file that is searched.
    pub max_file_bytes: u64,
    /// What a search does where there is no index.
    pub indexing: Indexing,
    /// The folder of manifests that make programs tools.
    pub tools_dir: Option<PathBuf>,
    pub tools_dir_set_at: Location,
    /// The tools folder was set by a configuration that nobody named: it was found in the current folder.
    pub tools_dir_is_found: bool,
    pub timeouts: Timeouts,
    /// Where the timeouts of the file were written, by tool.
    pub timeouts_set_at: HashMap<String, Location>,
    /// Where the configuration is, or would be.
    pub config_file: PathBuf,
    /// What the server writes for itself, which may lie in the root.
    pub own_files: Vec<PathBuf>,
    pub bindings: Vec<Bind>,
    /// Paths that nobody may read or write.
    pub denied: Arc<DenyRules>,
    pub durability: Durability,
    pub rig: Option<&'static Rig>,
}

impl Workspace {
    /// Decides on the workspace.
    pub fn decide(given: &Given) -> Result<Self, Located<SettingError>> {
        let timeouts = timeouts(given)?;
        let tenants = RootTemplate::parse(&given.get(&ROOT)?);
        let tenants = tenants.map_err(|error| given.location(&ROOT).error(error))?;
        let given_root = match &tenants {
            None => given.get(&ROOT)?,
            Some(_) => empty_root(given)?,
        };
        let root_as_given = std::path::absolute(&given_root).unwrap_or_else(|_| given_root.clone());
        let root = match given_root.canonicalize() {
            Ok(root) => root,
            Err(error) => {
                let error = SettingError::RootNotOpened { root: given_root, error };
                return Err(given.location(&ROOT).error(error));
            }
        };
        if !root.is_dir() {
            return Err(given.location(&ROOT).error(SettingError::RootNotAFolder(root)));
        }
        // Who serves the home folder has not said that the state is to lie in it: there is none then.
        let state_dir = match given.get(&STATE_DIR)? {
            None => default_state_dir().filter(|state| refuse_inside(&root, state).is_ok()),
            given => given,
        };
        let AssetFolders { schemas_dir, examples_dir, packs } =
            AssetFolders::decide(given, &root, state_dir.as_deref())?;
        Ok(Self {
            schemas_dir,
            examples_dir,
            packs,
            backend_url: given.get(&BACKEND_URL)?.filter(|url| !url.trim().is_empty()),
            backend_url_set_at: given.location(&BACKEND_URL),
            backend_url_name: given.name(&BACKEND_URL),
            backend_assets_path: given.get(&BACKEND_ASSETS_PATH)?,
            allow_unvalidated: given.get(&ALLOW_UNVALIDATED)?,
            max_file_bytes: given.get(&MAX_FILE_BYTES)?,
            indexing: given.get(&INDEX)?,
            state_dir,
            state_dir_set_at: given.location(&STATE_DIR),
            tools_dir: given.get(&TOOLS)?,
            tools_dir_set_at: given.location(&TOOLS),
            tools_dir_is_found: !given.is_typed(&CONFIG) && !given.is_typed(&TOOLS),
            timeouts,
            timeouts_set_at: timeouts_set_at(given),
            config_file: given.config_file.clone(),
            own_files: Vec::new(),
            bindings: given.file.bind.clone(),
            denied: deny_rules(given)?,
            durability: if given.flags.rig.no_fsync { Durability::Eventual } else { Durability::Synced },
            rig: rig::wanted(&given.flags.rig),
            root_as_given,
            tenants,
            root,
        })
    }

    /// A workspace with nothing in it and the default of every setting, for what no setting changes.
    pub fn built_in() -> Self {
        let root = std::env::temp_dir();
        Self {
            root_as_given: root.clone(),
            root,
            tenants: None,
            state_dir: None,
            state_dir_set_at: Location::default(),
            schemas_dir: None,
            examples_dir: None,
            packs: Vec::new(),
            backend_url: None,
            backend_url_set_at: Location::default(),
            backend_url_name: String::new(),
            backend_assets_path: BACKEND_ASSETS_PATH.default_value(),
            allow_unvalidated: false,
            max_file_bytes: MAX_FILE_BYTES.default_value(),
            indexing: Indexing::ScanOnly,
            tools_dir: None,
            tools_dir_set_at: Location::default(),
            tools_dir_is_found: false,
            timeouts: Timeouts::default(),
            timeouts_set_at: HashMap::new(),
            config_file: PathBuf::new(),
            own_files: Vec::new(),
            bindings: Vec::new(),
            denied: Arc::default(),
            durability: Durability::Synced,
            rig: None,
        }
    }

    /// The same for a tenant, whose root is this folder.
    pub fn of_tenant(&self, root: &Path) -> Result<Self, StartError> {
        let not_opened = |error| StartError::RootNotOpened { root: root.to_owned(), error };
        let real = root.canonicalize().map_err(not_opened)?;
        let own = Self { root: real, root_as_given: root.to_owned(), tenants: None, ..self.clone() };
        own.refuse_state_inside_root()?;
        Ok(own)
    }
}

/// The root of a server with tenants: nothing is in it.
fn empty_root(given: &Given) -> Result<PathBuf, Located<SettingError>> {
    let refused = |error| given.location(&ROOT).error(error);
    if given.get(&TOOLS)?.is_some() {
        return Err(given.location(&TOOLS).error(SettingError::CommandsWithTenants));
    }
    let state = state_dir(given)?.ok_or_else(|| refused(SettingError::TenantsNeedState))?;
    // Beside the state folder's own parts, and not inside it: the state must not be in a root.
    let mut name = state.file_name().unwrap_or(OsStr::new("pintle")).to_owned();
    name.push("-no-root");
    let root = state.with_file_name(name);
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&root);
    created.map_err(|error| refused(SettingError::RootNotOpened { root: root.clone(), error }))?;
    Ok(root)
}

/// Where the roots of tenants are: a path with `{sub}` in the place of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootTemplate {
    before: PathBuf,
    after: PathBuf,
}

impl RootTemplate {
    const SUBJECT: &'static str = "{sub}";

    /// Reads a root. `None` if it has no `{sub}`.
    pub fn parse(root: &Path) -> Result<Option<Self>, SettingError> {
        if !root.to_string_lossy().contains(Self::SUBJECT) {
            return Ok(None);
        }
        let names: Vec<_> = root.components().collect();
        let is_subject = |name: &Component<'_>| name.as_os_str() == Self::SUBJECT;
        let position = names.iter().position(is_subject);
        let (Some(position), 1) = (position, root.to_string_lossy().matches(Self::SUBJECT).count()) else {
            return Err(SettingError::RootTemplate(root.to_owned()));
        };
        let before: PathBuf = names[..position].iter().collect();
        if !before.is_absolute() {
            return Err(SettingError::RootTemplate(root.to_owned()));
        }
        Ok(Some(Self { before, after: names[position + 1..].iter().collect() }))
    }

    /// The root of a subject, if its name can be one of a folder.
    pub fn root_of(&self, subject: &str) -> Option<PathBuf> {
        const LONGEST: usize = 128;
        let is_safe = !subject.is_empty()
            && subject.len() <= LONGEST
            && !subject.starts_with('.')
            && !subject.contains(['/', '\\', '\0'])
            && !subject.contains(char::is_control);
        is_safe.then(|| self.before.join(subject).join(&self.after))
    }
}

/// The state folder, for commands that need no workspace.
pub fn state_dir(given: &Given) -> Result<Option<PathBuf>, Located<SettingError>> {
    Ok(given.get(&STATE_DIR)?.or_else(default_state_dir))
}

/// Why the folder of manifests is refused.
#[derive(Debug, Error)]
pub enum ToolsFolderError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A repository that brings a configuration and manifests must not have them run by whoever starts a server in it.
    #[error(
        "the tools folder {tools} lies beside {config}, which was found in the current folder: what a repository brings \
         along could run any program; if you trust it, name it with --tools {tools} or --config {config}",
        tools = tools.display(),
        config = config.display()
    )]
    FoundInRepository { tools: PathBuf, config: PathBuf },
}

/// The deny rules. A glob that cannot be used is reported where it was written.
fn deny_rules(given: &Given) -> Result<Arc<DenyRules>, Located<SettingError>> {
    let PathRules { deny_read, deny_write, allow_write } = &given.file.access;
    for glob in deny_read.iter().chain(deny_write).chain(allow_write) {
        let alone = DenyGlobs { read: std::slice::from_ref(&glob.text), ..DenyGlobs::default() };
        DenyRules::new(alone).map_err(|error| glob.set_at.error(SettingError::Glob(error)))?;
    }
    let [read, write, allow_write] = [deny_read, deny_write, allow_write]
        .map(|globs| globs.iter().map(|glob| glob.text.clone()).collect::<Vec<_>>());
    let globs = DenyGlobs { read: &read, write: &write, allow_write: &allow_write };
    let rules = DenyRules::new(globs).map_err(|error| Located::nowhere(SettingError::Glob(error)))?;
    Ok(Arc::new(rules))
}

fn timeouts(given: &Given) -> Result<Timeouts, Located<SettingError>> {
    let mut chosen = Timeouts::default();
    for (tool, text) in &given.file.timeouts {
        set_timeout(&mut chosen, "timeout", tool, text)
            .map_err(|error| given.file.timeout_location(tool).error(error))?;
    }
    for text in given.get(&TIMEOUT)? {
        let (tool, text) = text.split_once('=').unwrap_or((ALL_TOOLS, &text));
        set_timeout(&mut chosen, &given.name(&TIMEOUT), tool, text).map_err(Located::nowhere)?;
    }
    Ok(chosen)
}

fn set_timeout(chosen: &mut Timeouts, name: &str, tool: &str, text: &str) -> Result<(), SettingError> {
    let timeout = duration(text).map_err(|error| SettingError::Timeout {
        name: name.to_owned(),
        tool: tool.to_owned(),
        error,
    })?;
    if tool == ALL_TOOLS {
        chosen.for_all = Some(timeout);
    } else {
        chosen.by_tool.insert(tool.to_owned(), timeout);
    }
    Ok(())
}

/// Where the file names the tools that it sets timeouts of.
fn timeouts_set_at(given: &Given) -> HashMap<String, Location> {
    let tools = given.file.timeouts.keys();
    tools.map(|tool| (tool.clone(), given.file.timeout_key_location(tool))).collect()
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

    /// What callers with these scopes may do in this workspace.
    pub fn permissions(&self, scopes: Scopes) -> Permissions {
        Permissions::new(scopes, Arc::clone(&self.denied))
    }

    /// What lies in the root is the workspace's: the tools could read and change Pintle's own files there.
    pub fn refuse_state_inside_root(&self) -> Result<(), Located<StateError>> {
        let Some(state_dir) = &self.state_dir else { return Ok(()) };
        refuse_inside(&self.root, state_dir).map_err(|error| self.state_dir_set_at.error(error))
    }
}

impl Workspace {
    /// Whoever can write a manifest can run any program, so the tools must not reach the folder of manifests.
    pub fn refuse_tools_inside_root(&self) -> Result<(), Located<ToolsFolderError>> {
        let Some(tools_dir) = &self.tools_dir else { return Ok(()) };
        let refused = refuse_folder(tools_dir, &self.root).map_err(ToolsFolderError::from);
        let refused = refused.and_then(|()| self.refuse_found_tools(tools_dir));
        refused.map_err(|error| self.tools_dir_set_at.error(error))
    }

    fn refuse_found_tools(&self, tools_dir: &Path) -> Result<(), ToolsFolderError> {
        let here = self.config_file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let here = here.unwrap_or(Path::new(".")).canonicalize();
        if !self.tools_dir_is_found || !here.is_ok_and(|here| is_within(tools_dir, &here)) {
            return Ok(());
        }
        let (tools, config) = (tools_dir.to_owned(), self.config_file.clone());
        Err(ToolsFolderError::FoundInRepository { tools, config })
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

fn refuse_inside(root: &Path, state_dir: &Path) -> Result<(), StateError> {
    let resolved = resolve_existing(&std::path::absolute(state_dir).unwrap_or(state_dir.to_owned()));
    match resolved.starts_with(root) {
        true => Err(StateError::InsideRoot { folder: state_dir.to_owned(), root: root.to_owned() }),
        false => Ok(()),
    }
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

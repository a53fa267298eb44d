//! The tools that there are, found by either spelling of their names.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use pintle_contract::{
    ErrorCode, Fault, Permissions, Stage, ToolDefinition, nearest, tool_id, underscore_name,
};
use serde_json::{Value, json};

use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_tool::{DynTool, Toolset};

/// All tools of a server, sorted by name.
pub struct Catalogue {
    tools: BTreeMap<String, Arc<Entry>>,
    /// Underscore spellings that differ from the name, and older names in both spellings.
    aliases: HashMap<String, String>,
    tooling_version: String,
}

/// A tool, ready to be called.
pub struct Entry {
    pub(crate) tool: Arc<dyn DynTool>,
    pub(crate) id: String,
    pub(crate) input: Arc<CompiledSchema>,
    pub(crate) output: Arc<CompiledSchema>,
    is_listed: bool,
}

impl Entry {
    pub(crate) fn new(tool: Arc<dyn DynTool>, is_listed: bool, registry: &SchemaRegistry) -> Self {
        let definition = tool.definition();
        Self {
            id: tool_id(&definition.name),
            input: registry.declare(&definition.input_schema),
            output: registry.declare(&definition.output_schema),
            is_listed,
            tool,
        }
    }
}

/// Why a set of tools cannot be served.
#[derive(Debug)]
pub enum CatalogueError {
    /// Two tools answer to one name.
    NameTaken(String),
    /// A tool does not declare which permissions it needs.
    NoPermissions(String),
    /// A schema of the contract is unusable.
    BadSchema(Fault),
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(f, "two tools answer to the name `{name}`"),
            Self::NoPermissions(name) => {
                write!(
                    f,
                    "the tool `{name}` declares no permissions; a tool that needs none declares `AnyCaller`"
                )
            }
            Self::BadSchema(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for CatalogueError {}

impl Catalogue {
    /// Takes the tools of all toolsets.
    pub fn new(
        toolsets: Vec<Toolset>,
        registry: &SchemaRegistry,
        tooling_version: &str,
    ) -> Result<Self, CatalogueError> {
        let mut catalogue = Self {
            tools: BTreeMap::new(),
            aliases: HashMap::new(),
            tooling_version: tooling_version.to_owned(),
        };
        for Toolset { tools, is_listed } in toolsets {
            tools.into_iter().try_for_each(|tool| catalogue.add(tool, is_listed, registry))?;
        }
        Ok(catalogue)
    }

    fn add(
        &mut self,
        tool: Arc<dyn DynTool>,
        is_listed: bool,
        registry: &SchemaRegistry,
    ) -> Result<(), CatalogueError> {
        let name = tool.definition().name.clone();
        if tool.permissions().is_empty() {
            return Err(CatalogueError::NoPermissions(name));
        }
        let mut spellings = BTreeSet::new();
        for spelling in std::iter::once(&name).chain(&tool.definition().aliases) {
            spellings.extend([spelling.clone(), underscore_name(spelling)]);
        }
        if let Some(taken) = spellings.iter().find(|spelling| self.find(spelling).is_some()) {
            return Err(CatalogueError::NameTaken(taken.clone()));
        }
        spellings.remove(&name);
        self.aliases.extend(spellings.into_iter().map(|spelling| (spelling, name.clone())));
        self.tools.insert(name, Arc::new(Entry::new(tool, is_listed, registry)));
        Ok(())
    }

    /// The same catalogue with some tools replaced by others.
    pub(crate) fn with_replaced(
        &self,
        removed: &[String],
        added: Toolset,
        registry: &SchemaRegistry,
    ) -> Result<Self, CatalogueError> {
        let mut catalogue = Self {
            tools: self.tools.clone(),
            aliases: self.aliases.clone(),
            tooling_version: self.tooling_version.clone(),
        };
        catalogue.tools.retain(|name, _| !removed.contains(name));
        catalogue.aliases.retain(|_, name| !removed.contains(name));
        let Toolset { tools, is_listed } = added;
        tools.into_iter().try_for_each(|tool| catalogue.add(tool, is_listed, registry))?;
        Ok(catalogue)
    }

    /// The tool that answers to a name, in either spelling.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    /// The tool, or the fault that names the one that was probably meant.
    pub(crate) fn require(&self, name: &str) -> Result<&Arc<Entry>, Fault> {
        self.find(name).ok_or_else(|| {
            // The suggestion has the caller's spelling: most clients are shown names without dots.
            let spell = |known: &String| match name.contains('.') {
                true => known.clone(),
                false => underscore_name(known),
            };
            let names: Vec<String> = self.tools.keys().map(spell).collect();
            let near = nearest(name, names.iter().map(String::as_str));
            let fault = Fault::invalid(Stage::Tool, "there is no tool of that name");
            fault.hint(match near {
                Some(near) => format!("the nearest known tool is `{near}`"),
                None => "list the tools to see their names".into(),
            })
        })
    }

    /// The definitions as they travel, sorted by name.
    pub fn definitions(&self) -> Vec<Value> {
        let definitions = self.tools.values().map(|entry| entry.tool.definition());
        definitions.map(|definition| definition.to_json(&self.tooling_version)).collect()
    }

    /// The tools that a caller is shown, sorted by name: those that it can never use are left out.
    pub fn listed<'a>(&'a self, permissions: &'a Permissions) -> impl Iterator<Item = &'a ToolDefinition> {
        let is_offered =
            |entry: &&Arc<Entry>| entry.is_listed && permissions.allow_some_call(entry.tool.permissions());
        self.tools.values().filter(is_offered).map(|entry| entry.tool.definition())
    }

    /// The definition of the tool that answers to a name, in either spelling.
    pub fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        self.find(name).map(|entry| entry.tool.definition())
    }

    /// Whether the calls of the tool that answers to a name may outlive their requests.
    pub fn may_be_task(&self, name: &str) -> bool {
        self.find(name).is_some_and(|entry| entry.tool.may_be_task())
    }

    /// The names of all tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Which build this is.
    pub fn tooling_version(&self) -> &str {
        &self.tooling_version
    }

    /// The result of `mcp.discover`.
    pub(crate) fn discovery(&self, arguments: &Value) -> Result<Value, Fault> {
        match arguments.as_object() {
            Some(map) if map.is_empty() => Ok(json!({"ok": true, "tools": self.definitions()})),
            _ => Err(Fault::new(
                ErrorCode::InvalidRequest,
                "mcp.discover takes no arguments; send `params: {}`",
            )),
        }
    }
}

//! The loaded state of the toolset: schemas, examples and the backend, read once at start.

use std::{path::Path, sync::Arc};

use pintle_tool::{DynTool, Resources};

use crate::{
    backend::Backend, config::AssetsConfig, examples::Examples, folder::Folder, resources, schemas::Schemas,
    tools, warnings::Warnings,
};

/// The schemas, the examples and the backend that the tools and resources share.
///
/// ```
/// use std::sync::Arc;
/// use pintle_assets::{Assets, AssetsConfig};
///
/// let assets = Arc::new(Assets::load(AssetsConfig::default()));
/// assert!(assets.warnings().is_empty());
/// assert_eq!(assets.tools().len(), 7);
/// ```
pub struct Assets {
    schemas: Schemas,
    examples: Examples,
    backend: Option<Backend>,
    allow_unvalidated: bool,
    warnings: Vec<String>,
}

impl Assets {
    /// Reads the folders. A file, folder or backend that cannot be used is skipped and reported in
    /// [`Assets::warnings`]: none of them keeps the server from starting.
    pub fn load(config: AssetsConfig) -> Self {
        let mut warnings = Vec::new();
        let root = config.root.as_deref();
        let schemas = load(config.schemas_dir.as_deref(), root, "schema", Schemas::load, &mut warnings);
        let examples = load(config.examples_dir.as_deref(), root, "example", Examples::load, &mut warnings);
        let backend = config.backend.and_then(|config| {
            Backend::new(&config)
                .map_err(|reason| warnings.push(format!("the backend is off: {reason}")))
                .ok()
        });
        Self { schemas, examples, backend, allow_unvalidated: config.allow_unvalidated, warnings }
    }

    /// What was skipped at load, and why, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of the schemas, sorted.
    pub fn schema_names(&self) -> Vec<String> {
        self.schemas.list().iter().map(|schema| schema.name.clone()).collect()
    }

    /// The tools of this toolset.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        tools::all(self)
    }

    /// The resources of this toolset, one for each scheme.
    pub fn resources(self: &Arc<Self>) -> Vec<Arc<dyn Resources>> {
        resources::all(self)
    }

    pub(crate) fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    pub(crate) fn examples(&self) -> &Examples {
        &self.examples
    }

    pub(crate) fn backend(&self) -> Option<&Backend> {
        self.backend.as_ref()
    }

    pub(crate) fn allows_unvalidated(&self) -> bool {
        self.allow_unvalidated
    }
}

/// Opens a folder and loads it with `read`. Without a folder, or if it cannot be opened, the result is empty.
fn load<T: Default>(
    path: Option<&Path>,
    root: Option<&Path>,
    about: &'static str,
    read: impl FnOnce(&Folder, &mut Warnings) -> T,
    lines: &mut Vec<String>,
) -> T {
    let Some(path) = path else { return T::default() };
    match Folder::open(path) {
        Ok(folder) => {
            let folder = match root {
                Some(root) => folder.in_workspace(root),
                None => folder,
            };
            let mut warnings = Warnings::about(about);
            let loaded = read(&folder, &mut warnings);
            lines.extend(warnings.into_lines());
            loaded
        }
        Err(reason) => {
            let path = path.display();
            lines.push(format!("no {about}s were loaded: the folder `{path}` cannot be opened: {reason}"));
            T::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendConfig;

    #[test]
    fn a_missing_folder_or_a_bad_address_is_a_warning_and_no_failure() {
        let assets = Assets::load(AssetsConfig {
            schemas_dir: Some("/nowhere/schemas".into()),
            examples_dir: Some("/nowhere/examples".into()),
            backend: Some(BackendConfig { url: "ftp://h".into(), assets_path: "/".into() }),
            ..AssetsConfig::default()
        });
        assert_eq!(assets.warnings().len(), 3, "{:?}", assets.warnings());
        assert!(assets.schemas().list().is_empty() && assets.examples().list().is_empty());
        assert!(assets.backend().is_none());
    }
}

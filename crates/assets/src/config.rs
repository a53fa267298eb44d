//! The configuration of the toolset. Flags, environment and files are read by the binary, not here.

use std::path::PathBuf;

use crate::backend::Backend;

/// The folders and the backend to serve.
#[derive(Clone, Debug, Default)]
pub struct AssetsConfig {
    /// The root of the workspace. Files of folders inside it are listed by their paths in the workspace.
    pub root: Option<PathBuf>,
    /// The folder of schemas. With none, or one that does not exist, there are no schemas.
    pub schemas_dir: Option<PathBuf>,
    /// The folder of examples. With none, or one that does not exist, there are no examples.
    pub examples_dir: Option<PathBuf>,
    /// The server that assets are published to; none turns publishing off.
    pub backend: Option<BackendConfig>,
    /// Lets callers publish assets without validating them first.
    pub allow_unvalidated: bool,
}

/// The server that published assets go to.
#[derive(Clone, Debug)]
pub struct BackendConfig {
    /// Its address, with or without a path.
    pub url: String,
    /// The path of the collection of assets, below the address.
    pub assets_path: String,
}

impl BackendConfig {
    /// Why this backend cannot be used, if it cannot.
    ///
    /// ```
    /// use pintle_assets::BackendConfig;
    ///
    /// let problem = |url: &str| BackendConfig { url: url.into(), assets_path: "/".into() }.problem();
    /// assert_eq!(problem("https://assets.example"), None);
    /// assert!(problem("assets.example:80").is_some_and(|problem| problem.contains("http")));
    /// ```
    pub fn problem(&self) -> Option<String> {
        Backend::new(self).err().map(|problem| problem.to_string())
    }
}

//! What the toolset is told at start. Where these values come from (flags, environment, files) is
//! decided by whoever builds them.

use std::path::PathBuf;

use crate::backend::Backend;

/// The folders and the backend to serve.
#[derive(Clone, Debug, Default)]
pub struct AssetsConfig {
    /// The root of the workspace: files of folders that lie inside it are listed by their paths in it.
    pub root: Option<PathBuf>,
    /// Where the schemas lie; none, or a folder that is not there, is no schemas.
    pub schemas_dir: Option<PathBuf>,
    /// Where the examples lie; none, or a folder that is not there, is no examples.
    pub examples_dir: Option<PathBuf>,
    /// Where assets are published; none turns publishing off.
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

//! The absolute paths of the root on this machine, to recognize callers who use them.

use std::path::Path;

use crate::{ErrorCode, Fault};

/// The absolute paths of the root on this machine.
#[derive(Clone, Debug, Default)]
pub struct RootName {
    base: String,
    /// Absolute paths of the root, without the `/` at the end.
    absolute: Vec<String>,
}

impl RootName {
    /// The root at these absolute paths: the real path first, then the configured one, which may contain links.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let texts =
            paths.into_iter().filter_map(Path::to_str).map(|path| path.trim_end_matches('/').to_owned());
        // If the root is `/`, every absolute path is already relative to it.
        let absolute: Vec<String> = texts.filter(|path| path.starts_with('/')).collect();
        let base = absolute.first().and_then(|path| path.rsplit('/').next()).unwrap_or("/").to_owned();
        Self { base, absolute }
    }

    /// The last segment of the root's path.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Splits a path, or a glob, that begins with an absolute path of the root: that path, and what follows it.
    ///
    /// ```
    /// use std::path::Path;
    /// use pintle_contract::RootName;
    ///
    /// let root = RootName::new([Path::new("/home/me/project")]);
    /// assert_eq!(root.split("/home/me/project/src/a.rs"), Some(("/home/me/project", "src/a.rs")));
    /// assert_eq!(root.split("/home/me/projects/a.rs"), None);
    /// ```
    pub fn split<'a>(&self, path: &'a str) -> Option<(&'a str, &'a str)> {
        let bare = path.strip_prefix('/').unwrap_or(path);
        let offset = path.len() - bare.len();
        self.absolute.iter().find_map(|root| {
            let rest = bare.strip_prefix(&root[1..])?;
            let is_whole = rest.is_empty() || rest.starts_with('/');
            is_whole.then(|| (&path[..offset + root.len() - 1], rest.trim_start_matches('/')))
        })
    }

    /// The fault for a path that begins with an absolute path of the root.
    pub fn refuse_absolute(&self, written: &str, relative: &str) -> Fault {
        let relative = if relative.is_empty() { "/" } else { relative };
        // A negated glob stays negated.
        let relative = if written.starts_with('!') { format!("!{relative}") } else { relative.to_owned() };
        Fault::new(
            ErrorCode::InvalidRequest,
            format!("{written} begins with the path of the root itself, but paths are relative to the root"),
        )
        .hint(format!("send `{relative}`"))
    }
}

//! Which files a search is about: those that the caller may read, and of these what it asks for.

use bstr::ByteSlice;
use ignore::overrides::{Override, OverrideBuilder};
use pintle_auth::Scopes;
use pintle_contract::WorkspacePath;
use pintle_symbols::Language;

/// Says which files count.
pub(crate) struct Filter<'a> {
    scopes: &'a Scopes,
    globs: Option<Override>,
    language: Option<Language>,
}

impl<'a> Filter<'a> {
    /// `Err` says what is wrong with a glob.
    pub(crate) fn new(
        scopes: &'a Scopes,
        globs: &[String],
        is_folder: impl Fn(&str) -> bool,
        language: Option<Language>,
    ) -> Result<Self, String> {
        let globs = match globs {
            [] => None,
            globs => {
                let mut builder = OverrideBuilder::new("/");
                for glob in globs {
                    builder.add(&meant(glob, &is_folder)).map_err(|error| error.to_string())?;
                }
                Some(builder.build().map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { scopes, globs, language })
    }

    /// Whether a file counts.
    pub(crate) fn admits(&self, path: &[u8], language: u8) -> bool {
        self.language.is_none_or(|wanted| wanted.id() == language)
            && self.is_globbed(path)
            && may_read(self.scopes, path)
    }

    /// Whether the caller may read everything and asks for it.
    pub(crate) fn admits_all(&self) -> bool {
        self.scopes.are_everything() && self.globs.is_none() && self.language.is_none()
    }

    fn is_globbed(&self, path: &[u8]) -> bool {
        let Some(globs) = &self.globs else { return true };
        let Ok(path) = path.to_path() else { return false };
        // As when ripgrep walks: a folder that a glob leaves out takes all with it, and one that a glob names alone
        // is not enough.
        let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        !folders.any(|folder| globs.matched(folder, true).is_ignore()) && {
            let matched = globs.matched(path, false);
            matched.is_whitelist() || (globs.num_whitelists() == 0 && !matched.is_ignore())
        }
    }
}

/// Whether a caller may read a file of the index.
pub(crate) fn may_read(scopes: &Scopes, path: &[u8]) -> bool {
    scopes.are_everything() || scopes.may_read(&nameable(path))
}

/// A path as scopes know it. A name that no scope can have, such as one that is not UTF-8, is as good as any other that
/// none has.
fn nameable(path: &[u8]) -> WorkspacePath {
    const NO_NAME: &str = "\u{fffd} no name \u{fffd}";
    let parsed = |path: &[u8]| path.to_str().ok().and_then(|path| WorkspacePath::parse(path).ok());
    parsed(path).unwrap_or_else(|| {
        let names = path.split(|byte| *byte == b'/').map(|name| match parsed(name) {
            Some(_) => name,
            None => NO_NAME.as_bytes(),
        });
        // What still cannot be named lies in no folder that a scope names.
        parsed(&bstr::join("/", names)).unwrap_or_else(WorkspacePath::root)
    })
}

/// The glob that is meant: a folder stands for all that lies in it, and paths begin at the root.
fn meant(glob: &str, is_folder: &impl Fn(&str) -> bool) -> String {
    let (not, glob) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    let has_wildcards = glob.contains(['*', '?', '[', '{', '\\']);
    // Many write `./src`, and mean no glob.
    let (is_from_root, rest) = glob
        .strip_prefix('.')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        .map_or((false, glob), |rest| (true, rest));
    let plain = rest.trim_matches('/');
    let is_root = is_from_root && plain.is_empty();
    if !has_wildcards && (rest.ends_with('/') || is_root || is_folder(plain)) {
        return if plain.is_empty() { format!("{not}**") } else { format!("{not}/{plain}/**") };
    }
    if !has_wildcards && is_from_root {
        return format!("{not}/{plain}");
    }
    format!("{not}{glob}")
}

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
    scopes.are_everything()
        || path.to_str().is_ok_and(|path| WorkspacePath::parse(path).is_ok_and(|path| scopes.may_read(&path)))
}

/// The glob that is meant: a folder stands for all that lies in it, and paths begin at the root.
fn meant(glob: &str, is_folder: &impl Fn(&str) -> bool) -> String {
    let (not, glob) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    let plain = glob.trim_matches('/');
    let has_wildcards = plain.contains(['*', '?', '[', '{', '\\']);
    if !has_wildcards && (glob.ends_with('/') || is_folder(plain)) {
        return if plain.is_empty() { format!("{not}**") } else { format!("{not}/{plain}/**") };
    }
    format!("{not}{glob}")
}

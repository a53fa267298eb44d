//! Which files a search covers: those that the caller may read, filtered by its globs and language.

use bstr::ByteSlice;
use ignore::overrides::{Override, OverrideBuilder};
use pintle_contract::Permissions;
use pintle_root::scan::Within;
use pintle_symbols::Language;

/// Decides which files a search covers.
pub(crate) struct Filter<'a> {
    permissions: &'a Permissions,
    globs: Option<Override>,
    language: Option<Language>,
}

impl<'a> Filter<'a> {
    /// Fails if something is wrong with a glob.
    pub(crate) fn new(
        permissions: &'a Permissions,
        globs: &[String],
        is_folder: impl Fn(&str) -> bool,
        language: Option<Language>,
    ) -> Result<Self, ignore::Error> {
        let globs = match globs {
            [] => None,
            globs => {
                let mut builder = OverrideBuilder::new("/");
                for glob in globs {
                    builder.add(&expand(glob, &is_folder))?;
                }
                Some(builder.build()?)
            }
        };
        Ok(Self { permissions, globs, language })
    }

    /// Whether the search covers a file. `language` may be unknown: finding it out takes longer than all other
    /// checks, so it is done only if the search asks for a language.
    pub(crate) fn admits(&self, path: &[u8], language: Option<u8>) -> bool {
        let language = || language.or_else(|| Language::of_path(path).map(Language::id));
        self.language.is_none_or(|wanted| language() == Some(wanted.id()))
            && self.is_globbed(path)
            && self.permissions.may_read_bytes(path)
    }

    /// Whether the search covers every file.
    pub(crate) fn admits_all(&self) -> bool {
        self.permissions.may_read_everything() && self.globs.is_none() && self.language.is_none()
    }

    fn is_globbed(&self, path: &[u8]) -> bool {
        let Some(globs) = &self.globs else { return true };
        let Ok(path) = path.to_path() else { return false };
        // As in ripgrep's walk, a glob that excludes a folder excludes everything below it, and a glob that includes
        // only the folder itself does not include its files.
        let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        !folders.any(|folder| globs.matched(folder, true).is_ignore()) && {
            let matched = globs.matched(path, false);
            matched.is_whitelist() || (globs.num_whitelists() == 0 && !matched.is_ignore())
        }
    }
}

/// The paths that all files matched by these globs are at or below; `None` if there is no such set. A scan walks only
/// these paths.
pub(crate) fn glob_prefixes(globs: &[String], is_folder: impl Fn(&str) -> bool) -> Option<Within> {
    let wanted = globs.iter().filter(|glob| !glob.starts_with('!')).collect::<Vec<_>>();
    let targets =
        wanted.iter().map(|glob| literal_prefix(&expand(glob, &is_folder))).collect::<Option<Vec<_>>>()?;
    (!targets.is_empty()).then(|| Within::new(targets.into_iter().map(String::into_bytes)))
}

/// The literal path that everything matched by a glob begins with, if there is one.
fn literal_prefix(glob: &str) -> Option<String> {
    // A glob without a slash matches at any depth; one that starts with `#` is a comment, and one with spaces around
    // it is trimmed.
    let is_anchored = glob.trim_end_matches('/').contains('/');
    if !is_anchored || glob.starts_with('#') || glob.trim() != glob {
        return None;
    }
    let names = glob.strip_prefix('/').unwrap_or(glob).split('/').collect::<Vec<_>>();
    let is_plain = |name: &&&str| !name.contains(['*', '?', '[', ']', '{', '}', '\\', '!']);
    let plain = names.iter().take_while(is_plain).copied().collect::<Vec<_>>();
    let is_odd = plain.is_empty() || plain.iter().any(|name| ["", ".", ".."].contains(name));
    (!is_odd).then(|| plain.join("/"))
}

/// Expands shorthands: a folder stands for everything in it, and `./` for the root.
fn expand(glob: &str, is_folder: &impl Fn(&str) -> bool) -> String {
    let (not, glob) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    let has_wildcards = glob.contains(['*', '?', '[', '{', '\\']);
    // `./src` is a path that starts at the root, but not valid as a glob.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_glob_can_reach_is_the_path_that_it_begins_with() {
        for (globs, expected) in [
            (&["src"][..], Some(&["src"][..])),
            (&["src/"], Some(&["src"])),
            (&["/src", "!src/a"], Some(&["src"])),
            (&["./src/a.rs"], Some(&["src/a.rs"])),
            (&["src/**/*.rs", "docs/a.md"], Some(&["docs/a.md", "src"])),
            (&["a.rs"], None),
            (&["src", "*.rs"], None),
            (&["!src"], None),
            (&[], None),
            (&["**/src"], None),
            (&["."], None),
            (&["./*.rs"], None),
            (&["src//a.rs"], None),
            (&["#src/a"], None),
            (&["src/a "], None),
            (&["{src,docs}/a"], None),
        ] {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
            let reach = glob_prefixes(&globs, |path| path == "src");
            let mut targets =
                reach.as_ref().map(|reach| reach.targets().map(<[u8]>::to_vec).collect::<Vec<_>>());
            targets.iter_mut().for_each(|targets| targets.sort_unstable());
            let expected = expected.map(|paths| paths.iter().map(|path| path.as_bytes().to_vec()).collect());
            assert_eq!(targets, expected, "{globs:?}");
        }
    }
}

//! The examples of a folder, kept in memory. A caller's path is only a key into this map, so path traversal cannot
//! reach any other file.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    folder::{Folder, FoundFile},
    names::component,
    warnings::Warnings,
};

/// All examples of a folder, by path.
#[derive(Default)]
pub(crate) struct Examples {
    /// The folder's path in the workspace, if it is inside.
    prefix: Option<String>,
    by_path: BTreeMap<String, Example>,
}

/// One example file.
pub(crate) struct Example {
    /// The kind of asset that it shows.
    pub(crate) component: String,
    /// Relative to the folder.
    pub(crate) path: String,
    /// The path that callers see.
    pub(crate) listed_path: String,
    pub(crate) document: Arc<Value>,
}

impl Examples {
    /// Reads a folder. A file that cannot be used is skipped with a warning.
    pub(crate) fn load(folder: &Folder, warnings: &mut Warnings) -> Self {
        let prefix = folder.prefix().map(str::to_owned);
        let mut loaded = Self { prefix, ..Self::default() };
        for file in folder.json_files(warnings) {
            match file.read() {
                Ok(document) => {
                    let document = Arc::new(document);
                    let FoundFile { path, listed_path, .. } = file;
                    let component = component(&path);
                    let example = Example { component, path: path.clone(), listed_path, document };
                    loaded.by_path.insert(path, example);
                }
                Err(reason) => warnings.skip(&file.path, &reason.to_string()),
            }
        }
        loaded
    }

    /// All examples, sorted by component, then path.
    pub(crate) fn list(&self) -> Vec<&Example> {
        let mut list: Vec<&Example> = self.by_path.values().collect();
        list.sort_by(|a, b| (&a.component, &a.path).cmp(&(&b.component, &b.path)));
        list
    }

    /// All paths that callers see, sorted.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.by_path.values().map(|example| example.listed_path.as_str())
    }

    /// The paths that begin with `start`: those that callers see, else those in the folder.
    pub(crate) fn paths_that_begin_with(&self, start: &str) -> Vec<String> {
        let begin = |paths: &mut dyn Iterator<Item = &str>| {
            paths.filter(|path| path.starts_with(start)).map(str::to_owned).collect::<Vec<_>>()
        };
        let listed = begin(&mut self.paths());
        if listed.is_empty() { begin(&mut self.by_path.keys().map(String::as_str)) } else { listed }
    }

    /// The example at a path in the workspace, else at a path relative to the folder; `./` and double slashes are
    /// ignored. A leading slash means the root of the workspace.
    pub(crate) fn get(&self, path: &str) -> Option<&Example> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
        let plain = segments.join("/");
        let relative = self.prefix.as_deref().and_then(|prefix| plain.strip_prefix(prefix));
        let listed = relative.and_then(|relative| self.by_path.get(relative));
        listed.or_else(|| if path.starts_with('/') { None } else { self.by_path.get(&plain) })
    }

    /// The message for an unknown path, with the known path that was probably meant.
    pub(crate) fn unknown_message(&self, path: &str) -> String {
        let path: String = path.chars().take(80).collect();
        match pintle_contract::nearest(&path, self.paths()) {
            Some(near) => {
                format!(
                    "there is no example `{path}`; the nearest is `{near}` (list_examples shows the paths)"
                )
            }
            None if self.paths().next().is_some() => {
                format!("there is no example `{path}` (list_examples shows the paths)")
            }
            None => format!(
                "there is no example `{path}`: this server has no examples; set examples_dir (--examples-dir)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder_of;

    fn load(files: &[(&str, &str)]) -> (Examples, Vec<String>) {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        let folder = folder_of(&files);
        let mut warnings = Warnings::about("example");
        let examples = Examples::load(&Folder::open(folder.path()).expect("a folder"), &mut warnings);
        (examples, warnings.into_lines())
    }

    #[test]
    fn examples_are_listed_by_component_then_path_and_bad_ones_are_reported() {
        let (examples, warnings) = load(&[
            ("Tone_2.json", "{}"),
            ("Tone_1.json", "[]"),
            ("SynestheticAsset_Example1.json", "{}"),
            ("_skip/ShaderLib_Example.json", "{}"),
            ("Bad_1.json", "{"),
            ("Number_1.json", "[123456789012345678901]"),
        ]);
        let listed: Vec<_> =
            examples.list().iter().map(|e| (e.component.as_str(), e.path.as_str())).collect();
        assert_eq!(
            listed,
            [
                ("_skip", "_skip/ShaderLib_Example.json"),
                ("synesthetic-asset", "SynestheticAsset_Example1.json"),
                ("tone", "Tone_1.json"),
                ("tone", "Tone_2.json"),
            ]
        );
        assert!(warnings.len() == 2 && warnings[0].contains("example `Bad_1.json`"), "{warnings:?}");
        assert!(
            warnings[1].ends_with("line 1, column 2 has too many digits to be kept exactly"),
            "{warnings:?}"
        );
    }

    #[test]
    fn only_what_was_loaded_is_found() {
        let (examples, _) = load(&[("a/b.json", "1"), ("c.json", "2")]);
        for (path, found) in [
            ("a/b.json", true),
            ("./a//b.json", true),
            ("a/./b.json", true),
            ("c.json", true),
            ("/c.json", false),
            ("/", false),
            ("", false),
            ("a", false),
            ("a/../c.json", false),
            ("../c.json", false),
            ("a\\b.json", false),
            ("/etc/passwd", false),
            ("c.json\0", false),
        ] {
            assert_eq!(examples.get(path).is_some(), found, "{path}");
        }
    }
}

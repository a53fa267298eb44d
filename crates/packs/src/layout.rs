//! Which files of an archive are schemas, and which are examples.
//!
//! Schemas are in `jsonschema/` and examples in `examples/`, at the top or in one folder that has everything, as the
//! archives of a repository are. Without `jsonschema/`, all JSON files besides the examples are schemas. Only names that
//! end in `.json` count, and no hidden ones; the rest of an archive is checked, but not installed.

use crate::ArchiveError;

/// The folder of schemas, in an archive and in an installed pack.
pub(crate) const SCHEMAS: &str = "jsonschema";
/// The folder of examples, in an archive and in an installed pack.
pub(crate) const EXAMPLES: &str = "examples";
/// Where macOS puts attributes of files into a `.zip`.
const MAC_ATTRIBUTES: &str = "__MACOSX";

/// The folder at the top, and whether schemas have a folder of their own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    top: Option<String>,
    has_schemas_folder: bool,
}

/// What a file is in the installed pack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Installed<'a> {
    pub(crate) folder: &'static str,
    pub(crate) path: &'a str,
}

impl Layout {
    /// The layout of an archive with these files.
    pub(crate) fn of(paths: &[String]) -> Result<Self, ArchiveError> {
        let json = || paths.iter().filter(|path| is_json(path));
        let tops: Vec<&str> = json().map(|path| path.split_once('/').map_or("", |(top, _)| top)).collect();
        let first = tops.first().copied().unwrap_or_default();
        let is_one = !["", SCHEMAS, EXAMPLES].contains(&first) && tops.iter().all(|top| *top == first);
        let mut layout = Self { top: is_one.then(|| format!("{first}/")), has_schemas_folder: false };
        layout.has_schemas_folder =
            json().any(|path| below(layout.without_top(path).unwrap_or_default(), SCHEMAS).is_some());
        let is_schema =
            |path: &String| layout.place(path).is_some_and(|installed| installed.folder == SCHEMAS);
        match paths.iter().any(is_schema) {
            true => Ok(layout),
            false => Err(ArchiveError::NoSchemas),
        }
    }

    /// Where a file is installed. None if it is not.
    pub(crate) fn place<'a>(&self, path: &'a str) -> Option<Installed<'a>> {
        let path = self.without_top(path).filter(|path| is_json(path))?;
        match (below(path, SCHEMAS), below(path, EXAMPLES)) {
            (_, Some(path)) => Some(Installed { folder: EXAMPLES, path }),
            (Some(path), _) => Some(Installed { folder: SCHEMAS, path }),
            _ if self.has_schemas_folder => None,
            _ => Some(Installed { folder: SCHEMAS, path }),
        }
    }

    fn without_top<'a>(&self, path: &'a str) -> Option<&'a str> {
        match &self.top {
            Some(top) => path.strip_prefix(top.as_str()),
            None => Some(path),
        }
    }
}

fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

fn is_json(path: &str) -> bool {
    let is_hidden = |name: &str| name.starts_with('.') || name == MAC_ATTRIBUTES;
    path.ends_with(".json") && !path.split('/').any(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(paths: &[&str]) -> Option<Vec<String>> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let layout = Layout::of(&paths).ok()?;
        let places = paths.iter().filter_map(|path| layout.place(path));
        Some(places.map(|installed| format!("{}/{}", installed.folder, installed.path)).collect())
    }

    #[test]
    fn schemas_and_examples_are_found_at_the_top_or_in_one_folder() {
        let in_parts = ["jsonschema/a.schema.json", "jsonschema/0.1/b.json", "examples/A_1.json"];
        let expected = Some(in_parts.map(str::to_owned).to_vec());
        assert_eq!(installed(&in_parts), expected);
        let with_more = ["README.md", "package.json", "jsonschema/a.schema.json", "docs/x.json"];
        assert_eq!(installed(&with_more), Some(vec!["jsonschema/a.schema.json".into()]));
        let in_one = in_parts.map(|path| format!("schemas-1.2/{path}"));
        let in_one = [in_one[0].as_str(), &in_one[1], &in_one[2], "schemas-1.2/README.md"];
        assert_eq!(installed(&in_one), expected);
    }

    #[test]
    fn a_plain_folder_of_schemas_is_a_pack() {
        let plain = Some(vec!["jsonschema/a.json".into(), "jsonschema/x/b.json".into()]);
        assert_eq!(installed(&["a.json", "x/b.json"]), plain);
        assert_eq!(installed(&["lamps/a.json", "lamps/x/b.json"]), plain);
        let with_examples = Some(vec!["jsonschema/a.json".into(), "examples/A_1.json".into()]);
        assert_eq!(installed(&["a.json", "examples/A_1.json"]), with_examples);
        assert_eq!(installed(&["lamps/a.json", "lamps/examples/A_1.json"]), with_examples);
    }

    #[test]
    fn what_is_hidden_or_no_json_is_not_installed() {
        let paths = ["a.json", ".git/b.json", "._a.json", "__MACOSX/a.json", "b.JSON", "c.txt", "x/.b.json"];
        assert_eq!(installed(&paths), Some(vec!["jsonschema/a.json".into()]));
        assert_eq!(installed(&["examples/A.json", "README.md"]), None);
        assert_eq!(installed(&[]), None);
    }
}

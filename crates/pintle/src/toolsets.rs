//! Which toolsets a server has, and which of their tools it lists.

use std::fmt;

use pintle_contract::nearest;
use thiserror::Error;

/// The names that `--toolsets` takes.
const NAMES: [&str; 4] = ["files", "search", "assets", "commands"];
/// The names of all tools that a server has of its own, with or without a workspace: no manifest may have one of them.
pub const OWN_TOOLS: [&str; 24] = [
    "check_status",
    "diff_assets",
    "file.create",
    "file.list",
    "file.move",
    "file.read",
    "file.remove",
    "get_example",
    "get_schema",
    "index_build",
    "index_status",
    "list_examples",
    "list_schemas",
    "populate_backend",
    "search",
    "show_file",
    "text.append",
    "text.edit",
    "text.insert",
    "text.read",
    "text.replace",
    "text.substitute",
    "validate_asset",
    "workspace_status",
];
/// The word for all toolsets that have something to work on.
pub const AUTO: &str = "auto";

/// Why toolsets cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToolsetError {
    #[error(
        "there is no toolset `{name}`{} (known: {}, or `{AUTO}` alone)",
        near.map(|near| format!("; the nearest is `{near}`")).unwrap_or_default(),
        NAMES.join(", ")
    )]
    Unknown { name: String, near: Option<&'static str> },
    #[error("`{AUTO}` stands for all toolsets; leave it out, or leave out the others")]
    AutoAndOthers,
}

/// Which toolsets were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Toolsets {
    /// All. Those that have nothing to work on are not listed.
    #[default]
    Auto,
    /// These; the others do not exist.
    These(Vec<String>),
}

/// What becomes of one toolset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is listed.
    Listed,
    /// It can be called by whoever knows it.
    Unlisted,
    /// It does not exist.
    Absent,
}

impl Toolsets {
    /// Reads names as they are written. `Err` says which one is unknown.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolsetError> {
        let mut chosen = Vec::new();
        let mut is_auto = false;
        for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
            if name == AUTO {
                is_auto = true;
            } else if NAMES.contains(&name) {
                chosen.push(name.to_owned());
            } else {
                let near = nearest(name, NAMES);
                return Err(ToolsetError::Unknown { name: name.to_owned(), near });
            }
        }
        match (is_auto, chosen.is_empty()) {
            (true, false) => Err(ToolsetError::AutoAndOthers),
            (_, true) => Ok(Self::Auto),
            (false, false) => Ok(Self::These(chosen)),
        }
    }

    /// What becomes of a toolset, by whether it has something to work on.
    pub fn offer(&self, name: &str, has_work: bool) -> Offer {
        match self {
            Self::Auto if has_work => Offer::Listed,
            Self::Auto => Offer::Unlisted,
            Self::These(names) if names.iter().any(|chosen| chosen == name) => Offer::Listed,
            Self::These(_) => Offer::Absent,
        }
    }
}

/// As the names are written.
impl fmt::Display for Toolsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str(AUTO),
            Self::These(names) => f.write_str(&names.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_exists_and_auto_what_is_listed() {
        assert_eq!(Toolsets::parse([]), Ok(Toolsets::Auto));
        assert_eq!(Toolsets::parse(["auto"]), Ok(Toolsets::Auto));
        let chosen = Toolsets::parse(["files", " search"]).expect("names");
        assert_eq!(chosen.offer("files", false), Offer::Listed);
        assert_eq!(chosen.offer("assets", true), Offer::Absent);
        assert_eq!(Toolsets::Auto.offer("assets", false), Offer::Unlisted);
        assert_eq!(Toolsets::Auto.offer("assets", true), Offer::Listed);
        let problem = Toolsets::parse(["file"]).expect_err("unknown").to_string();
        assert!(problem.contains("the nearest is `files`"), "{problem}");
        let problem = Toolsets::parse(["foo"]).expect_err("unknown").to_string();
        assert!(problem.starts_with("there is no toolset `foo` (known: files, "), "{problem}");
        assert!(Toolsets::parse(["auto", "files"]).is_err());
    }
}

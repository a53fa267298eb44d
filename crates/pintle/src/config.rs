//! `pintle.toml` as it is written. What it means is decided in `settings`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use pintle_engine::SchemaRegistry;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cli::{Auth, Envelope, LogLevel, ProgressWhen};

/// The keys of the file. Paths are relative to the file's folder.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    pub root: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub schemas_dir: Option<PathBuf>,
    pub examples_dir: Option<PathBuf>,
    pub backend_url: Option<String>,
    pub backend_assets_path: Option<String>,
    pub allow_unvalidated: Option<bool>,
    pub max_file_bytes: Option<u64>,
    pub http: Option<String>,
    #[schemars(with = "Word<Auth>")]
    pub auth: Option<Word<Auth>>,
    pub allow_origin: Vec<String>,
    pub allow_host: Vec<String>,
    pub scope: Option<Vec<String>>,
    pub ready_file: Option<PathBuf>,
    pub log_file: Option<PathBuf>,
    #[schemars(with = "Word<LogLevel>")]
    pub log_level: Option<Word<LogLevel>>,
    pub deterministic: Option<bool>,
    #[schemars(with = "Word<Envelope>")]
    pub envelope: Option<Word<Envelope>>,
    #[schemars(with = "Word<ProgressWhen>")]
    pub progress: Option<Word<ProgressWhen>>,
    pub max_request_bytes: Option<usize>,
    pub max_result_bytes: Option<usize>,
    pub drain: Option<String>,
    pub running: Option<usize>,
    pub waiting: Option<usize>,
    /// By tool name, and `default`.
    pub timeouts: BTreeMap<String, String>,
    pub bind: Vec<Bind>,
}

/// Files that must match a schema.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// A glob over paths in the root.
    pub path: String,
    /// The schema's name.
    pub schema: String,
}

/// One of the words that the command line takes for the same setting.
#[derive(Clone, Copy, Debug)]
pub struct Word<T>(pub T);

impl<'de, T: ValueEnum> Deserialize<'de> for Word<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        T::from_str(&word, false).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T: ValueEnum> JsonSchema for Word<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        schemars::json_schema!({ "enum": words })
    }
}

impl FileConfig {
    /// Where the file is, or would be.
    pub fn path(named: Option<&Path>) -> &Path {
        named.unwrap_or(Path::new("pintle.toml"))
    }

    /// Reads the file that was named, or `pintle.toml` in the current folder if there is one.
    pub fn load(named: Option<&Path>) -> Result<Self, String> {
        let path = Self::path(named);
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(format!("{} is not a file", path.display()));
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let config = Self::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))?;
        Ok(config.relative_to(path.parent().unwrap_or(Path::new(""))))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let is_endless = |value: &toml::Value| value.as_float().is_some_and(|float| !float.is_finite());
        if let Some((key, _)) = table.iter().find(|(_, value)| is_endless(value)) {
            return Err(format!("`{key}` is not a number that can be used"));
        }
        let value = serde_json::to_value(table).map_err(|error| error.to_string())?;
        let schema = schemars::schema_for!(Self).to_value();
        let schema = SchemaRegistry::default().load(&schema).map_err(|fault| fault.to_string())?;
        let mismatches = schema.mismatches(&value, "key");
        // A key that is misspelt may be missing, too; the unknown one tells more.
        let unknown = mismatches.iter().find(|mismatch| mismatch.message.starts_with("unknown"));
        if let Some(first) = unknown.or(mismatches.first()) {
            let line = line_of_key(text, &first.path);
            let place = line.map_or(String::new(), |line| format!("line {line}: "));
            return Err(format!("{place}{}", first.message));
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    fn relative_to(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.root,
            &mut self.state_dir,
            &mut self.schemas_dir,
            &mut self.examples_dir,
            &mut self.ready_file,
            &mut self.log_file,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

/// The line on which the key at the end of a pointer is set.
fn line_of_key(text: &str, pointer: &str) -> Option<usize> {
    let key = pointer.rsplit('/').next()?.replace("~1", "/").replace("~0", "~");
    let sets_key = |line: &str| {
        let start = line.trim_start().trim_start_matches(['[', '"', '\'']);
        let rest = start.strip_prefix(key.as_str())?;
        rest.trim_start_matches(['"', '\'']).trim_start().starts_with(['=', ']', '.']).then_some(())
    };
    text.lines().position(|line| sets_key(line).is_some()).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
        let problem = FileConfig::parse("root = \".\"\n\nlog_fil = \"x\"\n").expect_err("unknown");
        assert!(problem.starts_with("line 3: unknown key `log_fil`; the nearest known one is `log_file`"));
    }

    #[test]
    fn a_wrong_type_or_word_is_named_with_its_line() {
        for (text, line) in
            [("running = \"4\"", "line 1: `/running`"), ("\nenvelope = \"x\"", "line 2: `/envelope`")]
        {
            let problem = FileConfig::parse(text).expect_err("wrong");
            assert!(problem.starts_with(line), "{problem}");
        }
    }

    #[test]
    fn every_key_is_read_and_paths_are_relative_to_the_file() {
        let text =
            "root = \"here\"\nlog_level = \"off\"\nenvelope = \"shadow\"\n[timeouts]\nsearch = \"2s\"\n";
        let config = FileConfig::parse(text).expect("reads").relative_to(Path::new("/etc/p"));
        assert_eq!(config.root.as_deref(), Some(Path::new("/etc/p/here")));
        assert_eq!(config.log_level.map(|word| word.0), Some(LogLevel::Off));
        assert_eq!(config.timeouts["search"], "2s");
    }
}

//! What a manifest means.

use std::{
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use pintle_contract::{Annotations, ClientHints, ToolDefinition, WorkspacePath, pointer_segment};
use pintle_positions::{Located, Location, Position, Positions, text_of};
use pintle_process::DEFAULT_GRACE;
use serde_json::{Map, Value};

use crate::{
    environment,
    error::{ManifestError, NotADuration, Wrong},
    schemas,
    template::{Template, is_field},
    written::WrittenManifest,
};

const DEFAULT_MAX_OUTPUT: usize = 256 << 10;
const LARGEST_MAX_OUTPUT: usize = 1 << 20;
const DEFAULT_MAX_PARALLEL: usize = 4;
const LARGEST_MAX_PARALLEL: usize = 1024;
const LONGEST_GRACE: Duration = Duration::from_secs(60);
const LARGEST_SCHEMA_VERSION: usize = 1_000_000;
const LARGEST_MANIFEST: u64 = 1 << 20;
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 2048;

/// A program as a tool.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// What clients are shown of it.
    pub definition: ToolDefinition,
    /// The file that it was read from, and its text.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    /// Where the name is written.
    pub(crate) positions: Positions,
    /// The program as it is written, for messages.
    pub(crate) written_program: String,
    pub(crate) program: PathBuf,
    pub(crate) template: Template,
    pub(crate) takes_stdin: bool,
    pub(crate) cwd: WorkspacePath,
    pub(crate) env: Vec<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) max_output: usize,
    pub(crate) max_parallel: usize,
    /// Standard output is the result, as JSON.
    pub(crate) has_output: bool,
    pub(crate) defaults: Map<String, Value>,
}

impl Manifest {
    /// Reads a manifest. `Err` has the file, the line and the column of what is wrong.
    pub fn read(file: &Path) -> Result<Self, Located<ManifestError>> {
        let bytes = read_file(file).map_err(Located::nowhere)?;
        let text = text_of(&bytes, file).map_err(|located| located.map(ManifestError::from))?;
        Self::parse(&text, file, std::env::var_os("PATH").as_deref())
    }

    /// Reads the text of a manifest; a program without a path is looked for on `search_path`.
    pub fn parse(
        text: &str,
        file: &Path,
        search_path: Option<&std::ffi::OsStr>,
    ) -> Result<Self, Located<ManifestError>> {
        let positions = Positions::find(text, file).map_err(|located| located.map(ManifestError::from))?;
        let written = positions.read_strictly(text, file);
        let written = written.map_err(|located| located.map(ManifestError::from))?;
        decide(written, positions.clone(), search_path)
            .map(|manifest| Self { text: text.to_owned(), file: file.to_owned(), ..manifest })
            .map_err(|Wrong { pointer, error }| {
                positions.location(nearest_value(&positions, &pointer)).error(error)
            })
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Whether it says the same as another.
    pub fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// Where the name is written.
    pub(crate) fn name_location(&self) -> Location {
        self.positions.location(self.positions.value("/name"))
    }
}

/// What a file holds, if it is one and holds no more than a manifest can.
fn read_file(file: &Path) -> Result<Vec<u8>, ManifestError> {
    let cannot = |error: std::io::Error| ManifestError::NotRead { file: file.to_owned(), error };
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    // A pipe that nobody writes to would be waited for.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let refuse = |there: std::fs::Metadata| match there.is_file() {
        true => Ok(()),
        false => Err(ManifestError::NotAFile(file.to_owned())),
    };
    // Before it is opened, because opening some devices does something; and after, because it may be another by then.
    refuse(file.metadata().map_err(cannot)?)?;
    let opened = options.open(file).map_err(cannot)?;
    refuse(opened.metadata().map_err(cannot)?)?;
    let mut bytes = Vec::new();
    opened.take(LARGEST_MANIFEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > LARGEST_MANIFEST {
        true => Err(ManifestError::TooLarge { file: file.to_owned(), limit: LARGEST_MANIFEST }),
        false => Ok(bytes),
    }
}

/// The position of a value, or of the nearest one that it is in.
fn nearest_value(positions: &Positions, pointer: &str) -> Option<Position> {
    let mut pointer = pointer;
    loop {
        let found = positions.value(pointer);
        match (found, pointer.rsplit_once('/')) {
            (None, Some((above, _))) => pointer = above,
            (found, _) => return found,
        }
    }
}

fn decide(
    written: WrittenManifest,
    positions: Positions,
    search_path: Option<&std::ffi::OsStr>,
) -> Result<Manifest, Wrong> {
    let at = |pointer: &str| {
        let pointer = pointer.to_owned();
        move |error: ManifestError| Wrong { pointer, error }
    };
    check_tool_name(&written.name).map_err(at("/name"))?;
    check_description(&written.description).map_err(at("/description"))?;
    let input = schemas::input(written.input)?;
    let has_output = written.output.is_some();
    let output_schema = written.output.map_or_else(|| Ok(schemas::plain_output()), schemas::output)?;
    let command =
        texts(&written.command, "/command", "the program and its arguments", "[\"echo\", \"{text}\"]")?;
    if let Some(index) = command.iter().position(|element| element.contains('\0')) {
        return Err(Wrong::at(format!("/command/{index}"), ManifestError::NulCharacter));
    }
    let (program, arguments) =
        command.split_first().ok_or_else(|| Wrong::at("/command", ManifestError::EmptyCommand))?;
    if is_field(program, &input.fields) {
        return Err(Wrong::at("/command/0", ManifestError::ProgramIsField(program.clone())));
    }
    let template = Template::parse(arguments, &input.fields)
        .map_err(|(index, error)| Wrong::at(format!("/command/{}", index + 1), error))?;
    for (name, default) in &input.defaults {
        let alone = Map::from_iter([(name.clone(), default.clone())]);
        let pointer = format!("/input/properties/{}/default", pointer_segment(name));
        let filled = template.fill(&alone);
        filled.map_err(|fault| Wrong::at(pointer, ManifestError::Refused(fault.message.clone())))?;
    }
    let takes_stdin = match &written.stdin {
        None => false,
        Some(Value::String(form)) if form == "json" => true,
        Some(_) => return Err(Wrong::at("/stdin", ManifestError::BadStdin)),
    };
    if !takes_stdin {
        let is_used = |name: &String| template.fields().any(|used| used == name);
        if let Some(unused) = input.fields.keys().filter(|name| !is_used(name)).min() {
            let pointer = format!("/input/properties/{}", pointer_segment(unused));
            return Err(Wrong::at(pointer, ManifestError::UnusedField(unused.clone())));
        }
    }
    let env = written.env.as_ref().map(|env| texts(env, "/env", "names of variables", "[\"CI\"]"));
    let env = env.transpose()?.unwrap_or_default();
    for (index, name) in env.iter().enumerate() {
        environment::check(name).map_err(at(&format!("/env/{index}")))?;
    }
    let cwd = written.cwd.as_deref().unwrap_or("/");
    let cwd = WorkspacePath::parse(cwd)
        .map_err(|problem| Wrong::at("/cwd", ManifestError::BadFolder(problem.to_string())))?;
    let grace = written.grace.as_ref().map(written_duration).transpose().map_err(at("/grace"))?;
    let grace = grace.unwrap_or(DEFAULT_GRACE);
    if grace > LONGEST_GRACE {
        return Err(Wrong::at("/grace", ManifestError::LongGrace(LONGEST_GRACE.as_secs())));
    }
    let number = |key: &str, written: Option<&Value>, default: usize, most: usize| {
        let Some(written) = written else { return Ok(default) };
        let chosen = written.as_u64().and_then(|number| usize::try_from(number).ok());
        let wrong = || {
            let found = written.to_string();
            Wrong::at(format!("/{key}"), ManifestError::OutOfBounds { found, most })
        };
        chosen.filter(|number| (1..=most).contains(number)).ok_or_else(wrong)
    };
    let schema_version =
        number("schema_version", written.schema_version.as_ref(), 1, LARGEST_SCHEMA_VERSION)?;
    let schema_version = u32::try_from(schema_version).unwrap_or(u32::MAX);
    Ok(Manifest {
        takes_stdin,
        cwd,
        grace,
        timeout: written.timeout.as_ref().map(written_duration).transpose().map_err(at("/timeout"))?,
        max_output: number(
            "max_output",
            written.max_output.as_ref(),
            DEFAULT_MAX_OUTPUT,
            LARGEST_MAX_OUTPUT,
        )?,
        max_parallel: number(
            "max_parallel",
            written.max_parallel.as_ref(),
            DEFAULT_MAX_PARALLEL,
            LARGEST_MAX_PARALLEL,
        )?,
        program: find_program(program, search_path).map_err(at("/command/0"))?,
        written_program: program.clone(),
        definition: ToolDefinition {
            title: written.title.unwrap_or_else(|| written.name.clone()),
            name: written.name,
            description: written.description,
            input_schema: input.schema,
            output_schema,
            // Nobody knows what a program does.
            annotations: Annotations {
                read_only_hint: false,
                destructive_hint: true,
                idempotent_hint: false,
                open_world_hint: true,
            },
            client_hints: ClientHints::default(),
            schema_version,
            aliases: Vec::new(),
            deprecated: None,
        },
        env,
        defaults: input.defaults,
        has_output,
        template,
        positions,
        text: String::new(),
        file: PathBuf::new(),
    })
}

/// A list of texts. `what` is what it lists, and `example` how that is written.
fn texts(
    written: &Value,
    pointer: &str,
    what: &'static str,
    example: &'static str,
) -> Result<Vec<String>, Wrong> {
    let Some(list) = written.as_array() else {
        return Err(Wrong::at(pointer, ManifestError::NotAList { what, example }));
    };
    let text = |(index, one): (usize, &Value)| {
        let wrong = || Wrong::at(format!("{pointer}/{index}"), ManifestError::NotAText(one.to_string()));
        one.as_str().map(str::to_owned).ok_or_else(wrong)
    };
    list.iter().enumerate().map(text).collect()
}

/// A duration as it stands in a manifest.
fn written_duration(written: &Value) -> Result<Duration, ManifestError> {
    match written {
        Value::String(text) => Ok(duration(text)?),
        Value::Number(number) => Err(ManifestError::DurationIsNumber(number.to_string())),
        _ => Err(ManifestError::DurationIsOther),
    }
}

pub(crate) fn check_tool_name(name: &str) -> Result<(), ManifestError> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_letter);
    if !is_plain || name.len() > LONGEST_NAME {
        return Err(ManifestError::BadName { name: name.to_owned(), longest: LONGEST_NAME });
    }
    if matches!(name, "initialize" | "ping") || name.starts_with("mcp.") {
        return Err(ManifestError::ProtocolName(name.to_owned()));
    }
    Ok(())
}

fn check_description(description: &str) -> Result<(), ManifestError> {
    if description.trim().is_empty() {
        return Err(ManifestError::EmptyDescription);
    }
    let bytes = description.len();
    if bytes > LONGEST_DESCRIPTION {
        return Err(ManifestError::LongDescription { bytes, longest: LONGEST_DESCRIPTION });
    }
    Ok(())
}

/// The absolute path of a program. One that has a path is not looked at before it is run.
fn find_program(program: &str, search_path: Option<&std::ffi::OsStr>) -> Result<PathBuf, ManifestError> {
    if Path::new(program).is_absolute() {
        return Ok(program.into());
    }
    if program.contains('/') || program.is_empty() {
        return Err(ManifestError::RelativeProgram(program.to_owned()));
    }
    let folders = search_path.map(std::env::split_paths).into_iter().flatten();
    let mut found = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(program));
    found.find(|path| is_executable(path)).ok_or_else(|| ManifestError::NoProgram(program.to_owned()))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|there| there.is_file() && there.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Reads a duration as people write it: `1500ms`, `20s`, `2m`, `1.5h`, `1h 30m`, `0`.
pub fn duration(text: &str) -> Result<Duration, NotADuration> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed = text.trim().parse::<jiff::SignedDuration>().ok();
    parsed.and_then(|parsed| Duration::try_from(parsed).ok()).ok_or_else(|| NotADuration(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"lint\"\ndescription = \"Lints.\"\ncommand = [\"/bin/lint\", \"{path}\"]\n";
    const INPUT: &str = "[input]\nrequired = [\"path\"]\n[input.properties.path]\ntype = \"string\"\n";

    fn parse(text: &str) -> Result<Manifest, Located<ManifestError>> {
        Manifest::parse(text, Path::new("t.toml"), Some("/usr/bin:/bin".as_ref()))
    }

    #[test]
    fn what_is_not_written_has_its_default() {
        let manifest = parse(&format!("{GOOD}{INPUT}")).expect("a manifest");
        assert_eq!(manifest.definition.title, "lint");
        assert_eq!(manifest.grace, Duration::from_secs(2));
        assert_eq!((manifest.max_output, manifest.max_parallel), (256 << 10, 4));
        assert_eq!((manifest.timeout, manifest.takes_stdin, manifest.has_output), (None, false, false));
        assert!(manifest.cwd.is_root());
        let input = &manifest.definition.input_schema;
        assert_eq!((&input["additionalProperties"], &input["type"]), (&false.into(), &"object".into()));
    }

    #[test]
    fn everything_that_is_wrong_is_reported_where_it_stands() {
        let with = |line: &str| format!("{GOOD}{line}\n{INPUT}");
        for (text, expected) in [
            (with("nam = 1"), "line 4, column 1: unknown key `nam`"),
            (with("stdin = \"text\""), "line 4, column 9: this can only be \"json\""),
            (
                with("timeout = 20"),
                "line 4, column 11: this is a number; write a duration, in quotes and with its unit: \"20s\"",
            ),
            (with("grace = true"), "line 4, column 9: this is no duration"),
            (
                with("env = \"CI\""),
                "line 4, column 7: this is not a list; write names of variables as one: [\"CI\"]",
            ),
            (with("[env]\nCI = \"1\""), "line 4, column 1: this is not a list"),
            (with("max_parallel = -1"), "line 4, column 16: this is -1; it must be a number from 1 to 1024"),
            (with("schema_version = 1.5"), "line 4, column 18: this is 1.5"),
            (
                with("").replace("[\"/bin/lint\", \"{path}\"]", "\"lint\""),
                "line 3, column 11: this is not a list",
            ),
            (
                with("").replace("\"{path}\"]", "\"{path}\", 7]"),
                "line 3, column 35: this is 7; write it in quotes",
            ),
            (with("").replace("\"/bin/lint\"", "\"{path}\""), "line 3, column 12: the program is `{path}`"),
            (
                with("").replace("/bin/lint", "/bin/a\\u0000b"),
                "line 3, column 12: this holds a NUL character",
            ),
            (
                with("").replace("[\"path\"]", "[\"path\", \"pth\"]"),
                "line 6, column 21: `pth` is required but is no property",
            ),
            (
                with("").replace("\"string\"", "\"string\"\ndefault = 3"),
                "line 9, column 11: the default does not match",
            ),
            (
                with("").replace("\"string\"", "\"string\"\ndefault = \"-x\""),
                "line 9, column 11: `path` begins with `-`",
            ),
            (with("timeout = \"soon\""), "line 4, column 11: `soon` is not a duration"),
            (with("grace = \"2m\""), "line 4, column 9: this is longer than 60 s"),
            (with("cwd = \"../x\""), "line 4, column 7: "),
            (with("env = [\"CI\", \"PINTLE_ROOT\"]"), "line 4, column 14: `PINTLE_ROOT` is a setting"),
            (with("max_parallel = 0"), "line 4, column 16: this is 0"),
            (with("max_output = 2000000"), "line 4, column 14: this is 2000000"),
            (GOOD.to_owned(), "line 3, column 25: `path` is no property of [input]"),
            (with("").replace("\"lint\"", "\"a b\""), "line 1, column 8: `a b` is not a valid tool name"),
            (with("").replace("\"lint\"", "\"ping\""), "line 1, column 8: `ping` is a method"),
            (with("").replace("Lints.", " "), "line 2, column 15: this is empty"),
            (with("").replace("/bin/lint", "./lint"), "line 3, column 12: `./lint` is a relative path"),
            (with("").replace("/bin/lint", "no-such-program"), "line 3, column 12: there is no program"),
            (with("").replace("\"{path}\"", "\"-p={path}\""), "line 3, column 25: `{path}` is only a part"),
            (with("").replace(", \"{path}\"", ""), "line 7, column 1: the command never gets `path`"),
            (with("").replace("\"string\"", "\"array\""), "line 7, column 1: an array needs `items`"),
            (with("").replace("\"string\"", "\"text\""), "line 5, column 1: a schema does not compile"),
            (with("") + "[output]\ntype = \"array\"\n", "line 10, column 8: [output] has to be of type"),
            (with("") + "[[output.anyOf]]\n", "line 9, column 1: [output] is a union"),
            ("name = \"x\"\ncommand = [\"true\"]\n".into(), "line 1, column 1: key `description` is missing"),
            ("name = ".into(), "line 1, column 8: "),
        ] {
            let problem = parse(&text).expect_err(&text).to_string();
            assert!(problem.starts_with(&format!("t.toml: {expected}")), "{text}\n{problem}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("1500ms", 1500), ("20s", 20_000), ("2m", 120_000), ("0", 0), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "20", "-5s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_program_is_found_once_and_only_on_absolute_folders() {
        let found = find_program("sh", Some("bin:/bin".as_ref())).expect("a program");
        assert_eq!(found, Path::new("/bin/sh"));
        assert!(find_program("sh", Some("bin:.".as_ref())).is_err());
        assert!(find_program("sh", None).is_err());
    }
}

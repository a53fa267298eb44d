//! The table of settings, and what is derived from it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, FromArgMatches};
use pintle_engine::Options;
use pintle_positions::Located;

use super::{
    definition::Setting,
    table::{
        BACKEND_URL, DRAIN, KEEP_RUNNING, LOG_FILE, LOG_LEVEL, MAX_FILE_BYTES, READY_FILE, ROOT, RUNNING,
        SCHEMAS_DIR, WAITING, WRITE_TIMEOUT,
    },
    value::{AssetFolder, Value},
    *,
};
use crate::config::ConfigFile;

/// What `pintle serve` would get from these flags and this file.
fn given(flags: &[&str], file: &str) -> Given {
    let command = ServeFlags::augment_args(Flags::augment_args(clap::Command::new("serve")));
    // What the environment of the tests holds is none of their business.
    let command = command.mut_args(|argument| argument.env(None::<&str>));
    let matches = command.try_get_matches_from(["serve"].iter().chain(flags)).expect("flags");
    Given {
        flags: Flags::from_arg_matches(&matches).expect("flags"),
        file: ConfigFile::parse(file, Path::new("/etc/p/p.toml")).expect("a file"),
        config_file: PathBuf::new(),
    }
}

fn problem<T: Value>(given: &Given, setting: &Setting<T>) -> String {
    match given.get(setting) {
        Ok(_) => panic!("{} is taken", setting.key),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_setting_has_a_key_a_variable_a_value_name_and_a_sentence_of_help() {
    for setting in all_settings() {
        let key = setting.key();
        assert!(!key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{key}");
        let is_variable = |c: char| c.is_ascii_uppercase() || c == '_';
        assert!(!setting.env().is_empty() && setting.env().chars().all(is_variable), "{key}");
        let argument = setting.argument();
        assert_eq!(argument.get_long(), Some(key.replace('_', "-").as_str()), "{key}");
        assert!(argument.get_value_names().is_some_and(|names| !names[0].is_empty()), "{key}");
        assert!(argument.is_hide_env_values_set(), "{key}");
        let help = argument.get_help().expect("help").to_string();
        assert!(help.starts_with(|c: char| c.is_uppercase()) && !help.ends_with('.'), "{key}: {help}");
    }
}

#[test]
fn no_two_settings_share_a_key_a_flag_or_a_variable() {
    let (mut keys, mut flags, mut variables) = (HashSet::new(), HashSet::new(), HashSet::new());
    for setting in all_settings() {
        assert!(keys.insert(setting.key()), "{setting:?}");
        assert!(flags.insert(setting.flag()), "{setting:?}");
        assert!(variables.insert(setting.env()), "{setting:?}");
    }
}

#[test]
fn help_shows_the_default_that_holds() {
    let help = |setting: &dyn AnySetting| setting.argument().get_help().expect("help").to_string();
    for (setting, default) in [
        (&WAITING as &dyn AnySetting, Options::default().waiting.to_string()),
        (&MAX_RESULT_BYTES, Options::default().max_result_bytes.to_string()),
        (&MAX_FILE_BYTES, pintle_search::DEFAULT_MAX_FILE_BYTES.to_string()),
        (&READY_FILE, "/tmp/mcp.ready".into()),
        (&DRAIN, "30s".into()),
        (&LOG_LEVEL, "info".into()),
        (&SCOPE, "everything".into()),
        (&TOOLSETS, "auto".into()),
        (&SCHEMAS_DIR, "libs/synesthetic-schemas/jsonschema in the root".into()),
        (&RUNNING, "twice the cores, at least 4".into()),
    ] {
        assert!(help(setting).ends_with(&format!(" [default: {default}]")), "{}", help(setting));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(RUNNING.default_value(), (2 * cores).max(4), "what help says of it");
    for setting in [&KEEP_RUNNING as &dyn AnySetting, &TIMEOUT] {
        assert!(!help(setting).contains("[default"), "{setting:?} is off, or empty");
    }
}

#[test]
fn the_documentation_has_the_bounds_and_the_exceptions_of_the_table() {
    let page = include_str!("../../../../docs/configuration.md");
    let bounded = all_settings().filter_map(|setting| Some((setting.key(), setting.bounds_text()?)));
    let rows: Vec<String> = bounded.map(|(key, bounds)| format!("| `{key}` | {bounds} |")).collect();
    let (_, table) = page.split_once("| setting | bounds |\n| --- | --- |\n").expect("a table");
    assert_eq!(table.lines().take_while(|line| line.starts_with('|')).collect::<Vec<_>>(), rows);
    let item = |start: &str| {
        let (_, item) = page.split_once(start).expect(start);
        let item = item.split("\n-").next().unwrap_or(item).split("\n\n").next().unwrap_or(item);
        let flags = item.split('`').filter_map(|text| text.strip_prefix("--"));
        flags.map(str::to_owned).collect::<HashSet<_>>()
    };
    let flags = |is_excepted: fn(&dyn AnySetting) -> bool| -> HashSet<String> {
        all_settings().filter(|setting| is_excepted(*setting)).map(|setting| setting.flag()).collect()
    };
    assert_eq!(item("- No key in the file:"), flags(|setting| !setting.is_in_file()));
    assert_eq!(item("- No default in the help,"), flags(|setting| setting.default_text().is_none()));
}

#[test]
fn help_shows_the_bounds() {
    let help = RUNNING.argument().get_help().expect("help").to_string();
    assert!(help.contains(" [from 1 to 1073741824] [default: "), "{help}");
}

#[test]
fn a_default_is_within_its_bounds() {
    let nothing = given(&[], "");
    for (setting, value) in [(&RUNNING, None), (&WAITING, Some(64)), (&MAX_REQUEST_BYTES, Some(1 << 20))] {
        let chosen = nothing.get(setting).expect("a default");
        assert!(setting.bounds.is_none_or(|bounds| bounds.accept(&chosen)), "{}", setting.key);
        assert_eq!(value.unwrap_or(chosen), chosen, "{}", setting.key);
    }
    assert_eq!(nothing.get(&WRITE_TIMEOUT).ok(), Some(Duration::from_secs(30)));
    assert!(MAX_FILE_BYTES.bounds.is_some_and(|bounds| bounds.accept(&MAX_FILE_BYTES.default_value())));
}

#[test]
fn flags_beat_the_file_and_the_file_beats_the_default() {
    let file =
        "waiting = 7\nlog_file = \"calls\"\nkeep_running = true\ndrain = \"2s\"\nscope = [\"read:/\"]\n";
    let by_file = given(&[], file);
    assert_eq!(by_file.get(&WAITING).ok(), Some(7));
    assert_eq!(by_file.get(&LOG_FILE).ok().flatten().as_deref(), Some(Path::new("/etc/p/calls")));
    assert_eq!(by_file.get(&KEEP_RUNNING).ok(), Some(true));
    assert_eq!(by_file.location(&WAITING).error("x").to_string(), "/etc/p/p.toml: line 1, column 11: x");
    let flags =
        ["--waiting=9", "--log-file=here", "--keep-running=false", "--drain=0", "--scope=run:a,run:b"];
    let by_flags = given(&flags, file);
    assert_eq!(by_flags.get(&WAITING).ok(), Some(9));
    assert_eq!(by_flags.get(&LOG_FILE).ok().flatten().as_deref(), Some(Path::new("here")));
    assert_eq!(by_flags.get(&KEEP_RUNNING).ok(), Some(false));
    assert_eq!(by_flags.get(&DRAIN).ok(), Some(Duration::ZERO));
    assert_eq!(by_flags.get(&SCOPE).ok().map(|scopes| scopes.named().count()), Some(2));
    assert_eq!(by_flags.as_typed(&SCOPE), ["run:a", "run:b"]);
    assert_eq!(by_flags.location(&WAITING).error("x").to_string(), "x", "what is typed stands in no file");
    let nothing = given(&[], "");
    assert_eq!(nothing.get(&WAITING).ok(), Some(64));
    assert_eq!(nothing.get(&ROOT).ok().as_deref(), Some(Path::new(".")));
    assert!(nothing.get(&SCOPE).is_ok_and(|scopes| scopes.are_everything()));
    assert!(given(&[], "scope = []").get(&SCOPE).is_ok_and(|scopes| !scopes.are_everything()));
    assert!(matches!(nothing.get(&SCHEMAS_DIR), Ok(AssetFolder::InRoot(_))));
    assert!(matches!(given(&["--schemas-dir=s"], "").get(&SCHEMAS_DIR), Ok(AssetFolder::Set(_))));
    let pack = |given: Given| given.get(&SCHEMAS_DIR).ok().and_then(|folder| folder.show());
    assert_eq!(pack(given(&["--schemas-dir=pack:lamps"], "")).as_deref(), Some("pack:lamps"));
    assert_eq!(pack(given(&[], "schemas_dir = \"pack:lamps\"")).as_deref(), Some("pack:lamps"));
    assert_eq!(pack(given(&[], "schemas_dir = \"./pack:lamps\"")).as_deref(), Some("/etc/p/./pack:lamps"));
    // An empty path is one that is not set.
    assert_eq!(given(&["--log-file="], file).get(&LOG_FILE).ok(), by_file.get(&LOG_FILE).ok());
    assert!(matches!(given(&[], "schemas_dir = \"\"").get(&SCHEMAS_DIR), Ok(AssetFolder::InRoot(_))));
    assert_eq!(given(&["--backend-url="], "").get(&BACKEND_URL).ok(), Some(Some(String::new())));
}

#[test]
fn what_is_out_of_its_bounds_or_means_nothing_is_reported_where_it_stands() {
    let at = |text: &str| format!("/etc/p/p.toml: {text}");
    let most = 1 << 30;
    for (file, expected) in [
        ("running = 0", at(&format!("line 1, column 11: running is 0; it must be from 1 to {most}"))),
        (
            "\nrunning = 2000000000",
            at(&format!("line 2, column 11: running is 2000000000; it must be from 1 to {most}")),
        ),
    ] {
        assert_eq!(problem(&given(&[], file), &RUNNING), expected);
    }
    let typed = given(&["--running=0"], "running = 5");
    assert_eq!(problem(&typed, &RUNNING), format!("--running is 0; it must be from 1 to {most}"));
    assert!(problem(&given(&["--drain=soon"], ""), &DRAIN).starts_with("--drain: `soon` is not a duration"));
    let typed = given(&["--scope=rad:/"], "");
    assert!(problem(&typed, &SCOPE).starts_with("--scope: `rad:/` is not a scope"));
    assert_eq!(
        problem(&given(&[], "write_timeout = \"0\""), &WRITE_TIMEOUT),
        at("line 1, column 17: write_timeout is 0; it must be longer than 0")
    );
    assert!(
        problem(&given(&[], "drain = \"soon\""), &DRAIN)
            .starts_with(&at("line 1, column 9: drain: `soon` is not a duration"))
    );
    assert!(
        problem(&given(&[], "scope = [\"read:/\",\n\"rad:/\"]"), &SCOPE)
            .starts_with(&at("line 2, column 1: `rad:/` is not a scope"))
    );
    assert!(
        problem(&given(&[], "toolsets = [\"files\", \"serch\"]"), &TOOLSETS)
            .starts_with(&at("line 1, column 22: there is no toolset `serch`; the nearest is `search`"))
    );
    assert!(
        problem(&given(&[], "toolsets = [\"files\", \"auto\"]"), &TOOLSETS)
            .starts_with(&at("line 1, column 12: toolsets: `auto` stands for all"))
    );
}

/// A value that a key takes, in TOML.
fn good_value(setting: &dyn AnySetting) -> Option<&'static str> {
    let candidates = ["true", "7", "[\"files\"]", "[]", "\"text\""];
    let words = ["\"auto\"", "\"none\"", "\"dotted\"", "\"strict\"", "\"warn\"", "\"shadow\"", "\"always\""];
    let parsed =
        |text: &str| toml::from_str::<toml::Table>(&format!("x = {text}")).expect("TOML")["x"].clone();
    candidates.into_iter().chain(words).find(|text| setting.check_written(&parsed(text)).is_ok())
}

#[test]
fn every_key_of_the_table_is_taken_in_the_file_and_a_date_is_taken_by_none() {
    let parse = |text: &str| ConfigFile::parse(text, Path::new("p.toml"));
    for setting in all_settings() {
        let key = setting.key();
        let good = good_value(setting).unwrap_or_else(|| panic!("{key} takes no value"));
        let parsed = parse(&format!("{key} = {good}\n"));
        let problem = parsed.map(drop).map_err(|error: Located<_>| error.to_string());
        match setting.is_in_file() {
            true => assert_eq!(problem.err(), None, "{key}"),
            false => assert!(problem.is_err_and(|error| error.contains("unknown key")), "{key}"),
        }
        if setting.is_in_file() {
            let problem = parse(&format!("\n  {key} = 1979-05-27\n")).expect_err("a date").to_string();
            let column = key.len() + 6;
            let expected = format!("p.toml: line 2, column {column}: `{key}` is a date; it takes ");
            assert!(problem.starts_with(&expected), "{problem}");
        }
    }
}

#[test]
fn timeouts_of_the_command_line_beat_those_of_the_file_tool_by_tool() {
    let file = "[timeouts]\ndefault = \"5s\"\na = \"1s\"\nb = \"2s\"\n";
    let workspace = Workspace::decide(&given(&["--root=/", "--timeout=a=3s"], file)).expect("a workspace");
    assert_eq!(workspace.timeouts.general(), Duration::from_secs(5));
    assert_eq!(workspace.timeouts.by_tool["a"], Duration::from_secs(3));
    assert_eq!(workspace.timeouts.by_tool["b"], Duration::from_secs(2));
    let error = Workspace::decide(&given(&["--root=/"], "[timeouts]\na = \"x\"")).expect_err("no duration");
    assert!(error.to_string().starts_with("/etc/p/p.toml: line 2, column 5: timeout of a: `x`"), "{error}");
}

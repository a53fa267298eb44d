//! The other commands, and the configuration.

use std::fs;

use serde_json::{Value, json};

use crate::support::{conformance, data, pintle, run};

#[test]
fn the_schemas_of_every_tool_compile() {
    let (_, output, _) = run(pintle().args(["tools", "--json"]).current_dir(data()), b"");
    let listed: Value = serde_json::from_str(&output).expect("JSON");
    let tools = listed["tools"].as_array().expect("tools");
    assert!(!tools.is_empty());
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            let compiled = jsonschema::draft202012::new(&tool[schema]);
            assert!(tool[schema].is_object() && compiled.is_ok(), "{} of {}", schema, tool["name"]);
        }
    }
}

#[test]
fn tools_lists_every_tool_for_people_and_programs() {
    let (code, output, _) = run(pintle().arg("tools").current_dir(data()), b"");
    assert_eq!(code, Some(0));
    let names: Vec<_> = output.lines().filter_map(|line| line.split('\t').next()).collect();
    let expected = [
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
    assert_eq!(names, expected);
    let (_, output, _) = run(pintle().args(["tools", "--json"]).current_dir(data()), b"");
    let listed: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(expected.len()));
}

#[test]
fn call_prints_the_result_and_reports_failures_by_its_exit_code() {
    let call = |arguments: &[&str], input: &[u8]| {
        run(conformance().arg("call").args(arguments).arg("--fixtures").current_dir(data()), input)
    };
    let (code, output, _) = call(&["test_echo", r#"{"value":[1,null]}"#], b"");
    assert_eq!((code, output.as_str()), (Some(0), "{\"value\":[1,null]}\n"));
    let (code, output, _) = call(&["test_echo", "-"], br#"{"value":2}"#);
    assert_eq!((code, output.as_str()), (Some(0), "{\"value\":2}\n"));
    let (code, output, errors) = call(&["get_schema", r#"{"name":"x"}"#], b"");
    assert_eq!((code, output.as_str()), (Some(1), "{\"ok\":false,\"reason\":\"not_found\"}\n"));
    assert!(errors.contains("NOT_FOUND"), "{errors}");
    let (code, output, errors) = call(&["test_echo", "{}", "--json"], b"");
    assert_eq!(code, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&output).expect("JSON")["code"], json!("INVALID_REQUEST"));
    assert!(errors.contains("argument `value` is missing"), "{errors}");
    let (code, _, errors) = call(&["test_ecko"], b"");
    assert_eq!(code, Some(1));
    assert!(errors.contains("the nearest known tool is `test_echo`"), "{errors}");
    let (code, _, errors) = call(&["test_echo", "{"], b"");
    assert_eq!(code, Some(2));
    assert!(errors.contains("not JSON"), "{errors}");
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["file", "variable", "flag"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join(format!("{name}.json")), "true").expect("writes");
    }
    fs::write(folder.path().join("pintle.toml"), "schemas_dir = \"file\"\n").expect("writes");
    let listed = |variable: Option<&str>, flag: Option<&str>| {
        let mut command = pintle();
        command.args(["call", "list_schemas"]).current_dir(folder.path());
        if let Some(folder) = variable {
            command.env("SYN_SCHEMAS_DIR", folder);
        }
        if let Some(folder) = flag {
            command.args(["--schemas-dir", folder]);
        }
        let (code, output, errors) = run(&mut command, b"");
        assert_eq!(code, Some(0), "{errors}");
        let listed: Value = serde_json::from_str(&output).expect("JSON");
        listed["schemas"][0]["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(listed(None, None), "file");
    assert_eq!(listed(Some("variable"), None), "variable");
    assert_eq!(listed(Some("variable"), Some("flag")), "flag");
}

#[test]
fn an_unknown_key_in_the_file_stops_the_start_and_names_the_nearest() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, wanted) in [
        (
            "shemas_dir = \"x\"",
            "line 1, column 1: unknown key `shemas_dir`; the nearest known one is `schemas_dir`",
        ),
        ("[timeout]\nx = \"1s\"", "the nearest known one is `timeouts`"),
        ("[timeouts]\nlist_schema = \"1s\"", "the nearest is `list_schemas`"),
        ("drain = \"soon\"", "`soon` is not a duration"),
        ("root = 5", "`root`"),
        ("root = [", "line 1"),
    ] {
        fs::write(folder.path().join("pintle.toml"), text).expect("writes");
        let (code, output, errors) = run(pintle().arg("serve").current_dir(folder.path()), b"");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{text}");
        assert!(errors.contains(wanted), "{text}: {errors}");
    }
}

#[test]
fn every_error_in_the_file_has_its_file_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("schemas")).expect("a folder");
    fs::create_dir(folder.path().join("lamps")).expect("a folder");
    fs::write(folder.path().join("schemas/lamp.json"), "true").expect("writes");
    let bind = "schemas_dir = \"schemas\"\n[[bind]]\npath = \"a\"\nschema = \"lamp\"\n[[bind]]\n";
    let http = "http = \"127.0.0.1:0\"\nauth = \"none\"\n";
    for (text, position, wanted) in [
        // The value has the wrong type.
        (format!("{bind}path = \"b\"\nschemas = \"lamp\"\n"), "line 7, column 1", "unknown key `schemas`"),
        (format!("{bind}path = \"b\"\nschema = 7\n"), "line 7, column 10", "`bind/1/schema`"),
        (format!("{bind}path = \"b\"\n"), "line 5, column 1", "`schema` is missing"),
        // The value cannot be applied.
        (format!("{bind}path = \"b\"\nschema = \"lmp\"\n"), "line 7, column 10", "the nearest is `lamp`"),
        (format!("{bind}schema = \"lamp\"\npath = \"a[\"\n"), "line 7, column 8", "`a[`"),
        (format!("{bind}path = \"lamps\"\nschema = \"lamp\"\n"), "line 6, column 8", "`lamps/**`"),
        ("\ndrain = \"soon\"".into(), "line 2, column 9", "`soon` is not a duration"),
        ("[timeouts]\nsearch = \"x\"".into(), "line 2, column 10", "timeout of search"),
        ("[timeouts]\n  serch = \"1s\"".into(), "line 2, column 3", "the nearest is `search`"),
        ("waiting = 1\nrunning = 0".into(), "line 2, column 11", "running is 0"),
        ("max_file_bytes = 0".into(), "line 1, column 18", "max_file_bytes is 0"),
        ("scope = [\"read:/\",\n  \"rad:/\"]".into(), "line 2, column 3", "`rad:/` is not a scope"),
        (format!("{http}allow_origin = [\"x\"]"), "line 3, column 17", "`x` is not an origin"),
        (format!("{http}allow_host = [\"a\", \"b/c\"]"), "line 3, column 20", "`b/c` is not a host"),
        ("auth = \"none\"\nhttp = \"x\"".into(), "line 2, column 8", "`x` is not an address"),
        ("root = \"gone\"".into(), "line 1, column 8", "gone cannot be opened"),
        ("root = \".\"\nstate_dir = \"state\"".into(), "line 2, column 13", "inside the root"),
        ("backend_url = \"ftp://h\"".into(), "line 1, column 15", "the backend cannot be used"),
        ("log_file = \"gone/log\"".into(), "line 1, column 12", "cannot write the log file"),
        // The file is not TOML, or not text.
        ("root = \".\"\nlog_file = [".into(), "line 2, column 13", ""),
        ("root = \".\"\nroot = \".\"".into(), "line 2, column 1", "duplicate key"),
    ] {
        fs::write(folder.path().join("pintle.toml"), &text).expect("writes");
        let mut command = pintle();
        command.arg("serve").current_dir(folder.path());
        command.env("XDG_STATE_HOME", folder.path().with_extension("state"));
        let (code, output, errors) = run(&mut command, b"");
        assert_eq!((code, output.as_str()), (Some(2), ""), "{text}\n{errors}");
        let expected = format!("error: pintle.toml: {position}: ");
        assert!(errors.contains(&expected) && errors.contains(wanted), "{text}\n{errors}");
    }
    // An error in a flag is not reported as an error in the file.
    fs::write(folder.path().join("pintle.toml"), "drain = \"5s\"\nrunning = 5\n").expect("writes");
    for arguments in [["--drain", "soon"], ["--running", "0"]] {
        let (_, _, errors) = run(pintle().arg("serve").args(arguments).current_dir(folder.path()), b"");
        assert!(errors.starts_with("error: ") && !errors.contains("pintle.toml"), "{errors}");
    }
}

#[test]
fn a_state_folder_inside_the_root_stops_the_start_and_says_what_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("a root");
    std::os::unix::fs::symlink(&root, folder.path().join("link")).expect("a link");
    for state in ["root/state", "root", "link/a/b", "root/../root/x"] {
        let mut command = pintle();
        command.arg("serve").arg("--root").arg(&root).arg("--state-dir").arg(folder.path().join(state));
        let (code, _, errors) = run(&mut command, b"");
        assert_eq!(code, Some(2), "{state}");
        assert!(errors.contains("--state-dir"), "{state}: {errors}");
    }
}

#[test]
fn a_root_that_does_not_exist_stops_the_start() {
    let (code, _, errors) = run(pintle().args(["serve", "--root", "/no/such/folder"]), b"");
    assert_eq!(code, Some(2));
    assert!(errors.contains("/no/such/folder"), "{errors}");
}

#[test]
fn a_variable_that_looks_like_a_setting_but_is_not_one_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = pintle();
    command.arg("serve").current_dir(folder.path()).env("PINTLE_LOG_FIEL", "x");
    command.env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, _, errors) = run(&mut command, b"");
    assert_eq!(code, Some(0));
    assert!(
        errors.contains("PINTLE_LOG_FIEL is not a setting; the nearest one is PINTLE_LOG_FILE"),
        "{errors}"
    );
}

#[test]
fn an_error_about_a_value_names_what_it_was_set_by() {
    for (variable, value, expected) in [
        ("PINTLE_WAITING", "abc", "for 'PINTLE_WAITING': it is not a whole number"),
        ("PINTLE_WAITING", "-4", "for 'PINTLE_WAITING': it is negative"),
        ("PINTLE_WAITING", "99999999999999999999999", "for 'PINTLE_WAITING': it is too large"),
        ("PINTLE_LOG_LEVEL", "loud", "for 'PINTLE_LOG_LEVEL'"),
        ("PINTLE_KEEP_RUNNING", "perhaps", "for 'PINTLE_KEEP_RUNNING'"),
        ("PINTLE_DRAIN", "soon", "PINTLE_DRAIN: `soon` is not a duration"),
        ("PINTLE_TIMEOUT", "search=soon", "PINTLE_TIMEOUT of search: `soon` is not a duration"),
        ("PINTLE_RUNNING", "0", "PINTLE_RUNNING is 0; it must be from 1 to "),
        ("PINTLE_TOOLSETS", "serch", "PINTLE_TOOLSETS: there is no toolset `serch`; the nearest is `search`"),
        ("PINTLE_ROOT", "/no/such/folder", "PINTLE_ROOT: the root /no/such/folder cannot be opened"),
        ("SYN_BACKEND_URL", "x", "; change SYN_BACKEND_URL\n"),
    ] {
        let (code, _, errors) = run(pintle().arg("serve").env(variable, value), b"");
        assert_eq!(code, Some(2), "{variable}: {errors}");
        assert!(errors.contains(expected), "{variable}: {errors}");
    }
    for (flag, expected) in [
        ("--waiting=abc", "for '--waiting <N>': it is not a whole number"),
        ("--running=0", "--running is 0"),
        ("--backend-url=x", "; change --backend-url\n"),
        ("--http=", "--http is empty; write it as `127.0.0.1:9999`"),
        ("--toolsets=", "--toolsets is empty; write it as `files,search`, or `auto`"),
    ] {
        let (code, _, errors) = run(pintle().args(["serve", "--auth=none", flag]), b"");
        assert_eq!(code, Some(2), "{flag}: {errors}");
        assert!(errors.contains(expected), "{flag}: {errors}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("pintle.toml"), "backend_url = \"x\"\n").expect("writes");
    let (code, _, errors) = run(pintle().arg("serve").current_dir(folder.path()), b"");
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("line 1, column 15: the backend cannot be used: "), "{errors}");
    assert!(errors.contains("; change backend_url\n"), "{errors}");
}

#[test]
fn an_empty_path_in_the_file_is_one_that_is_not_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = "schemas_dir = \"\"\nexamples_dir = \"\"\nlog_file = \"\"\nstate_dir = \"\"\ntools = \"\"\n";
    fs::write(folder.path().join("pintle.toml"), file).expect("writes");
    let mut command = pintle();
    command.arg("serve").current_dir(folder.path()).env("HOME", folder.path().join("home"));
    command.env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, _, errors) = run(&mut command, b"");
    assert_eq!(code, Some(0), "{errors}");
    assert!(!errors.contains("warning"), "{errors}");
}

#[test]
fn commands_work_anywhere_in_the_home_folder_too() {
    let home = tempfile::tempdir().expect("a folder");
    for arguments in [vec!["tools"], vec!["call", "list_schemas"]] {
        let mut command = pintle();
        command.args(arguments).current_dir(home.path()).env("HOME", home.path());
        let (code, _, errors) = run(&mut command, b"");
        assert_eq!(code, Some(0), "{errors}");
    }
    // There is no folder for an index in this case, so text is searched without one.
    fs::write(home.path().join("a.txt"), "needle\n").expect("writes");
    let mut command = pintle();
    command.arg("serve").current_dir(home.path()).env("HOME", home.path());
    command.env("MCP_READY_FILE", home.path().with_extension("ready"));
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"search","params":{"query":"needle"}}"#;
    let (code, output, errors) = run(&mut command, line);
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.contains("\"total\":1"), "{output}");
    let mut command = pintle();
    command.args(["search", "needle"]).current_dir(home.path()).env("HOME", home.path());
    let (code, output, errors) = run(&mut command, b"");
    assert_eq!((code, output.as_str()), (Some(0), "a.txt:needle\n"), "{errors}");
}

#[test]
fn the_environment_overrides_the_file_both_ways_and_empty_variables_count_as_unset() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("pintle.toml");
    fs::write(&config, "deterministic = true\n").expect("writes");
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{}}"#;
    for (value, deterministic) in [("false", false), ("0", false), ("1", true), ("yes", true)] {
        let mut command = pintle();
        command.arg("serve").current_dir(folder.path()).env("PINTLE_DETERMINISTIC", value);
        command.env("SYN_SCHEMAS_DIR", "").env("PINTLE_ROOT", "").env("SYN_BACKEND_URL", "");
        command.env("MCP_READY_FILE", folder.path().join("ready"));
        let (code, _, errors) = run(&mut command, line);
        assert_eq!(code, Some(0), "{errors}");
        assert!(errors.contains(&format!("\"deterministic\":{deterministic}")), "{value}: {errors}");
    }
}

#[test]
fn an_empty_variable_of_any_type_but_the_scopes_counts_as_unset() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, help, _) = run(pintle().args(["serve", "--help"]), b"");
    let variables: Vec<_> = help.split("[env: ").skip(1).filter_map(|rest| rest.split(']').next()).collect();
    assert!(variables.len() > 30 && variables.contains(&"PINTLE_RUNNING"), "{variables:?}");
    // That would grant everything; `scopes.rs` tests that it is refused.
    let variables = variables.iter().filter(|name| **name != "PINTLE_SCOPE");
    fs::write(folder.path().join("pintle.toml"), "deterministic = true\n").expect("writes");
    let mut command = pintle();
    command.arg("serve").current_dir(folder.path()).envs(variables.map(|name| (name, "")));
    // Another server may use the default ready file.
    command.args(["--ready-file"]).arg(folder.path().join("ready"));
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{}}"#;
    let (code, _, errors) = run(&mut command, line);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("\"deterministic\":true"), "the file is not overridden: {errors}");
}

#[test]
fn secrets_in_the_environment_are_not_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = "http://user:hunter2@127.0.0.1:1/?token=hunter2";
    let mut help = pintle();
    let (_, output, errors) = run(help.args(["serve", "--help"]).env("SYN_BACKEND_URL", secret), b"");
    assert!(!output.contains("hunter2") && !errors.contains("hunter2"));
    let mut serve = pintle();
    serve.args(["serve", "--log-level=debug"]).current_dir(folder.path()).env("SYN_BACKEND_URL", secret);
    serve.env("MCP_READY_FILE", folder.path().join("ready"));
    let (_, _, errors) = run(&mut serve, b"");
    assert!(errors.contains("debug: backend configured") && !errors.contains("hunter2"), "{errors}");
}

#[test]
fn odd_files_and_numbers_are_errors_and_never_hang() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    for (argument, wanted) in [("--log-file", "log file"), ("--config", "is not a file")] {
        let mut command = pintle();
        command.arg("serve").current_dir(folder.path()).arg(argument).arg(&pipe);
        let (code, _, errors) = run(&mut command, b"");
        assert_eq!(code, Some(2), "{argument}");
        assert!(errors.contains(wanted), "{argument}: {errors}");
    }
    for arguments in [["--running", "2305843009213693952"], ["--running", "0"], ["--drain", "never"]] {
        let (code, _, _) = run(pintle().arg("serve").args(arguments).current_dir(folder.path()), b"");
        assert_eq!(code, Some(2), "{arguments:?}");
    }
    for text in ["running = nan", "log_level = \"OFF\"", "envelope = 5"] {
        let config = folder.path().join("odd.toml");
        fs::write(&config, text).expect("writes");
        let mut command = pintle();
        let (code, _, errors) = run(command.arg("serve").arg("--config").arg(config), b"");
        assert_eq!(code, Some(2), "{text}");
        assert!(!errors.contains("anyOf"), "{errors}");
    }
}

#[test]
fn pintle_without_arguments_prints_ten_lines_of_help() {
    let (code, output, errors) = run(&mut pintle(), b"");
    assert_eq!((code, output.as_str()), (Some(2), ""));
    assert_eq!(errors.lines().count(), 10, "{errors}");
    assert!(errors.lines().all(|line| line.len() <= 80), "{errors}");
    let (_, help, _) = run(pintle().arg("--help"), b"");
    for command in ["serve", "search", "index", "tools", "call", "validate", "--help"] {
        assert!(errors.contains(&format!("pintle {command}")), "{command}: {errors}");
        assert!(help.contains(command), "{command}: {help}");
    }
}

#[test]
fn help_shows_common_options_first_and_the_rest_in_groups() {
    let (code, help, _) = run(pintle().args(["serve", "--help"]), b"");
    assert_eq!(code, Some(0));
    let group_of = |flag: &str| {
        let offset = help.find(&format!("{flag} ")).unwrap_or_else(|| panic!("no {flag}: {help}"));
        let is_title = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
        help[..offset].lines().rfind(is_title).unwrap_or_default().to_owned()
    };
    for (flag, group) in [
        ("--root", "Options:"),
        ("--http", "Options:"),
        ("--auth", "Options:"),
        ("--scope", "Options:"),
        ("--allow-origin", "HTTP:"),
        ("--schemas-dir", "Assets and backend:"),
        ("--backend-url", "Assets and backend:"),
        ("--timeout", "Limits:"),
        ("--max-request-bytes", "Limits:"),
        ("--log-file", "Log and readiness:"),
        ("--envelope", "Protocol:"),
    ] {
        assert_eq!(group_of(flag), group, "{flag}: {help}");
    }
    let offset = |group: &str| help.find(&format!("\n{group}\n")).expect("a group");
    assert!(offset("Options:") < offset("Assets and backend:"), "{help}");
}

//! Environment variables that look like settings but are none: most likely a slip of the pen.

use pintle_contract::nearest;

use crate::{cli::Command, notices};

/// Variables of the same prefix that other programs use to find or test this one, or that its build leaves behind.
const NOT_SETTINGS: [&str; 2] = ["PINTLE_BIN", "PINTLE_COMMIT"];

/// Warns of unknown `PINTLE_…` variables. They do not stop the start: the environment is shared with
/// other programs, unlike flags and the configuration file.
pub fn warn_of_unknown() {
    let known = known_variables();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let is_known = known.iter().any(|known| known == name) || NOT_SETTINGS.contains(&name);
        if name.starts_with("PINTLE_")
            && !is_known
            && let Some(near) = nearest(name, known.iter().map(String::as_str))
        {
            notices::warning(&format!("{name} is not a setting; the nearest one is {near}"));
        }
    }
}

fn known_variables() -> Vec<String> {
    let command = Command::whole_command();
    let all = std::iter::once(&command).chain(command.get_subcommands());
    let variables = all.flat_map(|command| command.get_arguments()).filter_map(|argument| argument.get_env());
    let mut names: Vec<String> = variables
        .filter_map(|name| name.to_str())
        .filter(|name| name.starts_with("PINTLE_"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

//! Environment variables that look like settings but are none: most likely a slip of the pen.

use pintle_contract::nearest;

use crate::{notices, settings::all_settings};

/// Variables of the same prefix that other programs use to find or test this one, or that its build leaves behind.
const NOT_SETTINGS: [&str; 2] = ["PINTLE_BIN", "PINTLE_COMMIT"];

const PREFIX: &str = "PINTLE_";

/// Warns of unknown `PINTLE_…` variables. They do not stop the start: the environment is shared with
/// other programs, unlike flags and the configuration file.
pub fn warn_of_unknown() {
    let known: Vec<&str> = all_settings().map(|setting| setting.env()).collect();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let is_known = known.contains(&name) || NOT_SETTINGS.contains(&name);
        let Some(rest) = name.strip_prefix(PREFIX).filter(|_| !is_known) else { continue };
        // The prefix is the same in all names and would make all of them similar.
        let near = nearest(rest, known.iter().filter_map(|known| known.strip_prefix(PREFIX)));
        let near = near.map(|near| format!("; the nearest one is {PREFIX}{near}")).unwrap_or_default();
        notices::warning(&format!("{name} is not a setting{near}"));
    }
}

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
        if name.starts_with(PREFIX)
            && !is_known
            && let Some(near) = nearest(name, known.iter().copied().filter(|known| known.starts_with(PREFIX)))
        {
            notices::warning(&format!("{name} is not a setting; the nearest one is {near}"));
        }
    }
}

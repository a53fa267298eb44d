//! What a command sees of the server's environment.

use std::ffi::{OsStr, OsString};

use crate::error::ManifestError;

/// What every command gets, if the server has it.
const ALWAYS: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// What no command gets: the server's own settings, which hold addresses and secrets.
const NEVER: [&str; 2] = ["PINTLE_", "SYN_"];

/// Whether a manifest may ask for a variable. `Err` says why not.
pub(crate) fn check(name: &str) -> Result<(), ManifestError> {
    if let Some(prefix) = NEVER.iter().find(|prefix| name.starts_with(**prefix)) {
        return Err(ManifestError::OwnVariable { name: name.to_owned(), prefix });
    }
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(ManifestError::BadVariable(name.to_owned()));
    }
    Ok(())
}

/// The environment of a command, from the server's and the names that its manifest lists.
pub(crate) fn of_command(
    server: impl IntoIterator<Item = (OsString, OsString)>,
    allowed: &[String],
) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        let is_wanted =
            ALWAYS.contains(&name) || name.starts_with("LC_") || allowed.iter().any(|one| one == name);
        is_wanted && name != "NO_COLOR" && check(name).is_ok()
    };
    let mut passed: Vec<_> = server.into_iter().filter(|(name, _)| is_passed(name)).collect();
    passed.push(("NO_COLOR".into(), "1".into()));
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_it_needs_and_what_its_manifest_lists_and_no_settings() {
        let server = ["PATH", "LC_ALL", "SECRET", "CI", "PINTLE_ROOT", "SYN_BACKEND_URL", "NO_COLOR"];
        let server = server.map(|name| (OsString::from(name), OsString::from("0")));
        let allowed = ["CI", "PINTLE_ROOT", "SYN_BACKEND_URL"].map(String::from);
        let names: Vec<_> = of_command(server, &allowed);
        let names: Vec<_> = names.iter().map(|(name, value)| (name.to_str(), value.to_str())).collect();
        let zero = |name| (Some(name), Some("0"));
        assert_eq!(names, [zero("PATH"), zero("LC_ALL"), zero("CI"), (Some("NO_COLOR"), Some("1"))]);
    }

    #[test]
    fn a_manifest_cannot_ask_for_the_servers_settings() {
        assert!(check("CI").is_ok());
        for name in ["PINTLE_SECRET", "SYN_BACKEND_URL", "", "A=B"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}

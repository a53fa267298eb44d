//! A manifest to begin with.

use crate::{error::ManifestError, manifest::check_tool_name};

/// The text of a commented manifest for a tool of this name. `Err` says why there can be none of that name.
pub fn starter(name: &str) -> Result<String, ManifestError> {
    check_tool_name(name)?;
    Ok(STARTER.replace("NAME", name))
}

const STARTER: &str = r#"# A tool for `pintle serve --tools DIR`; check it with `pintle tool check FILE`.

name = "NAME"
# For the model that chooses a tool: what it does, when to use it, what comes back.
description = "Prints a text. Replace this by what the tool does."

# The program and its arguments. There is no shell: nothing is expanded, split or quoted.
# The program is an absolute path, or a name that is found on the server's PATH.
# "{field}" stands for a property of [input] and fills a whole element; a list fills as many as it has.
# A value that begins with "-" is refused, unless it is the value of an option or comes after "--".
# An option before a field that is null or an empty list is left out together with it.
command = ["/usr/bin/printf", "%s", "{text}"]

# stdin = "json"       # the program gets all arguments as one JSON object on standard input
# cwd = "/"            # the working folder, in the root
# env = ["CI"]         # more variables of the server's environment; PATH, HOME, LANG, LC_* and TMPDIR are always passed
# timeout = "10m"      # how long a call may run; "0" means no limit
# grace = "2s"         # the time between SIGTERM and SIGKILL when a call is ended
# max_output = 262144  # how many bytes of each stream are kept: the first quarter, and the rest from the end
# max_parallel = 4     # how many calls run at the same time

# What the tool takes: a JSON Schema. Unknown arguments are always refused.
[input]
required = ["text"]

[input.properties.text]
type = "string"
description = "What to print."

# What the tool gives: a JSON Schema. Standard output has to be that JSON.
# Without it the result is {stdout, stderr, exitCode, truncated}.
# [output]
# required = ["count"]
#
# [output.properties.count]
# type = "integer"
"#;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn a_starter_is_a_manifest_and_a_bad_name_is_said_to_be_one() {
        let text = starter("lint").expect("a manifest");
        assert_eq!(Manifest::parse(&text, Path::new("lint"), None).expect("a manifest").name(), "lint");
        let problem = starter("a b").expect_err("refused").to_string();
        assert!(problem.starts_with("`a b` is not a valid tool name"), "{problem}");
        assert!(starter("\"\n").is_err() && starter("").is_err());
    }
}

//! Derives the name of a schema and the component of an example from file names.

/// The name of a schema file: the file's name without its ending.
pub(crate) fn schema_name(file_name: &str) -> &str {
    file_name.strip_suffix(".schema.json").or_else(|| file_name.strip_suffix(".json")).unwrap_or(file_name)
}

/// The component of an example: its first folder, else the one in its file name.
pub(crate) fn component(path: &str) -> String {
    match path.split_once('/') {
        Some((folder, _)) => folder.to_owned(),
        None => component_of_file(path),
    }
}

/// The component in a file name: the part before the first `_`, in kebab-case.
pub(crate) fn component_of_file(file_name: &str) -> String {
    let stem = schema_name(file_name).trim_start_matches('_');
    kebab_case(stem.split('_').next().unwrap_or_default())
}

fn kebab_case(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            if !out.is_empty() && !out.ends_with('-') {
                out.push('-');
            }
            continue;
        }
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1);
        let starts_word = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    // The last capital of a run begins the next word: `HTTPServer`.
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            out.push('-');
        }
        out.extend(character.to_lowercase());
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_named_by_its_file_without_the_ending() {
        for (file, name) in
            [("tone.schema.json", "tone"), ("tone.json", "tone"), ("a.b.json", "a.b"), ("tone", "tone")]
        {
            assert_eq!(schema_name(file), name);
        }
    }

    #[test]
    fn a_component_is_the_folder_else_the_kebab_cased_name_up_to_the_underscore() {
        for (path, expected) in [
            ("SynestheticAsset_Example1.json", "synesthetic-asset"),
            ("Control-Bundle_Example.json", "control-bundle"),
            ("HTTPServer_x.json", "http-server"),
            ("Tone.json", "tone"),
            ("tone2Mix_a_b.json", "tone2-mix"),
            ("Rule Bundle_1.json", "rule-bundle"),
            ("_Draft_1.json", "draft"),
            ("ÄnderungSatz_1.json", "änderung-satz"),
            ("Tone/Anything_Else.json", "Tone"),
            ("_skip/deep/ShaderLib_Example.json", "_skip"),
        ] {
            assert_eq!(component(path), expected, "{path}");
        }
    }
}

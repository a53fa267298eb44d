//! Each language's fixture has the outline that is written beside it.
//!
//! `fixtures/rust.rs` is a text, `fixtures/rust.rs.outline` what it defines: `kind name line:column-end_line`, one a
//! line. `UPDATE_FIXTURES=1` rewrites the outlines.

use pintle_symbols::{Language, Outline, Outliner};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

fn fixtures() -> Vec<(Language, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let paths = std::fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("an entry").path());
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension != "outline"));
    texts.map(|path| (Language::of_path(path.as_os_str().as_encoded_bytes()).expect("known"), path)).collect()
}

fn written(text: &[u8], outline: Outline) -> String {
    let Outline::Complete(symbols) = outline else { panic!("{outline:?}") };
    let mut lines = String::new();
    for symbol in symbols {
        let (kind, name) = (symbol.kind.name(), String::from_utf8_lossy(&text[symbol.name]));
        writeln!(lines, "{kind} {name} {}:{}-{}", symbol.line, symbol.column, symbol.end_line)
            .expect("writes");
    }
    lines
}

#[test]
fn every_language_with_symbols_has_a_fixture_and_every_fixture_its_outline() {
    let mut without: HashSet<Language> = Language::all().filter(|language| language.has_symbols()).collect();
    let mut outliner = Outliner::new();
    let mut wrong = Vec::new();
    for (language, path) in fixtures() {
        without.remove(&language);
        let text = std::fs::read(&path).expect("reads");
        let found = written(&text, outliner.outline(language, &text, &|| false));
        let mut beside = path.into_os_string();
        beside.push(".outline");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::write(&beside, &found).expect("writes");
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != found {
            wrong.push(format!("{}:\n{found}", beside.display()));
        }
    }
    assert!(without.is_empty(), "no fixture: {without:?}");
    assert!(wrong.is_empty(), "other outlines:\n{}", wrong.join("\n"));
}

#[test]
fn an_outline_is_the_same_with_other_line_ends() {
    let mut outliner = Outliner::new();
    for (language, path) in fixtures() {
        let text = std::fs::read(&path).expect("reads");
        let other: Vec<u8> =
            text.iter().flat_map(|&byte| [b'\r', byte].into_iter().skip((byte != b'\n').into())).collect();
        let [found, expected] =
            [&other, &text].map(|text| written(text, outliner.outline(language, text, &|| false)));
        assert_eq!(found, expected, "{}", path.display());
    }
}

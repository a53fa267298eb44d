//! No text makes the outliner fail, hang or outgrow its stack.

use pintle_symbols::{Language, Outline, Outliner};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// For all languages together. Each text has a budget of its own, so this only ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(300);

fn with_symbols() -> impl Iterator<Item = Language> {
    Language::all().filter(|language| language.has_symbols())
}

#[test]
fn an_empty_text_defines_nothing() {
    let mut outliner = Outliner::new();
    for language in with_symbols() {
        for text in [&b""[..], b"\n", b"\r\n \t\r\n"] {
            assert_eq!(
                outliner.outline(language, text, &|| false),
                Outline::Complete(Vec::new()),
                "{language:?}"
            );
        }
    }
}

#[test]
fn a_language_without_symbols_says_so() {
    let json = Language::from_name("json").expect("known");
    assert_eq!(Outliner::new().outline(json, b"{}", &|| false), Outline::Unsupported);
}

#[test]
fn bytes_that_are_not_utf8_do_not_hide_what_is_around_them() {
    let python = Language::from_name("python").expect("known");
    let text = b"x = '\xff\xfe'\n# \xc3\x28\ndef f():\n    pass\n";
    let symbols = Outliner::new().outline(python, text, &|| false).symbols().expect("parsed");
    let names: Vec<&[u8]> = symbols.iter().map(|symbol| &text[symbol.name.clone()]).collect();
    assert_eq!(names, [&b"x"[..], b"f"]);

    let c = Language::from_name("c").expect("known");
    let text = b"/* \xff */ int \xe4; char *s = \"\xff\"; void f(void) { \xff }\n#define A \xff\n\xff";
    let symbols = Outliner::new().outline(c, text, &|| false).symbols().expect("parsed");
    assert!(symbols.iter().any(|symbol| &text[symbol.name.clone()] == b"f"));
}

#[test]
fn characters_are_whole_wherever_they_are() {
    let python = Language::from_name("python").expect("known");
    let mut outliner = Outliner::new();
    for padding in 4080..4100 {
        let text = format!("#{}\ngrößeöä = 1\n", "-".repeat(padding));
        let symbols = outliner.outline(python, text.as_bytes(), &|| false).symbols().expect("parsed");
        let names: Vec<&str> = symbols.iter().map(|symbol| &text[symbol.name.clone()]).collect();
        assert_eq!(names, ["größeöä"], "{padding}");
    }
}

#[test]
fn garbage_is_survived_in_every_language() {
    let garbage: Vec<u8> =
        (0u32..20_000).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut outliner = Outliner::new();
    for language in with_symbols() {
        for symbol in outliner.outline(language, &garbage, &|| false).symbols().expect("an outline") {
            assert!(symbol.name.end <= garbage.len());
        }
    }
}

#[test]
fn deep_nesting_needs_no_stack_and_ends_in_time() {
    let start = Instant::now();
    let mut outliner = Outliner::new();
    for language in with_symbols() {
        for text in ["(".repeat(200_000), "{".repeat(200_000), "a{".repeat(3_000), "f([{".repeat(1_000)] {
            let outline = outliner.outline(language, text.as_bytes(), &|| start.elapsed() > PATIENCE);
            assert!(outline.symbols().is_some(), "{language:?}");
        }
    }
}

#[test]
fn one_that_has_ended_is_interrupted_at_any_time() {
    let texts = [
        ("c", "int f(int a) { return a; }\nstruct s { int a; };\n"),
        ("rust", "fn f(a: u8) -> u8 { a }\nstruct S { a: u8 }\n"),
        ("python", "def f(a):\n    return a\n"),
    ];
    for (name, text) in texts {
        let (language, text) = (Language::from_name(name).expect("known"), text.repeat(4_000));
        let mut outliner = Outliner::new();
        let questions = Cell::new(0);
        let count = || {
            questions.set(questions.get() + 1);
            false
        };
        let whole = outliner.outline(language, text.as_bytes(), &count);
        assert!(matches!(whole, Outline::Complete(_)));
        let total = questions.get();
        assert!(total > 30, "{name}: asked {total} times");
        for allowed in [0, 1, 2, total / 2, total - 1] {
            questions.set(0);
            let has_ended = || {
                questions.set(questions.get() + 1);
                questions.get() > allowed
            };
            assert_eq!(
                outliner.outline(language, text.as_bytes(), &has_ended),
                Outline::Interrupted,
                "{name}"
            );
        }
        // What was left unfinished has no part in what comes next.
        assert_eq!(outliner.outline(language, text.as_bytes(), &|| false), whole, "{name}");
    }
}

//! The shortcut finds what the parser finds in the whole text, wherever the parser copes with it.

use crate::{Language, Outline, Outliner, Symbol};
use proptest::prelude::*;

fn outline(text: &[u8], shortcut: bool) -> Vec<Symbol> {
    let c = Language::from_name("c").expect("known");
    match Outliner::new().outline_as(c, text, &|| false, shortcut) {
        Outline::Complete(symbols) => symbols,
        other => panic!("{other:?}"),
    }
}

fn names(text: &str) -> Vec<String> {
    let named = |symbol: Symbol| format!("{} {}", symbol.kind.name(), &text[symbol.name]);
    outline(text.as_bytes(), true).into_iter().map(named).collect()
}

/// Lines between declarations.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "#[ \t]{0,2}define [A-Z_][A-Z0-9_]{0,9}( [a-z0-9+()]{1,12})?",
        "#define [A-Z]{1,9}\\([a-z]\\) \\(\\([a-z]\\) [+] 1\\)",
        "#define [A-Z]{1,9} [a-z]{1,3} \\\\\n\t[a-z]{1,3} \\\\\n\t[a-z]{1,3}",
        "#define [A-Z]{1,9} 0x[0-9a-f]{1,8}L? /[*] [a-z #'\"{}\n]{0,20} [*]/",
        "#define [A-Z]{1,9} 1 // [a-z {}'\"]{0,20}",
        "#include <[a-z]{1,8}/[a-z]{1,8}\\.h>",
        "#include \"[a-z]{1,8}\\.h\"",
        "#undef [A-Z]{1,9}",
        "#pragma [a-z]{1,9}",
        "/[*] [a-z #'\"{};\n]{0,40} [*]/",
        "// [a-z #'\"{};]{0,40}",
        "[ \t]{0,4}",
    ]
}

/// Whole declarations.
fn declaration() -> impl Strategy<Value = String> {
    prop_oneof![
        "(static |const )?(int|long|struct [a-z]{3}) [*]?v_[a-z]{1,5}(\\[[0-9]{1,3}\\])?( = [0-9]{1,4})?;",
        "extern int e_[a-z]{1,5};",
        "int p_[a-z]{1,5}\\(int a, char [*]b\\);",
        "typedef unsigned t_[a-z]{1,5};",
        "typedef int \\([*]t_[a-z]{1,5}\\)\\(int, void [*]\\);",
        "typedef struct( s_[a-z]{1,5})? \\{ int f_[a-z]{1,3}; \\} t_[a-z]{1,5};",
        "struct s_[a-z]{1,5} \\{\n\tint f_[a-z]{1,3}, [*]f_[a-z]{1,3};\n\tint \\([*]f_[a-z]{1,3}\\)\\(void\\);\n\\};",
        "union u_[a-z]{1,5} \\{ int f_[a-z]{1,3} : 3; struct \\{ char f_[a-z]{1,3}\\[2\\]; \\}; \\} v_[a-z]{1,3};",
        "enum e_[a-z]{1,5} \\{\n\tE_[A-Z]{1,3},\n\tE_[A-Z]{1,3} = \\(1 <<\n\t\t2\\),\n\\};",
        "struct s_[a-z]{1,5};",
        "static int x_[a-z]{1,5}\\[\\] = \\{ 1, \\{ 2 \\}, '\\{', \"\\}\" \\};",
        "static inline int f_[a-z]{1,5}\\(int a\\)\n\\{\n\tif \\(a\\) \\{ return '\\}'; \\} // \\}\n\treturn 0;\n\\}",
        "struct s_[a-z]{1,5} [*]f_[a-z]{1,5}\\(void\\) \\{ return \"\\{\"; \\}",
    ]
}

/// A text: lines and declarations, some of them under conditions.
fn text(item: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    let items = item.prop_map(|item| item + "\n");
    let block = items.prop_recursive(4, 24, 6, |inner| {
        let inside = prop::collection::vec(inner, 0..6).prop_map(|items| items.concat());
        prop_oneof![
            ("[A-Z]{1,5}", inside.clone())
                .prop_map(|(name, inside)| format!("#ifdef {name}\n{inside}#endif\n")),
            (inside.clone(), inside.clone()).prop_map(|(first, second)| format!(
                "#if defined(A) && \\\n  B > 2\n{first}#else\n{second}#endif /* A */\n"
            )),
            (inside.clone(), inside)
                .prop_map(|(first, second)| format!("#ifndef A\n{first}# elif B\n{second}#endif\n")),
        ]
    });
    prop::collection::vec(block, 0..12).prop_map(|blocks| blocks.concat())
}

proptest! {
    #[test]
    fn headers_of_preprocessor_lines_have_the_parsers_outline(text in text(line())) {
        prop_assert_eq!(outline(text.as_bytes(), true), outline(text.as_bytes(), false));
        let condensed = super::condense(text.as_bytes(), &|| false).expect("not interrupted");
        prop_assert!(condensed.text().is_empty(), "nothing is left to parse");
    }

    #[test]
    fn declarations_have_the_parsers_outline(text in text(prop_oneof![line(), declaration(), declaration()])) {
        prop_assert_eq!(outline(text.as_bytes(), true), outline(text.as_bytes(), false), "{}", text);
    }

    #[test]
    fn any_bytes_at_all_are_survived(text in prop::collection::vec(any::<u8>(), 0..400)) {
        outline(&text, true);
    }

    #[test]
    fn any_pieces_of_c_are_survived(
        pieces in prop::collection::vec(prop::sample::select(&[
            "{", "}", "(", ")", "[", "]", ";", ",", "=", "*", "#if 0\n", "#if A\n", "#else\n", "#endif\n", "#define A",
            "#define", "struct ", "enum ", "extern \"C\"", "a ", "SYSCALL_DEFINE1", "FOO(", "\"", "'", "/*", "*/", "//",
            "\n", "\\\n", "\\", "\n}", "\n{", "__attribute__", "typedef ", "int ", "\r\n", "\u{e9}",
        ][..]), 0..60)
    ) {
        let text = pieces.concat();
        for symbol in outline(text.as_bytes(), true) {
            prop_assert!(symbol.name.end <= text.len() && symbol.end_line >= symbol.line);
        }
    }
}

#[test]
fn a_condition_inside_a_declaration_leaves_its_first_branch() {
    let text = "#ifdef A\nint first(int a) {\n#else\nint first(void) {\n#endif\n\treturn 1;\n}\n\
                int second(int a\n#ifdef A\n, int b)\n#else\n)\n#endif\n{\n}\nint third;\n";
    assert_eq!(names(text), ["function first", "function second", "variable third"]);
}

#[test]
fn braces_that_do_not_match_hide_one_function_not_the_rest() {
    let text =
        "int first(void) {\n\tif (1) {\n}\n\nint second(void)\n{\n\tif (1) {\n}\n\nint third(void)\n{\n}\n";
    assert_eq!(names(text), ["function first", "function second", "function third"]);
}

#[test]
fn macros_that_stand_for_declarations_do_not_hide_the_next_one() {
    let text = "EXPORT_SYMBOL(first)\nint a;\nstatic DEFINE_MUTEX(lock);\nstatic DECLARE_WORK(work, handler);\n\
                static DEFINE_PER_CPU(struct foo, bar);\nFLAG(A, b) FLAG(C, d)\nstatic int __init start(void) { }\n\
                SYSCALL_DEFINE2(read, int, fd, char __user *, buffer)\n{\n\treturn 0;\n}\nint z __packed;\n";
    let expected =
        ["variable a", "variable lock", "variable work", "function start", "function read", "variable z"];
    assert_eq!(names(text), expected);
}

#[test]
fn attributes_and_groups_do_not_hide_members() {
    let text = "struct __attribute__((packed)) point {\n\tint x __aligned(8);\n\tstruct_group(rest, int y; int z;);\n\
                \tEXTRA_FIELDS\n#ifdef A\n\tint a;\n#endif\n} __packed;\nenum kind { ONE, TWO } __packed;\n";
    let expected = [
        "struct point",
        "field x",
        "field y",
        "field z",
        "field a",
        "enum kind",
        "constant ONE",
        "constant TWO",
    ];
    assert_eq!(names(text), expected);
}

#[test]
fn macros_inside_functions_are_told() {
    assert_eq!(names("int f(void)\n{\n#define INNER 1\n\treturn INNER;\n}\n"), ["function f", "macro INNER"]);
}

//! Telling C++ from C: both call their headers `.h`.

use memchr::memmem;

/// Words that begin a line of C++ and never one of C, and what comes next.
const SIGNS: [(&str, Next); 6] = [
    ("namespace", Next::Name),
    ("class", Next::Name),
    ("template", Next::Byte(b'<')),
    ("public", Next::Byte(b':')),
    ("private", Next::Byte(b':')),
    ("protected", Next::Byte(b':')),
];

#[derive(Clone, Copy)]
enum Next {
    /// A name and the start of a body, a list of bases or a declaration's end.
    Name,
    /// This byte.
    Byte(u8),
}

/// Whether a text that may be C is C++.
pub(crate) fn is_cplusplus(text: &[u8]) -> bool {
    SIGNS.iter().any(|(word, next)| {
        memmem::find_iter(text, word).any(|start| {
            let before = text[..start].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
            let is_first = before.is_none_or(|byte| *byte == b'\n');
            is_first && is_followed(&text[start + word.len()..], *next)
        })
    })
}

fn is_followed(rest: &[u8], next: Next) -> bool {
    let after = rest.trim_ascii_start();
    match next {
        Next::Byte(byte) => after.first() == Some(&byte),
        Next::Name => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
            let length = after.iter().take_while(|byte| is_part(byte)).count();
            let end = after[length..].trim_ascii_start().first();
            rest.first().is_some_and(u8::is_ascii_whitespace)
                && length > 0
                && (matches!(end, Some(b'{' | b';' | b':')) || after[..length].contains(&b':'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_classes_namespaces_or_templates_is_cplusplus() {
        for text in [
            "namespace a::b {\n",
            "#pragma once\n  class Shop;",
            "class Shop : public Base {",
            "template <typename T>\n",
            "struct A {\n public:\n int a;\n};",
            "class Shop\n{\n",
        ] {
            assert!(is_cplusplus(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn c_that_has_the_words_for_names_stays_c() {
        for text in [
            "int class;",
            "\tclass = 3;",
            "\tclass(a, b);",
            "/* a class of things; */",
            "struct template t;",
            "#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
            "\tprivate = file->private_data;",
            "class",
        ] {
            assert!(!is_cplusplus(text.as_bytes()), "{text}");
        }
    }
}

//! Smart case, by ripgrep's rules.

use regex_syntax::ast::{
    Ast, ClassSetItem, Literal, Visitor,
    parse::{Parser, ParserBuilder},
    visit,
};

/// Whether a search for an expression ignores case: it has literals, and none of them is an upper case letter.
pub(crate) fn ignores_case(expression: &str) -> bool {
    let mut parser: Parser = ParserBuilder::new().build();
    let Ok(tree) = parser.parse(expression) else { return false };
    visit(&tree, Literals::default()).unwrap_or(false)
}

#[derive(Default)]
struct Literals {
    any: bool,
    any_upper: bool,
}

impl Literals {
    fn see(&mut self, literal: &Literal) {
        self.any = true;
        self.any_upper |= literal.c.is_uppercase();
    }
}

impl Visitor for Literals {
    type Output = bool;
    type Err = ();

    fn finish(self) -> Result<bool, ()> {
        Ok(self.any && !self.any_upper)
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), ()> {
        if let Ast::Literal(literal) = tree {
            self.see(literal);
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        match item {
            ClassSetItem::Literal(literal) => self.see(literal),
            ClassSetItem::Range(range) => {
                self.see(&range.start);
                self.see(&range.end);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ignores_case;

    #[test]
    fn case_counts_only_where_a_literal_is_in_upper_case() {
        for (expression, expected) in [
            ("foo", true),
            ("Foo", false),
            (r"\w+", false),
            (r"\W+foo", true),
            (r"\pLfoo", true),
            ("[a-z]", true),
            ("[A-z]", false),
            ("straße", true),
            ("É", false),
            ("", false),
            (r"\x41", false),
        ] {
            assert_eq!(ignores_case(expression), expected, "{expression}");
        }
    }
}

//! What replaces a match: a text, with the groups of the match where it names them.

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};

use crate::text_search::{Groups, LineMatcher};

/// A replacement whose references to groups are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Group(usize),
}

impl Template {
    /// A text that is taken as it is.
    pub(crate) fn literal(text: &str) -> Self {
        Self(vec![Part::Text(text.as_bytes().to_vec())])
    }

    /// Reads `$1`, `$name` and `${name}` as groups and `$$` as a dollar. A name is as long as it can be, so `$1_x` is the
    /// group `1_x`. A dollar before anything else stands for itself.
    pub(crate) fn parse(text: &str, matcher: &dyn LineMatcher) -> Result<Self, Fault> {
        let (mut template, mut rest) = (Self::default(), text);
        while let Some((before, after)) = rest.split_once('$') {
            template.add(before);
            rest = match reference(after) {
                Reference::Dollar(after) => {
                    template.add("$");
                    after
                }
                Reference::Group(name, after) => {
                    let group = group_of(name, matcher).ok_or_else(|| no_group(name, matcher))?;
                    template.0.push(Part::Group(group));
                    after
                }
            };
        }
        template.add(rest);
        Ok(template)
    }

    fn add(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Text(last)) => last.extend_from_slice(text.as_bytes()),
            _ => self.0.push(Part::Text(text.as_bytes().to_vec())),
        }
    }

    /// The same with another terminator in place of each newline.
    pub(crate) fn with_terminator(&self, terminator: &[u8]) -> Self {
        let convert = |part: &Part| match part {
            Part::Group(group) => Part::Group(*group),
            Part::Text(text) => {
                let mut converted = Vec::with_capacity(text.len());
                for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
                    if index > 0 {
                        if converted.last() == Some(&b'\r') {
                            converted.pop();
                        }
                        converted.extend_from_slice(terminator);
                    }
                    converted.extend_from_slice(line);
                }
                Part::Text(converted)
            }
        };
        Self(self.0.iter().map(convert).collect())
    }

    /// The length of what replaces a match.
    pub(crate) fn length(&self, groups: &Groups) -> usize {
        let length = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Group(number) => group_in(groups, *number).len(),
        };
        self.0.iter().map(length).sum()
    }

    /// What replaces a match in a text.
    pub(crate) fn expand(&self, text: &[u8], groups: &Groups) -> Vec<u8> {
        let mut expanded = Vec::with_capacity(self.length(groups));
        for part in &self.0 {
            expanded.extend_from_slice(match part {
                Part::Text(text) => text,
                Part::Group(number) => &text[group_in(groups, *number)],
            });
        }
        expanded
    }
}

/// Where a group is; nowhere if it has no part in the match.
fn group_in(groups: &Groups, number: usize) -> Range<usize> {
    groups.get(number).cloned().flatten().unwrap_or_default()
}

/// What a dollar begins, and what follows that.
enum Reference<'a> {
    Dollar(&'a str),
    Group(&'a str, &'a str),
}

fn reference(after: &str) -> Reference<'_> {
    if let Some(rest) = after.strip_prefix('$') {
        return Reference::Dollar(rest);
    }
    if let Some((name, rest)) = after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
        return Reference::Group(name, rest);
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    match after.find(|letter| !is_name(letter)).unwrap_or(after.len()) {
        0 => Reference::Dollar(after),
        end => Reference::Group(&after[..end], &after[end..]),
    }
}

/// The number of a group, by its number or name.
fn group_of(name: &str, matcher: &dyn LineMatcher) -> Option<usize> {
    match name.parse() {
        Ok(number) => (number < matcher.groups()).then_some(number),
        Err(_) => matcher.group(name),
    }
}

fn no_group(name: &str, matcher: &dyn LineMatcher) -> Fault {
    let message = format!("`replacement` names the group `{name}`, which `query` does not have");
    // `$1_x` is read as one name, but most often the group 1 and `_x` are meant.
    let begins = (1..name.len()).rev().filter(|end| name.is_char_boundary(*end));
    let meant = begins.map(|end| name.split_at(end)).find(|(group, _)| group_of(group, matcher).is_some());
    let count = matcher.groups() - 1;
    let hint = match meant {
        Some((group, rest)) => {
            format!("write `${{{group}}}{rest}` for the group `{group}` and then `{rest}`")
        }
        None if count == 0 => "put `( )` around the part of `query` that is meant".to_owned(),
        None if count == 1 => "the only group is `$1`".to_owned(),
        None => format!("its groups are `$1` to `${count}`"),
    };
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint(format!("{hint}; `$0` is the whole match, `$$` is a dollar"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_search::MatchError;

    /// An expression with the group 1 and the group 2, which is called `name`.
    struct TwoGroups;

    impl LineMatcher for TwoGroups {
        fn groups(&self) -> usize {
            3
        }

        fn group(&self, name: &str) -> Option<usize> {
            (name == "name").then_some(2)
        }

        fn find(&self, _: &[u8], _: u64, _: &mut dyn FnMut(&Groups)) -> Result<(), MatchError> {
            Ok(())
        }
    }

    fn expanded(template: &str) -> Result<String, String> {
        let template = Template::parse(template, &TwoGroups)
            .map_err(|fault| format!("{}; {}", fault.message, fault.hint.clone().unwrap_or_default()))?;
        let groups = [Some(0..5), Some(0..2), Some(3..5)];
        let expanded = template.expand(b"ab-cd", &groups);
        assert_eq!(template.length(&groups), expanded.len());
        Ok(String::from_utf8(expanded).expect("text"))
    }

    #[test]
    fn groups_are_named_as_in_the_regex_crate() {
        for (template, expected) in [
            ("", ""),
            ("x", "x"),
            ("$1", "ab"),
            ("$2$1", "cdab"),
            ("$0!", "ab-cd!"),
            ("${1}_x", "ab_x"),
            ("${name}s", "cds"),
            ("$name.", "cd."),
            ("$$1", "$1"),
            ("$", "$"),
            ("$-", "$-"),
            ("${1", "${1"),
            ("$$$1", "$ab"),
            ("é$1é", "éabé"),
        ] {
            assert_eq!(expanded(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn a_group_that_is_not_there_is_named_with_what_may_be_meant() {
        for (template, expected) in [
            ("$1_x", "`${1}_x`"),
            ("$name_of", "`${name}_of`"),
            ("$3", "`$1` to `$2`"),
            ("${}", "the group ``"),
            ("$nam", "`nam`"),
            ("${1 }", "the group `1 `"),
        ] {
            let refused = expanded(template).expect_err(template);
            assert!(refused.contains(expected), "{template}: {refused}");
        }
    }

    #[test]
    fn a_newline_becomes_the_terminator_of_the_file() {
        let template = Template::parse("a\n$1\r\nb", &TwoGroups).expect("a template");
        let groups = [Some(0..2), Some(0..2), None];
        for (terminator, expected) in [("\n", "a\nxy\nb"), ("\r\n", "a\r\nxy\r\nb")] {
            let expanded = template.with_terminator(terminator.as_bytes()).expand(b"xy", &groups);
            assert_eq!(String::from_utf8(expanded).expect("text"), expected);
        }
    }
}

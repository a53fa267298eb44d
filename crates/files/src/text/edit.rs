//! Edits of whole lines, planned as splices of bytes. Each reads the file in one pass. Line numbers from the end need a
//! pass before that to count the lines, and an edit that does not match needs one more to explain why.

use pintle_contract::Fault;

use super::{
    find::{Finder, Occurrence, is_line, lines_of, lines_to_find},
    range::{RangeError, known_range, resolve_line, resolve_range},
    survey::{LineWindow, Survey, Terminator, count_lines, survey},
};
use crate::{
    store::{Plan, Source, Splice, StoreError},
    teach::{self, Given},
};

/// A planned edit, and how many lines the file will have.
pub(crate) struct Edit {
    pub(crate) plan: Plan,
    pub(crate) total_lines: u64,
}

/// Replaces `old`, which has to occur exactly once in the range of lines, with `new`.
pub(crate) fn replace(
    source: &dyn Source,
    lines: [i64; 2],
    old: &str,
    new: &str,
    has_ended: &dyn Fn() -> bool,
) -> Result<Edit, StoreError> {
    // A range that is not valid is resolved again, and reported, after the whole file was read.
    let range = match known_range(lines) {
        Some(range) => range,
        None => resolve_range(lines, count_lines(source, has_ended)?).unwrap_or(0..0),
    };
    let mut finder = Finder::new(lines_to_find(old));
    let window = LineWindow { lines: range, longest: finder.longest() };
    let found = survey(source, window, has_ended, &mut |line| {
        finder.take(&line);
        Ok(())
    })?;
    if let Some(fault) = not_text(&found) {
        return Ok(refused(&found, fault));
    }
    let range = match resolve_range(lines, found.lines) {
        Ok(range) => range,
        Err(problem) => return Ok(refused(&found, bad_line(&problem, &found))),
    };
    let change = match (finder.count, finder.found.first()) {
        (1, Some(occurrence)) => Ok(vec![replacement(occurrence, new, &found)]),
        (0, _) => Err(teach::not_as_given(source, &range, (Given::Old, old), has_ended)?),
        (count, _) => Err(teach::ambiguous(count, &finder.found)),
    };
    let total_lines = (found.lines + line_count(new)).saturating_sub(lines_of(old).len() as u64);
    Ok(Edit { plan: Plan { found: found.hash, change }, total_lines })
}

/// Inserts lines before a line, which has to be `anchor`.
pub(crate) fn insert(
    source: &dyn Source,
    line: i64,
    anchor: &str,
    content: &str,
    has_ended: &dyn Fn() -> bool,
) -> Result<Edit, StoreError> {
    let number = match u64::try_from(line) {
        Ok(number) => number,
        Err(_) => resolve_line(line, count_lines(source, has_ended)?).unwrap_or(0),
    };
    let mut line_found = None;
    let mut is_anchor = false;
    let window = LineWindow { lines: number..number.saturating_add(1), longest: anchor.len() };
    let found = survey(source, window, has_ended, &mut |line| {
        is_anchor = is_line(anchor.as_bytes(), &line);
        line_found = Some((line.start, line.terminator));
        Ok(())
    })?;
    if let Some(fault) = not_text(&found) {
        return Ok(refused(&found, fault));
    }
    if let Err(problem) = resolve_line(line, found.lines) {
        let fault = teach::bad_range(&problem).hint("text.append adds lines after the last");
        return Ok(refused(&found, fault));
    }
    let change = match line_found {
        Some((start, terminator)) if is_anchor => {
            let terminator = or_file(terminator, &found);
            let inserted = ended_lines(content, terminator);
            Ok(vec![Splice { start, removed: 0, inserted }])
        }
        _ => Err(teach::not_as_given(source, &(number..number + 1), (Given::Anchor, anchor), has_ended)?),
    };
    let total_lines = found.lines + line_count(content);
    Ok(Edit { plan: Plan { found: found.hash, change }, total_lines })
}

/// Appends lines at the end.
pub(crate) fn append(
    source: &dyn Source,
    content: &str,
    has_ended: &dyn Fn() -> bool,
) -> Result<Edit, StoreError> {
    let found = survey(source, LineWindow::NONE, has_ended, &mut |_| Ok(()))?;
    if let Some(fault) = not_text(&found) {
        return Ok(refused(&found, fault));
    }
    let terminator = found.terminator();
    let mut inserted = Vec::new();
    let ends_open = found.size > 0 && found.last == Terminator::None;
    if ends_open && !content.is_empty() {
        inserted.extend_from_slice(terminator.bytes());
    }
    inserted.extend(ended_lines(content, terminator));
    if ends_open && !content.is_empty() {
        // A file without a final terminator stays without one.
        inserted.truncate(inserted.len() - terminator.bytes().len());
        inserted.extend_from_slice(open_end(content, terminator));
    }
    let change = Ok(vec![Splice { start: found.size, removed: 0, inserted }]);
    let total_lines = found.lines + line_count(content);
    Ok(Edit { plan: Plan { found: found.hash, change }, total_lines })
}

fn replacement(occurrence: &Occurrence, new: &str, survey: &Survey) -> Splice {
    let terminator = or_file(occurrence.first, survey);
    let mut inserted = ended_lines(new, terminator);
    if !inserted.is_empty() {
        // The last line keeps its own terminator.
        inserted.truncate(inserted.len() - terminator.bytes().len());
        inserted.extend_from_slice(match occurrence.last {
            Terminator::None => open_end(new, terminator),
            last => last.bytes(),
        });
    }
    Splice { start: occurrence.start, removed: occurrence.end - occurrence.start, inserted }
}

/// The terminator of the last line of a file without a final one: none, unless the line is empty, because an empty
/// line without a terminator would not be a line.
fn open_end(text: &str, terminator: Terminator) -> &'static [u8] {
    match lines_of(text.strip_suffix('\n').unwrap_or(text)).last() {
        Some(last) if !last.is_empty() => b"",
        _ => terminator.bytes(),
    }
}

fn or_file(terminator: Terminator, survey: &Survey) -> Terminator {
    if terminator == Terminator::None { survey.terminator() } else { terminator }
}

/// The lines of a caller's text, each with the terminator. One newline at the end of the text is ignored, so the
/// empty text has no lines and `"\n"` has one empty line.
fn ended_lines(text: &str, terminator: Terminator) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() + 2);
    for line in lines_of(text) {
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(terminator.bytes());
    }
    bytes
}

fn bad_line(problem: &RangeError, survey: &Survey) -> Fault {
    let fault = teach::bad_range(problem);
    if survey.lines == 0 { fault.hint("text.append adds the first lines") } else { fault }
}

fn not_text(survey: &Survey) -> Option<Fault> {
    survey.not_text.map(teach::not_text)
}

/// How many lines a caller's text has.
fn line_count(text: &str) -> u64 {
    if text.is_empty() { 0 } else { lines_of(text.strip_suffix('\n').unwrap_or(text)).len() as u64 }
}

fn refused(survey: &Survey, fault: Fault) -> Edit {
    Edit { plan: Plan { found: survey.hash, change: Err(fault) }, total_lines: survey.lines }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hash::Hash, store::spliced, text::read};
    use proptest::prelude::*;

    struct Bytes<'a>(&'a [u8]);

    impl Source for Bytes<'_> {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[usize::try_from(offset).expect("small").min(self.0.len())..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }
    }

    /// The message of an edit that is refused.
    #[derive(Debug, PartialEq)]
    struct Refusal(String);

    /// What an edit makes of a text, and how many lines it says there are.
    fn apply(text: &str, edit: Result<Edit, StoreError>) -> Result<(String, u64), Refusal> {
        let edit = edit.expect("the text can be read");
        assert_eq!(edit.plan.found, Hash::of(text.as_bytes()));
        let splices = edit.plan.change.map_err(|fault| Refusal(fault.message.clone()))?;
        let bytes = spliced(text.as_bytes(), &splices);
        Ok((String::from_utf8(bytes).expect("text"), edit.total_lines))
    }

    fn replaced(text: &str, lines: [i64; 2], old: &str, new: &str) -> Result<String, Refusal> {
        apply(text, replace(&Bytes(text.as_bytes()), lines, old, new, &|| false)).map(|(text, _)| text)
    }

    fn inserted(text: &str, line: i64, anchor: &str, content: &str) -> Result<String, Refusal> {
        apply(text, insert(&Bytes(text.as_bytes()), line, anchor, content, &|| false)).map(|(text, _)| text)
    }

    fn appended(text: &str, content: &str) -> String {
        apply(text, append(&Bytes(text.as_bytes()), content, &|| false)).expect("appends").0
    }

    #[test]
    fn lines_are_replaced_with_the_ends_that_the_file_has() {
        for (text, lines, old, new, expected) in [
            ("a\nb\nc\n", [2, 3], "b", "x", "a\nx\nc\n"),
            ("a\nb\r", [1, 0], "b\r", "x", "a\nx"),
            ("a\r\nb\r\n", [1, 0], "a\r\nb\r", "x", "x\r\n"),
            ("a\nb\nc\n", [1, 0], "b\nc", "x\ny\nz", "a\nx\ny\nz\n"),
            ("a\nb\nc\n", [-1, 0], "c", "x\n", "a\nb\nx\n"),
            ("a\nb\nc", [-1, 0], "c", "x", "a\nb\nx"),
            ("a\nb\nc", [3, 0], "c", "x\ny", "a\nb\nx\ny"),
            ("a\r\nb\r\n", [1, 0], "a\nb", "x\ny", "x\r\ny\r\n"),
            ("a\r\nb\r\n", [1, 0], "a\r\nb", "x\r\ny\r\n", "x\r\ny\r\n"),
            ("a\nb\r\nc\n", [2, 3], "b", "x\ny", "a\nx\r\ny\r\nc\n"),
            ("a\nb\n", [1, 0], "a", "", "b\n"),
            ("a\nb", [2, 0], "b", "", "a\n"),
            ("a\nb\n", [1, 0], "a", "\n", "\nb\n"),
            ("\n\na\n", [1, 2], "", "x", "x\n\na\n"),
            ("a", [1, 0], "a", "b", "b"),
        ] {
            assert_eq!(replaced(text, lines, old, new).as_deref(), Ok(expected), "{text:?} {old:?} {new:?}");
        }
    }

    #[test]
    fn lines_are_inserted_and_appended_with_the_ends_that_the_file_has() {
        for (text, line, anchor, content, expected) in [
            ("a\nb\n", 1, "a", "x", "x\na\nb\n"),
            ("a\nb\n", -1, "b", "x\ny\n", "a\nx\ny\nb\n"),
            ("a\r\nb", 2, "b", "x", "a\r\nx\r\nb"),
            ("a", 1, "a", "x", "x\na"),
            ("a\n", 1, "a", "\n", "\na\n"),
        ] {
            assert_eq!(inserted(text, line, anchor, content).as_deref(), Ok(expected), "{text:?}");
        }
        for (text, content, expected) in [
            ("", "x", "x\n"),
            ("", "x\ny\n", "x\ny\n"),
            ("a\n", "x", "a\nx\n"),
            ("a", "x", "a\nx"),
            ("a\r\nb", "x\ny", "a\r\nb\r\nx\r\ny"),
            ("a\r\n", "x", "a\r\nx\r\n"),
            ("a\n", "", "a\n"),
            ("a", "", "a"),
            ("a\n", "\n", "a\n\n"),
        ] {
            assert_eq!(appended(text, content), expected, "{text:?} {content:?}");
        }
    }

    #[test]
    fn what_does_not_match_is_reported_with_what_is_there_instead() {
        let text = "fn main() {\n    let x = 1;\n    let y = 2;\n    let x = 1;\n}\n";
        for (lines, old, expected) in [
            ([1, 2], "    let y = 2;", "line 1 is `fn main() {`, not `    let y = 2;`; that is at line 3"),
            ([1, 0], "    let x = 1;", "2 times, at lines 2 and 4"),
            (
                [1, 0],
                "let y = 2;",
                "the nearest is line 3, `    let y = 2;`, which differs in its indentation",
            ),
            ([1, 0], "    Let Y = 2;", "line 3, `    let y = 2;`, which differs in upper and lower case"),
            ([1, 0], "    let  y = 2;", "line 3, `    let y = 2;`, which differs in its whitespace"),
            ([1, 0], "}\n", "at line 5, except for the newline at their end"),
            ([1, 0], "}\nx", "begin at line 5, but the file ends with line 5, without `x`"),
            (
                [3, 4],
                "    let y = 2;\n    let x = 1;",
                "are lines 3 to 4, which are not all in the range `lines`",
            ),
            ([1, 0], "y = 2", "`y = 2` is not among lines 1 to 5; the nearest is line 3"),
            ([1, 0], "y = 2", "contains it, but the whole line has to be given"),
            ([1, 0], "    let y = 3;", "the nearest is line 3, `    let y = 2;`, which is similar"),
            ([2, 4], "    let x = 1;\n    let y = 9;", "begin at line 2, but line 3 is `    let y = 2;`"),
            (
                [1, 0],
                "    let y = 2;\n    let z = 1;",
                "begin at line 3, but line 4 is `    let x = 1;`, not `    let z = 1;`",
            ),
            ([9, 0], "x", "line 9 is past the last: the file has 5 lines"),
            ([3, 3], "x", "contains no line"),
        ] {
            let Refusal(message) = replaced(text, lines, old, "z").expect_err(old);
            assert!(message.contains(expected), "{message}");
        }
        let Refusal(message) = inserted(text, 2, "    let y = 2;", "z").expect_err("another line");
        assert!(message.contains("line 2 is `    let x = 1;`") && message.contains("at line 3"), "{message}");
        assert!(inserted("", 1, "", "z").expect_err("empty").0.contains("empty"));
        assert!(inserted("a\n", 0, "a", "z").expect_err("no such line").0.contains("no line 0"));
        assert!(replaced("", [1, 0], "", "z").expect_err("empty").0.contains("empty"));
    }

    /// The lines of a text, in the plainest way: with their ends.
    fn plain(text: &str) -> Vec<String> {
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

        #[test]
        fn an_edit_does_what_it_does_to_a_plain_list_of_lines(
            text in "([ab]{0,2}(\n|\r\n)){0,6}[ab]{0,2}",
            new in "([xy]{0,2}\n){0,3}[xy]{0,2}",
            start in 0usize..6,
            length in 1usize..4,
        ) {
            let lines = plain(&text);
            let bare = |line: &String| line.trim_end_matches('\n').trim_end_matches('\r').to_owned();
            let new_lines: Vec<&str> = match new.as_str() {
                "" => Vec::new(),
                new => new.strip_suffix('\n').unwrap_or(new).split('\n').collect(),
            };
            if start < lines.len() {
                let end = (start + length).min(lines.len());
                let old = lines[start..end].iter().map(bare).collect::<Vec<_>>().join("\n");
                let range = [start as i64 + 1, end as i64 + 1];
                let (result, total) = apply(&text, replace(&Bytes(text.as_bytes()), range, &old, &new, &|| false))
                    .expect("replaces");
                let found = plain(&result);
                prop_assert_eq!(total, found.len() as u64);
                // Nothing outside the lines has changed, and the lines are the new ones.
                prop_assert_eq!(&found[..start], &lines[..start]);
                prop_assert_eq!(&found[found.len() - (lines.len() - end)..], &lines[end..]);
                let between: Vec<String> =
                    found[start..found.len() - (lines.len() - end)].iter().map(bare).collect();
                prop_assert_eq!(between, new_lines.clone());
                let counted_from_end = start as i64 - lines.len() as i64;
                for line in [start as i64 + 1, counted_from_end] {
                    let anchor = bare(&lines[start]);
                    let edit = insert(&Bytes(text.as_bytes()), line, &anchor, &new, &|| false);
                    let (result, total) = apply(&text, edit).expect("inserts");
                    let found = plain(&result);
                    prop_assert_eq!(total, found.len() as u64);
                    prop_assert_eq!(&found[..start], &lines[..start]);
                    prop_assert_eq!(&found[start + new_lines.len()..], &lines[start..]);
                    let between: Vec<String> = found[start..start + new_lines.len()].iter().map(bare).collect();
                    prop_assert_eq!(between, new_lines.clone());
                }
            }
            let (result, total) = apply(&text, append(&Bytes(text.as_bytes()), &new, &|| false)).expect("appends");
            prop_assert!(result.starts_with(&text));
            prop_assert_eq!(total, plain(&result).len() as u64);
            if !text.is_empty() && new_lines.last().is_some_and(|last| !last.is_empty()) {
                prop_assert_eq!(result.ends_with('\n'), text.ends_with('\n'));
            }
            let whole = read(&Bytes(text.as_bytes()), [1, 0], &|| false).expect("reads");
            prop_assert_eq!(whole.content, text);
        }
    }
}

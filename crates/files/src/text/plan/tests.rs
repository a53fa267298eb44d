use proptest::prelude::*;

use super::*;
use crate::{store::spliced, text::read};

/// The message of an edit that is refused.
#[derive(Debug, PartialEq)]
struct Refusal(String);

/// What edits make of a text, and how many lines they say there are; or what is wrong with which of them.
fn edited(text: &str, changes: &[Change]) -> Result<(String, u64), Vec<(usize, String)>> {
    let source = text.as_bytes().to_vec();
    let planned = plan(&source, changes, &Hash::of(&source).into(), &mut Used::default(), &|| false)
        .expect("the text can be read");
    assert_eq!(planned.found, Hash::of(&source));
    let told = |problems: Vec<Problem>| {
        problems.into_iter().map(|problem| (problem.entry, problem.fault.message.clone())).collect::<Vec<_>>()
    };
    let edit = planned.change.map_err(told)?;
    assert_eq!(edit.splices.len(), edit.lines.len());
    let bytes = spliced(&source, &edit.splices);
    Ok((String::from_utf8(bytes).expect("text"), edit.total_lines))
}

fn apply(text: &str, change: Change) -> Result<(String, u64), Refusal> {
    edited(text, &[change]).map_err(|mut problems| Refusal(problems.remove(0).1))
}

fn replace(lines: impl Into<Option<[i64; 2]>>, old: &str, new: &str) -> Change {
    let (lines, old, new) = (lines.into(), Some(old.to_owned()), new.to_owned());
    Change::Replace(Replace { lines, old, new, ..Replace::default() })
}

fn replace_lines(lines: [i64; 2], new: &str) -> Change {
    Change::Replace(Replace { lines: Some(lines), new: new.to_owned(), ..Replace::default() })
}

fn replace_all(old: &str, new: &str) -> Change {
    let Change::Replace(change) = replace(None, old, new) else { unreachable!() };
    Change::Replace(Replace { all: true, ..change })
}

fn within(change: Change) -> Change {
    match change {
        Change::Replace(replace) => Change::Replace(Replace { within: true, ..replace }),
        other => other,
    }
}

fn insert(line: i64, anchor: impl Into<Option<&'static str>>, content: &str) -> Change {
    Change::Insert { line, anchor: anchor.into().map(str::to_owned), content: content.to_owned() }
}

fn append(content: &str) -> Change {
    Change::Append { content: content.to_owned() }
}

fn replaced(text: &str, lines: [i64; 2], old: &str, new: &str) -> Result<String, Refusal> {
    apply(text, replace(lines, old, new)).map(|(text, _)| text)
}

fn inserted(text: &str, line: i64, anchor: &'static str, content: &str) -> Result<String, Refusal> {
    apply(text, insert(line, anchor, content)).map(|(text, _)| text)
}

fn appended(text: &str, content: &str) -> String {
    apply(text, append(content)).expect("appends").0
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
        ([1, 0], "let y = 2;", "the nearest is line 3, `    let y = 2;`, which differs in its indentation"),
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

#[test]
fn lines_alone_are_replaced_by_their_numbers_and_old_alone_is_searched_in_the_whole_file() {
    for (text, change, expected) in [
        ("a\nb\nc\n", replace_lines([2, 3], "x\ny"), "a\nx\ny\nc\n"),
        ("a\nb\nc\n", replace_lines([-1, 0], ""), "a\nb\n"),
        ("a\nb\nc", replace_lines([2, 0], "x"), "a\nx"),
        ("a\r\nb\r\n", replace_lines([1, 9], "x\ny"), "x\r\ny\r\n"),
        ("a\nb\nc\n", replace(None, "c", "x"), "a\nb\nx\n"),
        ("a\nb\n", insert(2, None, "x"), "a\nx\nb\n"),
        ("a\r\nb", insert(-1, None, "x"), "a\r\nx\r\nb"),
    ] {
        assert_eq!(apply(text, change).map(|(text, _)| text).as_deref(), Ok(expected), "{text:?}");
    }
    for (lines, expected) in [([4, 5], "line 4 is past the last"), ([2, 2], "contains no line")] {
        let Refusal(message) = apply("a\nb\nc\n", replace_lines(lines, "x")).expect_err("no such lines");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn every_occurrence_is_replaced_from_left_to_right_without_overlaps() {
    for (text, change, expected) in [
        ("a\nb\na\n", replace_all("a", "x"), "x\nb\nx\n"),
        ("a\na\na\n", replace_all("a\na", "x"), "x\na\n"),
        ("a\nb\na", replace_all("a", ""), "b\n"),
        ("aaaaa b\n", within(replace_all("aa", "x")), "xxa b\n"),
        ("a.a\r\na\r\n", within(replace_all("a", "\n")), "\r\n.\r\n\r\n\r\n\r\n"),
        ("one\ntwo\n", within(replace_all("\n", ", ")), "one, two, "),
    ] {
        let (result, total) = apply(text, change).expect("replaces");
        assert_eq!(result, expected, "{text:?}");
        assert_eq!(total, plain(&result).len() as u64, "{result:?}");
    }
}

#[test]
fn text_within_lines_is_replaced_as_it_is() {
    for (text, change, expected) in [
        ("let a = 1;\n", within(replace(None, "a = 1", "b = 2")), "let b = 2;\n"),
        ("let a = 1;\n", within(replace(None, " = 1", "")), "let a;\n"),
        ("a\r\nb\r\nc\r\n", within(replace(None, "a\nb", "x\ny\nz")), "x\r\ny\r\nz\r\nc\r\n"),
        ("a\nb\r\n", within(replace(None, "b\n", "c\n")), "a\nc\r\n"),
        ("a\nb\n", within(replace(None, "a\n", "")), "b\n"),
        ("a b\na c\n", within(replace([2, 3], "a", "x")), "a b\nx c\n"),
        ("a", within(replace(None, "a", "")), ""),
        ("a\nb", within(replace(None, "\nb", "")), "a"),
    ] {
        let (result, total) = apply(text, change).expect("replaces");
        assert_eq!(result, expected, "{text:?}");
        assert_eq!(total, plain(&result).len() as u64, "{result:?}");
    }
    for (text, change, expected) in [
        ("aaa\n", within(replace(None, "aa", "x")), "`old` is there 2 times, at line 1"),
        ("a b\na c\n", within(replace([2, 3], "b", "x")), "is not in line 2; that is at line 1"),
        (
            "Let a\n",
            within(replace(None, "let a", "x")),
            "the nearest is line 1, `Let a`, which differs in upper",
        ),
        ("a b\n", within(replace(None, "zzzz", "x")), "`zzzz` is not in line 1"),
        ("let a = 1;\n", replace(None, "a = 1", "x"), "contains it, but the whole line has to be given"),
    ] {
        let Refusal(message) = apply(text, change).expect_err(expected);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn all_edits_mean_the_same_version_in_any_order() {
    let text = "a\nb\nc\nd\n";
    let changes = [
        append("y"),
        replace(None, "c", "C1\nC2"),
        insert(2, "b", "first"),
        replace_lines([1, 2], ""),
        insert(2, None, "second"),
        append("z"),
        // The first line of a range, and the one right behind it.
        insert(3, "c", "before c"),
        insert(4, "d", "behind c"),
    ];
    let expected = "first\nsecond\nb\nbefore c\nC1\nC2\nbehind c\nd\ny\nz\n";
    assert_eq!(edited(text, &changes), Ok((expected.to_owned(), 10)));
}

#[test]
fn a_file_without_a_last_newline_is_appended_to_behind_its_replaced_last_line() {
    for (last, appended, expected) in [
        ("x", vec!["y"], "a\nx\ny"),
        ("", vec!["y"], "a\ny"),
        ("x\n\n", vec!["y"], "a\nx\n\ny"),
        ("x", vec![""], "a\nx"),
        ("x", vec!["y", "z"], "a\nx\ny\nz"),
        ("x", vec!["\n", "z"], "a\nx\n\nz\n"),
    ] {
        let mut changes: Vec<Change> = appended.into_iter().map(append).collect();
        changes.push(replace(None, "b", last));
        let (result, total) = edited("a\nb", &changes).expect("edits");
        assert_eq!(result, expected, "{last:?}");
        assert_eq!(total, plain(&result).len() as u64, "{result:?}");
    }
}

#[test]
fn edits_that_overlap_are_reported_with_everything_else_that_is_wrong() {
    let text = "a\nb\nc\nd\n";
    let changes = [
        replace_lines([1, 4], "x"),
        replace(None, "z", "x"),
        replace(None, "c", "x"),
        insert(2, None, "x"),
        insert(9, None, "x"),
        insert(4, None, "x"),
        insert(1, "b", "x"),
    ];
    let problems = edited(text, &changes).expect_err("much is wrong");
    let entries: Vec<usize> = problems.iter().map(|(entry, _)| *entry).collect();
    assert_eq!(entries, [1, 2, 3, 4, 6], "{problems:?}");
    assert!(problems[1].1.contains("line 3, which overlaps lines 1 to 3"), "{problems:?}");
    assert!(problems[2].1.contains("the place before line 2, which overlaps lines 1 to 3"), "{problems:?}");
}

#[test]
fn a_stale_hash_is_answered_with_the_hash_only_where_the_caller_knows_the_file() {
    let source = b"a\nb\na\n".to_vec();
    let current = Hash::of(&source).to_string();
    let changes = [
        replace([3, 0], "b", "x"),
        replace(None, "a", "x"),
        replace(None, "z", "x"),
        replace_lines([1, 2], "x"),
        insert(1, "b", "x"),
        append("x"),
        within(replace(None, "\nb", "x")),
    ];
    let planned = plan(&source, &changes, &Hash::of(b"another").into(), &mut Used::default(), &|| false)
        .expect("reads");
    let problems = planned.change.err().expect("it is stale");
    assert_eq!(problems.len(), changes.len());
    for (problem, lines) in problems.iter().zip([
        Some("line 2"),
        Some("lines 1 and 3"),
        None,
        None,
        Some("line 2"),
        None,
        Some("line 1"),
    ]) {
        assert_eq!(problem.fault.code, pintle_contract::ErrorCode::Conflict);
        let told = problem.fault.to_string();
        assert_eq!(told.contains(&current), lines.is_some(), "{told}");
        assert!(told.contains(lines.unwrap_or("read it again")), "{told}");
    }
}

#[test]
fn a_flood_of_new_content_is_refused() {
    let text = "a".repeat(70_000);
    let change = within(replace_all("a", &"x".repeat(1000)));
    let Refusal(message) = apply(&text, change).expect_err("70 MB are too much");
    assert!(message.contains("the new content has 70000000 bytes"), "{message}");
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
            let (result, total) = apply(&text, replace(range, &old, &new)).expect("replaces");
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
                let edit = Change::Insert { line, anchor: Some(anchor.clone()), content: new.clone() };
                let (result, total) = apply(&text, edit).expect("inserts");
                let found = plain(&result);
                prop_assert_eq!(total, found.len() as u64);
                prop_assert_eq!(&found[..start], &lines[..start]);
                prop_assert_eq!(&found[start + new_lines.len()..], &lines[start..]);
                let between: Vec<String> = found[start..start + new_lines.len()].iter().map(bare).collect();
                prop_assert_eq!(between, new_lines.clone());
            }
        }
        let (result, total) = apply(&text, append(&new)).expect("appends");
        prop_assert!(result.starts_with(&text));
        prop_assert_eq!(total, plain(&result).len() as u64);
        if !text.is_empty() && new_lines.last().is_some_and(|last| !last.is_empty()) {
            prop_assert_eq!(result.ends_with('\n'), text.ends_with('\n'));
        }
        let whole = read(&text.as_bytes().to_vec(), [1, 0], &|| false).expect("reads");
        prop_assert_eq!(whole.content, text);
    }
}

/// What one edit after the other makes of a text, from the bottom to the top: the plainest way to make several edits that
/// all mean the same version. None if one of them has no place any more.
fn edited_by_hand(text: &str, changes: &[Change]) -> Option<String> {
    let mut order: Vec<(i64, u8, usize)> = changes
        .iter()
        .enumerate()
        .map(|(number, change)| match change {
            // Appends come first, in the order given; of inserts before a line the last one given does.
            Change::Append { .. } => (i64::MIN, 0, number),
            Change::Insert { line, .. } => (-line, 1, usize::MAX - number),
            Change::Replace(replace) => (-replace.lines.map_or(0, |lines| lines[0]), 0, number),
        })
        .collect();
    order.sort_unstable();
    order.into_iter().try_fold(text.to_owned(), |text, (.., number)| {
        let change = changes.get(number).or(changes.get(usize::MAX - number))?;
        apply(&text, change.clone()).ok().map(|(text, _)| text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..Default::default() })]

    #[test]
    fn several_edits_do_what_one_after_the_other_does_from_the_bottom_to_the_top(
        lines in proptest::collection::vec("[ab]{0,2}", 1..8),
        is_open in any::<bool>(),
        steps in proptest::collection::vec((0i64..3, 0u8..3, 1i64..4, "([xy]{0,2}\n){0,2}[xy]{0,2}"), 0..6),
        appended in proptest::collection::vec("([xy]{0,2}\n){0,2}[xy]{0,2}", 0..3),
        seed in any::<prop::sample::Index>(),
    ) {
        let mut text = lines.join("\n");
        // An open last line is not empty.
        if !is_open || lines.last().is_none_or(String::is_empty) {
            text.push('\n');
        }
        let total = lines.len() as i64;
        let (mut changes, mut next) = (Vec::new(), 1);
        for (gap, kind, length, new) in steps {
            let line = next + gap;
            if line > total {
                break;
            }
            let end = (line + length).min(total + 1);
            next = if kind == 0 { line } else { end };
            changes.push(match kind {
                0 => insert(line, None, &new),
                1 => replace_lines([line, end], &new),
                _ => replace([line, end], &lines[line as usize - 1..end as usize - 1].join("\n"), &new),
            });
        }
        changes.extend(appended.iter().map(|content| append(content)));
        if !changes.is_empty() {
            let middle = seed.index(changes.len());
            changes.rotate_left(middle);
        }
        if let Some(expected) = edited_by_hand(&text, &changes) {
            let (result, total) = edited(&text, &changes).expect("they do not overlap");
            prop_assert_eq!(&result, &expected, "{:?} {:?}", text, changes);
            prop_assert_eq!(total, plain(&result).len() as u64);
        }
    }
}

#[test]
fn all_edits_of_a_call_together_replace_only_so_many_places() {
    let source = "ab".repeat(MAX_REPLACED / 2 + 1).into_bytes();
    let found = Hash::of(&source);
    let changes = ["a", "b"].map(|old| within(replace_all(old, "")));
    for (changes, mut used, expected) in [
        (&changes[..], Used::default(), Some(1)),
        (&changes[..1], Used::default(), None),
        (&changes[..1], Used { replaced: MAX_REPLACED as u64 / 2, ..Used::default() }, Some(0)),
    ] {
        let planned = plan(&source, changes, &found.into(), &mut used, &|| false).expect("reads");
        let problems = planned.change.err().unwrap_or_default();
        assert_eq!(problems.first().map(|problem| problem.entry), expected);
        assert!(problems.iter().all(|problem| problem.fault.message.contains("at most 1000000")));
    }
}

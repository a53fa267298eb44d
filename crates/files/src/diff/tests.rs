use std::{fs, process::Command};

use proptest::prelude::*;

use super::*;
use crate::store::spliced;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("a path")
}

/// The diff of splices, as a call returns it.
fn diff_of(text: &str, splices: &[Splice]) -> String {
    let lines: Vec<u64> =
        splices.iter().map(|splice| 1 + text[..splice.start as usize].matches('\n').count() as u64).collect();
    let source = text.as_bytes().to_vec();
    join([of_edit(&source, &path("a.txt"), splices, &lines, &|| false).expect("reads")])
}

fn splice(start: u64, removed: u64, inserted: &str) -> Splice {
    Splice { start, removed, inserted: inserted.as_bytes().to_vec() }
}

#[test]
fn changes_near_each_other_share_a_hunk() {
    let text: String = (1..=30).map(|number| format!("{number}\n")).collect();
    let at = |number: u64| text.find(&format!("\n{number}\n")).expect("a line") as u64 + 1;
    let splices = [splice(at(5), 2, "five\n"), splice(at(12), 3, "twelve\n"), splice(at(20), 0, "new\n")];
    let expected = "\
--- a/a.txt
+++ b/a.txt
@@ -2,14 +2,14 @@
 2
 3
 4
-5
+five
 6
 7
 8
 9
 10
 11
-12
+twelve
 13
 14
 15
@@ -17,6 +17,7 @@
 17
 18
 19
+new
 20
 21
 22
";
    assert_eq!(diff_of(&text, &splices), expected);
}

#[test]
fn only_lines_that_differ_are_shown_as_changed() {
    let text = "a\nb\nc\n";
    let diff = diff_of(text, &[splice(0, 4, "a\nx\nb\n")]);
    assert_eq!(diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n");
    assert_eq!(diff_of(text, &[splice(2, 2, "b\n")]), "");
}

#[test]
fn a_missing_last_newline_is_shown_as_git_shows_it() {
    let diff = diff_of("a\nb", &[splice(3, 0, "\nc")]);
    let end = "\\ No newline at end of file\n";
    assert_eq!(diff, format!("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n a\n-b\n{end}+b\n+c\n{end}"));
}

#[test]
fn long_lines_are_cut_and_marked() {
    let text = format!("{}é\n", "x".repeat(499));
    let diff = diff_of(&text, &[splice(0, 1, "y")]);
    assert!(diff.contains(&format!("-{}… [cut: the line has 501 bytes]\n", "x".repeat(499))), "{diff}");
    let text = format!("{}\r\n", "x".repeat(500));
    assert!(!diff_of(&text, &[splice(0, 1, "y")]).contains("cut"));
}

#[test]
fn a_long_diff_is_cut_at_its_limit_and_says_how_much_is_missing() {
    let text = "line\n\n\n\n\n\n\n\n\n".repeat(2000);
    let splices: Vec<Splice> = (0..2000).map(|index| splice(index * 13, 4, "changed")).collect();
    let diff = diff_of(&text, &splices);
    assert!(diff.len() < MAX_BYTES + 200, "{}", diff.len());
    let shown = diff.matches("+changed\n").count();
    let last = diff.lines().last().expect("a line");
    let missing: usize = last.split_whitespace().find_map(|word| word.parse().ok()).expect("a number");
    assert!((1999..=2001).contains(&(shown + missing)), "{shown} and {missing}");
    // One change that is too large is shown as far as it goes.
    let diff = diff_of("a\n", &[splice(0, 0, &"new\n".repeat(100_000))]);
    assert!(diff.len() > MAX_BYTES / 2 && diff.len() < MAX_BYTES + 200, "{}", diff.len());
    assert!(diff.ends_with("[the diff is cut here: 1 change is not shown, or not wholly]\n"), "{diff}");
}

/// What `git apply` makes of files and a diff.
fn applied(before: &[(&str, Option<&str>)], diff: &str) -> Vec<Option<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in before {
        if let Some(text) = text {
            fs::write(folder.path().join(name), text).expect("writes");
        }
    }
    if !diff.is_empty() {
        fs::write(folder.path().join("the.diff"), diff).expect("writes");
        let done = Command::new("git")
            .args(["apply", "--whitespace=nowarn", "the.diff"])
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{}\n{diff:?}", String::from_utf8_lossy(&done.stderr));
    }
    before.iter().map(|(name, _)| fs::read_to_string(folder.path().join(name)).ok()).collect()
}

#[test]
fn git_makes_the_files_that_a_diff_creates_or_changes_whatever_their_names() {
    let names =
        ["a b.txt", "quote\".txt", "tab\t.txt", "é.txt", "new.txt", "an empty one.txt", "open.txt", "z.txt"];
    let created = [("new.txt", "a\nb\n"), ("an empty one.txt", ""), ("open.txt", "a\r\nb")];
    let before: Vec<(&str, Option<&str>)> = names
        .iter()
        .map(|name| (*name, (!created.iter().any(|(new, _)| new == name)).then_some("old\n")))
        .collect();
    let diffs = names.iter().map(|name| match created.iter().find(|(new, _)| new == name) {
        Some((name, content)) => of_creation(&path(name), content.as_bytes()),
        None => {
            of_edit(&b"old\n".to_vec(), &path(name), &[splice(0, 3, "new")], &[1], &|| false).expect("reads")
        }
    });
    let result = applied(&before, &join(diffs));
    for (name, content) in names.iter().zip(result) {
        let expected = created.iter().find(|(new, _)| new == name).map_or("new\n", |(_, content)| content);
        assert_eq!(content.as_deref(), Some(expected), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn git_makes_the_same_bytes_of_a_diff(
        text in "([ab]{0,2}(\n|\r\n)){0,24}[ab]{0,2}",
        places in proptest::collection::vec((0usize..60, 0usize..8, "[xa\n]{0,4}"), 0..5),
    ) {
        // Sorted, and without overlaps.
        let (mut splices, mut end) = (Vec::<Splice>::new(), 0);
        for (gap, removed, new) in places {
            let start = (end + gap).min(text.len());
            let removed = removed.min(text.len() - start);
            splices.push(splice(start as u64, removed as u64, &new));
            end = start + removed;
        }
        let expected = String::from_utf8(spliced(text.as_bytes(), &splices)).expect("text");
        let diff = diff_of(&text, &splices);
        prop_assert_eq!(diff.is_empty(), text == expected);
        // An empty file is not a patch's result, but none at all.
        if !text.is_empty() && !expected.is_empty() {
            prop_assert_eq!(applied(&[("a.txt", Some(&text))], &diff), [Some(expected)]);
        }
    }
}

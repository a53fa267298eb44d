//! Where search and `workspace_status` differ in what they ignore.
//!
//! Search ignores what ripgrep ignores, because callers compare it with `rg`; `workspace_status` ignores what git
//! ignores, because callers compare it with `git status`. The two agree on nearly all rules that people write. The
//! tables here list the rules on which they do not, each with its reason, and common rules on which they have to agree.
//! The real git and ripgrep's crate `ignore` are asked every time, so the test fails when a listed difference vanishes
//! and when a new one appears.
//!
//! One difference needs another home folder and is therefore not listed: search also obeys the user's own rules
//! (`core.excludesFile` in `~/.gitconfig`), as ripgrep does; `workspace_status` reads the repository's files alone.

#[path = "support/git.rs"]
mod git;

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path};

use git::{Repository, ours};
use pintle_root::Root;

/// One or more patterns, and the files on which git and ripgrep differ. What both ignore, and what neither does, is not
/// listed here, but the files of the tree are the same for all rows.
struct Difference {
    rules: &'static str,
    only_git_ignores: &'static [&'static str],
    only_search_ignores: &'static [&'static str],
    why: &'static str,
}

/// The files that every pattern is tried on.
const FILES: &[&str] = &[
    "a",
    "b",
    "c.log",
    "a]",
    "{a,b}",
    "x\t",
    "x",
    "a*",
    "a b",
    "#c",
    "!d",
    "folder/a",
    "folder/ab",
    "folder/c.log",
    "folder/deep/a",
    "folder/deep/c.log",
    "folder/deep/deeper/c.log",
    "other/a",
    "other/x/y",
    "target/debug/x",
];

const DIFFERENCES: &[Difference] = &[
    Difference {
        rules: "{a,b}",
        only_git_ignores: &["{a,b}"],
        only_search_ignores: &["a", "b", "folder/a", "folder/deep/a", "other/a"],
        why: "braces are alternatives in ripgrep's globs and plain characters in git's",
    },
    Difference {
        rules: "*.{log,tmp}",
        only_git_ignores: &[],
        only_search_ignores: &["c.log", "folder/c.log", "folder/deep/c.log", "folder/deep/deeper/c.log"],
        why: "braces are alternatives in ripgrep's globs and plain characters in git's",
    },
    Difference {
        rules: "[[:lower:]]",
        only_git_ignores: &[
            "a",
            "b",
            "x",
            "folder/a",
            "folder/deep/a",
            "other/a",
            "other/x/y",
            "target/debug/x",
        ],
        only_search_ignores: &[],
        why: "ripgrep's globs have no named classes of characters",
    },
    Difference {
        rules: "[b-a]",
        only_git_ignores: &["b"],
        only_search_ignores: &[],
        why: "git takes a range whose end comes first for its last character; ripgrep drops the line",
    },
    Difference {
        rules: "a[x\\]]",
        only_git_ignores: &["a]"],
        only_search_ignores: &[],
        why: "ripgrep's globs have no escapes within brackets",
    },
    Difference {
        rules: "folder[!x]a",
        only_git_ignores: &[],
        only_search_ignores: &["folder/a"],
        why: "a negated class matches a slash in ripgrep's globs, never in git's",
    },
    Difference {
        rules: "x\t",
        only_git_ignores: &["x\t"],
        only_search_ignores: &["x", "other/x/y", "target/debug/x"],
        why: "ripgrep cuts off all white space at the end of a line, git only spaces",
    },
];

/// Rules that people write; git and ripgrep have to read all of them alike.
const AGREED: &[&str] = &[
    "a",
    "/a",
    "*.log",
    "folder",
    "folder/",
    "folder/*",
    "folder/**",
    "folder/deep",
    "/folder/*.log",
    "folder/**/c.log",
    "**/c.log",
    "**/deep/**",
    "**/deep/",
    "deep/a",
    "target/",
    "a?",
    "[ab]",
    "[!a]",
    "[^a]",
    "a\\*",
    "a b",
    "a b  ",
    "a\\ b",
    "# a\na",
    "\\#c",
    "\\!d",
    "*\n!a",
    "*\n!*/\n!a",
    "*\n!/folder\n/folder/*\n!/folder/a",
    "folder/\n!folder/a",
    "*.log\n!folder/c.log",
    "a\r\n*.log\r\n",
    "\u{feff}a\n",
    "\n\n  \na",
    "[a",
    "a\\",
    "",
];

fn paths(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn repository(names: &[&str]) -> Repository {
    let repository = Repository::new(&[]);
    names.iter().for_each(|name| repository.write(name, "content"));
    repository
}

/// Those of `names` that `workspace_status` leaves out, beneath a root that is the repository or a folder of it. It is
/// compared with git's own answer first.
fn ignored_by_git(repository: &Repository, root: &Path, names: &[&str], why: &str) -> BTreeSet<String> {
    repository.check_in(root, why);
    let status = ours(root).expect("a repository");
    let seen = status.dirty.into_iter().map(|dirty| String::from_utf8(dirty.path).expect("text")).collect();
    &paths(names) - &seen
}

/// Those of `names` that search leaves out.
fn ignored_by_search(root: &Path, names: &[&str]) -> BTreeSet<String> {
    let walk = Root::open(root).expect("a root").walk(None, 1, &|_| {}, &|_| {}, &|| false).expect("a walk");
    let seen = walk.files.into_iter().map(|file| String::from_utf8(file.path).expect("text")).collect();
    &paths(names) - &seen
}

fn check(repository: &Repository, root: &Path, names: &[&str], expected: &Difference) {
    let by_git = ignored_by_git(repository, root, names, expected.why);
    let by_search = ignored_by_search(root, names);
    let Difference { rules, only_git_ignores, only_search_ignores, why } = expected;
    assert_eq!(&by_git - &by_search, paths(only_git_ignores), "only git ignores, for {rules:?}: {why}");
    assert_eq!(&by_search - &by_git, paths(only_search_ignores), "only search ignores, for {rules:?}: {why}");
}

#[test]
fn patterns_that_git_and_ripgrep_read_differently_are_the_listed_ones() {
    let repository = repository(FILES);
    for difference in DIFFERENCES {
        repository.write(".gitignore", difference.rules);
        check(&repository, repository.path(), FILES, difference);
    }
}

#[test]
fn git_and_ripgrep_agree_on_the_patterns_that_people_write() {
    let repository = repository(FILES);
    let why = "both read this rule alike";
    for rules in AGREED {
        repository.write(".gitignore", rules);
        let expected = Difference { rules, only_git_ignores: &[], only_search_ignores: &[], why };
        check(&repository, repository.path(), FILES, &expected);
    }
}

#[test]
fn rules_from_other_sources_count_for_one_of_them_only_as_listed() {
    let names = ["a", "b", "folder/a", "folder/b"];
    let expected = |rules, only_git_ignores, only_search_ignores, why| Difference {
        rules,
        only_git_ignores,
        only_search_ignores,
        why,
    };
    for file in [".ignore", ".rgignore"] {
        let repository = repository(&names);
        repository.write(file, "a\n");
        let why = "git knows nothing of ripgrep's own files";
        check(&repository, repository.path(), &names, &expected(file, &[], &["a", "folder/a"], why));
    }

    let repository_with_exclude = repository(&names);
    repository_with_exclude.write(".git/info/exclude", "a\n");
    let why = "both read the repository's own rules";
    check(
        &repository_with_exclude,
        repository_with_exclude.path(),
        &names,
        &expected("info/exclude", &[], &[], why),
    );

    let with_subfolder = repository(&names);
    with_subfolder.write(".gitignore", "a\n");
    let why = "no rules from above the root count for search, which shows nothing of what lies there";
    check(
        &with_subfolder,
        &with_subfolder.path().join("folder"),
        &["a", "b"],
        &expected("a root below the rules", &["a"], &[], why),
    );

    let with_link = repository(&names);
    fs::write(with_link.path().join("b"), "a\n").expect("written");
    symlink("b", with_link.path().join(".gitignore")).expect("linked");
    let why = "ripgrep follows a link to a file of rules, git does not";
    check(&with_link, with_link.path(), &names, &expected("a link", &[], &["a", "folder/a"], why));
}

#[test]
fn what_git_tracks_is_never_ignored_by_it_whatever_search_does() {
    let names = ["a", "b"];
    let repository = repository(&names);
    repository.commit();
    repository.write(".gitignore", "a\n");
    names.iter().for_each(|name| repository.write(name, "changed"));
    let expected = Difference {
        rules: "a",
        only_git_ignores: &[],
        only_search_ignores: &["a"],
        why: "rules say what git is not to add; ripgrep knows no index, so they hold for all files",
    };
    check(&repository, repository.path(), &names, &expected);
}

#[test]
fn a_repository_in_the_work_tree_is_one_path_for_git_and_files_for_search() {
    let names = ["a", "inner/b"];
    let outer = repository(&["a"]);
    let inner = Repository::at(&outer.path().join("inner"), &[]);
    inner.write("b", "content");
    inner.commit();
    let expected = Difference {
        rules: "no rules at all",
        only_git_ignores: &["inner/b"],
        only_search_ignores: &[],
        why: "git leaves the files of another repository to that repository; ripgrep searches them",
    };
    check(&outer, outer.path(), &names, &expected);
}

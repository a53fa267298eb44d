//! Listing a tree: the ignore rules are ripgrep's, and nothing out of scope or outside the root is reached.

use std::{
    cell::Cell,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

use ignore::{WalkBuilder, overrides::OverrideBuilder};
use pintle_contract::{ErrorCode, Fault, Verb, WorkspacePath};
use pintle_files::{Entry, Globs, Kind, LocalFolder, NoRules, Store, StoreError, Terms, TreeFilter};
use proptest::{prelude::*, sample::select};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("a path")
}

/// Both implementations of path resolution: the kernel's and the portable one.
fn stores(root: &Path) -> [LocalFolder; 2] {
    [LocalFolder::open(root).expect("opens"), LocalFolder::open_portably(root).expect("opens")]
}

const ALL: TreeFilter<'static> =
    TreeFilter { depth: None, globs: None, kind: None, ignored: false, most: usize::MAX, counts_all: false };

fn tree(store: &LocalFolder, folder: &str, filter: &TreeFilter<'_>) -> Vec<Entry> {
    let terms = Terms { permit: &|_, _| Ok(()), rules: &NoRules, has_ended: &|| false, commit: &|| true };
    store.tree(&path(folder), filter, &terms).expect("a tree").entries
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn write(root: &Path, name: &str, text: impl AsRef<[u8]>) {
    let file = root.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    fs::write(file, text).expect("a file");
}

/// What ripgrep's own walk finds, as `search` sets it up, in the order of the bytes of paths.
fn walked(root: &Path) -> Vec<String> {
    let mut left_out = OverrideBuilder::new(root);
    left_out.add("!.git").expect("a glob");
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).parents(false).current_dir(root).add_custom_ignore_filename(".rgignore");
    walk.overrides(left_out.build().expect("globs"));
    let mut found: Vec<Vec<u8>> = walk
        .build()
        .map(|entry| entry.expect("an entry").path().strip_prefix(root).expect("below").to_owned())
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .filter(|path| !path.is_empty())
        .collect();
    found.sort();
    found.into_iter().map(|path| String::from_utf8(path).expect("text")).collect()
}

const FOLDERS: [&str; 6] = ["", "a", "a/b", "a/b/c", "d", "d/a"];
const FILES: [&str; 7] = ["x.log", "x.rs", "keep.log", "b", "a.rs", ".dot", "a-b"];
const RULES: [&str; 14] = [
    "*.log",
    "!keep.log",
    "/a",
    "b/",
    "a/b",
    "/d/a/",
    "**/c",
    "!b/",
    "*",
    "!*/",
    "x.*",
    "# no",
    "\\!x",
    "a/**",
];
const RULE_FILES: [&str; 4] = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_out_is_what_ripgrep_leaves_out(
        files in prop::collection::vec((select(&FOLDERS[..]), select(&FILES[..])), 1..20),
        rules in prop::collection::vec(
            (select(&FOLDERS[..]), select(&RULE_FILES[..]), prop::collection::vec(select(&RULES[..]), 1..4)),
            0..5,
        ),
        repositories in prop::collection::vec((select(&FOLDERS[..]), select(&[".git", ".jj"][..])), 0..2),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a root");
        for (folder, name) in files {
            let name = root.join(folder).join(name);
            // A file may have the name of a folder.
            if fs::create_dir_all(name.parent().expect("a folder")).is_ok() && !name.exists() {
                fs::write(name, "").expect("a file");
            }
        }
        for (folder, name) in repositories {
            let _ = fs::create_dir_all(root.join(folder).join(name));
        }
        for (folder, name, rules) in rules {
            let name = root.join(folder).join(name);
            if fs::create_dir_all(name.parent().expect("a folder")).is_ok() {
                fs::write(name, rules.join("\r\n")).expect("rules");
            }
        }
        let expected = walked(&root);
        for store in stores(&root) {
            let found = tree(&store, "", &ALL);
            prop_assert_eq!(names(&found), expected.iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn rules_above_a_folder_count_in_it_and_those_above_the_root_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), ".ignore", "*.rs\n");
    let root = folder.path().join("root");
    write(&root, ".ignore", "*.log\n/sub/skipped\n");
    write(&root, "sub/.ignore", "!kept.log\n");
    for name in ["sub/a.rs", "sub/a.log", "sub/kept.log", "sub/skipped/x"] {
        write(&root, name, "");
    }
    for store in stores(&root) {
        assert_eq!(names(&tree(&store, "sub", &ALL)), ["sub/.ignore", "sub/a.rs", "sub/kept.log"]);
        let all = tree(&store, "sub", &TreeFilter { ignored: true, ..ALL });
        assert_eq!(all.len(), 6, "{:?}", names(&all));
        // A folder that was asked for by its name is listed, whatever the rules say of it.
        assert_eq!(names(&tree(&store, "sub/skipped", &ALL)), ["sub/skipped/x"]);
    }
}

#[test]
fn a_repository_above_the_root_makes_its_rules_count_but_gives_none() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("a repository");
    write(folder.path(), ".gitignore", "*.rs\n");
    let root = folder.path().join("root");
    write(&root, ".gitignore", "*.log\n");
    write(&root, "a.rs", "");
    write(&root, "a.log", "");
    let store = LocalFolder::open(&root).expect("opens");
    assert_eq!(names(&tree(&store, "", &ALL)), [".gitignore", "a.rs"]);
}

#[test]
fn links_are_shown_as_what_they_lead_to_and_never_entered() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    write(&root, "a/file", "12345");
    write(folder.path(), "outside/secret", "");
    symlink("a", root.join("in")).expect("a link");
    symlink("a/file", root.join("one")).expect("a link");
    symlink("../outside", root.join("out")).expect("a link");
    symlink(".", root.join("round")).expect("a link");
    symlink("../outside/secret", root.join(".ignore")).expect("a link");
    let entry = |name: &str, kind, size| Entry { name: name.to_owned(), kind, size };
    let expected = [
        entry(".ignore", Kind::Other, 0),
        entry("a", Kind::Folder, 0),
        entry("a/file", Kind::File, 5),
        entry("in", Kind::Folder, 0),
        entry("one", Kind::File, 5),
        entry("out", Kind::Other, 0),
        entry("round", Kind::Folder, 0),
    ];
    for store in stores(&root) {
        assert_eq!(tree(&store, "", &ALL), expected);
        // One that was asked for is, under its own name.
        assert_eq!(tree(&store, "in", &ALL), [entry("in/file", Kind::File, 5)]);
    }
}

#[test]
fn a_named_pipe_instead_of_an_ignore_file_does_not_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = std::process::Command::new("mkfifo").arg(folder.path().join(".ignore")).status();
    assert!(made.expect("runs").success());
    write(folder.path(), "a", "");
    let store = LocalFolder::open(folder.path()).expect("opens");
    assert_eq!(names(&tree(&store, "", &ALL)), [".ignore", "a"]);
}

#[test]
fn what_may_not_be_read_is_neither_listed_nor_entered() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a/open", "a/shut/x", "a/shut/deep/y", "b/z"] {
        write(folder.path(), name, "");
    }
    symlink("../b/z", folder.path().join("a/link")).expect("a link");
    let permit = |verb, path: &WorkspacePath| match path.as_str() {
        _ if verb != Verb::Read => panic!("nothing is written"),
        "a" | "a/open" | "a/link" => Ok(()),
        _ => Err(Fault::new(ErrorCode::Forbidden, "no")),
    };
    let terms = Terms { permit: &permit, rules: &NoRules, has_ended: &|| false, commit: &|| true };
    for store in stores(folder.path()) {
        let entries = store.tree(&path("a"), &ALL, &terms).expect("a tree").entries;
        // Of a link no more is known than that it is there.
        let link = Entry { name: "a/link".into(), kind: Kind::Other, size: 0 };
        assert_eq!(entries, [link, Entry { name: "a/open".into(), kind: Kind::File, size: 0 }]);
        assert!(matches!(store.tree(&path("b"), &ALL, &terms), Err(StoreError::Refused(_))));
        assert!(!store.is_folder(&path("b"), &terms) && store.is_folder(&path("a"), &terms));
    }
}

#[test]
fn a_walk_ends_when_nobody_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..100 {
        write(folder.path(), &format!("{number}/x"), "");
    }
    let asked = Cell::new(0);
    let has_ended = || {
        asked.set(asked.get() + 1);
        asked.get() > 150
    };
    let terms = Terms { permit: &|_, _| Ok(()), rules: &NoRules, has_ended: &has_ended, commit: &|| true };
    let store = LocalFolder::open(folder.path()).expect("opens");
    assert!(matches!(store.tree(&path(""), &ALL, &terms), Err(StoreError::Ended)));
    assert_eq!(asked.get(), 151);
}

#[test]
fn a_folder_with_more_entries_than_are_held_is_listed_whole_and_in_order() {
    const MANY: usize = 60_000;
    let folder = tempfile::tempdir().expect("a folder");
    let first = folder.path().join("large/0");
    write(folder.path(), "large/0", "");
    for number in 1..MANY {
        fs::hard_link(&first, folder.path().join(format!("large/{number}"))).expect("a link");
    }
    write(folder.path(), "large.txt", "");
    write(folder.path(), "z", "");
    let store = LocalFolder::open(folder.path()).expect("opens");
    let entries = tree(&store, "", &ALL);
    let names = names(&entries);
    assert_eq!(names.len(), MANY + 3);
    assert!(names.is_sorted_by(|one, other| one.as_bytes() < other.as_bytes()));
    // A dot comes before a slash.
    assert_eq!((names[0], names[1], names[2]), ("large", "large.txt", "large/0"));
    let some = tree(&store, "", &TreeFilter { most: 3, ..ALL });
    assert_eq!(some, entries[..3]);
}

#[test]
fn only_what_matches_is_listed_to_the_depth_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.rs", "src/b.rs", "src/c.md", "src/deep/d.rs", "docs/e.md"] {
        write(folder.path(), name, "");
    }
    let store = LocalFolder::open(folder.path()).expect("opens");
    let globs = |glob: &str| Globs::new(glob, &path(""), |path| path.as_str() == "src").expect("a glob");
    let found = |glob: &str, depth, kind| -> Vec<String> {
        let globs = globs(glob);
        let entries = tree(&store, "", &TreeFilter { depth, globs: Some(&globs), kind, ..ALL });
        entries.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(found("*.rs", None, None), ["a.rs", "src/b.rs", "src/deep/d.rs"]);
    assert_eq!(found("*.rs", Some(2), None), ["a.rs", "src/b.rs"]);
    assert_eq!(found("src", None, Some(Kind::File)), ["src/b.rs", "src/c.md", "src/deep/d.rs"]);
    assert_eq!(found("src", None, Some(Kind::Folder)), ["src", "src/deep"]);
    assert_eq!(found("!*.rs", None, None), ["docs", "docs/e.md", "src", "src/c.md", "src/deep"]);
    let folders = tree(&store, "", &TreeFilter { kind: Some(Kind::Folder), depth: Some(1), ..ALL });
    assert_eq!(names(&folders), ["docs", "src"]);
}

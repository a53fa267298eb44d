//! Real repositories, made by the real git, whose own answer is compared with ours.

#[path = "support/git.rs"]
mod git;

use std::{fs, os::unix::fs::symlink, path::Path};

use git::{Repository, dirty, ours};
use pintle_git::{Change, LIMIT, Problem, status};

#[test]
fn a_folder_without_a_repository_has_no_state() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(ours(folder.path()), None);
}

#[test]
fn an_empty_repository_has_a_branch_and_no_commit() {
    let repository = Repository::new(&[]);
    repository.check("empty");
    repository.write("a", "a");
    repository.check("one untracked file");
    repository.git(&["add", "a"]);
    repository.check("one added file");
    let found = ours(repository.path()).expect("a repository");
    assert_eq!((found.head, found.branch.as_deref()), (None, Some("main")));
    assert_eq!(found.dirty, [dirty("a", Change::Added)]);
}

#[test]
fn every_kind_of_change_is_reported_as_one_answer() {
    let repository = Repository::new(&[]);
    for name in
        ["kept", "edited", "staged", "taken-back", "gone", "removed", "uncached", "mode", "type", "again"]
    {
        repository.write(name, name);
    }
    repository.commit();
    repository.write("edited", "other");
    repository.write("staged", "other");
    repository.write("taken-back", "other");
    repository.git(&["add", "staged", "taken-back"]);
    repository.write("taken-back", "taken-back");
    repository.remove("gone");
    repository.git(&["rm", "-q", "removed"]);
    repository.git(&["rm", "-q", "--cached", "uncached"]);
    repository.git(&["rm", "-q", "--cached", "again"]);
    repository.git(&["add", "-N", "again"]);
    repository.set_executable("mode", true);
    repository.remove("type");
    symlink("kept", repository.path().join("type")).expect("linked");
    repository.write("new", "new");
    repository.write("new-and-gone", "new");
    repository.write("intended", "new");
    repository.write("intended-and-gone", "new");
    repository.git(&["add", "new", "new-and-gone"]);
    repository.git(&["add", "-N", "intended", "intended-and-gone"]);
    repository.write("new", "newer");
    repository.remove("new-and-gone");
    repository.remove("intended-and-gone");
    repository.write("folder/untracked", "");
    repository.check("every kind");
    let expected = [
        dirty("again", Change::Modified),
        dirty("edited", Change::Modified),
        dirty("folder/untracked", Change::Untracked),
        dirty("gone", Change::Deleted),
        dirty("intended", Change::Added),
        dirty("intended-and-gone", Change::Deleted),
        dirty("mode", Change::Modified),
        dirty("new", Change::Added),
        dirty("new-and-gone", Change::Deleted),
        dirty("removed", Change::Deleted),
        dirty("staged", Change::Modified),
        dirty("taken-back", Change::Modified),
        dirty("type", Change::Modified),
        dirty("uncached", Change::Modified),
    ];
    assert_eq!(ours(repository.path()).expect("a repository").dirty, expected);
}

#[test]
fn packed_objects_and_refs_are_read() {
    for arguments in [&[][..], &["--object-format=sha256"]] {
        let repository = Repository::new(arguments);
        for round in 0..30 {
            for folder in 0..8 {
                let lines: String = (0..200).map(|line| format!("{line} of {}\n", round * folder)).collect();
                repository.write(&format!("folder-{folder}/deep/file-{round}"), &lines);
            }
            repository.commit();
        }
        repository.git(&["gc", "-q", "--aggressive", "--prune=now"]);
        repository.check("packed, clean");
        assert!(!repository.path().join(".git/refs/heads/main").exists());
        repository.git(&["read-tree", "HEAD~20"]);
        repository.check("packed, many staged");
        repository.git(&["-c", "index.version=4", "read-tree", "--empty"]);
        repository.check("packed, everything removed from the index");
    }
}

#[test]
fn an_index_of_any_version_is_read() {
    let repository = Repository::new(&[]);
    for name in ["a", "a-b", "a/b", "ab/c/d", "ab/c/de", "ü", "z z"] {
        if name != "a" {
            repository.write(name, name);
        }
    }
    repository.commit();
    for version in ["4", "3", "2"] {
        repository.git(&["update-index", "--index-version", version]);
        repository.write("ab/c/d", version);
        repository.check(version);
        repository.git(&["add", "-N", "."]);
        repository.git(&["add", "."]);
        repository.check(version);
        repository.git(&["commit", "-qm", version]);
        repository.check(version);
    }
}

#[test]
fn a_conflict_is_reported_and_so_is_what_it_is_beside() {
    let repository = Repository::new(&[]);
    for name in ["both", "ours-deleted", "theirs-deleted", "fine"] {
        repository.write(name, "base\n");
    }
    repository.commit();
    repository.git(&["checkout", "-qb", "side"]);
    repository.write("both", "side\n");
    repository.write("ours-deleted", "side\n");
    repository.write("both-added", "side\n");
    repository.write("merged", "side\n");
    repository.remove("theirs-deleted");
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    repository.write("both", "main\n");
    repository.write("theirs-deleted", "main\n");
    repository.write("both-added", "main\n");
    repository.remove("ours-deleted");
    repository.commit();
    assert!(!repository.try_git(&["merge", "-q", "side"]));
    repository.check("conflict");
    let found = ours(repository.path()).expect("a repository");
    let conflicts = found.dirty.iter().filter(|dirty| dirty.change == Change::Conflicted).count();
    assert_eq!(conflicts, 4);
}

#[test]
fn a_head_without_a_branch_is_reported_by_its_commit() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    repository.git(&["checkout", "-q", "--detach"]);
    repository.check("detached");
    assert_eq!(ours(repository.path()).expect("a repository").branch, None);
    repository.git(&["checkout", "-qb", "a/b"]);
    repository.git(&["symbolic-ref", "refs/heads/link", "refs/heads/a/b"]);
    repository.git(&["symbolic-ref", "HEAD", "refs/heads/link"]);
    repository.check("through another ref");
    fs::write(repository.path().join(".git/refs/heads/link"), "ref: refs/heads/link\n").expect("written");
    assert!(matches!(status(repository.path(), &|| false), Err(Problem::Damaged { .. })));
}

#[test]
fn what_nobody_should_look_at_is_left_alone() {
    let repository = Repository::new(&[]);
    for name in ["assumed", "skipped", "missing", "plain"] {
        repository.write(name, "1");
    }
    repository.commit();
    repository.git(&["update-index", "--assume-unchanged", "assumed"]);
    repository.git(&["update-index", "--skip-worktree", "skipped", "missing"]);
    repository.write("assumed", "22");
    repository.write("skipped", "22");
    repository.remove("missing");
    repository.check("flags");
    assert_eq!(ours(repository.path()).expect("a repository").dirty, []);
    repository.git(&["config", "core.sparseCheckout", "true"]);
    repository.check("flags, with a sparse checkout");
}

#[test]
fn a_sparse_index_is_refused_with_a_remedy_and_a_sparse_checkout_is_not() {
    let repository = Repository::new(&[]);
    for name in ["a/1", "b/1", "b/c/2", "top"] {
        repository.write(name, "1");
    }
    repository.commit();
    repository.git(&["sparse-checkout", "set", "a"]);
    repository.write("a/1", "22");
    repository.check("sparse checkout");
    repository.git(&["sparse-checkout", "set", "--sparse-index", "a"]);
    assert_unsupported(&repository, &["sparse index", "`git sparse-checkout reapply --no-sparse-index`"]);
    repository.git(&["sparse-checkout", "reapply", "--no-sparse-index"]);
    repository.check("without a sparse index");
}

#[test]
fn a_split_index_is_refused_with_a_remedy() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    repository.git(&["update-index", "--split-index"]);
    assert_unsupported(&repository, &["split index", "`git update-index --no-split-index`"]);
    repository.git(&["update-index", "--no-split-index"]);
    repository.check("without a split index");
}

#[test]
fn alternates_are_refused_with_a_remedy() {
    let original = Repository::new(&[]);
    original.write("a", "a");
    original.commit();
    let folder = tempfile::tempdir().expect("a folder");
    let repository = Repository::at(&folder.path().join("borrower"), &[]);
    let alternates = repository.path().join(".git/objects/info/alternates");
    let objects = original.path().join(".git/objects").display().to_string();
    fs::write(&alternates, format!("{objects}\n")).expect("written");
    repository.git(&["fetch", "-q", &original.path().display().to_string(), "main"]);
    repository.git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
    repository.write("b", "b");
    repository.git(&["add", "b"]);
    assert_unsupported(&repository, &["alternates", "`git repack -a -d`", ".git/objects/info/alternates"]);
    repository.git(&["repack", "-adq"]);
    fs::remove_file(&alternates).expect("removed");
    repository.check("with its own objects");
}

#[test]
fn refs_in_a_reftable_are_refused_with_a_remedy() {
    let repository = Repository::new(&["--ref-format=reftable"]);
    // Only git 2.48 and later convert reflogs.
    repository.git(&["config", "core.logAllRefUpdates", "false"]);
    repository.write("a", "a");
    repository.commit();
    assert_unsupported(&repository, &["`reftable`", "`git refs migrate --ref-format=files`"]);
    repository.git(&["refs", "migrate", "--ref-format=files"]);
    repository.check("with refs in files");
}

/// Asserts that a repository uses something that is not supported, with pieces of the message.
fn assert_unsupported(repository: &Repository, pieces: &[&str]) {
    let problem = status(repository.path(), &|| false).expect_err("a problem");
    assert!(matches!(problem, Problem::Unsupported { .. }), "{problem}");
    let message = problem.to_string();
    pieces.iter().for_each(|piece| assert!(message.contains(piece), "{piece}: {message}"));
}

#[test]
fn a_file_whose_time_alone_differs_is_unchanged() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.write("link", "a");
    repository.remove("link");
    symlink("a", repository.path().join("link")).expect("linked");
    repository.commit();
    repository.touch("a", 1_000_000);
    repository.check_clean("touched");
    // The same size and time, but another content: git sees it only if a second has passed.
    repository.write("a", "b");
    repository.touch("a", 1_000_000);
    assert_eq!(ours(repository.path()).expect("one").dirty, [dirty("a", Change::Modified)]);
}

#[test]
fn a_file_that_may_have_changed_unseen_is_looked_into() {
    const LATER_THAN_THE_INDEX: u64 = 4_000_000_000;
    let repository = Repository::new(&[]);
    repository.git(&["config", "core.trustctime", "false"]);
    repository.write("a", "a");
    repository.touch("a", LATER_THAN_THE_INDEX);
    repository.commit();
    repository.check_clean("later than the index");
    repository.write("a", "b");
    repository.touch("a", LATER_THAN_THE_INDEX);
    repository.check("changed, with the same size and time");
    assert_eq!(ours(repository.path()).expect("one").dirty, [dirty("a", Change::Modified)]);
}

#[test]
fn line_endings_that_git_converts_are_no_change() {
    let repository = Repository::new(&[]);
    repository.write(".gitattributes", "*.txt text\n*.bin -text\n*.auto text=auto\n*.end eol=crlf\n");
    for name in ["a.txt", "a.bin", "a.auto", "a.end", "a.none"] {
        repository.write(name, "one\ntwo\n");
    }
    repository.write("binary.auto", "one\0\ntwo\n");
    repository.commit();
    for name in ["a.txt", "a.bin", "a.auto", "a.end", "a.none"] {
        repository.write(name, "one\r\ntwo\r\n");
    }
    repository.write("binary.auto", "one\0\r\ntwo\r\n");
    let modified =
        |names: &[&str]| names.iter().map(|name| dirty(name, Change::Modified)).collect::<Vec<_>>();
    assert_eq!(ours(repository.path()).expect("one").dirty, modified(&["a.bin", "a.none", "binary.auto"]));
    repository.git(&["config", "core.autocrlf", "true"]);
    assert_eq!(ours(repository.path()).expect("one").dirty, modified(&["a.bin", "binary.auto"]));
    repository.git(&["add", "-A"]);
    repository.check("converted and added");
    repository.git(&["commit", "-qm", "converted"]);
    repository.git(&["rm", "-rqf", "."]);
    repository.git(&["reset", "-q", "--hard"]);
    repository.check("checked out with line endings");
    for name in ["a.txt", "a.bin", "a.auto", "a.end", "a.none"] {
        repository.touch(name, 1_000_000);
    }
    repository.check_clean("checked out with line endings, and touched");
}

#[test]
fn the_executable_bit_counts_unless_the_repository_says_otherwise() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    repository.set_executable("a", true);
    repository.check("executable");
    repository.git(&["config", "core.fileMode", "false"]);
    repository.check("no matter");
    assert_eq!(ours(repository.path()).expect("one").dirty, []);
}

#[test]
fn ignored_files_are_not_reported() {
    let repository = Repository::new(&[]);
    repository
        .write(".gitignore", "*.o\n!keep.o\n/top\nfolder/\na/**/z\n*.{x,y}\n[ab]c\n#no\n\\#yes\ntrail  \n");
    repository.write("sub/.gitignore", "*\n!.gitignore\n!inner\n!inner/*.k\n");
    fs::write(repository.path().join(".git/info/exclude"), "excluded\n").expect("written");
    for name in [
        "a.o",
        "keep.o",
        "sub/a.o",
        "top",
        "x/top",
        "folder/a",
        "x/folder/b",
        "a/z",
        "a/b/c/z",
        "a/b/y",
        "q.x",
        "q.{x,y}",
        "ac",
        "cc",
        "#no",
        "#yes",
        "trail",
        "excluded",
        "x/excluded",
        "sub/other",
        "sub/inner/a",
        "sub/inner/a.k",
        ".hidden",
        "tracked/folder/f",
        "empty-not/.keep",
    ] {
        repository.write(name, "");
    }
    fs::create_dir(repository.path().join("empty")).expect("made");
    repository.check("ignored");
    repository.git(&["add", "-f", "folder/a", "tracked/folder/f", "top"]);
    repository.commit_staged();
    repository.write("folder/b", "");
    repository.write("tracked/folder/g", "");
    repository.write("folder/a", "changed");
    repository.check("tracked, though ignored");
}

#[test]
fn a_repository_in_the_work_tree_is_one_path() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    let inner = Repository::at(&repository.path().join("deep/inner"), &[]);
    inner.write("b", "b");
    fs::create_dir_all(repository.path().join("not-one/.git")).expect("made");
    repository.write("not-one/c", "c");
    repository.check("inner without a commit");
    inner.commit();
    repository.check("inner with a commit");
    repository.git(&["add", "deep/inner"]);
    repository.check("added as a submodule");
    repository.git(&["commit", "-qm", "submodule"]);
    repository.check("committed as a submodule");
    inner.write("c", "c");
    // Git would report that there is something new in it.
    assert_eq!(ours(repository.path()).expect("one").dirty, [dirty("not-one/c", Change::Untracked)]);
}

#[test]
fn files_and_folders_and_links_take_each_others_place() {
    let repository = Repository::new(&[]);
    repository.write("file", "1");
    repository.write("folder/a", "1");
    repository.write("folder/b", "1");
    repository.write("real/a", "1");
    repository.write("elsewhere/a", "1");
    repository.commit();
    repository.remove("file");
    repository.write("file/inner", "1");
    fs::remove_dir_all(repository.path().join("folder")).expect("removed");
    repository.write("folder", "1");
    fs::remove_dir_all(repository.path().join("real")).expect("removed");
    symlink("elsewhere", repository.path().join("real")).expect("linked");
    repository.check("in the work tree");
    repository.git(&["add", "-A"]);
    repository.check("in the index");
}

#[test]
fn deep_folders_are_compared_and_deeper_ones_are_refused() {
    let repository = Repository::new(&[]);
    let deep = format!("{}file", "a/".repeat(500));
    repository.write(&deep, "1");
    repository.write("top", "1");
    repository.commit();
    repository.write(&deep, "22");
    repository.git(&["add", "-A"]);
    repository.check("deep");
    let deeper = format!("{}file", "a/".repeat(600));
    repository.write(&deeper, "1");
    repository.git(&["add", "-A"]);
    assert!(matches!(status(repository.path(), &|| false), Err(Problem::TooLarge { .. })));
}

#[test]
fn of_more_changes_than_are_reported_the_first_are() {
    let repository = Repository::new(&[]);
    repository.write("z-committed", "");
    repository.commit();
    for number in 0..LIMIT / 2 + 10 {
        repository.write(&format!("m-staged/{number:05}"), "");
    }
    repository.git(&["add", "-A"]);
    for number in 0..LIMIT / 2 + 10 {
        repository.write(&format!("a-untracked/{}/{number:05}", number % 7), "");
    }
    let found = ours(repository.path()).expect("one");
    assert!(found.truncated);
    assert_eq!(found.dirty.len(), LIMIT);
    assert_eq!(found.dirty.first(), Some(&dirty("a-untracked/0/00000", Change::Untracked)));
    assert_eq!(found.dirty.last(), Some(&dirty(&format!("m-staged/{:05}", LIMIT / 2 - 11), Change::Added)));
    fs::remove_dir_all(repository.path().join("a-untracked")).expect("removed");
    assert!(!ours(repository.path()).expect("one").truncated);
}

#[test]
fn nobody_is_kept_waiting_once_the_call_has_ended() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    assert!(matches!(status(repository.path(), &|| true), Err(Problem::Ended)));
}

#[test]
fn nothing_that_the_configuration_names_is_run_and_nothing_is_written() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.write(".gitattributes", "* filter=evil diff=evil\n");
    repository.commit();
    let (mark, script) = (repository.path().join("mark"), repository.path().join(".git/evil"));
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).expect("written");
    repository.set_executable(".git/evil", true);
    let text = format!(
        "[core]\nfsmonitor = {0}\nhooksPath = {0}\n[filter \"evil\"]\nclean = {0}\nsmudge = {0}\nprocess = {0}\n",
        script.display()
    );
    let config = repository.path().join(".git/config");
    fs::write(&config, [fs::read(&config).expect("read"), text.into_bytes()].concat()).expect("written");
    repository.touch("a", 1_000_000);
    let before = snapshot(&repository.path().join(".git"));
    assert_eq!(ours(repository.path()).expect("one").dirty, []);
    repository.write("a", "b");
    assert_eq!(ours(repository.path()).expect("one").dirty, [dirty("a", Change::Modified)]);
    assert!(!mark.exists());
    assert_eq!(snapshot(&repository.path().join(".git")), before);
}

#[test]
fn files_of_git_that_are_links_are_not_followed() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    for name in ["HEAD", "index", "refs/heads/main", "config"] {
        let (path, kept) = (repository.path().join(".git").join(name), repository.path().join(".git/kept"));
        fs::rename(&path, &kept).expect("moved");
        symlink(&kept, &path).expect("linked");
        assert!(matches!(status(repository.path(), &|| false), Err(Problem::Unreadable { .. })), "{name}");
        fs::rename(&kept, &path).expect("moved back");
    }
    repository.check("as it was");
}

#[test]
fn git_may_keep_its_files_elsewhere_in_the_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("work/data");
    let data = data.to_str().expect("text");
    let repository = Repository::at(&folder.path().join("work"), &["--separate-git-dir", data]);
    repository.write("a", "a");
    repository.write(".gitignore", "/data/\n");
    repository.commit();
    repository.write("a", "b");
    repository.check("elsewhere");
    repository.git(&["worktree", "add", "-q", "../linked", "HEAD"]);
    repository.check_in(&folder.path().join("linked"), "a linked worktree of it");
}

/// Everything below a folder, with its size and time.
fn snapshot(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("metadata");
        all.push(format!("{:?} {} {:?}", entry.path(), metadata.len(), metadata.modified().expect("a time")));
        if metadata.is_dir() {
            all.extend(snapshot(&entry.path()));
        }
    }
    all.sort();
    all
}

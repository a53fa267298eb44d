//! Where the parts of a repository may lie: linked worktrees, submodules, subfolders, and what only looks like them.

#[path = "support/git.rs"]
mod git;

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use git::{Repository, dirty, ours};
use pintle_git::{Change, Problem, status};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// A repository with some folders, in a folder of its own.
fn repository() -> (TempDir, Repository) {
    let folder = tempfile::tempdir().expect("a folder");
    let repository = Repository::at(&folder.path().join("main"), &[]);
    for name in ["top", "sub/a", "sub/deep/b", "sub/deep/c", "sub-b/x", "other/d"] {
        repository.write(name, name);
    }
    repository.write(".gitignore", "*.o\n/out/\nsub/deep/private\n");
    repository.write("sub/.gitignore", "*.tmp\n!keep.o\n");
    repository.commit();
    (folder, repository)
}

/// Changes something everywhere, so that what is listed from outside of a folder would be seen.
fn change_everything(repository: &Repository) {
    for name in ["top", "sub/a", "sub/deep/b", "sub-b/x", "other/d"] {
        repository.write(name, "changed, with another size");
    }
    for name in ["sub/new", "sub/deep/new", "other/new", "new", "sub/x.o", "sub/keep.o", "sub/deep/y.tmp"] {
        repository.write(name, "");
    }
    repository.write("sub/deep/private", "");
    repository.remove("sub/deep/c");
    repository.write("sub/deep/staged", "");
    repository.write("other/staged", "");
    repository.git(&["add", "sub/deep/staged", "other/staged", "sub/a"]);
}

fn problem(folder: &Path) -> Problem {
    match status(folder, &|| false) {
        Err(problem) => problem,
        Ok(found) => panic!("no problem: {found:?}"),
    }
}

/// Asserts that a repository is deliberately not used, with pieces of the message, which names nothing outside.
fn assert_not_used(folder: &Path, pieces: &[&str]) {
    let problem = problem(folder);
    assert!(matches!(problem, Problem::NotUsed(_)), "{problem}");
    assert_message(&problem, pieces);
}

fn make_fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, path, FileType::Fifo, mode, 0).expect("made");
}

fn assert_message(problem: &Problem, pieces: &[&str]) {
    let message = problem.to_string();
    pieces.iter().for_each(|piece| assert!(message.contains(piece), "{piece}: {message}"));
    assert!(!message.contains("/tmp"), "{message}");
}

#[test]
fn a_subfolder_has_the_state_of_its_repository_without_what_lies_outside_of_it() {
    let (_folder, repository) = repository();
    let folders = ["sub", "sub/deep", "sub-b", "other"];
    for name in folders {
        repository.check_in(&repository.path().join(name), "clean");
    }
    change_everything(&repository);
    for name in folders {
        repository.check_in(&repository.path().join(name), name);
    }
    let found = ours(&repository.path().join("sub/deep")).expect("a repository");
    let expected = [
        dirty("b", Change::Modified),
        dirty("c", Change::Deleted),
        dirty("new", Change::Untracked),
        dirty("staged", Change::Added),
    ];
    assert_eq!(found.dirty, expected);
    assert_eq!(found.branch.as_deref(), Some("main"));
    repository.git(&["gc", "-q", "--prune=now"]);
    repository.check_in(&repository.path().join("sub"), "packed");
    repository.git(&["read-tree", "--empty"]);
    repository.check_in(&repository.path().join("sub"), "everything removed from the index");
}

#[test]
fn a_subfolder_that_git_does_not_know_has_untracked_files_unless_it_is_ignored() {
    let (_folder, repository) = repository();
    for name in ["fresh/inner/a", "out/inner/b", "out/c"] {
        repository.write(name, "");
    }
    for name in ["fresh", "fresh/inner", "out", "out/inner"] {
        repository.check_in(&repository.path().join(name), name);
    }
    let found = ours(&repository.path().join("fresh/inner")).expect("a repository");
    assert_eq!(found.dirty, [dirty("a", Change::Untracked)]);
    assert_eq!(ours(&repository.path().join("out/inner")).expect("a repository").dirty, []);
}

#[test]
fn the_attributes_above_a_subfolder_count() {
    let (_folder, repository) = repository();
    repository.write(".gitattributes", "*.txt text\n");
    repository.write("sub/.gitattributes", "raw.txt -text\n");
    for name in ["sub/deep/a.txt", "sub/deep/raw.txt"] {
        repository.write(name, "one\ntwo\n");
    }
    repository.commit();
    for name in ["sub/deep/a.txt", "sub/deep/raw.txt"] {
        repository.write(name, "one\r\ntwo\r\n");
    }
    let found = ours(&repository.path().join("sub/deep")).expect("a repository");
    assert_eq!(found.dirty, [dirty("raw.txt", Change::Modified)]);
}

#[test]
fn a_subfolder_that_is_reached_through_a_link_is_where_it_really_is() {
    let (folder, repository) = repository();
    change_everything(&repository);
    let link = folder.path().join("link");
    symlink("main/sub/deep", &link).expect("linked");
    assert_eq!(ours(&link), ours(&repository.path().join("sub/deep")));
    assert!(ours(&link).is_some());
}

#[test]
fn a_subfolder_of_an_unborn_branch_has_no_commit() {
    let repository = Repository::new(&[]);
    repository.write("sub/a", "");
    repository.write("b", "");
    repository.git(&["add", "sub"]);
    repository.check_in(&repository.path().join("sub"), "unborn");
    let found = ours(&repository.path().join("sub")).expect("a repository");
    assert_eq!((found.head, found.dirty), (None, vec![dirty("a", Change::Added)]));
}

#[test]
fn a_linked_worktree_has_its_own_head_and_index() {
    for is_relative in [false, true] {
        let (folder, repository) = repository();
        let linked = folder.path().join("linked");
        repository.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
        if is_relative {
            // What newer versions of git write with `worktree.useRelativePaths`.
            fs::write(linked.join(".git"), "gitdir: ../main/.git/worktrees/linked\n").expect("written");
            let back_pointer = repository.path().join(".git/worktrees/linked/gitdir");
            fs::write(back_pointer, "../../../../linked/.git\n").expect("written");
        }
        repository.check_in(&linked, "clean");
        fs::write(linked.join("top"), "changed in the worktree").expect("written");
        fs::write(linked.join("sub/new"), "").expect("written");
        repository.git_in(&linked, &["add", "top"], "");
        repository.write("other/d", "changed in the main work tree");
        repository.check_in(&linked, "changed");
        repository.check_in(&linked.join("sub"), "a subfolder of it");
        repository.check("the main work tree");
        assert_eq!(ours(&linked).expect("a repository").branch.as_deref(), Some("side"));
        repository.git_in(&linked, &["commit", "-qm", "in the worktree"], "");
        repository.git(&["pack-refs", "--all"]);
        repository.check_in(&linked, "committed, with packed refs");
        repository.git_in(&linked, &["checkout", "-q", "--detach"], "");
        repository.check_in(&linked, "detached");
        assert_eq!(ours(&linked).expect("a repository").branch, None);
        repository.git_in(&linked, &["checkout", "-q", "--orphan", "unborn"], "");
        repository.check_in(&linked, "unborn");
    }
}

#[test]
fn a_linked_worktree_within_the_main_work_tree_is_apart_from_it() {
    let (_folder, repository) = repository();
    repository.git(&["worktree", "add", "-q", "-b", "side", ".worktrees/inner"]);
    let inner = repository.path().join(".worktrees/inner");
    fs::write(inner.join("sub/a"), "changed in the worktree").expect("written");
    change_everything(&repository);
    repository.check("the main work tree, with a worktree in it");
    repository.check_in(&inner, "the worktree");
    repository.check_in(&inner.join("sub"), "a subfolder of it");
    repository.check_in(&repository.path().join(".worktrees"), "the folder around it");
    assert_eq!(ours(&inner).expect("a repository").branch.as_deref(), Some("side"));
}

#[test]
fn a_linked_worktree_that_was_moved_is_reported_until_git_repairs_it() {
    let (folder, repository) = repository();
    let moved = folder.path().join("moved");
    repository.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    fs::rename(folder.path().join("linked"), &moved).expect("moved");
    assert_not_used(&moved, &["`git worktree repair`"]);
    repository.git_in(&moved, &["worktree", "repair"], "");
    repository.check_in(&moved, "repaired");
}

#[test]
fn a_linked_worktree_of_a_bare_repository_has_a_state() {
    let (folder, repository) = repository();
    let bare = folder.path().join("bare.git");
    repository.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    repository.git_in(&bare, &["worktree", "add", "-q", "../linked", "main"], "");
    let linked = folder.path().join("linked");
    fs::write(linked.join("top"), "changed").expect("written");
    repository.check_in(&linked, "of a bare repository");
    // With a configuration of its own for each work tree, git moves `core.bare` to that of the bare repository.
    repository.git_in(&linked, &["sparse-checkout", "set", "sub"], "");
    assert!(fs::read_to_string(bare.join("config.worktree")).expect("read").contains("bare"));
    repository.check_in(&linked, "with a configuration for each work tree");
}

#[test]
fn a_submodule_has_its_own_state_and_so_has_a_worktree_of_it() {
    let (folder, inner) = repository();
    let outer = Repository::at(&folder.path().join("outer"), &[]);
    let url = inner.path().display().to_string();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, "deep/module"]);
    outer.commit();
    let module = outer.path().join("deep/module");
    assert!(module.join(".git").is_file());
    outer.check("the repository around it");
    outer.check_in(&module, "clean");
    fs::write(module.join("sub/a"), "changed in the submodule").expect("written");
    fs::write(module.join("sub/deep/new"), "").expect("written");
    outer.check_in(&module, "changed");
    outer.check_in(&module.join("sub/deep"), "a subfolder of it");
    let found = ours(&module.join("sub/deep")).expect("a repository");
    assert_eq!(found.dirty, [dirty("new", Change::Untracked)]);
    let linked = folder.path().join("linked");
    outer.git_in(&module, &["worktree", "add", "-q", "-b", "side", linked.to_str().expect("text")], "");
    fs::write(linked.join("top"), "changed in its worktree").expect("written");
    outer.check_in(&linked, "a linked worktree of the submodule");
    assert_eq!(ours(&linked).expect("a repository").branch.as_deref(), Some("side"));
}

#[test]
fn a_submodule_without_a_repository_belongs_to_the_one_around_it() {
    let (folder, inner) = repository();
    let outer = Repository::at(&folder.path().join("outer"), &[]);
    let url = inner.path().display().to_string();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, "module"]);
    outer.commit();
    outer.git(&["submodule", "--quiet", "deinit", "--force", "module"]);
    let found = ours(&outer.path().join("module")).expect("a repository");
    assert_eq!(found.dirty, []);
    assert_eq!(Some(found), ours(outer.path()));
}

#[test]
fn a_git_directory_elsewhere_has_to_name_the_folder_in_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let repository =
        Repository::at(&folder.path().join("work"), &["--separate-git-dir", data.to_str().expect("text")]);
    repository.write("a", "a");
    repository.commit();
    repository.write("b", "b");
    assert_not_used(repository.path(), &["outside of this folder", "`git config core.worktree PATH`"]);
    repository.git(&["config", "core.worktree", repository.path().to_str().expect("text")]);
    repository.check("named in turn");
    repository.git(&["config", "core.worktree", "../work"]);
    repository.check("named in turn by a relative path");
    repository.git(&["config", "core.worktree", folder.path().to_str().expect("text")]);
    assert_not_used(repository.path(), &["core.worktree"]);
}

#[test]
fn a_gitfile_shows_nothing_of_a_repository_that_is_not_its_own() {
    let (folder, repository) = repository();
    repository.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let attacker = folder.path().join("attacker");
    fs::create_dir(&attacker).expect("made");
    let git_dir = repository.path().join(".git");
    let gitfile = |path: &Path| {
        fs::write(attacker.join(".git"), format!("gitdir: {}\n", path.display())).expect("written");
    };
    gitfile(&git_dir);
    assert_not_used(&attacker, &["core.worktree"]);
    gitfile(Path::new("../main/.git"));
    assert_not_used(&attacker, &["core.worktree"]);
    gitfile(&git_dir.join("worktrees/linked"));
    assert_not_used(&attacker, &["another folder", "`git worktree repair`"]);
    // A git directory of the attacker's own that says it is a worktree of somebody else's repository.
    let forged = attacker.join("forged");
    fs::create_dir(&forged).expect("made");
    fs::write(forged.join("HEAD"), "ref: refs/heads/main\n").expect("written");
    fs::write(forged.join("commondir"), format!("{}\n", git_dir.display())).expect("written");
    fs::write(forged.join("gitdir"), format!("{}/.git\n", attacker.display())).expect("written");
    gitfile(&forged);
    assert_not_used(&attacker, &["none of the linked worktrees"]);
    gitfile(Path::new("forged"));
    assert_not_used(&attacker, &["none of the linked worktrees"]);
    // The same, where the attacker's folder looks like that of a repository with worktrees.
    let registered = attacker.join("own/worktrees/forged");
    fs::create_dir_all(attacker.join("own/worktrees")).expect("made");
    for name in ["objects", "refs"] {
        fs::create_dir(attacker.join("own").join(name)).expect("made");
    }
    fs::rename(&forged, &registered).expect("moved");
    gitfile(&registered);
    assert_not_used(&attacker, &["none of the linked worktrees"]);
    fs::rename(&registered, &forged).expect("moved");
    // The same as a folder `.git`.
    fs::remove_file(attacker.join(".git")).expect("removed");
    fs::rename(&forged, attacker.join(".git")).expect("moved");
    assert_message(&problem(&attacker), &["`commondir`"]);
}

#[test]
fn a_configuration_does_not_lead_to_another_work_tree_or_file() {
    let (folder, repository) = repository();
    let secret = folder.path().join("secret");
    fs::create_dir(&secret).expect("made");
    fs::write(secret.join("config"), "[core]\n\tbare = true\n\tfileMode = maybe\n").expect("written");
    let path = secret.join("config").display().to_string();
    repository.git(&["config", "include.path", &path]);
    repository.git(&["config", "core.excludesFile", &path]);
    repository.git(&["config", "core.attributesFile", &path]);
    assert_eq!(ours(repository.path()).expect("a repository").dirty, []);
    repository.git(&["config", "--unset", "include.path"]);
    repository.git(&["config", "core.worktree", secret.to_str().expect("text")]);
    assert_not_used(repository.path(), &["core.worktree"]);
    assert_not_used(&repository.path().join("sub"), &["core.worktree"]);
    fs::write(repository.path().join(".git/config"), "[core]\n\tworktree = ..\n").expect("written");
    repository.check("its own work tree, named");
}

#[test]
fn a_gitfile_that_leads_nowhere_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("made");
    make_fifo(&folder.path().join("fifo"));
    fs::create_dir(folder.path().join("empty")).expect("made");
    symlink("loop", folder.path().join("loop")).expect("linked");
    let long = "x/".repeat(20_000);
    let cases: &[(&[u8], &str)] = &[
        (b"gitdir: ../nowhere\n", "`git worktree repair`"),
        (b"gitdir: /nowhere\n", "does not exist"),
        (b"gitdir: ../fifo\n", "does not exist"),
        (b"gitdir: ../loop\n", "does not exist"),
        (b"gitdir: ../empty\n", "no git directory: `HEAD` is missing"),
        (b"gitdir: /\n", "no git directory"),
        (b"gitdir: .\n", "no git directory"),
        (b"gitdir: .git\n", "does not exist"),
        (b"gitdir: /proc/self/root\n", ""),
        (b"gitdir: a\0b\n", ""),
        (b"gitdir: \xff\xfe\n", "does not exist"),
        (b"gitdir:\n", "`gitdir: `"),
        (b"", "`gitdir: `"),
        (long.as_bytes(), "`gitdir: `"),
    ];
    for (content, piece) in cases {
        fs::write(root.join(".git"), content).expect("written");
        assert_message(&problem(&root), &[".git", piece]);
        fs::create_dir_all(root.join("sub")).expect("made");
        assert_message(&problem(&root.join("sub")), &[".git", piece]);
    }
    fs::write(root.join(".git"), vec![b'x'; 1 << 20]).expect("written");
    assert!(matches!(problem(&root), Problem::TooLarge { .. }));
}

#[test]
fn what_is_named_git_but_is_no_repository_is_reported_unless_there_is_one_above() {
    let (folder, repository) = repository();
    let alone = folder.path().join("alone");
    let inside = repository.path().join("other");
    type Make = fn(&Path);
    let make: &[(&str, Make)] = &[
        ("`HEAD` is missing", |git| fs::create_dir(git).expect("made")),
        ("`objects` is missing", |git| {
            fs::create_dir(git).expect("made");
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        }),
        ("neither a folder nor a file", make_fifo),
    ];
    for (piece, make) in make {
        fs::create_dir(&alone).expect("made");
        make(&alone.join(".git"));
        assert_message(&problem(&alone), &[".git", piece]);
        fs::remove_dir_all(&alone).expect("removed");
        make(&inside.join(".git"));
        repository.check_in(&inside, piece);
        fs::remove_dir_all(inside.join(".git"))
            .or_else(|_| fs::remove_file(inside.join(".git")))
            .expect("removed");
    }
    symlink(repository.path().join(".git"), folder.path().join(".git")).expect("linked");
    assert_not_used(folder.path(), &["symbolic link"]);
    fs::create_dir(folder.path().join("below")).expect("made");
    assert_not_used(&folder.path().join("below"), &["symbolic link"]);
}

#[test]
fn a_root_without_a_work_tree_is_reported() {
    let (folder, repository) = repository();
    repository.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    for root in [folder.path().join("bare.git"), folder.path().join("bare.git/refs/heads")] {
        assert_not_used(&root, &["bare", "no work tree"]);
    }
    assert_not_used(&repository.path().join(".git/objects"), &["no work tree"]);
    repository.git(&["config", "core.bare", "true"]);
    assert_not_used(repository.path(), &["core.bare"]);
}

/// A file system of its own on a folder, for as long as the test runs.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where mounting is not allowed.
    fn on(folder: PathBuf) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&folder).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).output());
    }
}

#[test]
fn a_repository_on_another_file_system_is_not_used() {
    let (_folder, repository) = repository();
    fs::create_dir(repository.path().join("mounted")).expect("made");
    // Only root may mount.
    let Some(mounted) = Mounted::on(repository.path().join("mounted")) else { return };
    fs::create_dir(mounted.0.join("sub")).expect("made");
    for root in [mounted.0.clone(), mounted.0.join("sub")] {
        assert_not_used(&root, &["another file system"]);
    }
}

#[test]
fn a_repository_of_another_user_outside_of_the_root_is_not_used() {
    const SOMEBODY_ELSE: u32 = 54_321;
    let (folder, repository) = repository();
    repository.git(&["worktree", "add", "-q", "../linked"]);
    let main = repository.path();
    // Only root may give files away.
    let give = |path: PathBuf, user: u32| chown(path, Some(user), None).is_ok();
    if !give(main.join(".git"), SOMEBODY_ELSE) {
        return;
    }
    let pieces = &["belongs to user 54321", "safe.directory"];
    assert_not_used(&main.join("sub"), pieces);
    assert_not_used(&folder.path().join("linked"), pieces);
    // The operator has named this folder, and everything in it is served in any case.
    assert!(ours(main).is_some());
    // The owner of the root may have a repository above it.
    assert!(give(main.join("sub"), SOMEBODY_ELSE));
    assert!(ours(&main.join("sub")).is_some());
    assert!(give(main.join(".git"), 0) && give(main.to_owned(), SOMEBODY_ELSE));
    assert_not_used(&main.join("other"), pieces);
}

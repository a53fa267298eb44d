//! Damaged repositories: the damage is reported, or the bytes mean something else, but nothing panics or hangs.

#[path = "support/git.rs"]
mod git;

use std::{
    fs,
    path::{Path, PathBuf},
};

use git::Repository;
use pintle_git::{Problem, status};

/// A repository with something in every file that is read.
fn repository() -> Repository {
    let repository = Repository::new(&[]);
    for round in 0..6 {
        for folder in 0..4 {
            let text: String = (0..40).map(|line| format!("{line} {round}\n")).collect();
            repository.write(&format!("folder-{folder}/file-{round}"), &text);
        }
        repository.write(".gitignore", "*.o\n");
        repository.commit();
    }
    repository.git(&["gc", "-q", "--prune=now"]);
    // The head's tree differs from the index, so that all trees are read.
    for folder in 0..4 {
        repository.write(&format!("folder-{folder}/new"), "new");
    }
    repository.git(&["add", "-A"]);
    repository
}

/// Damages a file in many ways, and asks each time.
fn damage(repository: &Repository, file: &Path, step: usize) -> usize {
    damage_in(repository, repository.path(), file, step)
}

/// The same, where the root is another folder than the repository.
fn damage_in(repository: &Repository, root: &Path, file: &Path, step: usize) -> usize {
    let content = fs::read(file).expect("read");
    // Git makes its packs read-only.
    fs::remove_file(file).expect("removed");
    let mut problems = 0;
    let mut ask = |damaged: &[u8]| {
        fs::write(file, damaged).expect("written");
        if let Err(problem) = status(root, &|| false) {
            assert!(!matches!(problem, Problem::Ended));
            problems += 1;
        }
    };
    for at in (0..content.len()).step_by(step) {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = content.clone();
            damaged[at] ^= flip;
            ask(&damaged);
        }
        ask(&content[..at]);
    }
    ask(&[&content[..], &content[..]].concat());
    ask(&vec![0xff; content.len()]);
    fs::write(file, &content).expect("written");
    repository.check_in(root, "repaired");
    problems
}

fn packs(repository: &Repository, ending: &str) -> PathBuf {
    let folder = repository.path().join(".git/objects/pack");
    let mut files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.find(|path| path.extension().is_some_and(|own| own == ending)).expect("a pack")
}

#[test]
fn a_damaged_index_is_reported() {
    let repository = repository();
    let file = repository.path().join(".git/index");
    assert!(damage(&repository, &file, 29) > 200);
}

#[test]
fn a_damaged_index_whose_checksum_nobody_made_does_no_harm() {
    for version in ["2", "4"] {
        let repository = repository();
        repository.git(&["config", "index.skipHash", "true"]);
        repository.git(&["update-index", "--force-write-index", "--index-version", version]);
        let file = repository.path().join(".git/index");
        assert!(fs::read(&file).expect("read").ends_with(&[0; 20]));
        damage(&repository, &file, 11);
    }
}

#[test]
fn a_damaged_pack_is_reported_wherever_it_is_read() {
    let repository = repository();
    assert!(damage(&repository, &packs(&repository, "pack"), 17) > 50);
    assert!(damage(&repository, &packs(&repository, "idx"), 17) > 20);
}

#[test]
fn damaged_refs_and_configurations_do_no_harm() {
    let repository = repository();
    for name in ["HEAD", "packed-refs", "config", "info/exclude"] {
        damage(&repository, &repository.path().join(".git").join(name), 1);
    }
}

#[test]
fn damaged_files_of_a_linked_worktree_do_no_harm() {
    let repository = repository();
    let folder = tempfile::tempdir().expect("a folder");
    let linked = folder.path().join("linked");
    repository.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().expect("text")]);
    let git_dir = repository.path().join(".git/worktrees/linked");
    for file in [
        linked.join(".git"),
        git_dir.join("gitdir"),
        git_dir.join("commondir"),
        git_dir.join("HEAD"),
        git_dir.join("index"),
    ] {
        assert!(damage_in(&repository, &linked, &file, if file.ends_with("index") { 97 } else { 1 }) > 10);
    }
}

#[test]
fn a_tree_that_stands_for_more_folders_than_can_be_counted_is_refused() {
    let repository = Repository::new(&[]);
    repository.write("a", "a");
    repository.commit();
    let hash = |output: Vec<u8>| String::from_utf8(output).expect("text").trim().to_owned();
    let mut tree = hash(repository.git(&["mktree"]));
    for _ in 0..60 {
        let input = format!("040000 tree {tree}\tx\n040000 tree {tree}\ty\n");
        tree = hash(repository.git_with_input(&["mktree"], &input));
    }
    let commit = hash(repository.git(&["commit-tree", "-m", "bomb", &tree]));
    repository.git(&["update-ref", "HEAD", &commit]);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let has_ended = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2000;
    assert!(matches!(status(repository.path(), &has_ended), Err(Problem::Ended)));
}

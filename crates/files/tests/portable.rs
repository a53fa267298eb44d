//! The table of paths against both implementations of path resolution: the kernel's and the portable one.

#[path = "../../../tests/paths/world.rs"]
mod world;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use pintle_contract::{ErrorCode, Fault, Verb, WorkspacePath};
use pintle_files::{
    Durability, Hash, LocalFolder, NoRules, Plan, Source, Splice, Store, StoreError, Tag, Terms,
};

use self::world::{Case, Expected, Operation, SECRET, Tree, after, build, cases, restore, tree};

const NEW: &[u8] = b"more\n";

fn with_terms<T>(work: impl FnOnce(&Terms<'_>) -> T) -> T {
    work(&Terms { permit: &|_, _| Ok(()), rules: &NoRules, has_ended: &|| false, commit: &|| true })
}

fn content_of(source: &dyn Source) -> Result<Vec<u8>, StoreError> {
    let mut content = vec![0; usize::try_from(source.size()).expect("small")];
    let count = source.read_at(0, &mut content)?;
    content.truncate(count);
    Ok(content)
}

/// Appends to a file.
fn append(
    store: &LocalFolder,
    path: &WorkspacePath,
    expected: Hash,
    terms: &Terms<'_>,
) -> Result<Hash, StoreError> {
    let mut plan = |source: &dyn Source| {
        let splice = Splice { start: source.size(), removed: 0, inserted: NEW.to_vec() };
        Ok(Plan { found: Hash::of(&content_of(source)?), change: Ok(vec![splice]) })
    };
    store.swap(path, &Tag::from(expected), &mut plan, terms)
}

/// The code that a caller would get.
fn code(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound => "NOT_FOUND",
        StoreError::Exists | StoreError::KeepsChanging => "CONFLICT",
        StoreError::Stale(_) => "stale",
        StoreError::Refused(_) => "refused",
        StoreError::Ended => "ended",
        StoreError::Target(error) => code(error),
        StoreError::Io(_) => "UPSTREAM_FAILED",
        _ => "INVALID_REQUEST",
    }
}

/// One way to open the root, and the world in it.
struct World {
    store: LocalFolder,
    root: PathBuf,
    outside: PathBuf,
    inside_before: Tree,
    outside_before: Tree,
}

impl World {
    fn new(folder: &Path, open: fn(&Path) -> std::io::Result<LocalFolder>) -> Self {
        let (root, outside) = (folder.join("root"), folder.join("outside"));
        fs::create_dir(&root).expect("a folder");
        fs::create_dir(&outside).expect("a folder");
        build(&root, &outside);
        let store = open(&root).expect("opens").with_durability(Durability::Eventual);
        let (inside_before, outside_before) = (tree(&root), tree(&outside));
        Self { store, root, outside, inside_before, outside_before }
    }

    /// Performs an operation. Returns the content if it was a read.
    fn try_to(
        &self,
        operation: Operation,
        path: &str,
        hash: Hash,
        moved: &str,
    ) -> Result<Vec<u8>, &'static str> {
        let path = WorkspacePath::parse(path).map_err(|_| "INVALID_REQUEST")?;
        let moved = WorkspacePath::parse(moved).expect("a path");
        let done = with_terms(|terms| match operation {
            Operation::Read => content_of(self.store.open(&path, terms)?.as_ref()),
            Operation::List => self.store.list(&path, terms).map(|_| Vec::new()),
            Operation::Create => self.store.create(&path, NEW, terms).map(|_| Vec::new()),
            Operation::Edit => append(&self.store, &path, hash, terms).map(|_| Vec::new()),
            Operation::Remove => self.store.remove(&path, &Tag::from(hash), terms).map(|()| Vec::new()),
            Operation::MoveFrom => {
                self.store.rename(&path, &Tag::from(hash), &moved, terms).map(|_| Vec::new())
            }
            Operation::MoveTo => {
                self.store.rename(&moved, &Tag::from(hash), &path, terms).map(|_| Vec::new())
            }
        });
        done.map_err(|error| code(&error))
    }

    fn check(&self, case: &Case, operation: Operation) -> Result<(), String> {
        match &case.expected {
            Expected::Refused { code, piece } => {
                let source = if operation == Operation::MoveTo { "copy" } else { "moved" };
                let done = self.try_to(operation, &case.path, Hash::of(SECRET.as_bytes()), source);
                if done != Err(code.as_str()) {
                    return Err(format!("{done:?} instead of {code} ({piece})"));
                }
            }
            Expected::Done(target) => {
                let old = fs::read(self.root.join(target)).unwrap_or_default();
                let (hash, moved) = match operation {
                    Operation::MoveTo => (Hash::of(b"in plain\n"), PathBuf::from("plain")),
                    _ => (Hash::of(&old), Path::new(target).with_file_name("moved")),
                };
                let moved = moved.to_str().expect("text");
                let found = self.try_to(operation, &case.path, hash, moved)?;
                if operation == Operation::Read && found != old {
                    return Err(format!("{found:?} was read"));
                }
                let there = tree(&self.root);
                if there != after(self.inside_before.clone(), operation, target, NEW, moved) {
                    return Err("the root is not as it should be".into());
                }
                restore(&self.root, &there, &self.inside_before);
            }
        }
        if matches!(operation, Operation::Read | Operation::List) {
            return Ok(());
        }
        match tree(&self.outside) == self.outside_before {
            true if tree(&self.root) == self.inside_before => Ok(()),
            true => Err("the root has changed".into()),
            false => Err("THE OUTSIDE HAS CHANGED".into()),
        }
    }
}

/// Runs the table against one way of opening.
fn check_table(open: fn(&Path) -> std::io::Result<LocalFolder>) {
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::new(folder.path(), open);
    let mut problems = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 200);
    for case in &cases {
        for operation in &case.operations {
            // How long a path may be together with the root's own is a matter of the way.
            let is_long = matches!(&case.expected, Expected::Refused { piece, .. } if piece == "too long");
            if is_long && WorkspacePath::parse(&case.path).is_ok() {
                continue;
            }
            if let Err(problem) = world.check(case, *operation) {
                let path: String = case.path.chars().take(60).collect();
                problems.push(format!("line {}: {operation:?} {path:?}: {problem}", case.line));
                build(&world.root, &world.outside);
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_path_leads_where_the_table_says_with_the_kernels_help() {
    check_table(LocalFolder::open);
}

#[test]
fn every_path_leads_where_the_table_says_without_the_kernels_help() {
    check_table(LocalFolder::open_portably);
}

/// A link in scope leads in turn to a file in scope and to one that is not.
fn check_scope_race(open: fn(&Path) -> std::io::Result<LocalFolder>) {
    const TRIES: usize = 4000;
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for (path, content) in [("in/folder/file", "inside"), ("out/file", "secret")] {
        fs::create_dir_all(root.join(path).parent().expect("a folder")).expect("a folder");
        fs::write(root.join(path), content).expect("writes");
    }
    symlink("folder", root.join("in/one")).expect("a link");
    symlink("../out", root.join("in/other")).expect("a link");
    let allowed = WorkspacePath::parse("in").expect("a path");
    let permit = |_: Verb, path: &WorkspacePath| match path.is_within(&allowed) {
        true => Ok(()),
        false => Err(Fault::new(ErrorCode::Forbidden, "out of scope")),
    };
    let terms = Terms { permit: &permit, rules: &NoRules, has_ended: &|| false, commit: &|| true };
    let store = open(root).expect("opens").with_durability(Durability::Eventual);
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let path = WorkspacePath::parse("in/one/file").expect("a path");
    let leaks = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (root.join("in/one"), root.join("in/other"));
            while !is_over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &other, flags);
            }
        });
        let mut leaks = 0;
        for _ in 0..TRIES {
            if let Ok(source) = store.open(&path, &terms) {
                reads.fetch_add(1, Ordering::Relaxed);
                leaks += usize::from(content_of(source.as_ref()).is_ok_and(|content| content == b"secret"));
            }
            let _ = append(&store, &path, Hash::of(b"secret"), &terms);
        }
        is_over.store(true, Ordering::Relaxed);
        leaks
    });
    assert!(reads.into_inner() > 0, "the link never led inside");
    assert_eq!(leaks, 0, "what is out of scope was read");
    assert_eq!(fs::read(root.join("out/file")).expect("reads"), b"secret", "what is out of scope was edited");
}

#[test]
fn a_link_that_changes_carries_nobody_out_of_scope_with_the_kernels_help() {
    check_scope_race(LocalFolder::open);
}

#[test]
fn a_link_that_changes_carries_nobody_out_of_scope_without_the_kernels_help() {
    check_scope_race(LocalFolder::open_portably);
}

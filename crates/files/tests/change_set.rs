//! Change sets: all files change, or none, whatever fails and whenever the process is killed.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use pintle_contract::{ErrorCode, Fault, Verb, WorkspacePath};
use pintle_files::{
    ChangeKind, ChangeSetError, FileChange, Hash, LocalFolder, NoRules, Plan, Source, Splice, Store,
    StoreError, Tag, Terms,
};

/// Where a child process finds its world, and at which step it kills itself.
const CHILD: &str = "PINTLE_TEST_CHANGE_SET";

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("a path")
}

fn with_terms<T>(work: impl FnOnce(&Terms<'_>) -> T) -> T {
    with_commit(&|| true, work)
}

fn with_commit<T>(commit: &dyn Fn() -> bool, work: impl FnOnce(&Terms<'_>) -> T) -> T {
    with_both(commit, &|| false, work)
}

fn with_both<T>(
    commit: &dyn Fn() -> bool,
    has_ended: &dyn Fn() -> bool,
    work: impl FnOnce(&Terms<'_>) -> T,
) -> T {
    let permit = |verb, path: &WorkspacePath| match (verb, path.as_str()) {
        (Verb::Write, "denied/file") => Err(Fault::new(ErrorCode::Forbidden, "denied")),
        _ => Ok(()),
    };
    work(&Terms { permit: &permit, rules: &NoRules, has_ended, commit })
}

/// Replaces the whole content of a file, if it has the expected one.
fn edit<'a>(text: &str, expected: &str, new: &'a str) -> FileChange<'a> {
    let plan = |source: &dyn Source| {
        let mut content = vec![0; usize::try_from(source.size()).expect("small")];
        let count = source.read_at(0, &mut content)?;
        content.truncate(count);
        let splice = Splice { start: 0, removed: source.size(), inserted: new.as_bytes().to_vec() };
        Ok(Plan { found: Hash::of(&content), change: Ok(vec![splice]) })
    };
    let expected = Tag::from(Hash::of(expected.as_bytes()));
    FileChange { path: path(text), kind: ChangeKind::Edit { expected, plan: Box::new(plan) } }
}

fn create<'a>(text: &str, content: &'a str) -> FileChange<'a> {
    FileChange { path: path(text), kind: ChangeKind::Create(content.as_bytes()) }
}

/// A root with some files, and a state folder beside it.
struct World {
    folder: tempfile::TempDir,
}

const FILES: [(&str, u32); 5] =
    [("a", 0o644), ("b", 0o755), ("sub/c", 0o600), ("sub/deep/d", 0o640), ("sub/e", 0o644)];

impl World {
    fn new(on: &Path) -> Self {
        let folder = tempfile::tempdir_in(on).expect("a folder");
        let world = Self { folder };
        for (name, mode) in FILES {
            let file = world.root().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(&file, format!("old {name}\n")).expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
        }
        world
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn journals(&self) -> PathBuf {
        self.folder.path().join("state/changes")
    }

    fn store(&self) -> LocalFolder {
        LocalFolder::open(&self.root()).expect("opens").with_journals(Some(self.journals()))
    }

    /// What all files have, with their modes.
    fn content(&self) -> BTreeMap<String, (u32, String)> {
        let mut content = BTreeMap::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path()) {
                let name = entry.strip_prefix(self.root()).expect("below").to_string_lossy().into_owned();
                if entry.is_dir() {
                    content.insert(format!("{name}/"), (0, String::new()));
                    folders.push(entry);
                } else {
                    let mode = entry.metadata().expect("there").permissions().mode() & 0o7777;
                    content.insert(name, (mode, fs::read_to_string(&entry).expect("text")));
                }
            }
        }
        content
    }

    fn journals_left(&self) -> usize {
        fs::read_dir(self.journals()).map_or(0, Iterator::count)
    }
}

/// The change set of most tests: five files in three folders, and two that are created, one with its folders.
fn change_all(store: &LocalFolder) -> Result<Vec<Hash>, ChangeSetError> {
    change_all_unless(&|| false, store)
}

fn change_all_unless(has_ended: &dyn Fn() -> bool, store: &LocalFolder) -> Result<Vec<Hash>, ChangeSetError> {
    let (texts, mut changes) =
        (FILES.map(|(name, _)| (name, format!("old {name}\n"), format!("new {name}\n"))), Vec::new());
    for (name, old, new) in &texts {
        changes.push(edit(name, old, new));
    }
    changes.insert(2, create("sub/created", "new\n"));
    changes.push(create("new/folders/created", "new\n"));
    with_both(&|| true, has_ended, |terms| store.change_set(&mut changes, &mut || Ok(()), false, terms))
}

/// The two states that there may be.
fn both_states(on: &Path) -> [BTreeMap<String, (u32, String)>; 2] {
    let world = World::new(on);
    let before = world.content();
    change_all(&world.store()).expect("changes");
    let after = world.content();
    assert_eq!(after["b"], (0o755, "new b\n".into()));
    assert_eq!(after["new/folders/created"].1, "new\n");
    assert_eq!(world.journals_left(), 0);
    [before, after]
}

/// The file systems that the tests can use.
fn places() -> Vec<PathBuf> {
    let mut places = vec![std::env::temp_dir()];
    places.extend(Some(PathBuf::from("/dev/shm")).filter(|place| place.is_dir()));
    places
}

/// A process of this test that makes the change set and kills itself before a step.
fn child(world: &World, step: usize) -> std::process::ExitStatus {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "in_a_child_process", "--nocapture"]);
    command.env(CHILD, format!("{step}:{}", world.folder.path().display()));
    command.output().expect("runs").status
}

/// Not a test by itself: what [`child`] runs.
#[test]
fn in_a_child_process() {
    let Ok(given) = std::env::var(CHILD) else { return };
    let (step, folder) = given.split_once(':').expect("a step and a folder");
    let (step, folder): (usize, _) = (step.parse().expect("a number"), PathBuf::from(folder));
    let count = AtomicUsize::new(0);
    let checkpoint = move |_: &str| {
        if count.fetch_add(1, Ordering::Relaxed) == step {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("kills");
        }
        Ok(())
    };
    let store = LocalFolder::open(&folder.join("root")).expect("opens");
    let store = store.with_journals(Some(folder.join("state/changes"))).with_checkpoint(Box::new(checkpoint));
    store.recover();
    change_all(&store).expect("changes");
}

#[test]
fn killed_before_any_step_leaves_all_files_old_or_all_new_after_recovery() {
    for place in places() {
        let states = both_states(&place);
        let mut seen = [0; 2];
        for step in 0.. {
            let world = World::new(&place);
            let status = child(&world, step);
            world.store().recover();
            let content = world.content();
            let state = states.iter().position(|state| *state == content);
            let state = state.unwrap_or_else(|| panic!("killed before step {step}: {content:#?}"));
            seen[state] += 1;
            assert_eq!(world.journals_left(), 0, "step {step}");
            if status.success() {
                break;
            }
            assert_eq!(status.signal(), Some(9), "step {step}: {status}");
            // Whoever tries again succeeds or is told that it has happened.
            assert_eq!(change_all(&world.store()).is_ok(), state == 0, "step {step}");
            assert_eq!(world.content(), states[1], "step {step}");
        }
        assert!(seen[0] > 10 && seen[1] > 5, "{seen:?}");
    }
}

#[test]
fn killed_again_and_again_the_next_change_set_recovers_by_itself() {
    let place = std::env::temp_dir();
    let states = both_states(&place);
    let world = World::new(&place);
    for step in 0.. {
        // Each child finds what the one before has left, and recovers before it begins.
        if child(&world, step).code().is_some() {
            break;
        }
    }
    assert_eq!(world.content(), states[1]);
    assert_eq!(world.journals_left(), 0);
}

#[test]
fn a_step_that_fails_undoes_everything() {
    let place = std::env::temp_dir();
    let [before, after] = both_states(&place);
    for failing in 0.. {
        let world = World::new(&place);
        let count = AtomicUsize::new(0);
        let checkpoint = move |_: &str| match count.fetch_add(1, Ordering::Relaxed) == failing {
            true => Err(io::Error::from_raw_os_error(28)),
            false => Ok(()),
        };
        let store = world.store().with_checkpoint(Box::new(checkpoint));
        let result = change_all(&store);
        // After the last exchange a failure means that something is left to be removed.
        if result.is_ok() {
            store.recover();
        }
        assert_eq!(world.journals_left(), 0, "step {failing}");
        match result {
            Ok(_) => {
                assert_eq!(world.content(), after, "step {failing}");
                if failing > 60 {
                    break;
                }
            }
            Err(ChangeSetError::Whole(StoreError::Io(_))) => {
                assert_eq!(world.content(), before, "step {failing}");
            }
            Err(ChangeSetError::Files(problems)) => {
                assert!(matches!(problems[..], [(_, StoreError::Io(_))]), "step {failing}: {problems:?}");
                assert_eq!(world.content(), before, "step {failing}");
            }
            Err(error) => panic!("step {failing}: {error:?}"),
        }
    }
}

#[test]
fn a_cancelled_change_set_changes_nothing() {
    let world = World::new(&std::env::temp_dir());
    let before = world.content();
    let mut changes = [edit("a", "old a\n", "x"), edit("b", "old b\n", "x"), create("new/file", "x")];
    let result =
        with_commit(&|| false, |terms| world.store().change_set(&mut changes, &mut || Ok(()), false, terms));
    assert!(matches!(result, Err(ChangeSetError::Whole(StoreError::Ended))), "{result:?}");
    assert_eq!((world.content(), world.journals_left()), (before, 0));
}

#[test]
fn all_that_is_wrong_is_reported_and_nothing_is_changed() {
    let world = World::new(&std::env::temp_dir());
    fs::create_dir(world.root().join("denied")).expect("made");
    fs::write(world.root().join("denied/file"), "").expect("written");
    symlink("../../outside", world.root().join("sub/out")).expect("linked");
    let before_bad = world.root().join("a");
    let changes = |paths: &[&str]| {
        let mut changes: Vec<_> = paths.iter().map(|path| edit(path, "else", "x")).collect();
        with_terms(|terms| world.store().change_set(&mut changes, &mut || Ok(()), false, terms))
            .expect_err("is refused")
    };
    let numbers = |error: ChangeSetError| match error {
        ChangeSetError::Files(problems) => problems.into_iter().map(|(number, _)| number).collect::<Vec<_>>(),
        error => panic!("{error:?}"),
    };
    // What a path leads to comes before what the files have.
    assert_eq!(
        numbers(changes(&["a", "denied/file", "sub", "sub/out", "a/b", ".pintle-staged/x"])),
        [1, 3, 4, 5]
    );
    assert_eq!(numbers(changes(&["a", "b", "none", "sub", "none/deep"])), [0, 1, 2, 3, 4]);
    assert_eq!(fs::read_to_string(before_bad).expect("text"), "old a\n");
    assert_eq!(world.journals_left(), 0);
}

#[test]
fn a_dry_run_returns_the_hashes_and_changes_nothing() {
    let world = World::new(&std::env::temp_dir());
    let before = world.content();
    let store = LocalFolder::open(&world.root()).expect("opens");
    let mut changes = [edit("a", "old a\n", "x"), create("new/file", "y")];
    let hashes =
        with_terms(|terms| store.change_set(&mut changes, &mut || Ok(()), true, terms)).expect("is possible");
    assert_eq!(hashes, [Hash::of(b"x"), Hash::of(b"y")]);
    assert_eq!(world.content(), before);
    let refused = with_terms(|terms| store.change_set(&mut changes, &mut || Ok(()), false, terms));
    assert!(
        matches!(refused, Err(ChangeSetError::Whole(StoreError::Refused(fault))) if fault.code == ErrorCode::CapabilityMissing)
    );
    assert_eq!(world.content(), before);
}

/// Something that another program does right before the n-th step of a name.
fn meddling(
    store: LocalFolder,
    step: &'static str,
    nth: usize,
    act: impl Fn() + Send + Sync + 'static,
) -> LocalFolder {
    let count = AtomicUsize::new(0);
    store.with_checkpoint(Box::new(move |name: &str| {
        if name == step && count.fetch_add(1, Ordering::Relaxed) == nth {
            act();
        }
        Ok(())
    }))
}

#[test]
fn what_another_program_saves_meanwhile_is_not_lost_and_the_rest_is_undone() {
    for (step, nth) in [
        ("stage", 0),
        ("stage", 3),
        ("commit", 0),
        ("exchange", 0),
        ("exchange", 2),
        ("exchange", 5),
        ("swap", 1),
        ("check", 0),
        ("done", 0),
    ] {
        for in_place in [false, true] {
            // There the lease holds up whoever opens the file, which would be this thread itself.
            if in_place && step == "swap" {
                continue;
            }
            let world = World::new(&std::env::temp_dir());
            let root = world.root();
            let save = move || {
                if in_place {
                    fs::write(root.join("b"), "saved\n").expect("written");
                } else {
                    fs::write(root.join("saving"), "saved\n").expect("written");
                    fs::rename(root.join("saving"), root.join("b")).expect("renamed");
                }
            };
            let store = meddling(world.store(), step, nth, save);
            let result = change_all(&store);
            let content = world.content();
            assert_eq!(content["b"].1, "saved\n", "{step} {nth} {in_place}");
            // Once the new content is there, it is that which another program saves over.
            let others: Vec<_> =
                ["a", "sub/c", "sub/deep/d", "sub/e"].map(|name| content[name].1.starts_with("new")).into();
            assert!(
                others.iter().all(|is_new| *is_new == result.is_ok()),
                "{step} {nth} {in_place} {others:?}"
            );
            assert_eq!(content.contains_key("sub/created"), result.is_ok());
            assert_eq!(content.contains_key("new/"), result.is_ok());
            assert!(
                content.keys().all(|name| !name.contains(".pintle") && !name.contains("recovered")),
                "{content:?}"
            );
            assert_eq!(world.journals_left(), 0);
        }
    }
}

#[test]
fn a_program_that_has_the_old_file_open_and_writes_into_it_stops_the_change_set() {
    let world = World::new(&std::env::temp_dir());
    let root = world.root();
    // It opens the file before the lease, which waits for a second.
    let open = Arc::new(std::sync::Mutex::new(None));
    let opened = Arc::clone(&open);
    let store = meddling(world.store(), "exchange", 1, move || {
        *opened.lock().expect("a lock") =
            Some(fs::OpenOptions::new().append(true).open(root.join("b")).expect("opens"));
    });
    let error = change_all(&store).expect_err("is refused");
    assert!(
        matches!(error, ChangeSetError::Files(ref problems) if matches!(problems[..], [(1, StoreError::InUse)])),
        "{error:?}"
    );
    drop(open);
    assert_eq!(world.content(), both_states(&std::env::temp_dir())[0]);
}

#[test]
fn what_is_written_into_an_old_file_after_it_came_out_is_kept() {
    for step in ["check", "done", "clean up"] {
        let world = World::new(&std::env::temp_dir());
        let root = world.root();
        // As a program does that had opened the file before it was exchanged.
        let write = move || {
            for entry in fs::read_dir(root.join(".pintle-staged")).expect("staged files") {
                let file = entry.expect("an entry").path();
                if fs::read_to_string(&file).expect("text") == "old b\n" {
                    fs::write(file, "saved\n").expect("written");
                }
            }
        };
        let result = change_all(&meddling(world.store(), step, 0, write));
        let content = world.content();
        if step == "check" {
            assert!(
                matches!(result, Err(ChangeSetError::Files(ref problems)) if problems[0].0 == 1),
                "{result:?}"
            );
            assert_eq!((content["a"].1.as_str(), content["b"].1.as_str()), ("old a\n", "saved\n"));
            assert!(!content.contains_key("sub/created"));
        } else {
            // It is too late to undo anything, and not too late to keep it.
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(content["b"].1, "new b\n", "{step}");
            assert_eq!(content["b.recovered-1"].1, "saved\n", "{step}");
        }
    }
}

#[test]
fn a_writer_that_finds_staged_files_recovers_first() {
    let place = std::env::temp_dir();
    let [before, _] = both_states(&place);
    let world = World::new(&place);
    assert_eq!(child(&world, 15).signal(), Some(9));
    let created = with_terms(|terms| world.store().create(&path("sub/other"), b"x", terms));
    created.expect("creates");
    fs::remove_file(world.root().join("sub/other")).expect("removed");
    assert_eq!((world.content(), world.journals_left()), (before, 0));
}

#[test]
fn a_link_that_is_put_in_the_way_meanwhile_leads_nowhere() {
    for (step, nth) in [("journal", 0), ("stage", 3), ("exchange", 2)] {
        let world = World::new(&std::env::temp_dir());
        let (root, outside) = (world.root(), world.folder.path().join("outside"));
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("c"), "old sub/c\n").expect("written");
        let swap = move || {
            fs::rename(root.join("sub"), root.join("moved")).expect("renamed");
            symlink("../outside", root.join("sub")).expect("linked");
        };
        let store = meddling(world.store(), step, nth, swap);
        let _ = change_all(&store);
        assert_eq!(fs::read_to_string(outside.join("c")).expect("text"), "old sub/c\n", "{step}");
        assert_eq!(fs::read_dir(&outside).expect("read").count(), 1, "{step}");
        assert_eq!(world.journals_left(), 0);
    }
}

#[test]
fn edits_of_the_same_file_and_other_change_sets_wait() {
    let world = World::new(&std::env::temp_dir());
    let done = Arc::new(AtomicBool::new(false));
    let (store, other) = (world.store(), Arc::new(world.store()));
    std::thread::scope(|scope| {
        let waiting = std::sync::Mutex::new(None);
        let (is_done, other) = (&done, &other);
        let store = store.with_checkpoint(Box::new(move |name: &str| {
            let _ = name;
            Ok(())
        }));
        *waiting.lock().expect("a lock") = Some(scope.spawn(move || {
            // Of many edits that name the old version one wins at most.
            (0..50)
                .filter(|_| {
                    with_terms(|terms| {
                        let FileChange { kind: ChangeKind::Edit { expected, mut plan }, path } =
                            edit("a", "old a\n", "other\n")
                        else {
                            return false;
                        };
                        other.swap(&path, &expected, &mut plan, terms).is_ok()
                    })
                })
                .count()
        }));
        let changed = change_all(&store).is_ok();
        is_done.store(true, Ordering::Relaxed);
        let edits = waiting.lock().expect("a lock").take().expect("a thread").join().expect("joins");
        assert_eq!(edits + usize::from(changed), 1);
    });
    let content = world.content();
    assert_eq!(content["a"].1 == "new a\n", content["b"].1 == "new b\n");
}

#[test]
fn staged_files_of_a_server_with_another_state_folder_are_left_alone() {
    let place = std::env::temp_dir();
    let world = World::new(&place);
    // Killed in the middle of the exchanges.
    let steps = 1 + 1 + 7 + 1 + 1 + 3;
    assert_eq!(child(&world, steps).signal(), Some(9));
    let is_staged = || world.root().join("sub/.pintle-staged").is_dir();
    assert!(is_staged());
    let other = LocalFolder::open(&world.root()).expect("opens");
    let other = other.with_journals(Some(world.folder.path().join("other/changes")));
    other.recover();
    let names = with_terms(|terms| other.list(&path("sub"), terms)).expect("lists");
    assert!(names.iter().all(|entry| !entry.name.starts_with(".pintle")), "{names:?}");
    // It can work in the folder, and change several files in it.
    let current = |name: &str| fs::read_to_string(world.root().join(name)).expect("text");
    let (c, e) = (current("sub/c"), current("sub/e"));
    let mut changes = [edit("sub/c", &c, "other\n"), edit("sub/e", &e, "other\n")];
    with_terms(|terms| other.change_set(&mut changes, &mut || Ok(()), false, terms)).expect("changes");
    assert!(is_staged());
    // The owner's server undoes what is still its own.
    world.store().recover();
    assert!(!is_staged());
    assert_eq!(current("a"), "old a\n");
    assert_eq!(current("b"), "old b\n");
    assert_eq!((current("sub/c"), current("sub/e")), ("other\n".into(), "other\n".into()));
    assert_eq!(world.journals_left(), 0);
    assert!(!world.root().join("new").exists());
}

#[test]
fn what_another_program_puts_in_the_place_of_a_created_file_stays() {
    let place = std::env::temp_dir();
    let killed_before = |step| {
        let world = World::new(&place);
        assert_eq!(child(&world, step).signal(), Some(9));
        let created = world.root().join("new/folders/created");
        (world, created)
    };
    let step = (0..).find(|step| killed_before(*step).1.exists()).expect("a step");
    for replace in [
        |created: &Path| fs::create_dir(created).expect("made"),
        |created: &Path| symlink("../../a", created).expect("linked"),
        |created: &Path| symlink("/etc/passwd", created).expect("linked"),
        |created: &Path| fs::write(created, "saved\n").expect("written"),
    ] {
        let (world, created) = killed_before(step);
        fs::remove_file(&created).expect("removed");
        replace(&created);
        let kind = created.symlink_metadata().expect("there").file_type();
        let store = world.store();
        store.recover();
        assert_eq!(store.unfinished_changes(), []);
        assert_eq!(world.journals_left(), 0);
        assert_eq!(created.symlink_metadata().expect("there").file_type(), kind);
        assert_eq!(fs::read_to_string(world.root().join("a")).expect("text"), "old a\n");
    }
}

/// Does something at each step of a name, with the number of the step.
fn at_each(
    store: LocalFolder,
    act: impl Fn(&str, usize) -> io::Result<()> + Send + Sync + 'static,
) -> LocalFolder {
    let counts = std::sync::Mutex::new(BTreeMap::<String, usize>::new());
    store.with_checkpoint(Box::new(move |name: &str| {
        let nth = {
            let mut counts = counts.lock().expect("a lock");
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        act(name, nth)
    }))
}

fn fail() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(5))
}

/// Writes a file as a program does that saves by rename.
fn save(root: &Path, name: &str) {
    fs::write(root.join("saving"), "saved\n").expect("written");
    fs::rename(root.join("saving"), root.join(name)).expect("renamed");
}

#[test]
fn what_another_program_saves_in_the_instant_of_the_undo_gets_its_name_back() {
    let [before, _] = both_states(&std::env::temp_dir());
    // The undo begins with the last file.
    for (nth, name) in [(0, "new/folders/created"), (1, "sub/e"), (5, "b"), (6, "a")] {
        let world = World::new(&std::env::temp_dir());
        let root = world.root();
        let store = at_each(world.store(), move |step, number| {
            match step {
                "check" => return fail(),
                "undo" if number == nth => save(&root, name),
                _ => {}
            }
            Ok(())
        });
        let error = change_all(&store).expect_err("is undone");
        let mut content = world.content();
        assert_eq!(content.remove(name).expect("there").1, "saved\n", "{name}: {error:?}");
        let mut before = before.clone();
        before.remove(name);
        for folder in ["new/", "new/folders/"] {
            content.remove(folder);
        }
        assert_eq!(content, before, "{name}");
        assert!(
            matches!(&error, ChangeSetError::NotUndone { kept, is_tried_again: false, .. }
                if matches!(&kept[..], [(kept, _)] if *kept == path(name))),
            "{error:?}"
        );
        assert_eq!(world.journals_left(), 0);
    }
}

#[test]
fn a_panic_is_undone_before_the_locks_are_given_up() {
    let [before, after] = both_states(&std::env::temp_dir());
    for (step, nth) in [("folders", 0), ("stage", 2), ("exchange", 0), ("exchange", 4), ("done", 0)] {
        let world = World::new(&std::env::temp_dir());
        let store = at_each(world.store(), move |name, number| {
            assert!(name != step || number != nth, "a panic in the middle");
            Ok(())
        });
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| change_all(&store)));
        assert!(changed.is_err(), "{step} {nth}");
        assert_eq!((world.content(), world.journals_left()), (before.clone(), 0), "{step} {nth}");
        change_all(&world.store()).expect("changes");
        assert_eq!(world.content(), after);
    }
}

#[test]
fn a_folder_that_another_program_makes_first_is_not_removed_by_the_undo() {
    let world = World::new(&std::env::temp_dir());
    let root = world.root();
    let store = at_each(world.store(), move |name, _| match name {
        "folders" => fs::create_dir(root.join("new")),
        "check" => fail(),
        _ => Ok(()),
    });
    change_all(&store).expect_err("is undone");
    let content = world.content();
    assert!(content.contains_key("new/") && !content.contains_key("new/folders/"), "{content:?}");
}

#[test]
fn a_folder_that_is_moved_while_its_lock_is_waited_for_is_not_changed_where_it_is_now() {
    for single in [false, true] {
        let world = World::new(&std::env::temp_dir());
        let (root, outside) = (world.root(), world.folder.path().join("outside"));
        let holder = fs::File::open(root.join("sub")).expect("opens");
        rustix::fs::flock(&holder, rustix::fs::FlockOperation::LockExclusive).expect("locks");
        let holder = std::cell::RefCell::new(Some(holder));
        // This is asked while the lock is waited for.
        let has_ended = || {
            if let Some(holder) = holder.borrow_mut().take() {
                fs::rename(root.join("sub"), &outside).expect("moved");
                fs::create_dir_all(root.join("sub/deep")).expect("made");
                for name in ["c", "deep/d", "e"] {
                    fs::copy(outside.join(name), root.join("sub").join(name)).expect("copied");
                }
                drop(holder);
            }
            false
        };
        if single {
            let FileChange { kind: ChangeKind::Edit { expected, mut plan }, path } =
                edit("sub/c", "old sub/c\n", "new sub/c\n")
            else {
                panic!()
            };
            with_both(&|| true, &has_ended, |terms| world.store().swap(&path, &expected, &mut plan, terms))
                .expect("changes");
        } else {
            change_all_unless(&has_ended, &world.store()).expect("changes");
        }
        assert!(holder.borrow().is_none());
        assert_eq!(fs::read_to_string(outside.join("c")).expect("text"), "old sub/c\n");
        assert_eq!(fs::read_to_string(root.join("sub/c")).expect("text"), "new sub/c\n");
        assert_eq!(fs::read_dir(&outside).expect("read").count(), 3);
        assert_eq!(world.journals_left(), 0);
    }
}

#[test]
fn a_call_that_needs_too_many_folders_is_refused_before_any_is_made() {
    let world = World::new(&std::env::temp_dir());
    let before = world.content();
    let deep: Vec<String> = (0..200).map(|number| format!("{number}{}/file", "/d".repeat(1200))).collect();
    let mut changes: Vec<_> = deep.iter().map(|name| create(name, "x")).collect();
    let result = with_terms(|terms| world.store().change_set(&mut changes, &mut || Ok(()), false, terms));
    assert!(
        matches!(&result, Err(ChangeSetError::Whole(StoreError::Refused(fault)))
            if fault.code == ErrorCode::InvalidRequest && fault.message.contains("1000")),
        "{result:?}"
    );
    assert_eq!((world.content(), world.journals_left()), (before, 0));
}

#[test]
fn many_new_folders_take_few_descriptors() {
    let world = World::new(&std::env::temp_dir());
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let open = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let own = open();
    let store = at_each(world.store(), move |_, _| {
        seen.fetch_max(open(), Ordering::Relaxed);
        Ok(())
    });
    let deep: Vec<String> = (0..4).map(|number| format!("new/{number}{}/file", "/d".repeat(200))).collect();
    let mut changes: Vec<_> = deep.iter().map(|name| create(name, "x")).collect();
    with_terms(|terms| store.change_set(&mut changes, &mut || Ok(()), false, terms)).expect("changes");
    // Other tests of this program run at the same time.
    let most = most.load(Ordering::Relaxed);
    assert!(most < own + 300, "{own} before, {most} at most");
}

#[test]
fn a_folder_that_is_away_is_undone_when_it_is_back_and_nothing_is_undone_twice() {
    let place = std::env::temp_dir();
    let [before, after] = both_states(&place);
    let world = World::new(&place);
    // Killed after all files were exchanged.
    let last = (0..)
        .map(|step| (step, World::new(&place)))
        .find(|(step, world)| {
            child(world, *step).signal() == Some(9) && {
                let mut content = world.content();
                content.retain(|name, _| !name.contains(".pintle-staged"));
                content == after
            }
        })
        .map(|(step, _)| step)
        .expect("a step");
    assert_eq!(child(&world, last).signal(), Some(9));
    let (sub, away) = (world.root().join("sub"), world.folder.path().join("away"));
    for replace in [false, true] {
        fs::rename(&sub, &away).expect("moved");
        if replace {
            fs::create_dir(&sub).expect("made");
        }
        let store = world.store();
        store.recover();
        let unfinished = store.unfinished_changes();
        assert!(
            matches!(&unfinished[..], [one] if one.reason.contains("its folder is not there")),
            "{unfinished:?}"
        );
        assert_eq!(unfinished[0].files, ["sub/created", "sub/c", "sub/deep/d", "sub/e"].map(path));
        assert_eq!(fs::read_to_string(world.root().join("a")).expect("text"), "old a\n");
        assert!(!world.root().join("new").exists());
        if replace {
            // What is created by now is not what the change set had created, although it has the same content.
            with_terms(|terms| store.create(&path("new/folders/created"), b"new\n", terms)).expect("creates");
            fs::remove_dir(&sub).expect("removed");
        }
        fs::rename(&away, &sub).expect("moved");
    }
    let store = world.store();
    store.recover();
    assert_eq!(store.unfinished_changes(), []);
    assert_eq!(fs::read_to_string(world.root().join("new/folders/created")).expect("text"), "new\n");
    fs::remove_dir_all(world.root().join("new")).expect("removed");
    assert_eq!((world.content(), world.journals_left()), (before, 0));
}

#[test]
fn a_folder_that_is_away_keeps_the_journal_also_if_only_staged_files_are_left_in_it() {
    let place = std::env::temp_dir();
    let states = both_states(&place);
    // Killed before the first exchange, and after the last one.
    let commit = (0..).find(|step| {
        let world = World::new(&place);
        child(&world, *step).signal() == Some(9)
            && fs::read_dir(world.root().join("sub/deep/.pintle-staged"))
                .is_ok_and(|staged| staged.count() > 0)
    });
    let clean_up = (0..).find(|step| {
        let world = World::new(&place);
        let is_done = |journal: io::Result<fs::DirEntry>| {
            let text = fs::read_to_string(journal.expect("an entry").path()).expect("text");
            text.ends_with("done\n")
        };
        child(&world, *step).signal() == Some(9)
            && fs::read_dir(world.journals()).is_ok_and(|mut journals| journals.any(is_done))
    });
    for (step, after) in [(commit, &states[0]), (clean_up, &states[1])] {
        let world = World::new(&place);
        assert_eq!(child(&world, step.expect("a step")).signal(), Some(9));
        let (sub, away) = (world.root().join("sub"), world.folder.path().join("away"));
        fs::rename(&sub, &away).expect("moved");
        let store = world.store();
        store.recover();
        let unfinished = store.unfinished_changes();
        // The files themselves are as they should be, so nothing keeps anybody from changing them.
        assert!(matches!(&unfinished[..], [one] if !one.blocks_edits), "{unfinished:?}");
        // A folder that somebody makes now is not the one that the change set has made.
        let made = world.root().join("new");
        let is_made_again = !made.exists();
        if is_made_again {
            fs::create_dir_all(made.join("folders")).expect("made");
        }
        fs::rename(&away, &sub).expect("moved");
        let store = world.store();
        store.recover();
        assert_eq!(store.unfinished_changes(), []);
        if is_made_again {
            fs::remove_dir(made.join("folders")).expect("is there");
            fs::remove_dir(made).expect("is there");
        }
        assert_eq!((&world.content(), world.journals_left()), (after, 0));
    }
}

#[test]
fn a_program_that_has_new_content_open_loses_nothing_when_it_is_undone() {
    let place = std::env::temp_dir();
    let step = (0..).find(|step| {
        let world = World::new(&place);
        child(&world, *step).signal() == Some(9) && world.content()["b"].1 == "new b\n"
    });
    let world = World::new(&place);
    assert_eq!(child(&world, step.expect("a step")).signal(), Some(9));
    let mut open = fs::OpenOptions::new().append(true).open(world.root().join("a")).expect("opens");
    world.store().recover();
    io::Write::write_all(&mut open, b"saved\n").expect("written");
    let content = world.content();
    assert_eq!(content["a"].1, "old a\n");
    assert_eq!(content["a.recovered-1"].1, "new a\nsaved\n");
    assert_eq!((content["b"].1.as_str(), world.journals_left()), ("old b\n", 0));
}

#[test]
fn a_staged_file_that_could_not_be_written_whole_is_no_save_of_another_program() {
    let world = World::new(&std::env::temp_dir());
    let before = world.content();
    let root = world.root();
    fs::write(root.join("empty"), "").expect("written");
    // The new content of `empty` is not written yet, so its staged file has the bytes of the old one.
    let store = at_each(world.store(), move |name, number| {
        if name == "stage" && number == 1 {
            for staged in fs::read_dir(root.join(".pintle-staged"))? {
                fs::write(staged?.path(), "")?;
            }
            return fail();
        }
        Ok(())
    });
    let mut changes = [edit("empty", "", "new"), edit("a", "old a\n", "new")];
    let error = with_terms(|terms| store.change_set(&mut changes, &mut || Ok(()), false, terms));
    assert!(matches!(error, Err(ChangeSetError::Whole(StoreError::Io(_)))), "{error:?}");
    fs::remove_file(world.root().join("empty")).expect("removed");
    assert_eq!((world.content(), world.journals_left()), (before, 0));
}

#[test]
fn a_journal_that_comes_back_after_the_undo_undoes_nothing_again() {
    let world = World::new(&std::env::temp_dir());
    let (journals, saved) = (world.journals(), world.folder.path().join("saved"));
    let (from, to) = (journals.clone(), saved.clone());
    let store = at_each(world.store(), move |name, _| match name {
        "check" => fail(),
        "remove journal" => {
            let journal = fs::read_dir(&from)?.next().expect("a journal")?.path();
            fs::hard_link(journal, &to)
        }
        _ => Ok(()),
    });
    change_all(&store).expect_err("is undone");
    let written = with_terms(|terms| store.create(&path("sub/created"), b"new\n", terms));
    written.expect("creates");
    // As after a power failure, before the removal of the journal was on disk.
    fs::rename(&saved, journals.join("0123.journal")).expect("renamed");
    let store = world.store();
    store.recover();
    assert_eq!((store.unfinished_changes(), world.journals_left()), (Vec::new(), 0));
    assert_eq!(fs::read_to_string(world.root().join("sub/created")).expect("text"), "new\n");
}

#[test]
fn a_save_that_the_undo_of_a_created_file_has_moved_away_is_not_removed() {
    let world = World::new(&std::env::temp_dir());
    let root = world.root();
    let staged_name = Arc::new(std::sync::Mutex::new(String::new()));
    let (journals, found) = (world.journals(), Arc::clone(&staged_name));
    // Killed right after the undo has moved a save out of its name.
    let store = at_each(world.store(), move |name, _| {
        if name == "check" {
            let journal = fs::read_dir(&journals)?.next().expect("a journal")?.path();
            let text = fs::read_to_string(journal)?;
            let record: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line"))?;
            let files = record["files"].as_array().expect("files").iter();
            let created = files.clone().find(|file| file["path"] == "sub/created").expect("there");
            *found.lock().expect("a lock") = created["staged"].as_str().expect("a name").to_owned();
            let copy = journals.parent().expect("a folder").join("copy");
            fs::write(copy, text)?;
            return fail();
        }
        Ok(())
    });
    change_all(&store).expect_err("is undone");
    fs::create_dir(root.join("sub/.pintle-staged")).expect("made");
    let staged = root.join("sub/.pintle-staged").join(&*staged_name.lock().expect("a lock"));
    fs::write(staged, "saved\n").expect("written");
    fs::rename(world.folder.path().join("state/copy"), world.journals().join("0.journal")).expect("renamed");
    world.store().recover();
    assert_eq!(fs::read_to_string(root.join("sub/created")).expect("text"), "saved\n");
    assert!(!root.join("sub/.pintle-staged").exists());
    assert_eq!(world.journals_left(), 0);
}

#[test]
fn a_writer_and_a_recovery_do_not_wait_for_each_other() {
    let world = World::new(&std::env::temp_dir());
    // The journal of a dead owner that has not staged anything in `sub`.
    let step = 2;
    assert_eq!(child(&world, step).signal(), Some(9));
    let store = Arc::new(world.store());
    let journal =
        fs::read_dir(world.journals()).expect("read").next().expect("a journal").expect("read").path();
    let is_taken = || {
        fs::File::open(&journal).is_ok_and(|file| {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
        })
    };
    let recovering = std::sync::Mutex::new(None);
    let FileChange { kind: ChangeKind::Edit { expected, mut plan }, path: name } =
        edit("sub/c", "old sub/c\n", "other\n")
    else {
        panic!()
    };
    let plan_first = |source: &dyn Source| {
        // The lock on `sub` is held now. Another call recovers.
        let other = Arc::clone(&store);
        recovering.lock().expect("a lock").get_or_insert_with(|| std::thread::spawn(move || other.recover()));
        while !is_taken() {
            std::thread::yield_now();
        }
        plan(source)
    };
    let mut changes = [
        FileChange { path: name, kind: ChangeKind::Edit { expected, plan: Box::new(plan_first) } },
        edit("sub/e", "old sub/e\n", "other\n"),
    ];
    let changed = with_terms(|terms| store.change_set(&mut changes, &mut || Ok(()), false, terms));
    changed.expect("changes");
    drop(changes);
    recovering.lock().expect("a lock").take().expect("a thread").join().expect("recovers");
    assert_eq!(store.unfinished_changes(), []);
    assert_eq!(fs::read_to_string(world.root().join("sub/c")).expect("text"), "other\n");
    assert_eq!(fs::read_to_string(world.root().join("a")).expect("text"), "old a\n");
}

/// A folder that is mounted at another place, until this is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &Path, at: PathBuf) -> Option<Self> {
        fs::create_dir(&at).expect("made");
        let mounted = Command::new("mount").arg("--bind").arg(folder).arg(&at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn a_file_that_is_named_by_two_paths_to_its_folder_is_reported() {
    let world = World::new(&std::env::temp_dir());
    let Some(_mounted) = Mounted::new(&world.root().join("sub"), world.root().join("twice")) else {
        return println!("SKIPPED: nothing can be mounted here");
    };
    let changed = |paths: [&str; 2]| {
        let mut changes =
            paths.map(|path| edit(path, &format!("old sub/{}\n", &path[path.len() - 1..]), "x"));
        with_terms(|terms| world.store().change_set(&mut changes, &mut || Ok(()), false, terms))
    };
    let error = changed(["sub/c", "twice/c"]).expect_err("is one file");
    assert!(
        matches!(&error, ChangeSetError::Files(problems) if matches!(&problems[..], [(1, StoreError::Refused(fault))]
            if fault.message.contains("the same file as /sub/c"))),
        "{error:?}"
    );
    // Its folder is locked only once.
    changed(["sub/c", "twice/e"]).expect("are two files");
    assert_eq!(fs::read_to_string(world.root().join("sub/e")).expect("text"), "x");
}

#[test]
fn a_damaged_journal_is_kept_and_reported() {
    let world = World::new(&std::env::temp_dir());
    fs::create_dir_all(world.journals()).expect("made");
    fs::write(world.journals().join("0.journal"), "{\"garbage\n").expect("written");
    // This one never got its name, so nothing was done.
    fs::write(world.journals().join("1.new"), "{").expect("written");
    let store = world.store();
    store.recover();
    let unfinished = store.unfinished_changes();
    assert!(
        matches!(&unfinished[..], [one] if one.reason.contains("cannot be read") && one.reason.contains("0.journal"))
    );
    assert!(unfinished[0].remedy.contains("remove the journal"), "{unfinished:?}");
    assert_eq!(world.journals_left(), 1);
    change_all(&store).expect("other change sets are made");
}

#[test]
fn a_journal_is_applied_only_to_its_own_root() {
    let place = std::env::temp_dir();
    let [before, _] = both_states(&place);
    let world = World::new(&place);
    assert_eq!(child(&world, 14).signal(), Some(9));
    // Another folder is at the path now, with the same files.
    let moved = world.folder.path().join("moved");
    fs::rename(world.root(), &moved).expect("renamed");
    fs::create_dir(world.root()).expect("made");
    fs::write(world.root().join("a"), "new a\n").expect("written");
    let other = world.store();
    other.recover();
    assert_eq!(fs::read_to_string(world.root().join("a")).expect("text"), "new a\n");
    assert_eq!(world.journals_left(), 1);
    assert!(
        other.unfinished_changes()[0].reason.contains("another one has its path now"),
        "{:?}",
        other.unfinished_changes()
    );
    // The root that was moved is recognised.
    let store = LocalFolder::open(&moved).expect("opens").with_journals(Some(world.journals()));
    store.recover();
    assert_eq!(world.journals_left(), 0);
    fs::remove_dir_all(world.root()).expect("removed");
    fs::rename(&moved, world.root()).expect("renamed");
    assert_eq!(world.content(), before);
}

#[test]
fn a_change_set_that_cannot_be_undone_yet_blocks_edits_of_its_files_only() {
    let place = std::env::temp_dir();
    let [before, _] = both_states(&place);
    let world = World::new(&place);
    assert_eq!(child(&world, 14).signal(), Some(9));
    // Another program holds the lock on one of the folders.
    let folder = fs::File::open(world.root().join("sub")).expect("opens");
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).expect("locks");
    let store = world.store();
    store.recover();
    let unfinished = store.unfinished_changes();
    assert!(
        unfinished[0].reason.contains("lock") && unfinished[0].files.contains(&path("a")),
        "{unfinished:?}"
    );
    let swap = |name: &str, old: &str| {
        let FileChange { kind: ChangeKind::Edit { expected, mut plan }, path } = edit(name, old, "x\n")
        else {
            panic!()
        };
        with_terms(|terms| store.swap(&path, &expected, &mut plan, terms))
    };
    assert!(matches!(swap("a", "new a\n"), Err(StoreError::Unfinished)));
    fs::write(world.root().join("free"), "").expect("written");
    assert!(swap("free", "").is_ok());
    drop(folder);
    // It is tried again after a while.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !store.unfinished_changes().is_empty() {
        assert!(std::time::Instant::now() < deadline, "it is not tried again");
        std::thread::yield_now();
    }
    fs::remove_file(world.root().join("free")).expect("removed");
    assert_eq!(world.content(), before);
}

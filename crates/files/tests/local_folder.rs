//! The local store: which paths can be reached, and what happens to files that several writers change.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use pintle_contract::WorkspacePath;
use pintle_files::{Hash, Kind, LocalFolder, NoRules, Plan, Source, Splice, Store, StoreError, Tag, Terms};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("a path")
}

/// Both implementations of path resolution: the kernel's and the portable one.
fn stores(root: &Path) -> [LocalFolder; 2] {
    [LocalFolder::open(root).expect("opens"), LocalFolder::open_portably(root).expect("opens")]
}

fn with_terms<T>(work: impl FnOnce(&Terms<'_>) -> T) -> T {
    work(&Terms { permit: &|_, _| Ok(()), rules: &NoRules, has_ended: &|| false, commit: &|| true })
}

fn read(store: &LocalFolder, text: &str) -> Result<Vec<u8>, StoreError> {
    with_terms(|terms| {
        let source = store.open(&path(text), terms)?;
        let mut content = vec![0; usize::try_from(source.size()).expect("small")];
        let count = source.read_at(0, &mut content)?;
        content.truncate(count);
        Ok(content)
    })
}

/// Replaces the whole content.
fn write(store: &LocalFolder, text: &str, expected: &[u8], new: &[u8]) -> Result<Hash, StoreError> {
    let mut plan = |source: &dyn Source| {
        let mut content = vec![0; usize::try_from(source.size()).expect("small")];
        source.read_at(0, &mut content)?;
        let splice = Splice { start: 0, removed: source.size(), inserted: new.to_vec() };
        Ok(Plan { found: Hash::of(&content), change: Ok(vec![splice]) })
    };
    with_terms(|terms| store.swap(&path(text), &Tag::from(Hash::of(expected)), &mut plan, terms))
}

#[test]
fn links_are_followed_inside_the_root_and_nowhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
    fs::create_dir_all(root.join("a/b")).expect("folders");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(root.join("a/file"), "inside").expect("writes");
    fs::write(outside.join("secret"), "secret").expect("writes");
    for (link, target) in [
        ("to_file", "a/file"),
        ("to_folder", "a"),
        ("a/up", ".."),
        ("a/b/around", "../../a/b/../file"),
        ("twice", "to_file"),
        ("circle", "circle"),
        ("nowhere", "missing"),
        ("out", "../outside"),
        ("out_file", "../outside/secret"),
        ("absolute", "/etc"),
        ("proc", "/proc/self/root"),
    ] {
        symlink(target, root.join(link)).expect("a link");
    }
    symlink(&outside, root.join("out_absolute")).expect("a link");
    symlink(root.join("a/file"), root.join("in_absolute")).expect("a link");
    for store in stores(&root) {
        for good in
            ["a/file", "to_file", "to_folder/file", "a/up/a/file", "a/b/around", "twice", "a/up/to_file"]
        {
            assert_eq!(read(&store, good).expect(good), b"inside", "{good}");
        }
        for bad in [
            "out/secret",
            "out_file",
            "absolute/passwd",
            "proc/etc/passwd",
            "out_absolute/secret",
            "circle",
            "nowhere",
            "a",
            "to_folder",
            "missing",
            "a/file/below",
            "in_absolute",
            "to_folder/../../outside/secret",
        ] {
            let Ok(bad_path) = WorkspacePath::parse(bad) else { continue };
            assert!(read(&store, bad_path.as_str()).is_err(), "{bad}");
            assert!(write(&store, bad_path.as_str(), b"secret", b"changed").is_err(), "{bad}");
        }
        for bad in
            ["out/new", "out_absolute/new", "absolute/new", "nowhere", "nowhere/new", "circle/new", "out/x/y"]
        {
            let created = with_terms(|terms| store.create(&path(bad), b"x", terms));
            assert!(created.is_err(), "{bad}");
        }
    }
    assert_eq!(fs::read(outside.join("secret")).expect("reads"), b"secret");
    assert_eq!(fs::read_dir(&outside).expect("lists").count(), 1);
}

#[test]
fn what_is_not_a_file_is_not_opened_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("a socket");
    for store in stores(folder.path()) {
        for name in ["fifo", "socket"] {
            assert!(matches!(read(&store, name), Err(StoreError::Special)), "{name}");
        }
        let listed = with_terms(|terms| store.list(&path("/"), terms)).expect("lists");
        assert!(listed.iter().all(|entry| entry.kind == Kind::Other), "{listed:?}");
    }
}

#[test]
fn an_edit_keeps_the_mode_and_writes_through_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    fs::write(root.join("script"), "old").expect("writes");
    fs::set_permissions(root.join("script"), fs::Permissions::from_mode(0o4751)).expect("a mode");
    fs::hard_link(root.join("script"), root.join("other_name")).expect("a link");
    symlink("script", root.join("link")).expect("a link");
    for (store, (old, new)) in stores(root).iter().zip([("old", "new"), ("new", "newer")]) {
        write(store, "link", old.as_bytes(), new.as_bytes()).expect("writes");
        assert!(fs::symlink_metadata(root.join("link")).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(root.join("script")).expect("reads"), new);
        assert_eq!(fs::metadata(root.join("script")).expect("there").mode() & 0o7777, 0o4751);
    }
    // Another name of the old file keeps the old bytes.
    assert_eq!(fs::read_to_string(root.join("other_name")).expect("reads"), "old");
}

#[test]
fn a_dead_writers_file_is_not_shown_and_goes_when_its_folder_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    fs::write(root.join("file"), "1").expect("writes");
    for store in stores(root) {
        // As a writer leaves it that is killed right after it has created the file.
        let leave = || {
            fs::write(root.join(".pintle-tmp"), "").expect("writes");
            let mode = fs::Permissions::from_mode(0o1600);
            fs::set_permissions(root.join(".pintle-tmp"), mode).expect("changes the mode");
        };
        leave();
        assert!(read(&store, ".pintle-tmp").is_err());
        let listed = with_terms(|terms| store.list(&path("/"), terms)).expect("lists");
        assert_eq!(listed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["file"]);
        assert!(!root.join(".pintle-tmp").exists());
        leave();
        write(&store, "file", b"1", b"1").expect("writes");
        assert!(!root.join(".pintle-tmp").exists());
        assert!(with_terms(|terms| store.create(&path(".pintle-tmp"), b"", terms)).is_err());
    }
}

#[test]
fn of_many_with_the_same_hash_exactly_one_wins() {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 40;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "start").expect("writes");
    let mut current = b"start".to_vec();
    for round in 0..ROUNDS {
        let winners = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (winners, current, root) = (&winners, &current, folder.path());
                scope.spawn(move || {
                    let store = LocalFolder::open(root).expect("opens");
                    let new = format!("{round}-{writer}");
                    match write(&store, "file", current, new.as_bytes()) {
                        Ok(hash) => {
                            assert_eq!(hash, Hash::of(new.as_bytes()));
                            winners.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(StoreError::Stale(found)) => assert_ne!(found, Hash::of(current)),
                        Err(error) => panic!("{error:?}"),
                    }
                });
            }
        });
        assert_eq!(winners.into_inner(), 1, "round {round}");
        current = fs::read(folder.path().join("file")).expect("reads");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("lists").count(), 1);
}

#[test]
fn nothing_outside_is_reached_while_a_folder_and_a_link_are_exchanged() {
    const TRIES: usize = 3000;
    let folder = tempfile::tempdir().expect("a folder");
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
    fs::create_dir_all(root.join("real")).expect("folders");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(root.join("real/file"), "inside").expect("writes");
    fs::write(outside.join("file"), "outside").expect("writes");
    symlink("../outside", root.join("bad")).expect("a link");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let (one, other) = (root.join("real"), root.join("bad"));
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &one,
                    rustix::fs::CWD,
                    &other,
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        let store = LocalFolder::open(&root).expect("opens");
        let mut reads = 0;
        for _ in 0..TRIES {
            if let Ok(content) = read(&store, "real/file") {
                assert_ne!(content, b"outside");
                reads += 1;
            }
            let _ = write(&store, "real/file", b"outside", b"escaped");
            let _ = write(&store, "real/file", b"inside", b"inside");
            let _ = with_terms(|terms| store.create(&path("real/new/file"), b"escaped", terms));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(reads > 0, "the folder was never there");
    });
    assert_eq!(fs::read_to_string(outside.join("file")).expect("reads"), "outside");
    assert_eq!(fs::read_dir(&outside).expect("lists").count(), 1);
}

#[test]
fn a_move_makes_folders_and_replaces_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for store in stores(root) {
        fs::write(root.join("from"), "x").expect("writes");
        fs::write(root.join("taken"), "y").expect("writes");
        let hash = Hash::of(b"x");
        let moved = |to: &str, hash: Hash| {
            with_terms(|terms| store.rename(&path("from"), &Tag::from(hash), &path(to), terms))
        };
        assert!(
            matches!(moved("taken", hash), Err(StoreError::Target(why)) if matches!(*why, StoreError::Exists))
        );
        assert!(matches!(moved("new", Hash::of(b"y")), Err(StoreError::Stale(_))));
        moved("deep/er/new", hash).expect("moves");
        assert_eq!(fs::read(root.join("deep/er/new")).expect("reads"), b"x");
        assert!(!root.join("from").exists());
        with_terms(|terms| store.remove(&path("deep/er/new"), &Tag::from(hash), terms)).expect("removes");
        assert!(!root.join("deep/er/new").exists());
        fs::remove_dir_all(root.join("deep")).expect("removes");
    }
}

#[test]
fn an_edit_keeps_who_may_use_a_file_and_what_is_noted_on_it() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    /// An ACL in the kernel's format: owner, one user, group, mask, others.
    fn access(user: u16, group: u16, mask: u16) -> Vec<u8> {
        let entries: [(u16, u16, u32); 5] = [
            (1, 6, u32::MAX),
            (2, user, 1000),
            (4, group, u32::MAX),
            (16, mask, u32::MAX),
            (32, 0, u32::MAX),
        ];
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(rights.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    const ACCESS: &str = "system.posix_acl_access";
    let folder = tempfile::tempdir().expect("a folder");
    let (plain, listed) = (folder.path().join("plain"), folder.path().join("listed"));
    for file in [&plain, &listed] {
        fs::write(file, "x").expect("writes");
        fs::set_permissions(file, fs::Permissions::from_mode(0o640)).expect("a mode");
    }
    // Not every file system has these.
    let none = XattrFlags::empty();
    if setxattr(&listed, ACCESS, &access(6, 0, 6), none).is_err()
        || setxattr(folder.path(), "system.posix_acl_default", &access(7, 0, 7), none).is_err()
        || setxattr(&plain, "user.note", b"kept", none).is_err()
    {
        return;
    }
    let value = |path: &Path, name: &str| {
        let mut buffer = [0; 256];
        getxattr(path, name, &mut buffer[..]).map(|count| buffer[..count].to_vec())
    };
    let before =
        (value(&listed, ACCESS).expect("there"), fs::metadata(&listed).expect("there").permissions());
    let store = LocalFolder::open(folder.path()).expect("opens");
    for name in ["plain", "listed"] {
        write(&store, name, b"x", b"y").expect("edits");
    }
    assert!(value(&plain, ACCESS).is_err(), "the folder's list has become the file's");
    assert_eq!(fs::metadata(&plain).expect("there").permissions().mode() & 0o777, 0o640);
    assert_eq!(value(&plain, "user.note").expect("there"), b"kept");
    let after = (value(&listed, ACCESS).expect("there"), fs::metadata(&listed).expect("there").permissions());
    assert_eq!(after, before);
}

#[test]
fn a_file_that_is_not_created_leaves_no_folder_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("there")).expect("a folder");
    for store in stores(folder.path()) {
        for text in ["x/y/n.txt", "there/z/n.txt"] {
            let terms =
                Terms { permit: &|_, _| Ok(()), rules: &NoRules, has_ended: &|| false, commit: &|| false };
            assert!(store.create(&path(text), b"new", &terms).is_err());
            let left: Vec<_> = fs::read_dir(folder.path()).expect("lists").collect();
            assert_eq!(left.len(), 1, "{text}: {left:?}");
            assert_eq!(fs::read_dir(folder.path().join("there")).expect("lists").count(), 0, "{text}");
        }
    }
}

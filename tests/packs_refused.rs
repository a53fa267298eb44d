//! Archives that are refused: unsafe, too large, damaged or not the expected ones. Nothing is left behind or changed.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::Write,
};

use rustix::fs::{CWD, FileType, mknodat};
use tar::EntryType;

use crate::support::{
    archives::{Tar, Zip, ZipEntry, gz},
    packs::{World, lamps, sha256},
    skip,
};

const SCHEMA: &[u8] = br#"{"type": "object"}"#;

/// Tries to install an archive, as a new pack and in the place of another one, and returns the message.
fn assert_refused(world: &World, what: &str, archive: &[u8], code: &str) -> String {
    let before = world.snapshot();
    let file = world.write("refused", archive);
    let add = [OsStr::new("add"), file.as_ref(), "--name".as_ref()];
    let mut message = String::new();
    for more in [&["new"][..], &["old", "--replace"]] {
        let (exit, errors) = world.pack(add.into_iter().chain(more.iter().map(AsRef::as_ref)));
        assert_eq!(exit, Some(2), "{what}: {errors}");
        assert!(errors.contains(&format!("error: {code}: ")), "{what}: {errors}");
        assert!(errors.contains("nothing was installed"), "{what}: {errors}");
        assert_eq!(world.snapshot(), before, "{what}");
        message = errors;
    }
    message
}

fn world() -> World {
    let world = World::default();
    world.add("old", &lamps("old"));
    world
}

#[test]
fn an_unsafe_tar_is_refused_and_nothing_is_left() {
    let world = world();
    let outside = world.path("outside.json");
    let absolute = outside.to_str().expect("text").to_owned();
    let tar = || Tar::default().file("a.json", SCHEMA);
    let link = |kind, target: &str| tar().entry("b.json", kind, target, b"").gz();
    let zeros = vec![0; 4 << 20];
    for (what, archive, problem) in [
        ("symbolic link", link(EntryType::Symlink, "/etc/passwd"), "a symbolic link"),
        ("symbolic link inside", link(EntryType::Symlink, "a.json"), "a symbolic link"),
        (
            "file through a link",
            tar().entry("x", EntryType::Symlink, "/tmp", b"").file("x/b.json", SCHEMA).gz(),
            "a symbolic link",
        ),
        ("hard link", link(EntryType::Link, "a.json"), "a hard link"),
        ("device", link(EntryType::Char, ""), "a device"),
        ("disk", link(EntryType::Block, ""), "a device"),
        ("pipe", link(EntryType::Fifo, ""), "a pipe"),
        ("unknown type", link(EntryType::new(b'Z'), ""), "neither a file nor a folder"),
        ("absolute", tar().file(&absolute, SCHEMA).gz(), "absolute"),
        ("dotted", tar().file("../outside.json", SCHEMA).gz(), "`..`"),
        ("dotted in the middle", tar().file("x/../../outside.json", SCHEMA).gz(), "`..`"),
        ("dotted after a dot", tar().file("./../outside.json", SCHEMA).gz(), "`..`"),
        ("three dots", tar().file("x/.../b.json", SCHEMA).gz(), "dot"),
        ("backslashes", tar().file("..\\..\\outside.json", SCHEMA).gz(), "backslash"),
        ("drive", tar().file("C:/outside.json", SCHEMA).gz(), "colon"),
        ("control character", tar().file("b\x1b[2J.json", SCHEMA).gz(), "control character"),
        ("not UTF-8", tar().file(b"b\xff.json", SCHEMA).gz(), "UTF-8"),
        ("deep", tar().file(["x"; 17].join("/"), SCHEMA).gz(), "too many folders"),
        ("twice", tar().file("a.json", SCHEMA).gz(), "twice"),
        ("twice with a dot", tar().file("./a.json", SCHEMA).gz(), "twice"),
        ("other case", tar().file("A.json", SCHEMA).gz(), "differs from `a.json` only in case"),
        (
            "folder in other case",
            tar().file("x/1.json", SCHEMA).file("X/2.json", SCHEMA).gz(),
            "only in case",
        ),
        (
            "other form",
            tar().file("é.json", SCHEMA).file("e\u{301}.json", SCHEMA).gz(),
            "form of its letters",
        ),
        ("file and folder", tar().file("a.json/b.json", SCHEMA).gz(), "a file and a folder"),
        ("second archive", tar().end().file("../b.json", SCHEMA).gz(), "after its end"),
        ("bomb", (0..4).fold(tar(), |tar, index| tar.file(format!("{index}.json"), &zeros)).gz(), "a bomb"),
        ("bomb behind the end", gz(&[&[0; 1024][..], &zeros].concat()), "a bomb"),
    ] {
        let message = assert_refused(&world, what, &archive, "ARCHIVE_UNSAFE");
        assert!(message.contains(problem), "{what}: {message}");
        assert!(!message.contains('\x1b'), "{what}: {message:?}");
    }
    assert!(!outside.exists());
}

#[test]
fn an_unsafe_zip_is_refused_and_nothing_is_left() {
    let world = world();
    let outside = world.path("outside.json");
    let absolute = outside.to_str().expect("text").to_owned();
    let zip = || Zip::default().file("a.json", SCHEMA);
    let file = || ZipEntry::file(b"b.json", SCHEMA);
    let with = |entry: ZipEntry<'_>| zip().entry(&entry).bytes();
    let zeros = vec![0; 4 << 20];
    let good = zip().bytes();
    for (what, archive, problem) in [
        ("slip", zip().file("../../outside.json", SCHEMA).bytes(), "`..`"),
        ("slip with backslashes", zip().file("..\\outside.json", SCHEMA).bytes(), "backslash"),
        ("absolute", zip().file(&absolute, SCHEMA).bytes(), "absolute"),
        ("drive", zip().file("C:\\b.json", SCHEMA).bytes(), "backslash"),
        ("symbolic link", with(ZipEntry { mode: 0o120_777, ..file() }), "a symbolic link"),
        ("device", with(ZipEntry { mode: 0o020_666, ..file() }), "neither a file nor a folder"),
        ("folder with content", with(ZipEntry { mode: 0, ..ZipEntry::file(b"b/", SCHEMA) }), "content"),
        ("twice", zip().file("a.json", SCHEMA).bytes(), "twice"),
        ("other case", zip().file("A.JSON", SCHEMA).bytes(), "only in case"),
        (
            "other form",
            zip().file("Å.json", SCHEMA).file("\u{212b}.json", SCHEMA).bytes(),
            "form of its letters",
        ),
        ("two names", with(ZipEntry { local_name: b"c.json", ..file() }), "header inconsistency"),
        (
            "shared bytes",
            with(ZipEntry { local_name: b"a.json", offset: Some(0), ..file() }),
            "inconsistency",
        ),
        ("something before it", [b"PK\x03\x04", good.as_slice()].concat(), "not where its last bytes say"),
        (
            "bomb",
            (0..4).fold(zip(), |zip, index| zip.file(format!("{index}.json"), &zeros)).bytes(),
            "a bomb",
        ),
    ] {
        let message = assert_refused(&world, what, &archive, "ARCHIVE_UNSAFE");
        assert!(message.contains(problem), "{what}: {message}");
    }
    assert!(!outside.exists());
}

#[test]
fn an_archive_over_a_limit_is_refused_and_nothing_is_left() {
    let world = world();
    let mut random = fastrand::Rng::with_seed(1);
    let large: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take((8 << 20) + 1).collect();
    let many = |count: usize| (0..count).map(|index| format!("{index}.json"));
    let long_name = [b"path=".as_slice(), &b"x".repeat(100_000)].concat();
    let claims = ZipEntry { size: u32::MAX - 1, ..ZipEntry::file(b"b.json", SCHEMA) };
    for (what, archive) in [
        ("large file in a tar", Tar::default().file("a.json", &large).gz()),
        (
            "large file in a zip",
            Zip::default()
                .entry(&ZipEntry { is_compressed: false, ..ZipEntry::file(b"a.json", &large) })
                .bytes(),
        ),
        ("file that claims to be large", Zip::default().entry(&claims).bytes()),
        ("many files in a tar", many(10_001).fold(Tar::default(), |tar, name| tar.file(name, b"")).gz()),
        ("many files in a zip", many(10_001).fold(Zip::default(), |zip, name| zip.file(name, b"")).bytes()),
        (
            "long attributes",
            Tar::default().entry("x", EntryType::XHeader, "", &long_name).file("a.json", SCHEMA).gz(),
        ),
        (
            "long name",
            Tar::default().entry("x", EntryType::GNULongName, "", &long_name).file("a.json", SCHEMA).gz(),
        ),
    ] {
        assert_refused(&world, what, &archive, "ARCHIVE_TOO_LARGE");
    }
    // The archive itself: a file has a size, which nobody has to read, and a pipe has none.
    let before = world.snapshot();
    let sparse = File::create(world.path("sparse.zip")).expect("a file");
    sparse.set_len((64 << 20) + 1).expect("a size");
    mknodat(CWD, world.path("pipe"), FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let pipe = world.path("pipe");
    let writer = std::thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(pipe).expect("a reader");
        (0..1200).try_for_each(|_| pipe.write_all(&[0; 64 << 10]))
    });
    for source in ["sparse.zip", "pipe"] {
        let (exit, errors) = world.pack(["add", source, "--name", "new"]);
        assert_eq!(exit, Some(2));
        assert!(errors.contains("ARCHIVE_TOO_LARGE"), "{errors}");
        assert_eq!(world.snapshot(), before);
    }
    assert!(writer.join().expect("writes").is_err(), "all of it was read");
}

#[test]
fn a_truncated_or_damaged_archive_is_refused_and_nothing_is_left() {
    let world = world();
    let content: Vec<u8> = (0..3000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
    let tar = Tar::default().file("a.json", &content).file("b.json", SCHEMA).gz();
    let zip = Zip::default().file("a.json", &content).file("b.json", SCHEMA).bytes();
    for archive in [&tar, &zip] {
        world.add("good", archive);
        assert_eq!(world.pack(["remove", "good"]).0, Some(0));
        for cut in (4..archive.len()).step_by(archive.len() / 9).chain([archive.len() - 1]) {
            let what = format!("{cut} of {} bytes", archive.len());
            assert_refused(&world, &what, &archive[..cut], "DOWNLOAD_VERIFY_FAILED");
        }
        let mut damaged = archive.clone();
        damaged[1000] ^= 0x10;
        assert_refused(&world, "a wrong bit", &damaged, "DOWNLOAD_VERIFY_FAILED");
    }
    // A part of a tar that was compressed afterwards: only the sizes in it say that something is missing.
    let part = Tar::default().file("a.json", &content).bytes();
    assert_refused(&world, "a part", &gz(&part[..2000]), "DOWNLOAD_VERIFY_FAILED");
    assert_refused(&world, "garbage at the end", &[&tar[..], b"garbage"].concat(), "DOWNLOAD_VERIFY_FAILED");
    let lies = ZipEntry { size: 17, ..ZipEntry::file(b"a.json", &content) };
    assert_refused(&world, "a wrong size", &Zip::default().entry(&lies).bytes(), "DOWNLOAD_VERIFY_FAILED");
    for (what, archive) in [
        ("nothing", &b""[..]),
        ("text", b"hello, world"),
        ("three bytes", &zip[..3]),
        (
            "encrypted",
            &Zip::default().entry(&ZipEntry { flags: 1, ..ZipEntry::file(b"a.json", SCHEMA) }).bytes(),
        ),
        ("no files", &Zip::default().bytes()),
    ] {
        assert_refused(&world, what, archive, "INVALID_REQUEST");
    }
}

#[test]
fn a_wrong_checksum_is_refused_and_nothing_is_left() {
    let world = world();
    let before = world.snapshot();
    let archive = lamps("new");
    let file = world.write("new.zip", &archive);
    let add = |sum: &str| world.pack([OsStr::new("add"), file.as_ref(), "--sha256".as_ref(), sum.as_ref()]);
    let right = sha256(&archive);
    let wrong = sha256(b"something else");
    let (code, errors) = add(&wrong);
    assert_eq!(code, Some(2));
    let expected = format!(
        "DOWNLOAD_VERIFY_FAILED: the archive's checksum is wrong: its SHA-256 is {right}, but {wrong}"
    );
    assert!(errors.contains(&expected), "{errors}");
    assert_eq!(world.snapshot(), before);
    for malformed in ["", "sha256:", &right[1..], &right.replace(&right[..1], "g")] {
        let (code, errors) = add(malformed);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("--sha256") && errors.contains("64 hexadecimal digits"), "{errors}");
        assert_eq!(world.snapshot(), before);
    }
    assert_eq!(add(&right.to_uppercase()).0, Some(0));
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_left() {
    let world = World::default();
    std::fs::create_dir(world.state()).expect("a folder");
    let mut probe = std::process::Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(world.state());
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        return skip("this system gives users no disk of their own");
    }
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(1 << 20).collect();
    world.write("old.zip", &lamps("old"));
    // One does not fit as an archive, the other not as files.
    world.write("archive.zip", &Zip::default().file("a.json", &noise).bytes());
    world.write("files.zip", &Zip::default().file("a.json", &noise[..5000].repeat(200)).bytes());
    let script = r#"mount -t tmpfs -o size=512k tmpfs state || exit 9
        "$0" pack add old.zip || exit 8
        find state -type f -exec sha256sum {} + | sort > before
        for name in archive.zip files.zip; do
            "$0" pack add $name --name new && exit 7
            "$0" pack add $name --name old --replace && exit 6
            find state -type f -exec sha256sum {} + | sort > after
            cmp before after || exit 5
            test -z "$(find state -name '.staging*')" || exit 4
        done
        "$0" pack list"#;
    let mut command = std::process::Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script]).arg(crate::support::pintle().get_program());
    command.current_dir(world.path("")).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PINTLE_STATE_DIR", "state");
    let (code, output, errors) = crate::support::run(&mut command, b"");
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.starts_with("old\t1\t1\t"), "{output}");
    let full =
        errors.lines().filter(|line| line.contains("UPSTREAM_FAILED") && line.contains("free some space"));
    assert_eq!(full.count(), 4, "{errors}");
}

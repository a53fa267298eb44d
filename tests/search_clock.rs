//! Searches are correct on a file system with timestamps in whole seconds, where two changes may have the same times.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{
    search_tools::World,
    support::{hash, rounds, skip, wait_until},
};

/// A disk with timestamps in whole seconds, mounted over a root and unmounted when it is dropped.
struct CoarseDisk(PathBuf);

impl CoarseDisk {
    fn mount(world: &World) -> Result<Self, String> {
        let image = world.path("image");
        let file = fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(16 << 20).map_err(|error| error.to_string())?;
        // Inodes of 128 bytes cannot store nanoseconds.
        run("mkfs.ext4", &["-q", "-F", "-I", "128", "-O", "^has_journal"], &[&image])?;
        run("mount", &["-o", "loop"], &[&image, &world.root()])?;
        let disk = Self(world.root());
        fs::remove_dir(world.at("lost+found")).map_err(|error| error.to_string())?;
        Ok(disk)
    }
}

impl Drop for CoarseDisk {
    fn drop(&mut self) {
        let _ = run("umount", &["--lazy"], &[&self.0]);
    }
}

fn run(program: &str, arguments: &[&str], paths: &[&PathBuf]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).args(paths).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {said}")) }
}

/// A root on such a disk, if this system can mount one.
fn coarse() -> Option<(CoarseDisk, World)> {
    let world = World::new();
    match CoarseDisk::mount(&world) {
        Ok(disk) => Some((disk, world)),
        Err(why) => {
            skip(&why);
            None
        }
    }
}

/// The times of a file's last changes, in nanoseconds.
fn times(world: &World, path: &str) -> [i64; 2] {
    let file = fs::metadata(world.at(path)).expect("a file");
    assert_eq!((file.mtime_nsec(), file.ctime_nsec()), (0, 0), "the disk counts whole seconds");
    [file.mtime(), file.ctime()]
}

/// A word of letters for each number, so that a search for words treats it as one word.
fn word(number: usize) -> String {
    format!("{number:08}").bytes().map(|digit| char::from(digit - b'0' + b'g')).collect()
}

/// The hits of a search in the root with these arguments.
fn hits(world: &World, word: &str, arguments: &[&str]) -> Vec<Value> {
    let (_, output, errors) = world.run(&[&["search", word, "--json"], arguments].concat());
    let reported: Value =
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output} {errors}"));
    reported["hits"].as_array().expect("hits").clone()
}

/// Asserts that searches that walk first find a word, in a file of this content, and that none finds the removed word.
/// If the index is up to date, searches that do not walk find the word, too.
fn assert_found(world: &World, content: &str, word: &str, removed: &str, is_up_to_date: bool, what: &str) {
    for (arguments, walks) in
        [(&[][..], false), (&["--fresh"], true), (&["--match", "words", "--fresh"], true)]
    {
        let found = hits(world, word, arguments);
        let hashes = found.iter().map(|hit| hit["hash"].clone()).collect::<Vec<_>>();
        if walks || is_up_to_date || !hashes.is_empty() {
            assert_eq!(hashes, [json!(hash(content))], "{what}: {arguments:?} {word}: {found:?}");
        }
        assert_eq!(hits(world, removed, arguments), Vec::<Value>::new(), "{what}: {arguments:?} {removed}");
    }
}

fn index(world: &World) {
    let (code, _, errors) = world.run(&["index"]);
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn a_change_within_the_second_of_the_last_one_is_found() {
    let Some((_disk, world)) = coarse() else { return };
    let mut same = 0;
    for round in 0..rounds(3, 20) {
        // There must be enough time left in the second for a build.
        wait_until("a second begins", || {
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").subsec_millis()
                < 100
        });
        let [old, new] = [0, 1].map(|number| word(2 * round + number));
        world.write("a.txt", format!("{old}\n"));
        let before = times(&world, "a.txt");
        index(&world);
        let content = format!("{new}\n");
        world.write("a.txt", &content);
        same += usize::from(times(&world, "a.txt") == before);
        assert_found(&world, &content, &new, &old, false, &format!("round {round}, changed after the build"));
        index(&world);
        assert_found(&world, &content, &new, &old, true, &format!("round {round}, built again"));
        let mut server = world.start();
        let answer = server.result("search", json!({"query": new}));
        assert_eq!(answer["hits"][0]["hash"], json!(hash(&content)), "round {round}: {answer}");
        server.finish();
    }
    println!("{same} changes left the times as they were");
}

#[test]
fn a_file_that_changes_during_a_build_is_found_with_its_new_content() {
    let Some((_disk, world)) = coarse() else {
        return;
    };
    for round in 0..rounds(3, 20) {
        let word = |number: usize| word(round * 1_000_000 + number);
        world.write("a.txt", format!("{}\n", word(0)));
        let is_built = AtomicBool::new(false);
        let last = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut number = 0;
                while !is_built.load(Ordering::Acquire) {
                    number += 1;
                    world.write("a.txt", format!("{}\n", word(number)));
                }
                number
            });
            index(&world);
            is_built.store(true, Ordering::Release);
            writer.join().expect("it writes")
        });
        let content = format!("{}\n", word(last));
        let (last, before) = (word(last), word(last - 1));
        assert_found(&world, &content, &last, &before, false, &format!("round {round}"));
        index(&world);
        assert_found(&world, &content, &last, &before, true, &format!("round {round}, built again"));
    }
}

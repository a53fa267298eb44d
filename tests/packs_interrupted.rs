//! `pintle pack` that is killed at any instant: every pack is there completely or not at all, as it was before or as it
//! would have been after, and the next command removes what is left.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{
    archives::Zip,
    packs::{World, lamps},
    rounds, skip, wait_until,
};

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
}

/// The files of the packs, without the record of each, which has the time of its installation.
fn installed(world: &World) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let staging = world.staging();
    let files = world.snapshot().into_iter().map(|(path, (_, content))| (path, content));
    let is_left_over = |path: &PathBuf| staging.iter().any(|folder| path.starts_with(folder));
    files.filter(|(path, _)| !path.ends_with("pack.json") && !is_left_over(path)).collect()
}

/// Runs a command to its end and returns what is installed then.
fn after(world: &World, arguments: &[&OsStr]) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let (code, errors) = world.pack(arguments);
    assert_eq!(code, Some(0), "{errors}");
    installed(world)
}

/// Checks that all packs are as they were before or as they are after a command, and that the next one cleans up.
fn assert_whole(
    world: &World,
    before: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    after: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    what: &str,
) {
    let now = installed(world);
    // The folder of packs itself may have been made already.
    let is_new = now.len() == 1 && before.is_empty();
    assert!(now == *before || now == *after || is_new, "{what}: {:?}", now.keys());
    let packs = now.keys().filter(|path| path.parent().is_some_and(|parent| parent.ends_with("packs")));
    assert_eq!(world.list().len(), packs.count(), "{what}: a pack without its record");
    assert_eq!(world.staging(), Vec::<PathBuf>::new(), "{what}");
    assert_eq!(installed(world), now, "{what}");
}

#[test]
fn a_command_that_was_killed_leaves_nothing_after_the_next_one_and_one_that_runs_is_left_alone() {
    let world = World::default();
    world.add("old", &lamps("old"));
    let before = world.snapshot();
    let archive = lamps("new");
    let pipe = world.path("new.zip");
    mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let start = || {
        let child = spawn(&mut world.command(["add".as_ref(), pipe.as_os_str()]));
        let mut writer = OpenOptions::new().write(true).open(&pipe).expect("a reader");
        writer.write_all(&archive[..100]).expect("it reads");
        wait_until("the archive is written", || {
            world
                .staging()
                .iter()
                .any(|folder| fs::metadata(folder.join("archive")).is_ok_and(|about| about.len() == 100))
        });
        (child, writer)
    };
    let (mut child, writer) = start();
    // Others do not touch what a living command prepares.
    assert_eq!(world.list().len(), 1);
    assert_eq!(world.staging().len(), 1);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    drop(writer);
    assert_eq!(world.staging().len(), 1);
    assert_eq!(world.list().len(), 1);
    assert_eq!(world.snapshot(), before);
    let (mut child, mut writer) = start();
    assert_eq!(world.list().len(), 1);
    writer.write_all(&archive[100..]).expect("it reads");
    drop(writer);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(world.list().len(), 2);
    assert_eq!(world.staging().len(), 0);
}

#[test]
fn a_pack_is_whole_whenever_its_installation_is_killed() {
    let world = World::default();
    let file_of = |name: &str| {
        let files =
            (0..120).map(|index| (format!("{index}.json"), format!("{{\"title\": \"{name} {index}\"}}")));
        let zip = files.fold(Zip::default(), |zip, (file, schema)| zip.file(file, schema.as_bytes()));
        world.write(name, &zip.bytes())
    };
    let files = [file_of("first"), file_of("second")];
    let add = |file: &PathBuf| {
        ["add", file.to_str().expect("text"), "--name", "pack", "--replace"].map(str::to_owned)
    };
    let results = files.each_ref().map(|file| {
        let arguments = add(file);
        after(&world, &arguments.each_ref().map(AsRef::as_ref))
    });
    assert_ne!(results[0], results[1]);
    let start = Instant::now();
    after(&world, &add(&files[0]).each_ref().map(AsRef::as_ref));
    let duration = start.elapsed().max(Duration::from_millis(20));
    let mut random = fastrand::Rng::with_seed(7);
    let mut killed = 0;
    for round in 0..rounds(24, 500) {
        // Another archive each time, so that it is never installed already.
        let before = installed(&world);
        let next = usize::from(before == results[0]);
        let mut child = spawn(&mut world.command(add(&files[next])));
        std::thread::sleep(duration.mul_f64(random.f64() * 1.1));
        killed += usize::from(child.try_wait().expect("waits").is_none());
        child.kill().expect("it was started");
        child.wait().expect("it ends");
        assert_whole(&world, &before, &results[next], &format!("round {round}"));
    }
    assert!(killed > 0, "none was killed in time");
}

/// Runs a command under `strace`, which tampers with one of its system calls. Says whether it ended well.
fn run_with(world: &World, arguments: &[&str], call: &str, tampering: &str) -> bool {
    let command = world.command(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e"]).arg(format!("trace={call}"));
    strace.arg("-e").arg(format!("inject={call}:{tampering}")).arg("-o").arg(world.path("trace"));
    strace.arg(command.get_program()).args(command.get_args()).current_dir(world.path(""));
    strace.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    spawn(&mut strace).wait().expect("ends").success()
}

/// Runs each command that changes packs, with each of its system calls tampered with in turn, and checks that all is as
/// before or as after it.
fn assert_whole_at_each_step(calls: &[&str], tampering: &str, leaves_nothing: bool) {
    let probe = Command::new("strace").args(["-qq", "-e", "inject=rmdir:signal=KILL", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return skip("there is no strace that can tamper with system calls here");
    }
    let new = lamps("new");
    for (what, had_pack, arguments) in [
        ("add", false, &["add", "new.zip", "--name", "pack"][..]),
        ("replace", true, &["add", "new.zip", "--name", "pack", "--replace"]),
        ("remove", true, &["remove", "pack"]),
    ] {
        let mut tampered = 0;
        for call in calls {
            for step in 1.. {
                let what = format!("{what}, {call} {step}");
                let world = World::default();
                world.write("new.zip", &new);
                if had_pack {
                    world.add("pack", &lamps("old"));
                }
                let before = installed(&world);
                let ended = run_with(&world, arguments, call, &format!("{tampering}:when={step}"));
                assert!(!leaves_nothing || world.staging().is_empty(), "{what}");
                let now = installed(&world);
                let trace = fs::read_to_string(world.path("trace")).expect("a trace");
                let schema = world.state().join("packs/pack/jsonschema/lamp.schema.json");
                let is_new = fs::read_to_string(schema).is_ok_and(|schema| schema.contains("\"new\""));
                let after = match arguments[0] {
                    "add" if is_new => now.clone(),
                    "add" => BTreeMap::new(),
                    _ => BTreeMap::from([(world.state().join("packs"), None)]),
                };
                assert_whole(&world, &before, &after, &what);
                assert!(!is_new || now.len() == 6, "{what}: {:?}", now.keys());
                assert!(!ended || now == after, "{what}: it ended without its effect: {trace}");
                if trace.lines().filter(|line| line.contains(&format!("{call}("))).count() < step {
                    break;
                }
                tampered += 1;
            }
        }
        assert!(tampered > 5, "{what} has only {tampered} steps");
    }
}

#[test]
fn a_pack_is_whole_whichever_step_is_the_last() {
    let calls = ["mkdir", "flock", "write", "fsync", "renameat2", "unlinkat"];
    assert_whole_at_each_step(&calls, "signal=KILL", false);
}

#[test]
fn a_pack_is_whole_whichever_step_fails_and_nothing_is_left() {
    assert_whole_at_each_step(&["mkdir", "write", "fsync", "renameat2"], "error=ENOSPC", true);
}

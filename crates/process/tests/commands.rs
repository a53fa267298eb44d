//! The result of a command, however it behaves.

#[allow(dead_code)]
mod support;

use std::{os::unix::fs::PermissionsExt, time::Duration};

use pintle_process::{Exit, Keep, RunError, StartFailure};

use support::{SPAWNER, command, marker, rounds, run, runtime, shell, survivors};

#[test]
fn output_error_output_and_exit_code_are_reported() {
    let finished = run(shell("printf out; printf err >&2; exit 3", "")).expect("runs");
    assert_eq!(finished.exit, Exit::Code(3));
    assert_eq!((finished.stdout.text(), finished.stderr.text()), ("out".into(), "err".into()));
    let finished = run(shell("kill -SEGV $$", "")).expect("runs");
    assert_eq!(finished.exit, Exit::Signal(11));
}

#[test]
fn arguments_environment_folder_and_input_arrive_as_given() {
    let mut spec =
        command("/bin/sh", &["-c", "pwd; env; cat; printf '<%s>' \"$@\"", "sh", "a b", "$(id)\n", "-x", ""]);
    spec.environment = vec![("ONLY".into(), "this".into())];
    spec.folder = "/usr".into();
    spec.stdin = Some(b"{\"in\": 1}".repeat(100_000));
    spec.keep_stdout = Keep::whole(8 << 20);
    let text = run(spec).expect("runs").stdout.text();
    assert!(text.starts_with("/usr\n") && text.contains("ONLY=this\n"), "{}", &text[..200]);
    assert!(!text.contains("PATH=/usr/local/sbin:") && !text.contains("CARGO"), "{}", &text[..200]);
    assert_eq!(text.matches("{\"in\": 1}").count(), 100_000);
    assert!(text.ends_with("<a b><$(id)\n><-x><>"));
}

#[test]
fn without_input_a_reader_finds_its_end_at_once() {
    assert_eq!(run(command("/bin/cat", &[])).expect("runs").stdout.total(), 0);
}

#[test]
fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writes");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
        path.to_str().expect("text").to_owned()
    };
    let mut in_no_folder = command("/bin/true", &[]);
    in_no_folder.folder = folder.path().join("none");
    for (spec, expected) in [
        (command("/no/such/program", &[]), StartFailure::Missing),
        (command(folder.path().to_str().expect("text"), &[]), StartFailure::IsFolder),
        (command(&file("plain", "#!/bin/sh\n", 0o644), &[]), StartFailure::NotExecutable),
        (command(&file("garbage", "\u{1}\u{2}\u{3}", 0o755), &[]), StartFailure::NotAProgram),
        (command(&file("other", "#!/no/such/interpreter\n", 0o755), &[]), StartFailure::NotAProgram),
        (command("/bin/true", &["a\0b"]), StartFailure::NulByte),
        (command("/bin/true", &[&"x".repeat(8 << 20)]), StartFailure::TooLong),
        (in_no_folder, StartFailure::NoFolder),
    ] {
        match run(spec) {
            Err(RunError::Start(failure)) => assert_eq!(failure, expected),
            other => panic!("{expected:?}: {other:?}"),
        }
    }
}

#[test]
fn of_endless_output_both_ends_are_kept() {
    let mebibytes = rounds(64, 10 << 10);
    let script = format!("echo first; head -c {mebibytes}M /dev/zero; echo last");
    let finished = run(shell(&script, "")).expect("runs");
    assert_eq!(finished.stdout.total(), 11 + ((mebibytes as u64) << 20));
    assert_eq!(finished.stdout.omitted(), finished.stdout.total() - (256 << 10));
    let text = finished.stdout.text();
    assert!(text.starts_with("first\n") && text.ends_with("last\n"));
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() {
    let finished = run(shell("exec >&- 2>&-; sleep 0.2; exit 7", "")).expect("runs");
    assert_eq!(finished.exit, Exit::Code(7));
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_it_and_holds_up_nothing() {
    let marker = marker();
    let script = "sh -c 'sleep 1000 $0; :' \"$1\" & echo started";
    let finished = run(shell(script, &marker)).expect("runs");
    assert_eq!((finished.exit, finished.stdout.text()), (Exit::Code(0), "started\n".into()));
    assert_eq!(survivors(&marker), [""; 0]);
}

#[test]
fn lines_of_error_output_are_passed_on_as_they_come() {
    let (sender, lines) = std::sync::mpsc::channel();
    let on_line = move |line: &str| _ = sender.send(line.to_owned());
    let spec = shell("echo one >&2; echo two >&2; printf three >&2", "");
    runtime().block_on(SPAWNER.run(spec, on_line, ())).expect("runs");
    assert_eq!(lines.iter().collect::<Vec<_>>(), ["one", "two", "three"]);
}

#[test]
fn many_commands_at_once_each_get_their_own_result() {
    runtime().block_on(async {
        let running: Vec<_> = (0..64)
            .map(|number: i32| {
                let spec = shell(&format!("echo {number}; exit {number}"), "");
                tokio::spawn(SPAWNER.run(spec, |_| {}, ()))
            })
            .collect();
        for (number, running) in (0..).zip(running) {
            let finished = running.await.expect("joins").expect("runs");
            assert_eq!((finished.exit, finished.stdout.text()), (Exit::Code(number), format!("{number}\n")));
        }
    });
}

#[test]
fn a_grace_of_nothing_is_an_order_to_kill() {
    let marker = marker();
    let mut spec = shell("trap '' TERM; echo ready >&2; sleep 1000 $1; :", &marker);
    spec.grace = Duration::ZERO;
    support::give_up_when_ready(spec);
    assert_eq!(survivors(&marker), [""; 0]);
}

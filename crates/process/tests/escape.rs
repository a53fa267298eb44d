//! Nothing that a command started outlives it, however it tries to escape.

#[allow(dead_code)]
mod support;

use std::time::Duration;

use pintle_process::CommandSpec;

use support::{command, give_up_when_ready, marker, python, rounds, shell, survivors};

/// Makes a command with a marker in its arguments.
type MakeCommand = fn(&str) -> CommandSpec;

/// All of them end after a minute by themselves, in case that the test fails.
const ESCAPERS: [(&str, MakeCommand); 7] = [
    ("a new session", |marker| {
        shell("setsid sh -c 'trap \"\" TERM; echo ready >&2; sleep 60 $0; :' \"$1\" & wait", marker)
    }),
    ("a new session of an orphan", |marker| {
        shell(
            "(setsid sh -c 'trap \"\" TERM; echo ready >&2; sleep 60 $0; :' \"$1\" &) ; sleep 60 $1; :",
            marker,
        )
    }),
    ("nohup", |marker| {
        shell(
            "nohup sh -c 'trap \"\" TERM; echo ready >&2; sleep 60 $0; :' \"$1\" >/dev/null & wait; :",
            marker,
        )
    }),
    ("a daemon without environment", |marker| {
        python(
            "import os, sys\n\
             if os.fork() == 0:\n\
             \x20 os.setsid()\n\
             \x20 if os.fork() == 0:\n\
             \x20   os.chdir('/')\n\
             \x20   script = \"trap '' TERM HUP; echo ready >&2; exec >/dev/null 2>&1 </dev/null; sleep 60 $0; :\"\n\
             \x20   os.execve('/bin/sh', ['daemon', '-c', script, sys.argv[1]], {'PATH': '/usr/bin:/bin'})\n\
             \x20 os._exit(0)\n\
             os.wait()\n\
             import time; time.sleep(60)",
            marker,
        )
    }),
    ("a process that forks in a loop", |marker| {
        python(
            "import os, signal, sys, time\n\
             signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
             sys.stderr.write('ready\\n'); sys.stderr.flush()\n\
             end = time.time() + 60\n\
             while time.time() < end:\n\
             \x20 if os.fork() == 0:\n\
             \x20   os.setsid()\n\
             \x20   time.sleep(0.05)\n\
             \x20   os._exit(0)\n",
            marker,
        )
    }),
    ("a process that forks, leaves its session and lets its parent end, in a loop", |marker| {
        python(
            "import os, signal, sys, time\n\
             signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             if os.fork(): time.sleep(60)\n\
             sys.stderr.write('ready\\n'); sys.stderr.flush()\n\
             end = time.time() + 60\n\
             while time.time() < end:\n\
             \x20 if os.fork(): os._exit(0)\n\
             \x20 os.setsid()\n",
            marker,
        )
    }),
    ("two that start each other again", |marker| {
        python(
            "import os, signal, sys, time\n\
             signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             end = time.time() + 60\n\
             if os.fork() == 0: os.setsid()\n\
             sys.stderr.write('ready\\n'); sys.stderr.flush()\n\
             while time.time() < end:\n\
             \x20 child = os.fork()\n\
             \x20 if child == 0:\n\
             \x20   os.setsid(); time.sleep(0.01)\n\
             \x20   continue\n\
             \x20 os.waitpid(child, 0)\n",
            marker,
        )
    }),
];

#[test]
fn a_tree_that_ignores_sigterm_is_killed_after_the_grace_and_a_polite_one_before() {
    // What ignores a signal passes that on to its children.
    const TREE: &str = "sh -c 'sh -c \"echo ready >&2; sleep 60 $0; :\" $0; :' $1; :";
    for (trap, is_polite) in [("", true), ("trap '' TERM;", false)] {
        let marker = marker();
        let mut spec = shell(&format!("{trap} {TREE}"), &marker);
        // A grace that no busy machine reaches separates those that wait for it from those that do not.
        spec.grace = Duration::from_secs(if is_polite { 60 } else { 2 });
        let grace = spec.grace;
        let took = give_up_when_ready(spec);
        assert_eq!(survivors(&marker), [""; 0]);
        println!("a tree, polite: {is_polite}, was gone after {took:?}");
        // What ignores SIGTERM has the whole grace; what does not is not made to wait for it.
        assert_eq!(took < grace, is_polite, "{took:?}");
    }
}

#[test]
fn nothing_escapes() {
    let rounds = rounds(2, 150);
    let mut slowest = Duration::ZERO;
    for (kind, spec) in ESCAPERS {
        for round in 0..rounds {
            let marker = marker();
            slowest = slowest.max(give_up_when_ready(spec(&marker)));
            assert_eq!(survivors(&marker), [""; 0], "{kind}, round {round}");
        }
    }
    println!("{} rounds, 0 survivors, the slowest was gone after {slowest:?}", ESCAPERS.len() * rounds);
}

#[test]
fn nothing_escapes_by_the_end_of_the_command_either() {
    for (kind, script) in [
        ("a new session", "setsid sh -c 'trap \"\" TERM; sleep 60 $0; :' \"$1\" & :"),
        ("nohup", "nohup sh -c 'sleep 60 $0; :' \"$1\" >/dev/null 2>&1 & :"),
        ("an orphan", "(setsid sh -c 'sleep 60 $0; :' \"$1\" >/dev/null 2>&1 </dev/null &) ; :"),
    ] {
        let marker = marker();
        support::run(shell(script, &marker)).expect("runs");
        assert_eq!(survivors(&marker), [""; 0], "{kind}");
    }
}

/// Ten processes that fork and end, again and again, in the group of the command or each in a session of its own.
fn relays(marker: &str, leaves_session: bool) -> CommandSpec {
    let script = "use POSIX; my ($marker, $how) = @ARGV; my $end = time + 20; $SIG{TERM} = 'IGNORE'; \
                  for (1..10) { \
                    if (!fork) { while (time < $end) { POSIX::_exit(0) if fork; POSIX::setsid() if $how eq 'leave' } \
                      POSIX::_exit(0) } \
                  } \
                  print STDERR qq(ready\n); sleep 20";
    let how = if leaves_session { "leave" } else { "stay" };
    let mut spec = command("/usr/bin/perl", &["-e", script, marker, how]);
    spec.grace = Duration::from_millis(100);
    spec
}

#[test]
fn the_dead_do_not_pile_up_while_processes_that_fork_and_end_are_killed() {
    if !std::path::Path::new("/usr/bin/perl").exists() {
        return println!("SKIPPED: there is no perl");
    }
    let count = || std::fs::read_dir("/proc").expect("a table of processes").count();
    for leaves_session in [false, true] {
        let mut slowest = Duration::ZERO;
        let mut most = 0;
        for _ in 0..rounds(4, 25) {
            let marker = marker();
            let before = count();
            let killing = std::thread::spawn({
                let spec = relays(&marker, leaves_session);
                move || give_up_when_ready(spec)
            });
            while !killing.is_finished() {
                most = most.max(count().saturating_sub(before));
                std::thread::sleep(Duration::from_millis(5));
            }
            slowest = slowest.max(killing.join().expect("it ends"));
            assert_eq!(survivors(&marker), [""; 0]);
        }
        println!(
            "relays, new sessions: {leaves_session}: gone after {slowest:?} at most, {most} processes at most"
        );
        assert!(most < 3000, "{most} processes in the table");
    }
}

//! Commands that kill or stop their supervisor or watcher: the others take over.

#[allow(dead_code)]
mod support;

use parking_lot::{Mutex, MutexGuard};
use pintle_process::{CommandSpec, Exit, RunError};

use support::{give_up_when_ready, marker, python, run, shell, survivors};

/// One test at a time, because killing the watcher ends the commands of all.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

/// Checks that commands run as before. The first one may fail, which detects a watcher that cannot work any more.
fn goes_on(after: &str) {
    let works = |()| run(shell("echo on", "")).is_ok_and(|finished| finished.stdout.text() == "on\n");
    assert!([(), ()].into_iter().any(works), "after {after}");
}

/// Starts a process in another session that ignores SIGTERM, then does something to the processes above.
fn attack(on_supervisor: &str, marker: &str) -> CommandSpec {
    let watcher = "read -r _ _ _ watcher _ < /proc/$PPID/stat";
    let daemon = "setsid sh -c 'trap \"\" TERM; sleep 60 $0; :' \"$1\" &";
    shell(&format!("{watcher}; {daemon} {on_supervisor}\n echo ready >&2; sleep 60 $1; :"), marker)
}

#[test]
fn a_command_that_kills_its_supervisor_or_the_watcher_is_killed_by_the_other() {
    let _alone = alone();
    for kill in [
        "kill -KILL $PPID",
        "kill -KILL $watcher",
        "kill -KILL $PPID $watcher",
        "kill -TERM $PPID",
        "prlimit --nofile=3:3 --pid $watcher; kill -KILL $PPID",
    ] {
        let marker = marker();
        match run(attack(kill, &marker)) {
            Err(RunError::SupervisorLost) => {}
            other => panic!("{kill}: {other:?}"),
        }
        assert_eq!(survivors(&marker), [""; 0], "{kill}");
        goes_on(kill);
    }
}

#[test]
fn a_command_that_stops_or_limits_its_supervisor_or_the_watcher_is_killed_all_the_same() {
    let _alone = alone();
    for harm in [
        "kill -STOP $PPID",
        "kill -STOP $watcher",
        "kill -STOP $watcher $PPID",
        "(trap '' TERM; while kill -STOP $PPID; do :; done) &",
        "prlimit --nofile=3:3 --pid $PPID",
        "prlimit --as=4096:4096 --pid $PPID",
    ] {
        let marker = marker();
        let took = give_up_when_ready(attack(harm, &marker));
        println!("{harm}: gone after {took:?}");
        assert_eq!(survivors(&marker), [""; 0], "{harm}");
        goes_on(harm);
    }
}

#[test]
fn a_command_that_stops_its_supervisor_and_ends_has_a_result() {
    let _alone = alone();
    let marker = marker();
    let script = "setsid sh -c 'trap \"\" TERM; sleep 60 $0; :' \"$1\" & kill -STOP $PPID; echo done";
    let finished = run(shell(script, &marker)).expect("runs");
    assert_eq!((finished.exit, finished.stdout.text()), (Exit::Code(0), "done\n".into()));
    assert_eq!(survivors(&marker), [""; 0]);
}

#[test]
fn a_command_that_traces_its_supervisor_is_killed_all_the_same() {
    let _alone = alone();
    let marker = marker();
    // Only root may; for everyone else it is a command that ignores SIGTERM.
    let script = "import ctypes, os, signal, sys, time\n\
                  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                  ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)\n\
                  if os.fork() == 0: os.setsid()\n\
                  sys.stderr.write('ready\\n'); sys.stderr.flush()\n\
                  time.sleep(60)";
    println!("traced: gone after {:?}", give_up_when_ready(python(script, &marker)));
    assert_eq!(survivors(&marker), [""; 0]);
}

//! Startup, readiness and shutdown.

use std::{
    fs,
    io::Read,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Setup, TEST_TIMEOUT, conformance, request};

#[test]
fn the_ready_file_exists_while_the_server_is_ready_and_is_removed_after() {
    let mut server = Setup::new().start();
    let ready = server.path("ready");
    let content = fs::read_to_string(&ready).expect("the ready file");
    let (pid, time) = content.strip_suffix('\n').and_then(|line| line.split_once(' ')).expect("two words");
    assert_eq!(pid, server.pid().to_string());
    assert!(time.len() >= 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z'), "{time}");
    assert!(server.stderr().contains("mcp:ready mode=stdio\n"), "{}", server.stderr());
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
    assert!(!ready.exists());
}

#[test]
fn a_ready_file_that_another_process_wrote_is_not_changed() {
    let mut server = Setup::new().start();
    let ready = server.path("ready");
    fs::write(&ready, "1 2026-01-01T00:00:00Z\n").expect("writes");
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(fs::read_to_string(&ready).expect("still there"), "1 2026-01-01T00:00:00Z\n");
}

#[test]
fn a_ready_file_that_cannot_be_written_is_a_warning() {
    let setup = Setup::fixtures();
    let path = setup.path("no/such/folder/ready");
    let mut server = setup.env("MCP_READY_FILE", path).start();
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    assert!(server.finish().contains("warning: cannot write the ready file"));
}

#[test]
fn what_is_not_a_ready_file_is_left_alone_and_the_server_serves_without_one() {
    for content in ["keep me", "42\n", "\n", "1 not a time\n", "1 2026-01-01T00:00:00Z\nmore\n"] {
        let setup = Setup::fixtures();
        let (ready, precious) = (setup.path("ready"), setup.path("precious"));
        fs::write(&precious, content).expect("writes");
        for is_link in [false, true] {
            let path = if is_link { &ready } else { &precious };
            if is_link {
                std::os::unix::fs::symlink(&precious, &ready).expect("a link");
            }
            let mut server = Setup::fixtures().env("MCP_READY_FILE", path).start();
            assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
            let stderr = server.finish();
            let warning = format!(
                "cannot write the ready file {}: what is there is not a ready file; left alone",
                path.display()
            );
            assert!(stderr.contains(&warning), "{stderr}");
            assert_eq!(fs::read_to_string(&precious).expect("still there"), content);
            assert_eq!(fs::symlink_metadata(path).expect("still there").is_symlink(), is_link);
        }
    }
}

#[test]
fn a_folder_is_not_replaced_by_the_ready_file() {
    let setup = Setup::fixtures();
    fs::create_dir(setup.path("ready")).expect("a folder");
    let mut server = setup.start();
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
    assert!(server.stderr().contains("warning: cannot write the ready file"), "{}", server.stderr());
    let is_empty = fs::read_dir(server.path("ready")).expect("still a folder").next().is_none();
    assert!(is_empty, "something was written into the folder");
    let beside = fs::read_dir(server.path("")).expect("a folder").flatten();
    let left: Vec<_> = beside.map(|entry| entry.file_name()).filter(|name| name != "root").collect();
    assert!(
        left.iter().all(|name| name == "ready" || name == "state"),
        "something is left beside it: {left:?}"
    );
}

#[test]
fn a_second_server_does_not_change_the_ready_file_of_a_running_one() {
    let mut first = Setup::new().start();
    let ready = first.path("ready");
    let content = fs::read_to_string(&ready).expect("the ready file");
    let second = Setup::new().env("MCP_READY_FILE", &ready).start();
    let warning = format!("it names process {}, which is running; give each server its own", first.pid());
    let stderr = second.finish();
    assert!(stderr.contains(&warning), "{stderr}");
    assert_eq!(fs::read_to_string(&ready).expect("still there"), content);
    first.close_stdin();
    assert_eq!(first.wait().code(), Some(0));
    assert!(!ready.exists());
}

#[test]
fn of_servers_that_start_at_the_same_time_one_owns_the_ready_file_until_it_ends() {
    for is_stale in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        if is_stale {
            fs::write(&ready, format!("{} 2026-01-01T00:00:00Z\n", ended_process())).expect("writes");
        }
        let starting: Vec<_> = (0..4)
            .map(|_| {
                let setup = Setup::new().env("MCP_READY_FILE", &ready);
                std::thread::spawn(move || setup.start())
            })
            .collect();
        let mut servers: Vec<_> = starting.into_iter().map(|server| server.join().expect("starts")).collect();
        let content = fs::read_to_string(&ready).expect("the ready file");
        let pid = content.split(' ').next().expect("a process");
        let owner = servers.iter().position(|server| server.pid().to_string() == pid);
        let owner = servers.remove(owner.expect("it is one of them"));
        for server in servers {
            assert!(server.finish().contains("warning: cannot write the ready file"));
        }
        assert_eq!(fs::read_to_string(&ready).expect("still there"), content);
        owner.finish();
        assert!(!ready.exists());
    }
}

#[test]
fn a_ready_file_of_an_ended_process_and_an_empty_one_are_replaced() {
    let this = std::process::id();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(1_000_000_000);
    let stale = [
        // No process has this number.
        (format!("{} 2026-01-01T00:00:00Z\n", ended_process()), None),
        // Another process has this number by now: the file is older than that process.
        (format!("{this} 2026-01-01T00:00:00Z\n"), Some(long_ago)),
        (String::new(), None),
    ];
    for (content, modified) in stale {
        let setup = Setup::new();
        let ready = setup.path("ready");
        fs::write(&ready, &content).expect("writes");
        if let Some(modified) = modified {
            let file = fs::File::options().write(true).open(&ready).expect("opens");
            file.set_modified(modified).expect("a time");
        }
        let mut server = setup.start();
        let pid = format!("{} ", server.pid());
        assert!(fs::read_to_string(&ready).expect("the ready file").starts_with(&pid), "{content:.30}");
        server.close_stdin();
        assert_eq!(server.wait().code(), Some(0));
        assert!(!ready.exists());
    }
}

#[test]
fn a_ready_file_that_names_the_server_itself_is_replaced() {
    // A wrapper that replaces itself with the server (`exec`) has the same process number.
    let folder = tempfile::tempdir().expect("a folder");
    let ready = folder.path().join("ready");
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(r#"echo "$$ 2026-01-01T00:00:00Z" > "$MCP_READY_FILE"; exec "$0" serve"#);
    command.arg(env!("CARGO_BIN_EXE_pintle")).env("MCP_READY_FILE", &ready);
    command.env("PINTLE_STATE_DIR", folder.path().join("state")).current_dir(crate::support::data());
    let (code, _, stderr) = crate::support::run(&mut command, b"");
    assert_eq!((code, stderr.contains("warning")), (Some(0), false), "{stderr}");
    assert!(!ready.exists());
}

#[test]
fn a_pipe_instead_of_the_ready_file_blocks_neither_start_nor_exit() {
    let make_pipe = |path: &std::path::Path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    };
    for is_there_before in [true, false] {
        let setup = Setup::fixtures();
        let ready = setup.path("ready");
        if is_there_before {
            make_pipe(&ready);
        }
        let mut server = setup.start();
        if !is_there_before {
            fs::remove_file(&ready).expect("the ready file");
            make_pipe(&ready);
        }
        server.close_stdin();
        assert_eq!(server.wait().code(), Some(0));
        let warned = server.stderr().contains("warning: cannot write the ready file");
        assert_eq!(warned, is_there_before, "{}", server.stderr());
        assert!(!fs::symlink_metadata(&ready).expect("still there").is_file());
    }
}

/// The process number of a process that has ended.
fn ended_process() -> u32 {
    let mut child = std::process::Command::new("true").spawn().expect("starts");
    child.wait().expect("ends");
    child.id()
}

#[test]
fn a_log_that_cannot_be_written_is_reported_and_calls_still_work() {
    let mut server = Setup::fixtures().arg("--log-file=/dev/full").start();
    for _ in 0..3 {
        assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    }
    let stderr = server.finish();
    assert!(stderr.contains("the call log is lost from here on"), "{stderr}");
}

#[test]
fn a_signal_lets_the_running_call_finish_and_cancels_those_that_wait() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Setup::fixtures().start();
        let ready = server.path("ready");
        let mut running = request(json!(1), "test_progress", json!({"count": 3, "everyMs": 500}));
        running["meta"] = json!({"progressToken": 1});
        server.send(&running);
        server.request(json!(2), "test_echo", json!({"value": 2}));
        assert_eq!(server.frame()["method"], json!("notifications/progress"));
        server.signal(signal);
        let mut frame = server.frame();
        while frame.get("method").is_some() {
            frame = server.frame();
        }
        assert_eq!((&frame["id"], &frame["result"]), (&json!(1), &json!({"count": 3})), "{frame}");
        let frame = server.frame();
        assert_eq!((&frame["id"], &frame["error"]["data"]["code"]), (&json!(2), &json!("CANCELLED")));
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(server.remaining_frames(), Vec::<String>::new());
        assert!(!ready.exists());
    }
}

#[test]
fn a_call_that_outlasts_the_drain_is_cancelled() {
    let mut server = Setup::fixtures().arg("--drain=100ms").start();
    let mut running = request(json!(1), "test_progress", json!({"count": 100_000, "everyMs": 10}));
    running["meta"] = json!({"progressToken": 1});
    let queued = request(json!(2), "test_echo", json!({"value": 2}));
    server.write(format!("{running}\n{queued}\n").as_bytes());
    assert_eq!(server.frame()["method"], json!("notifications/progress"));
    server.signal(Signal::TERM);
    for id in [1, 2] {
        let mut frame = server.frame();
        while frame.get("method").is_some() {
            frame = server.frame();
        }
        assert_eq!((&frame["id"], &frame["error"]["data"]["code"]), (&json!(id), &json!("CANCELLED")));
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let mut server = Setup::fixtures().arg("--drain=10m").start();
    let ready = server.path("ready");
    server.request(json!(1), "test_sleep", json!({"ms": 600_000}));
    wait_until_read(&server);
    let started = Instant::now();
    server.signal(Signal::TERM);
    while server.is_running() && started.elapsed() < TEST_TIMEOUT {
        server.signal_if_running(Signal::TERM);
        std::thread::sleep(Duration::from_millis(5));
    }
    server.wait();
    assert!(!ready.exists());
}

#[test]
fn a_client_that_stops_reading_ends_the_server_and_its_calls() {
    let mut server = Setup::fixtures().start_without_reader();
    server.send(&request(json!(1), "test_sleep", json!({"ms": 600_000})));
    server.drop_stdout();
    // Standard input stays open: closing the output alone must end the server.
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn standard_output_has_frames_only_at_every_log_level() {
    for level in ["off", "error", "warn", "info", "debug"] {
        let mut server = Setup::fixtures().arg(format!("--log-level={level}")).start();
        server.write(b"nonsense\n");
        assert_eq!(server.frame()["error"]["code"], json!(-32700));
        assert_eq!(server.call("test_panic", json!({}))["error"]["code"], json!(-32603));
        assert_eq!(server.call("list_schemas", json!({}))["result"]["ok"], json!(true));
        server.close_stdin();
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(server.remaining_frames(), Vec::<String>::new(), "{level}");
    }
}

#[test]
fn an_unread_error_stream_does_not_stop_the_server() {
    const COUNT: usize = 2_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = conformance()
        .args(["serve", "--fixtures", "--state-dir"])
        .arg(folder.path().join("state"))
        .env("MCP_READY_FILE", folder.path().join("ready"))
        .current_dir(crate::support::data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        for number in 0..COUNT {
            writeln!(stdin, "{}", request(json!(number), "test_echo", json!({"value": 1}))).expect("reads");
        }
    });
    let mut output = String::new();
    child.stdout.take().expect("stdout").read_to_string(&mut output).expect("text");
    writer.join().expect("writes");
    assert_eq!(output.lines().count(), COUNT);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

/// Waits until the server has read what was sent: its standard input is empty.
fn wait_until_read(server: &crate::support::Server) {
    let started = Instant::now();
    while server.unread_input() > 0 {
        assert!(started.elapsed() < TEST_TIMEOUT, "the server does not read");
        std::thread::sleep(Duration::from_millis(2));
    }
}

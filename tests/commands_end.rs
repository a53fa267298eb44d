//! No process that a command started outlives its call, and no server outlives its client.

use std::{
    fs,
    io::Read,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    commands::{shell, with_tools},
    support::{Server, peak_memory, rounds, skip, wait_until},
};

/// A text that occurs in the arguments of no other process. It is a number, so that `sleep` accepts it as well.
pub fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("0.000{:08}{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes whose arguments contain a text.
pub fn processes(text: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("a table of processes").flatten();
    let found = all.filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text).then(|| format!("{}: {line}", process.file_name().to_string_lossy()))
    });
    found.collect()
}

/// The children of a process that have ended and were not waited for.
fn zombies(parent: u32) -> usize {
    let all = fs::read_dir("/proc").expect("a table of processes").flatten();
    let stats = all.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!(") Z {parent} "))).count()
}

/// A tree of three processes that may ignore SIGTERM. It creates the file `ready` when all of them run.
fn tree(marker: &str, is_stubborn: bool) -> String {
    let trap = if is_stubborn { "trap \"\" TERM; " } else { "" };
    let innermost = format!("{trap}touch ready; sleep 300 {marker}; :");
    // The scripts are written to files because nested quotes are hard to read.
    let script = format!(
        "cat > child.sh <<X\n{trap}sh grandchild.sh {marker}; :\nX\n\
         cat > grandchild.sh <<X\n{innermost}\nX\n\
         {trap}sh child.sh {marker}; :\n"
    );
    shell(&script)
}

fn wait_until_ready(server: &Server) {
    let ready = server.path("root/ready");
    wait_until("the command is ready", || ready.exists());
    fs::remove_file(ready).expect("removes");
}

fn cancel(server: &mut Server, id: Value) {
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
}

/// Waits until no process has the marker. Returns how long that took.
pub fn wait_until_ended(marker: &str) -> Duration {
    let begun = Instant::now();
    wait_until("nothing is left", || processes(marker).is_empty());
    begun.elapsed()
}

#[test]
fn a_cancelled_tree_ends_soon_and_one_that_ignores_sigterm_after_the_grace() {
    for is_stubborn in [false, true] {
        let marker = marker();
        // The grace of 60 s is longer than any busy machine needs, so it shows which processes waited for it.
        let grace = if is_stubborn { 2 } else { 60 };
        let manifest = tree(&marker, is_stubborn) + &format!("grace = \"{grace}s\"\n");
        let mut server = with_tools([("tree", &manifest)]).start();
        server.request(json!(1), "tree", json!({}));
        wait_until_ready(&server);
        assert!(processes(&marker).len() >= 2);
        let begun = Instant::now();
        cancel(&mut server, json!(1));
        assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"));
        wait_until_ended(&marker);
        let took = begun.elapsed();
        println!("cancelled, stubborn: {is_stubborn}: ended after {took:?}");
        assert_eq!(took < Duration::from_secs(grace), !is_stubborn, "{took:?}");
        wait_until("the server has waited for its supervisor", || zombies(server.pid()) == 0);
        server.finish();
    }
}

#[test]
fn a_tree_over_its_deadline_ends_soon_too() {
    let marker = marker();
    let manifest = tree(&marker, true) + "timeout = \"1s\"\ngrace = \"200ms\"\n";
    let mut server = with_tools([("tree", &manifest)]).start();
    let error = server.error("tree", json!({}));
    assert_eq!((&error["code"], &error["timeoutMs"]), (&json!("TOOL_TIMEOUT"), &json!(1000)));
    wait_until_ended(&marker);
    server.finish();
}

/// A command that ignores SIGTERM, with a process in another session that ignores it as well.
fn stubborn(marker: &str) -> String {
    shell(&format!(
        "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; touch ready; sleep 300 {marker}; :' {marker} & \
         sh -c 'sleep 300 {marker}; :' {marker}; :"
    ))
}

#[test]
fn a_killed_server_leaves_no_processes() {
    for _ in 0..rounds(2, 50) {
        let marker = marker();
        let mut server = with_tools([("stay", &stubborn(&marker))]).start();
        server.request(json!(1), "stay", json!({}));
        wait_until_ready(&server);
        assert!(!processes(&marker).is_empty());
        server.signal(Signal::KILL);
        println!("server killed: ended after {:?}", wait_until_ended(&marker));
    }
}

/// The same below a supervisor that the command disables before it is ready. `$server` is the server.
fn disabling_supervisor(harm: &str, marker: &str) -> String {
    shell(&format!(
        "read -r _ _ _ watcher _ < /proc/$PPID/stat; read -r _ _ _ server _ < /proc/$watcher/stat; \
         setsid sh -c 'trap \"\" TERM; sleep 300 {marker}; :' {marker} & {harm}; touch ready; sleep 300 {marker}; :"
    )) + "timeout = \"5m\"\n"
}

#[test]
fn a_command_with_a_disabled_supervisor_ends_with_its_call() {
    for harm in ["kill -STOP $PPID", "prlimit --nofile=3:3 --pid $PPID", "kill -STOP $watcher $PPID"] {
        let marker = marker();
        let mut server = with_tools([("stay", &disabling_supervisor(harm, &marker))]).start();
        for _ in 0..4 {
            server.request(json!(1), "stay", json!({}));
            wait_until_ready(&server);
            cancel(&mut server, json!(1));
            assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"), "{harm}");
        }
        // The default of `max_parallel` is 4, so no call has kept its slot.
        server.request(json!(2), "stay", json!({}));
        wait_until_ready(&server);
        cancel(&mut server, json!(2));
        assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"), "{harm}");
        wait_until_ended(&marker);
        server.finish();
    }
}

#[test]
fn a_server_that_ends_leaves_no_processes_even_if_supervisors_are_disabled() {
    for (harm, signal) in [
        ("kill -STOP $PPID", Signal::KILL),
        ("kill -STOP $PPID", Signal::TERM),
        ("prlimit --nofile=3:3 --pid $PPID", Signal::KILL),
        ("touch ready; while [ -e ready ]; do :; done; kill -KILL $server $PPID", Signal::CONT),
    ] {
        let marker = marker();
        let setup = with_tools([("stay", &disabling_supervisor(harm, &marker))]).args(["--drain", "100ms"]);
        let mut server = setup.start();
        server.request(json!(1), "stay", json!({}));
        wait_until_ready(&server);
        server.signal(signal);
        let took = wait_until_ended(&marker);
        println!("{harm}, server ended by {signal:?}: ended after {took:?}");
        server.wait();
    }
}

#[test]
fn a_server_that_gets_sigterm_ends_its_commands_after_the_drain() {
    let marker = marker();
    let mut server = with_tools([("stay", &stubborn(&marker))]).args(["--drain", "100ms"]).start();
    server.request(json!(1), "stay", json!({}));
    wait_until_ready(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"));
    assert_eq!(server.wait().code(), Some(0));
    wait_until_ended(&marker);
}

/// A command that handles SIGTERM and takes a while to end.
fn ending_slowly() -> String {
    let script = "trap \"sleep 0.3; touch polite; exit 0\" TERM; touch ready; while :; do sleep 0.01; done";
    shell(script) + "grace = \"60s\"\n"
}

/// Whether programs that are started here inherit an ignored SIGHUP.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("signals");
    u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1 != 0
}

#[test]
fn a_server_that_gets_sighup_lets_its_commands_end_within_their_grace() {
    if is_hangup_ignored() {
        return skip("SIGHUP is ignored, as below nohup");
    }
    let mut server = with_tools([("stay", &ending_slowly())]).args(["--drain", "0"]).start();
    server.request(json!(1), "stay", json!({}));
    wait_until_ready(&server);
    server.signal(Signal::HUP);
    assert_eq!(server.wait().code(), Some(0));
    assert!(server.path("root/polite").exists());
}

#[test]
fn an_interrupted_call_on_the_command_line_lets_its_command_end_within_its_grace() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && is_hangup_ignored() {
            continue;
        }
        let setup = with_tools([("stay", &ending_slowly())]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.args(["call", "stay", "{}", "--root"]).arg(setup.path("root"));
        command.arg("--tools").arg(setup.path("tools")).env("PINTLE_STATE_DIR", setup.path("state"));
        let mut call = command.stderr(Stdio::piped()).spawn().expect("starts");
        let ready = setup.path("root/ready");
        wait_until("the command is ready", || ready.exists());
        rustix::process::kill_process(rustix::process::Pid::from_child(&call), signal).expect("signals");
        assert_eq!(call.wait().expect("ends").code(), Some(1), "{signal:?}");
        let mut errors = String::new();
        call.stderr.take().expect("stderr").read_to_string(&mut errors).expect("text");
        assert!(errors.contains("CANCELLED") && setup.path("root/polite").exists(), "{signal:?}: {errors}");
    }
}

#[test]
fn a_client_that_closes_the_output_ends_its_commands() {
    let marker = marker();
    let manifest = stubborn(&marker) + "grace = \"100ms\"\n";
    let mut server = with_tools([("stay", &manifest)]).start_without_reader();
    server.request(json!(1), "stay", json!({}));
    wait_until_ready(&server);
    server.drop_stdout();
    assert_eq!(server.wait().code(), Some(0));
    // The server ends after its commands.
    assert_eq!(processes(&marker), [""; 0]);
}

#[test]
fn closing_only_the_input_lets_commands_finish() {
    let script = "touch ready; while [ ! -e go ]; do sleep 0.01; done; echo done";
    let mut server = with_tools([("slow", &shell(script))]).start();
    server.request(json!(1), "slow", json!({}));
    wait_until_ready(&server);
    server.close_stdin();
    fs::write(server.path("root/go"), "").expect("writes");
    assert_eq!(server.frame()["result"]["stdout"], json!("done\n"));
    assert_eq!(server.wait().code(), Some(0));
}

/// A client, in Python, that starts a server, optionally calls a tool, prints `serving` and waits. A helper process can
/// hold the ends of its pipes open after the client has ended.
const CLIENT: &str = r#"
import json, os, subprocess, sys, time
marker, call, friend, *server = sys.argv[1:]
server = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
while b"mcp:ready" not in server.stderr.readline(): pass
if friend == "yes":
    pipes = (server.stdin.fileno(), server.stdout.fileno(), server.stderr.fileno())
    devnull = subprocess.DEVNULL
    subprocess.Popen(["friend-" + marker, "300"], executable="/bin/sleep", pass_fds=pipes, stdout=devnull)
if call == "yes":
    server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"stay","params":{}}\n'); server.stdin.flush()
    while not os.path.exists("ready"): time.sleep(0.01)
print("serving", flush=True)
time.sleep(300)
"#;

struct Client {
    process: Child,
    _folder: tempfile::TempDir,
    marker: String,
}

impl Client {
    /// Starts a client and waits until its server is ready. The marker is in the server's arguments.
    fn start(manifest: &str, calls: bool, has_helper: bool, flags: &[&str]) -> Self {
        let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("root")).expect("a folder");
        fs::create_dir(path("tools")).expect("a folder");
        let text = format!("name = \"stay\"\ndescription = \"x\"\n{}", manifest.replace("MARKER", &marker));
        fs::write(path("tools/stay.tool.toml"), text).expect("writes");
        let word = |is_so: bool| if is_so { "yes" } else { "no" };
        let mut command = Command::new("python3");
        command.args(["-c", CLIENT, &marker, word(calls), word(has_helper)]);
        command.arg(env!("CARGO_BIN_EXE_pintle")).arg("serve").args(flags);
        command.arg("--ready-file").arg(path(&marker)).arg("--tools").arg(path("tools"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("PINTLE_STATE_DIR", path("state")).current_dir(path("root"));
        let mut process = command.stdout(Stdio::piped()).spawn().expect("starts");
        let mut word = [0; 7];
        process.stdout.as_mut().expect("stdout").read_exact(&mut word).expect("it serves");
        assert_eq!(&word, b"serving");
        Self { process, _folder: folder, marker }
    }

    /// The processes of the client's server and of that server's commands.
    fn remaining(&self) -> Vec<String> {
        let all = processes(&self.marker).into_iter();
        all.filter(|line| !line.contains("friend-") && !line.contains("import json")).collect()
    }

    fn kill(&mut self) {
        self.process.kill().expect("kills");
        self.process.wait().expect("ends");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Kills the helper process, and a server with `--keep-running`.
        for line in processes(&self.marker) {
            let pid =
                line.split(':').next().and_then(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?));
            let _ = pid.map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
    }
}

#[test]
fn a_killed_client_ends_its_server_and_its_commands() {
    for calls in [false, true] {
        let mut client = Client::start(&stubborn("MARKER"), calls, false, &[]);
        assert!(client.remaining().len() > usize::from(calls), "{:?}", client.remaining());
        client.kill();
        let begun = Instant::now();
        wait_until("nothing is left", || client.remaining().is_empty());
        println!("client killed, with a command: {calls}: ended after {:?}", begun.elapsed());
    }
}

#[test]
fn a_server_whose_client_has_ended_ends_even_if_its_pipes_stay_open_unless_keep_running_is_set() {
    let mut client = Client::start(&stubborn("MARKER"), true, true, &[]);
    client.kill();
    wait_until("nothing is left", || client.remaining().is_empty());

    let mut client = Client::start("command = [\"true\"]\n", false, true, &["--keep-running"]);
    client.kill();
    // An absence can only be observed by waiting: this is ten times as long as the server takes without the flag.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(client.remaining().len(), 1);
}

#[test]
fn odd_commands_neither_crash_the_server_nor_fill_its_memory() {
    let gibibytes = rounds(1, 10);
    let marker = marker();
    let mut server = with_tools([
        ("flood", &shell(&format!("head -c {gibibytes}G /dev/zero"))),
        (
            "silent",
            &format!("{}timeout = \"300ms\"\n", shell(&format!("sh -c 'sleep 300 {marker}; :' {marker}; :"))),
        ),
        ("closes", &shell("exec >&- 2>&-; sleep 0.1; exit 4")),
        ("reads", "command = [\"cat\"]\n"),
        ("leaves", &shell(&format!("sh -c 'sleep 300 {marker}; :' {marker} & echo left"))),
        (
            "kills",
            &shell(&format!(
                "setsid sh -c 'sleep 300 {marker}; :' {marker} & kill -KILL $PPID; sleep 300 {marker}"
            )),
        ),
    ])
    .start();
    let begun = Instant::now();
    let result = server.result("flood", json!({}));
    println!("{gibibytes} GiB took {:?}, server at most {} MiB", begun.elapsed(), peak_memory(server.pid()));
    assert_eq!(result["truncated"], json!(true));
    let omitted = format!("[{} bytes left out]", (gibibytes << 30) - (256 << 10));
    assert!(result["stdout"].as_str().expect("text").contains(&omitted));
    assert!(peak_memory(server.pid()) < 200, "{} MiB", peak_memory(server.pid()));
    assert_eq!(server.error("silent", json!({}))["code"], json!("TOOL_TIMEOUT"));
    assert_eq!(server.error("closes", json!({}))["details"]["exitCode"], json!(4));
    assert_eq!(server.result("reads", json!({}))["stdout"], json!(""));
    assert_eq!(server.result("leaves", json!({}))["stdout"], json!("left\n"));
    assert_eq!(server.error("kills", json!({}))["details"]["reason"], json!("supervisor_lost"));
    wait_until("nothing is left", || processes(&marker).is_empty());
    wait_until("the server has waited for all", || zombies(server.pid()) == 0);
    server.finish();
}

/// A daemon without environment that forks, starts a new session and ends its parent, in a loop.
const ESCAPE: &str = r#"
import os, sys, time
if os.fork(): time.sleep(300)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
code = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[2], "w")
end = time.time() + 60
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid()
"""
os.execve(sys.executable, ["daemon", "-c", code, sys.argv[1], sys.argv[2]], {})
"#;

#[test]
fn processes_that_try_to_escape_end_after_a_cancel() {
    let marker = marker();
    let setup = with_tools([]);
    let ready = setup.path("root/ready");
    let text = format!(
        "name = \"escape\"\ndescription = \"x\"\ngrace = \"100ms\"\n\
         command = [\"python3\", \"-c\", '''{ESCAPE}''', \"{marker}\", {ready:?}]\n"
    );
    fs::write(setup.path("tools/escape.tool.toml"), text).expect("writes");
    let mut server = setup.start();
    for _ in 0..rounds(2, 100) {
        server.request(json!(1), "escape", json!({}));
        wait_until_ready(&server);
        cancel(&mut server, json!(1));
        assert_eq!(server.frame()["error"]["data"]["code"], json!("CANCELLED"));
        wait_until_ended(&marker);
        wait_until("the server has waited for all", || zombies(server.pid()) == 0);
    }
    server.finish();
}

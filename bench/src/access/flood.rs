//! What a flood of one caller leaves to another.
//!
//! A calm caller has one connection, or a few, and one call at a time on each. Its rate is taken alone and while another
//! caller has many connections that call without a pause, in turn, for some rounds.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use super::{Call, ECHO, mint, state};
use crate::{
    drive,
    files::{in_turn, shown_rate},
    http::Clients,
    report::{Bar, Report},
    server::Server,
};

/// A file of 1 KiB.
const READ: Call = Call {
    tool: "text.read",
    arguments: || json!({"path": "folder_0/file_0.txt"}),
    expected: br#""content":"line "#,
};

const SEARCH: Call =
    Call { tool: "search", arguments: || json!({"query": "rare_7_7"}), expected: br#""total":1"# };

/// A call that occupies a slot for 20 ms, and no processor.
const SLEEP: Call = Call { tool: "test_sleep", arguments: || json!({"ms": 20}), expected: br#""result""# };

struct Case {
    name: &'static str,
    calm: Call,
    /// How many connections the calm caller has.
    calm_connections: usize,
    flood: Call,
    flood_connections: usize,
}

const CASES: &[Case] = &[
    Case { name: "test_echo", calm: ECHO, calm_connections: 1, flood: ECHO, flood_connections: 64 },
    Case { name: "test_echo", calm: ECHO, calm_connections: 1, flood: ECHO, flood_connections: 256 },
    Case {
        name: "test_echo, 4 connections",
        calm: ECHO,
        calm_connections: 4,
        flood: ECHO,
        flood_connections: 256,
    },
    Case { name: "text.read", calm: READ, calm_connections: 1, flood: READ, flood_connections: 64 },
    Case { name: "text.read", calm: READ, calm_connections: 1, flood: READ, flood_connections: 256 },
    Case { name: "search", calm: SEARCH, calm_connections: 1, flood: SEARCH, flood_connections: 64 },
    Case { name: "search", calm: SEARCH, calm_connections: 1, flood: SEARCH, flood_connections: 256 },
    Case { name: "text.read", calm: READ, calm_connections: 1, flood: SEARCH, flood_connections: 64 },
    Case { name: "test_sleep", calm: SLEEP, calm_connections: 1, flood: SLEEP, flood_connections: 64 },
    Case { name: "text.read", calm: READ, calm_connections: 1, flood: SLEEP, flood_connections: 64 },
];

pub fn run(report: &mut Report, quick: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut command = drive::pintle(folder);
    command.args(["--http", "127.0.0.1:0", "--auth", "local", "--log-level", "off"]);
    write_files(&folder.join("root"));
    let (_server, address) = Server::spawn_http(command, folder);
    let (calm, flood) = (mint(&state(folder), "calm"), mint(&state(folder), "flood"));
    let only = std::env::var("BENCH_FLOOD").unwrap_or_default();
    for case in CASES.iter().filter(|case| case.name.contains(&only)) {
        let rounds = if quick { 3 } else { 9 };
        measure(report, case, address, [&calm, &flood], rounds);
    }
}

fn write_files(root: &Path) {
    for folder in 0..20 {
        let path = root.join(format!("folder_{folder}"));
        fs::create_dir_all(&path).expect("a folder");
        for file in 0..20 {
            let line = format!("line of file rare_{folder}_{file}\n");
            let text = format!("{line}{}", "line that is in all of them\n".repeat(36));
            fs::write(path.join(format!("file_{file}.txt")), text).expect("a file");
        }
    }
}

fn measure(report: &mut Report, case: &Case, address: SocketAddr, [calm, flood]: [&str; 2], rounds: usize) {
    const ROUND: Duration = Duration::from_millis(500);
    let mut calm = case.calm.clients(address, Some(calm), case.calm_connections);
    let mut flood = case.flood.clients(address, Some(flood), case.flood_connections);
    calm.rate(ROUND);
    let (mut alone, mut flooded) = (Vec::new(), Vec::new());
    let mut answers = [0; 2];
    for round in 0..rounds {
        let calm = std::cell::RefCell::new(&mut calm);
        let (of_alone, (rate, refused)) = in_turn(
            round,
            || calm.borrow_mut().rate(ROUND),
            || under_flood(&mut flood, case.flood_connections, || calm.borrow_mut().rate(ROUND)),
        );
        alone.push(of_alone);
        flooded.push(rate);
        answers = [answers[0] + refused[0], answers[1] + refused[1]];
    }
    let [answered, refused] = answers;
    eprintln!("the flood had {answered} answers, and was refused {refused} times");
    let name = format!(
        "{} under a flood of {} connections with {}: calls that are left",
        case.name, case.flood_connections, case.flood.tool
    );
    report.compare(&name, &shown_rate, &flooded, &alone, Bar::AtLeast(1.0 / 3.0));
}

/// What `work` gives while the flood calls, and how often the flood was answered and refused.
fn under_flood(flood: &mut Clients, connections: usize, work: impl FnOnce() -> f64) -> (f64, [usize; 2]) {
    let (is_over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let goes_on = |count| {
        sent.store(count, Ordering::Relaxed);
        !is_over.load(Ordering::Relaxed)
    };
    thread::scope(|scope| {
        let flooding = scope.spawn(|| flood.flood(goes_on));
        // Every connection has been used at least once.
        while sent.load(Ordering::Relaxed) < connections && !flooding.is_finished() {
            thread::yield_now();
        }
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        let answers = flooding.join().expect("the flood ends");
        let right = answers.iter().filter(|answer| answer.is_right).count();
        (result, [right, answers.len() - right])
    })
}

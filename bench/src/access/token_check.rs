//! What checking a token costs: the same call with and without one.
//!
//! The servers run side by side and are called in turn, one connection each, with one call at a time. A request with a token
//! is also longer; that is part of the cost.

use std::{net::SocketAddr, path::Path, time::Instant};

use super::{
    ECHO,
    issuer::{AUDIENCE, Issuer},
    mint, state,
};
use crate::{
    drive,
    files::shown_rate,
    http::Clients,
    report::{Bar, Report},
    server::Server,
};

/// A server under test with its client.
struct Subject {
    name: &'static str,
    server: Server,
    clients: Clients,
    rates: Vec<f64>,
    /// Processor time of the server for a call, in µs.
    processor: Vec<f64>,
}

pub fn run(report: &mut Report, quick: bool) {
    let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().expect("a folder")).collect();
    let folder = |number: usize| folders[number].path();
    let issuer = Issuer::start();
    let jwks = ["--auth", "jwks", "--issuer", &issuer.url(), "--audience", AUDIENCE];
    let local = mint(&state(folder(1)), "me");
    for connections in [1, 16] {
        let mut subjects = [
            subject("no token", folder(0), &["--auth", "none"], None, connections),
            subject("HS256", folder(1), &["--auth", "local"], Some(&local), connections),
            subject("RS256", folder(2), &jwks, Some(&issuer.rs256_token()), connections),
            subject("ES256", folder(3), &jwks, Some(&issuer.es256_token()), connections),
        ];
        measure(&mut subjects, quick);
        add_rows(report, connections, &subjects);
    }
}

fn subject(
    name: &'static str,
    folder: &Path,
    arguments: &[&str],
    token: Option<&str>,
    connections: usize,
) -> Subject {
    let mut command = drive::pintle(folder);
    command.args(["--http", "127.0.0.1:0"]).args(arguments);
    let (server, address): (Server, SocketAddr) = Server::spawn_http(command, folder);
    let clients = ECHO.clients(address, token, connections);
    Subject { name, server, clients, rates: Vec::new(), processor: Vec::new() }
}

fn measure(subjects: &mut [Subject], quick: bool) {
    let (rounds, calls) = if quick { (7, 1_000) } else { (41, 3_000) };
    for subject in subjects.iter_mut() {
        subject.clients.call(calls);
    }
    for round in 0..rounds {
        // Another one goes first in each round.
        let count = subjects.len();
        for turn in 0..count {
            let subject = &mut subjects[(round + turn) % count];
            let (processor, started) = (subject.server.threads_time(), Instant::now());
            let answers = subject.clients.call(calls);
            let (elapsed, processor) = (started.elapsed(), subject.server.threads_time() - processor);
            assert_eq!(answers.len(), calls, "replies were lost");
            subject.rates.push(calls as f64 / elapsed.as_secs_f64());
            subject.processor.push(processor as f64 / 1e3 / calls as f64);
        }
    }
}

fn add_rows(report: &mut Report, connections: usize, subjects: &[Subject]) {
    let [without, with @ ..] = subjects else { return };
    let clients = if connections == 1 { "1 client".to_owned() } else { format!("{connections} clients") };
    for subject in with {
        let name = |what: &str| {
            format!("test_echo over HTTP, {}, {clients}: {what}, against no token", subject.name)
        };
        let bar = |bar| if subject.name == "HS256" { bar } else { Bar::Reported };
        report.compare(&name("calls"), &shown_rate, &subject.rates, &without.rates, bar(Bar::AtLeast(0.95)));
        let what = name("server's processor time a call");
        let shown = |figure: f64| format!("{figure:.1} µs");
        report.compare(&what, &shown, &subject.processor, &without.processor, bar(Bar::AtMost(1.05)));
    }
}

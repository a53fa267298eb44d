//! Measures the built binary against its peers, in one run, and prints ratios.

mod access;
mod contract;
mod corpus;
mod drive;
mod files;
mod foundation;
mod http;
mod mcp;
mod pipe;
mod report;
mod search;
mod server;

use std::{path::PathBuf, process::ExitCode};

use report::Report;

/// `[--quick] [--only=foundation|mcp|files|search|access|contract] [FILE]`: the file gets the table as JSON.
fn main() -> ExitCode {
    let (mut quick, mut only, mut out) = (false, None, None);
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("--only=") {
            Some(name) => only = Some(name.to_owned()),
            None if argument == "--quick" => quick = true,
            None => out = Some(PathBuf::from(argument)),
        }
    }
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let mut report = Report::default();
    if wanted("foundation") {
        foundation::run(&mut report, quick);
    }
    if wanted("mcp") {
        mcp::run(&mut report, quick);
    }
    if wanted("files") {
        files::run(&mut report, quick);
    }
    if wanted("search") {
        search::run(&mut report, quick);
    }
    if wanted("access") {
        access::run(&mut report, quick);
    }
    if wanted("contract") {
        contract::run(&mut report, quick);
    }
    report.print();
    if let Some(path) = out {
        report.write(&path);
    }
    if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

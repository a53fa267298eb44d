//! Measures the built binary against its peers, in one run, and prints ratios.

mod corpus;
mod drive;
mod foundation;
mod report;

use std::path::PathBuf;

use report::Report;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let quick = std::env::args().any(|argument| argument == "--quick");
    let out = arguments.find(|argument| argument != "--quick").map(PathBuf::from);
    let mut report = Report::default();
    foundation::run(&mut report, quick);
    report.print();
    if let Some(path) = out {
        report.write(&path);
    }
}

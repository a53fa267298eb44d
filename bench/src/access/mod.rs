//! The bars of access: what checking a token costs, what a flood of one caller leaves to another, and the memory of many
//! tenants.

mod flood;
mod issuer;
mod tenants;
mod token_check;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    drive,
    http::{Client, Clients, FIRST_ID, post},
    report::Report,
};

pub fn run(report: &mut Report, quick: bool) {
    // BENCH_CASE selects cases by a part of their name.
    let only = std::env::var("BENCH_CASE").unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    if wanted("token check") {
        token_check::run(report, quick);
    }
    if wanted("flood") {
        flood::run(report, quick);
    }
    if wanted("tenants") {
        tenants::run(report, quick);
    }
}

/// The state folder of the server that `drive::pintle` starts.
fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// A token of the local secret, for a subject that may do everything.
fn mint(state: &Path, subject: &str) -> String {
    let mut command = Command::new(drive::binary("pintle"));
    command.args(["token", "mint", "--sub", subject, "--scope", "write:/"]).arg("--state-dir").arg(state);
    let output = command.output().expect("pintle starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a token").trim().to_owned()
}

/// What is called, and what its reply must contain.
#[derive(Clone, Copy)]
struct Call {
    tool: &'static str,
    arguments: fn() -> Value,
    expected: &'static [u8],
}

/// The cheapest call.
const ECHO: Call =
    Call { tool: "test_echo", arguments: || json!({"value": "hello"}), expected: br#""value":"hello""# };

impl Call {
    /// Connections that make this call, with a token if there is one.
    fn clients(self, address: SocketAddr, token: Option<&str>, count: usize) -> Clients {
        let headers = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let body =
            json!({"jsonrpc": "2.0", "id": FIRST_ID, "method": self.tool, "params": (self.arguments)()});
        let request = post(address, "/rpc", &headers, &body);
        let client = |_| Client::connect(address).calling(request.clone(), self.expected);
        Clients::new((0..count).map(client).collect())
    }
}

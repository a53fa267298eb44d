//! The servers of the two transports.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use crate::{drive, server::Server};

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pintle,
    /// The bare server.
    Bare,
    /// The bare server with the SDK's faster pipes.
    BarePipes,
}

/// A server on pipes.
pub fn stdio(kind: Kind, folder: &Path) -> Server {
    let mut command = command(kind, folder);
    if kind == Kind::BarePipes {
        command.arg("--pipes");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Server::spawn(command, folder)
}

/// A server on HTTP, and its address.
pub fn http(kind: Kind, folder: &Path) -> (Server, SocketAddr) {
    let mut command = command(kind, folder);
    command.arg("--http");
    if kind == Kind::Pintle {
        command.args(["127.0.0.1:0", "--auth", "none"]);
    }
    Server::spawn_http(command, folder)
}

fn command(kind: Kind, folder: &Path) -> Command {
    match kind {
        Kind::Pintle => drive::pintle(folder),
        // The variable can name another build of the peer, for example with another allocator.
        Kind::Bare | Kind::BarePipes => match std::env::var_os("BENCH_BARE_RMCP") {
            Some(path) => Command::new(path),
            None => Command::new(drive::binary("bare_rmcp")),
        },
    }
}

//! A temporary folder with a root for servers.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{drive, pipe::Client, server::Server};

/// A folder that is removed when this is dropped.
pub struct Workspace(TempDir);

impl Workspace {
    pub fn new() -> Self {
        let binary = drive::binary("pintle");
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(binary.parent().expect("a folder"));
        let workspace = Self(folder.expect("a folder"));
        std::fs::create_dir(workspace.root()).expect("a root");
        workspace
    }

    /// The root of the servers.
    pub fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// The folder that contains the root.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Starts Pintle on the root.
    pub fn serve(&self, arguments: &[&str]) -> (Server, Client) {
        let mut command = drive::pintle(self.folder());
        command.args(arguments);
        self.start(command)
    }

    /// Starts any server on pipes, with a file for its standard error.
    pub fn start(&self, mut command: Command) -> (Server, Client) {
        let folder = tempfile::tempdir_in(self.folder()).expect("a folder").keep();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Server::spawn(command, &folder);
        let client = Client::connect(&mut server);
        (server, client)
    }
}

/// A request in the direct dialect.
pub fn direct(id: u64, tool: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": tool, "params": params})
}

/// Calls a tool once in the direct dialect, and returns its result.
pub fn call(client: &mut Client, tool: &str, params: &Value) -> Value {
    let reply = client.ask(format!("{}\n", direct(1, tool, params)).as_bytes());
    let mut reply: Value = serde_json::from_slice(reply).expect("a reply");
    assert!(reply["error"].is_null(), "{reply}");
    reply["result"].take()
}

/// The hash in the result of a tool.
pub fn hash(result: &Value) -> String {
    result["hash"].as_str().expect("a hash").to_owned()
}

//! MCP clients over HTTP.

use std::net::SocketAddr;

use super::{ECHOED, LEGACY, call, initialize, initialized};
use crate::http::{Client, Clients, FIRST_ID, header, post};

/// Opens the connections. In a revision that has sessions, each has a session of its own.
pub fn connect(address: SocketAddr, revision: &str, count: usize) -> Clients {
    Clients::new((0..count).map(|_| client(address, revision)).collect())
}

fn client(address: SocketAddr, revision: &str) -> Client {
    let mut client = Client::connect(address);
    let mut headers = format!("MCP-Protocol-Version: {revision}\r\n");
    if revision == LEGACY {
        let reply = client.exchange(&post(address, "/mcp", "", &initialize()));
        let session = header(&reply, "mcp-session-id").expect("a session").to_owned();
        headers += &format!("Mcp-Session-Id: {session}\r\n");
        client.exchange(&post(address, "/mcp", &headers, &initialized()));
    } else {
        headers += "Mcp-Method: tools/call\r\nMcp-Name: test_echo\r\n";
    }
    client.calling(post(address, "/mcp", &headers, &call(FIRST_ID, revision)), ECHOED)
}

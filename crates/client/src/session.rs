//! The conversation: handshake, list of tools, resource templates.

use std::{future::Future, time::Duration};

use serde_json::{Map, Value, json};

use crate::{ClientError, MOST_PAGES, MOST_TOOLS, TOTAL_TIMEOUTS};

/// The revision of the protocol that is asked for; servers answer with the one that they speak.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// A way to a server.
pub(crate) trait Connection {
    /// Sends a request and waits for its answer.
    fn request(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<Value, ClientError>>;
    /// Sends a notification.
    fn notify(&mut self, method: &'static str) -> impl Future<Output = Result<(), ClientError>>;
    /// The revision of the protocol that was agreed on.
    fn agreed(&mut self, _version: &str) {}
}

/// The surface of a server: its tools, its resource templates, its instructions. `timeout` is that of one answer.
pub(crate) async fn ask(connection: &mut impl Connection, timeout: Duration) -> Result<Value, ClientError> {
    let timeout = timeout.saturating_mul(TOTAL_TIMEOUTS);
    let timed_out = |_| ClientError::TimedOut { method: "tools/list", timeout, errors: String::new() };
    tokio::time::timeout(timeout, converse(connection)).await.map_err(timed_out)?
}

async fn converse(connection: &mut impl Connection) -> Result<Value, ClientError> {
    let client = json!({"name": "pintle-contract", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client});
    let server = connection.request("initialize", hello).await?;
    connection.agreed(server.get("protocolVersion").and_then(Value::as_str).unwrap_or(PROTOCOL_VERSION));
    connection.notify("notifications/initialized").await?;
    let mut surface = Map::new();
    if let Some(info) = server.get("serverInfo") {
        surface.insert("serverInfo".to_owned(), info.clone());
    }
    if let Some(instructions) = server.get("instructions").filter(|text| text.is_string()) {
        surface.insert("instructions".to_owned(), instructions.clone());
    }
    let tools = list(connection, "tools/list", "tools").await?;
    surface.insert("tools".to_owned(), Value::Array(tools));
    if server.pointer("/capabilities/resources").is_some() {
        // A server may have resources and no templates.
        match list(connection, "resources/templates/list", "resourceTemplates").await {
            Ok(templates) => {
                surface.insert("resourceTemplates".to_owned(), Value::Array(templates));
            }
            Err(ClientError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Value::Object(surface))
}

/// All pages of a list.
async fn list(
    connection: &mut impl Connection,
    method: &'static str,
    name: &str,
) -> Result<Vec<Value>, ClientError> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let mut page = connection.request(method, params).await?;
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(Value::Array(more)) = page.get_mut(name) else {
            return Err(ClientError::Nonsense(method, "it has no list"));
        };
        items.append(more);
        if items.len() > MOST_TOOLS {
            return Err(ClientError::Endless("10,000 tools"));
        }
        match next {
            None => return Ok(items),
            Some(next) if Some(&next) == cursor.as_ref() => {
                return Err(ClientError::Endless("a page that refers to itself"));
            }
            next => cursor = next,
        }
    }
    Err(ClientError::Endless("200 pages"))
}

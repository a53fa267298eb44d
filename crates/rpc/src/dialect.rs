//! Which of the two languages a request on a shared pipe is spoken in.

use serde_json::Value;

/// The `_meta` key that marks a request of MCP's stateless era.
pub const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The language of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The method is the tool's name.
    Direct,
    /// The Model Context Protocol.
    Mcp,
    /// `$/…`: about other messages.
    Control,
}

impl Dialect {
    /// Decides by method and params alone, so that every pipe decides alike.
    pub fn of(method: &str, params: Option<&Value>) -> Self {
        if method.starts_with("$/") {
            return Self::Control;
        }
        let names_protocol =
            || params.and_then(|params| params.get("_meta")?.get(PROTOCOL_VERSION_KEY)).is_some();
        if matches!(method, "initialize" | "ping") || method.contains('/') || names_protocol() {
            return Self::Mcp;
        }
        Self::Direct
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_is_mcp_by_its_method_or_its_meta() {
        let modern = json!({"_meta": {PROTOCOL_VERSION_KEY: "2026-07-28"}});
        for (method, params, expected) in [
            ("initialize", None, Dialect::Mcp),
            ("ping", None, Dialect::Mcp),
            ("tools/call", None, Dialect::Mcp),
            ("notifications/cancelled", None, Dialect::Mcp),
            ("list_schemas", Some(&modern), Dialect::Mcp),
            ("list_schemas", None, Dialect::Direct),
            ("mcp.discover", None, Dialect::Direct),
            ("$/cancelRequest", None, Dialect::Control),
            ("$/other", Some(&modern), Dialect::Control),
        ] {
            assert_eq!(Dialect::of(method, params), expected, "{method}");
        }
    }
}

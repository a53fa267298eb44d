//! The schemas of the envelope and of `mcp.tool.invoke`, and the `meta` that both may carry.

use serde_json::Value;

/// JSON Schema of every request's outer object.
pub const ENVELOPE_SCHEMA: &str = include_str!("../schemas/envelope.schema.json");

/// JSON Schema of the params of `mcp.tool.invoke`.
pub const TOOL_IO_SCHEMA: &str = include_str!("../schemas/tool_io.schema.json");

/// The metadata of a request.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// Asks for progress, which will carry this token.
    pub progress_token: Option<Value>,
    /// W3C trace context of the caller.
    pub traceparent: Option<String>,
    /// Which agent is calling.
    pub agent_id: Option<String>,
    /// Which of the agent's runs this is.
    pub run_id: Option<String>,
}

impl Meta {
    /// Reads the well-formed members and skips the others: the envelope was already validated, or shadow mode let it
    /// through.
    pub fn from_value(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            progress_token: value
                .get("progressToken")
                .filter(|token| token.is_string() || token.is_number())
                .cloned(),
            traceparent: text("traceparent"),
            agent_id: text("agentId"),
            run_id: text("runId"),
        }
    }

    /// This meta with the gaps filled from `outer`.
    pub fn or(self, outer: Self) -> Self {
        Self {
            progress_token: self.progress_token.or(outer.progress_token),
            traceparent: self.traceparent.or(outer.traceparent),
            agent_id: self.agent_id.or(outer.agent_id),
            run_id: self.run_id.or(outer.run_id),
        }
    }

    /// Trace id and parent span id, if `traceparent` is well formed (W3C Trace Context).
    pub fn trace(&self) -> Option<(&str, &str)> {
        let mut parts = self.traceparent.as_deref()?.split('-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        let flags = parts.next()?;
        let hex = |text: &str, length| {
            text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let well_formed = hex(version, 2)
            && version != "ff"
            && hex(trace, 32)
            && hex(span, 16)
            && hex(flags, 2)
            && (version != "00" || parts.next().is_none())
            && trace.bytes().any(|b| b != b'0')
            && span.bytes().any(|b| b != b'0');
        well_formed.then_some((trace, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_traceparent_gives_a_trace() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let zero = "0".repeat(32);
        for (text, valid) in [
            (format!("00-{trace}-{span}-01"), true),
            (format!("cc-{trace}-{span}-01-more"), true),
            (format!("00-{trace}-{span}-01-more"), false),
            (format!("ff-{trace}-{span}-01"), false),
            (format!("00-{zero}-{span}-01"), false),
            (format!("00-{}-{span}-01", trace.to_uppercase()), false),
            (format!("00-{trace}-{span}"), false),
            ("é".repeat(40), false),
            (String::new(), false),
        ] {
            let meta = Meta { traceparent: Some(text.clone()), ..Meta::default() };
            assert_eq!(meta.trace().is_some(), valid, "{text}");
        }
    }
}

//! The clients that are known by name: how each takes a tool's result, and what it adds to calls.

use std::sync::LazyLock;

use serde::Deserialize;

/// How the result of a tool is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResultForm {
    /// As structured content, and again as text.
    Json,
    /// As one block of text; definitions have no output schema.
    Text,
}

/// The form that a client is served best with. A client that is not known gets JSON, as the protocol has it.
pub(crate) fn form_for(client_name: Option<&str>) -> ResultForm {
    let client = client_name.and_then(|name| CLIENTS.iter().find(|client| client.is_named(name)));
    client.map_or(ResultForm::Json, |client| client.results)
}

/// The arguments that a client adds to every call, whatever tool it calls.
pub(crate) fn added_arguments(client_name: Option<&str>) -> &'static [String] {
    let client = client_name.and_then(|name| CLIENTS.iter().find(|client| client.is_named(name)));
    client.map_or(&[], |client| &client.added_arguments)
}

static CLIENTS: LazyLock<Vec<Client>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        clients: Vec<Client>,
    }
    // A test reads the same file, so that what is built in can be read.
    let file: Result<File, _> = serde_json::from_str(include_str!("clients.json"));
    file.map(|file| file.clients).unwrap_or_default()
});

#[derive(Deserialize)]
struct Client {
    /// Names as clients give them in `clientInfo`; one that ends with `*` stands for all that begin so.
    #[serde(rename = "clientInfo")]
    names: Vec<String>,
    results: ResultForm,
    #[serde(default, rename = "addedArguments")]
    added_arguments: Vec<String>,
}

impl Client {
    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_harmed_by_structured_content_get_text_and_all_others_json() {
        assert!(CLIENTS.len() >= 10);
        for name in ["gemini-cli-mcp-client", "qwen-cli-mcp-client-pintle", "@cline/core", "Cline"] {
            assert_eq!(form_for(Some(name)), ResultForm::Text, "{name}");
        }
        for name in ["claude-code", "codex-mcp-client", "cline", "gemini", "", "someone"] {
            assert_eq!(form_for(Some(name)), ResultForm::Json, "{name}");
        }
        assert_eq!(form_for(None), ResultForm::Json);
    }
}

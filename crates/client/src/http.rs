//! A server that is reached over Streamable HTTP.

use std::{error::Error, time::Duration};

use reqwest::{
    Client, ClientBuilder, RequestBuilder, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use crate::{
    ClientError, LARGEST_MESSAGE, LEAVE, MOST_BYTES, MOST_MESSAGES,
    message::{self, Incoming},
    session::{Connection, ask},
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// A header of every request, such as `Authorization: Bearer …`.
#[derive(Clone, Debug)]
pub struct Header {
    name: HeaderName,
    value: HeaderValue,
}

impl std::str::FromStr for Header {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        let refused = || ClientError::Address("a header is written as 'Name: value'".to_owned());
        let (name, value) = text.split_once(':').ok_or_else(refused)?;
        let name = name.trim().parse().map_err(|_| refused())?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| refused())?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

/// Asks the server at an address for its surface. Each answer may take as long as `timeout`.
pub async fn ask_url(address: &str, headers: &[Header], timeout: Duration) -> Result<Value, ClientError> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| {
        ClientError::Address(format!("`{address}` is not an address; write it as https://server.example/mcp"))
    })?;
    let mut sent = HeaderMap::new();
    for header in headers {
        sent.append(header.name.clone(), header.value.clone());
    }
    let mut builder =
        client_builder().default_headers(sent).timeout(timeout).redirect(reqwest::redirect::Policy::none());
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]).no_proxy();
    }
    let client = builder.build().map_err(|error| ClientError::Http(error.to_string()))?;
    let mut endpoint = Endpoint { client, url, session: None, version: None, next: 1, received: 0, timeout };
    let surface = ask(&mut endpoint, timeout).await;
    endpoint.leave().await;
    surface
}

struct Endpoint {
    client: Client,
    url: Url,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    next: u64,
    /// How many bytes have been read.
    received: usize,
    timeout: Duration,
}

impl Connection for Endpoint {
    async fn request(&mut self, method: &'static str, params: Value) -> Result<Value, ClientError> {
        let id = self.next;
        self.next += 1;
        let response = self.post(&message::request(id, method, params), method).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        self.answer(response, id, method).await
    }

    async fn notify(&mut self, method: &'static str) -> Result<(), ClientError> {
        self.post(&message::notification(method), method).await.map(drop)
    }

    fn agreed(&mut self, version: &str) {
        self.version = version.parse().ok();
    }
}

impl Endpoint {
    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        let known = [(SESSION, &self.session), (VERSION, &self.version)];
        known.into_iter().fold(request, |request, (name, value)| match value {
            Some(value) => request.header(name, value),
            None => request,
        })
    }

    async fn post(&self, message: &Value, method: &'static str) -> Result<Response, ClientError> {
        let request = self.client.post(self.url.clone()).body(message.to_string());
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let response =
            self.with_session(request).send().await.map_err(|error| self.failed(&error, method))?;
        if !response.status().is_success() {
            return Err(ClientError::Status { method, status: response.status().as_u16() });
        }
        Ok(response)
    }

    async fn answer(
        &mut self,
        mut response: Response,
        id: u64,
        method: &'static str,
    ) -> Result<Value, ClientError> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let mut events = Events::default();
        let mut total = 0;
        let mut messages = 0;
        loop {
            let chunk = response.chunk().await.map_err(|error| self.failed(&error, method))?;
            let is_end = chunk.is_none();
            let length = chunk.as_ref().map_or(0, |chunk| chunk.len());
            total += length;
            if total > LARGEST_MESSAGE {
                return Err(ClientError::TooLarge);
            }
            self.received += length;
            if self.received > MOST_BYTES {
                return Err(ClientError::TooMuch);
            }
            events.push(chunk.as_deref().unwrap_or_default());
            let texts = match (is_stream, is_end) {
                (true, _) => events.take(is_end),
                (false, true) => vec![std::mem::take(&mut events.unread)],
                (false, false) => Vec::new(),
            };
            for text in texts {
                let Some(message) = message::parse(&text, method)? else { continue };
                match message::read(message, id) {
                    Incoming::Answer(answer) => {
                        return answer.map_err(|error| message::refused(method, error));
                    }
                    Incoming::Asked(reply) => drop(self.post(&reply, method).await?),
                    Incoming::Other => {}
                }
                messages += 1;
                if messages > MOST_MESSAGES {
                    return Err(ClientError::TooManyMessages(method));
                }
            }
            if is_end {
                return Err(ClientError::Nonsense(method, "the answer is missing"));
            }
        }
    }

    /// Ends the session; a server that does not know how keeps it until it expires.
    async fn leave(&self) {
        if self.session.is_some() {
            let _ = self.with_session(self.client.delete(self.url.clone())).timeout(LEAVE).send().await;
        }
    }

    fn failed(&self, error: &reqwest::Error, method: &'static str) -> ClientError {
        if error.is_timeout() {
            return ClientError::TimedOut { method, timeout: self.timeout, errors: String::new() };
        }
        ClientError::Http(causes(error))
    }
}

/// A client of HTTP with the name of this program.
pub fn client_builder() -> ClientBuilder {
    // An error means that a provider is already installed, which is fine.
    _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")))
}

/// The causes of an error, without the address, which may hold something secret.
pub fn causes(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    if texts.is_empty() { "the request failed".to_owned() } else { texts.join(": ") }
}

/// The data of server-sent events.
#[derive(Default)]
struct Events {
    unread: Vec<u8>,
    /// How much of it is known to have no end of a line.
    searched: usize,
    data: Vec<u8>,
}

impl Events {
    fn push(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The data of each event that is complete.
    fn take(&mut self, is_end: bool) -> Vec<Vec<u8>> {
        let mut complete = Vec::new();
        let mut start = 0;
        while let Some(length) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let line = self.unread[start..end].trim_ascii_end();
            start = end + 1;
            self.searched = start;
            if line.is_empty() {
                if !self.data.is_empty() {
                    complete.push(std::mem::take(&mut self.data));
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
        self.unread.drain(..start);
        self.searched = self.unread.len();
        if is_end && !self.data.is_empty() {
            complete.push(std::mem::take(&mut self.data));
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_chunks() {
        let mut events = Events::default();
        events.push(b"event: message\r\ndata: {\"a\":\r\nda");
        assert!(events.take(false).is_empty());
        events.push(b"ta: 1}\r\n\r\ndata: 2\n");
        assert_eq!(events.take(false), [b"{\"a\":\n1}".to_vec()]);
        assert_eq!(events.take(true), [b"2".to_vec()]);
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert!("Authorization: Bearer x".parse::<Header>().is_ok());
        assert!("Authorization".parse::<Header>().is_err());
        assert!("bad name: x".parse::<Header>().is_err());
    }
}

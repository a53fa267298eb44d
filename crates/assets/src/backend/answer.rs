//! Interprets a response of the backend: the id and URL of the published asset, or why it failed.

use percent_encoding::percent_decode_str;
use reqwest::{RequestBuilder, Response, StatusCode, header::LOCATION};
use serde_json::Value;
use url::Url;

use super::client::{MAX_REDIRECTS, is_same_server, keeps_the_request};

/// The longest part of a backend's own message that is passed on.
const MAX_DETAIL_CHARS: usize = 500;

/// An asset that the backend has stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) asset_id: String,
    pub(crate) backend_url: String,
}

/// A request that did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The backend's status, or 503 if it gave none.
    pub(crate) status: u16,
    pub(crate) detail: String,
    /// The backend stored the asset all the same, so the call must not be retried.
    pub(crate) took_effect: bool,
}

impl Failed {
    /// The backend could not be reached.
    pub(super) fn unreachable() -> Self {
        Self::without_status("network_unreachable")
    }

    fn without_status(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status: status.as_u16(), detail: detail.into(), took_effect: false }
    }

    /// The backend stored the asset, but its id is unknown.
    fn after_effect(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { took_effect: true, ..Self::new(status, detail) }
    }
}

/// A response with a success status.
pub(super) struct Answer {
    status: StatusCode,
    /// The final URL, after redirects.
    address: Url,
    location: Option<String>,
    body: Vec<u8>,
    is_whole: bool,
}

/// Sends a request and reads the response up to a size limit.
pub(super) async fn read(request: RequestBuilder, max_bytes: usize) -> Result<Answer, Failed> {
    let mut response = request.send().await.map_err(|error| no_answer(&error))?;
    let status = response.status();
    if let Some(failed) = stopped_redirect(&response) {
        return Err(failed);
    }
    let mut answer = Answer {
        status,
        address: response.url().clone(),
        location: header_text(&response, LOCATION),
        body: Vec::new(),
        is_whole: true,
    };
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => answer.body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) if error.is_timeout() => return Err(no_answer(&error)),
            Err(_) => {
                let failed = Failed::new(status, "the backend's answer broke off");
                return Err(Failed { took_effect: status.is_success(), ..failed });
            }
        }
        if answer.body.len() > max_bytes {
            answer.body.truncate(max_bytes);
            answer.is_whole = false;
            break;
        }
    }
    match status.is_success() {
        true => Ok(answer),
        false => Err(answer.refusal()),
    }
}

impl Answer {
    /// The id and URL of a published asset; `address` returns the URL of an asset by its id.
    pub(super) fn published(self, address: impl Fn(&str) -> String) -> Result<Published, Failed> {
        if !self.is_whole {
            return Err(Failed::after_effect(
                self.status,
                "the backend stored the asset, but its answer is too long to read, so its id is unknown",
            ));
        }
        let location = self.location.as_deref().and_then(|location| self.address.join(location).ok());
        // A caller could not follow any other scheme.
        let location = location.filter(|location| matches!(location.scheme(), "http" | "https"));
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let id = id_in(&body, "id").or_else(|| id_in(&body, "asset_id")).or_else(|| {
            let last = location.as_ref()?.path_segments()?.rfind(|segment| !segment.is_empty())?;
            Some(percent_decode_str(last).decode_utf8_lossy().into_owned())
        });
        let Some(asset_id) = id else {
            return Err(Failed::after_effect(
                self.status,
                "the backend stored the asset but returned no id: neither `id` nor `asset_id` nor a Location header",
            ));
        };
        let backend_url = location.map_or_else(|| address(&asset_id), String::from);
        Ok(Published { asset_id, backend_url })
    }

    /// The body, if it is JSON.
    pub(super) fn json_text(self) -> Result<String, Failed> {
        if !self.is_whole {
            return Err(Failed::new(self.status, "the backend's answer is too large"));
        }
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&self.body).is_ok();
        let text = String::from_utf8(self.body).ok().filter(|_| is_json);
        text.ok_or_else(|| Failed::new(self.status, "the backend's answer is not JSON"))
    }

    /// The failure that an error status stands for, with the backend's own message if it sent one.
    fn refusal(&self) -> Failed {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let said = ["detail", "message", "error"].into_iter().find_map(|key| body.get(key)?.as_str());
        let text = String::from_utf8_lossy(&self.body);
        let words = said.unwrap_or(&text).trim();
        let detail = match (words.is_empty(), self.status.canonical_reason()) {
            (false, _) => words.chars().take(MAX_DETAIL_CHARS).collect(),
            (true, Some(reason)) => reason.to_owned(),
            (true, None) => format!("status {}", self.status.as_u16()),
        };
        Failed::new(self.status, detail)
    }
}

fn id_in(body: &Value, key: &str) -> Option<String> {
    match body.get(key)? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn no_answer(error: &reqwest::Error) -> Failed {
    match error.is_timeout() {
        true => Failed::without_status("timeout"),
        false => Failed::unreachable(),
    }
}

/// The failure for a redirect that was not followed.
fn stopped_redirect(response: &Response) -> Option<Failed> {
    let status = response.status();
    let location = header_text(response, LOCATION).filter(|_| status.is_redirection())?;
    let target = response.url().join(&location).ok();
    let to = target.as_ref().map_or_else(|| "an invalid address".to_owned(), shown);
    let stays = target.is_some_and(|target| is_same_server(response.url(), &target));
    let why = match (keeps_the_request(status), stays) {
        (false, _) => "which is not followed, because only 307 and 308 repeat the request",
        (true, false) => "another server, which is not followed",
        (true, true) => {
            let detail = format!("the backend redirected more than {MAX_REDIRECTS} times, last to {to}");
            return Some(Failed::new(status, detail));
        }
    };
    let detail = format!("the backend redirected to {to}, {why}; configure the backend's final address");
    Some(Failed::new(status, detail))
}

/// A URL for a message: without credentials, query and fragment, and of limited length.
fn shown(address: &Url) -> String {
    let mut address = address.clone();
    // Neither can fail for a URL that has a user.
    _ = address.set_username("");
    _ = address.set_password(None);
    address.set_query(None);
    address.set_fragment(None);
    address.as_str().chars().take(MAX_DETAIL_CHARS / 2).collect()
}

fn header_text(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

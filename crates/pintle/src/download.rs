//! Downloads packs. Only over TLS, also after a redirect: the checksum says that the bytes are right, but not that nobody
//! on the way has seen who asked for them.

use std::time::Duration;

use pintle_client::{causes, client_builder};
use pintle_contract::{ErrorCode, Fault};
use pintle_packs::Spool;
use reqwest::{Client, redirect, retry};
use url::Url;

use crate::error::StartError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long nothing may come.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The whole download.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
const MAX_REDIRECTS: usize = 5;

/// The https address of an archive.
pub struct PackUrl(Url);

impl PackUrl {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let refuse = |problem: &str| {
            Err(Fault::new(ErrorCode::InvalidRequest, format!("the address cannot be used: {problem}"))
                .hint("write it as https://host/pack.tar.gz, or download the archive and name the file"))
        };
        match Url::parse(text) {
            Ok(url) if url.scheme() != "https" => refuse("packs are downloaded over https only"),
            Ok(url) => Ok(Self(url)),
            Err(error) => refuse(&error.to_string()),
        }
    }

    /// The last name of its path.
    pub fn file_name(&self) -> Option<String> {
        self.0.path_segments()?.next_back().map(str::to_owned)
    }

    /// The address without what may be secret: a password, or a signature in the query.
    pub fn shown(&self) -> String {
        let mut url = self.0.clone();
        // These fail only for addresses without a host, which https has.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }
}

/// Downloads an archive into a spool, which limits its size.
pub fn download(url: &PackUrl, spool: &mut Spool) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(StartError::System)?.block_on(fetch(url, spool))?;
    Ok(())
}

async fn fetch(url: &PackUrl, spool: &mut Spool) -> Result<(), Fault> {
    let failed = |error: reqwest::Error| not_downloaded(url, &describe(&error));
    let mut response = client().map_err(failed)?.get(url.0.clone()).send().await.map_err(failed)?;
    if response.status().as_u16() != 200 {
        let status = response.status();
        let problem = match status.is_redirection() {
            true => format!("it redirects (status {}) to an address that is not followed", status.as_u16()),
            false => format!("the server answered with status {}", status.as_u16()),
        };
        return Err(not_downloaded(url, &problem));
    }
    spool.expect(response.content_length().unwrap_or_default())?;
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        spool.append(&chunk)?;
    }
    Ok(())
}

/// The system's root certificates, or those of `SSL_CERT_FILE`, are trusted.
fn client() -> reqwest::Result<Client> {
    client_builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .timeout(TIMEOUT)
        .https_only(true)
        .retry(retry::never())
        .redirect(redirect::Policy::custom(|attempt| {
            match attempt.url().scheme() == "https" && attempt.previous().len() <= MAX_REDIRECTS {
                true => attempt.follow(),
                false => attempt.stop(),
            }
        }))
        .build()
}

fn not_downloaded(url: &PackUrl, problem: &str) -> Fault {
    Fault::new(ErrorCode::UpstreamFailed, format!("{} cannot be downloaded: {problem}", url.shown())).hint(
        "nothing was installed; check the address, the network and the proxy (HTTPS_PROXY), and for a certificate of \
         your own SSL_CERT_FILE",
    )
}

fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".into();
    }
    causes(error)
}

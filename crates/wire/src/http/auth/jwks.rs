//! Tokens of an authorization server, whose public keys are fetched from it (JWKS).
//!
//! The keys are fetched when the first token comes, again when their time is over, and when a token names a key that is
//! not known: servers rotate their keys. All of that happens at a bounded rate, whatever tokens come. While the
//! authorization server is down, or answers with something that is no set of keys, the keys that there are stay. A set
//! without a key that can be used ends all tokens.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use pintle_auth::{Expectation, Identity, KeySet, Keys, TokenCache, TokenError, since_1970, verify};
use reqwest::{Client, Response, Url, header::CACHE_CONTROL};
use serde::Deserialize;
use thiserror::Error;
use tokio::time::Instant;

use super::TokenVerifier;

/// The timeout of one request to the authorization server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for keys while there are others to go on with.
const PATIENCE: Duration = Duration::from_secs(1);
/// The keys are fetched at most this often.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// How long keys are used if the authorization server does not say.
const MAX_AGE: Duration = Duration::from_secs(300);
/// What it may say.
const AGES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));
/// The largest document that is read.
const LARGEST: usize = 1 << 20;

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct JwksOptions {
    /// The issuer, an `https` address, or one of this machine.
    pub issuer: String,
    /// The audience that a token must have.
    pub audience: String,
    /// Where the keys are, if the issuer's metadata is not to be asked.
    pub jwks_url: Option<String>,
}

/// An issuer, or an address of keys, that cannot be used.
#[derive(Debug, Error)]
pub enum NotAnIssuer {
    /// It is no address.
    #[error("`{0}` is not an address; write it as https://issuer.example")]
    NotAnAddress(String),
    /// Whoever is on the way could put their own keys in.
    #[error(
        "`{0}` must be https, because whoever is on the way could replace the keys; http is for this machine only"
    )]
    NotSecure(String),
    /// The client could not be made.
    #[error("no client for the authorization server can be made: {0}")]
    NoClient(reqwest::Error),
}

/// Checks the tokens of an authorization server.
pub struct JwksTokens(Arc<Shared>);

struct Shared {
    issuer: Url,
    jwks_url: Option<Url>,
    expected: Expectation,
    client: Client,
    keys: Mutex<Held>,
    /// Held while the keys are fetched.
    fetching: Arc<tokio::sync::Mutex<()>>,
    cache: TokenCache,
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct Held {
    keys: Option<Arc<KeySet>>,
    /// Changes whenever the keys do.
    generation: u64,
    expires: Option<Instant>,
    last_attempt: Option<Instant>,
}

impl JwksTokens {
    /// The tokens of an authorization server. `warn` is told when its keys cannot be fetched.
    pub fn new(
        options: JwksOptions,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, NotAnIssuer> {
        let issuer = address(&options.issuer)?;
        let jwks_url = options.jwks_url.as_deref().map(address).transpose()?;
        // An error means that a provider is already installed, which is fine.
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if issuer.scheme() == "http" {
            // This machine alone: no certificates are needed, and no proxy.
            builder = builder.tls_certs_only([]).no_proxy();
        }
        Ok(Self(Arc::new(Shared {
            issuer,
            jwks_url,
            expected: Expectation { issuer: options.issuer, audience: options.audience },
            client: builder.build().map_err(NotAnIssuer::NoClient)?,
            keys: Mutex::default(),
            fetching: Arc::default(),
            cache: TokenCache::default(),
            warn: Box::new(warn),
        })))
    }
}

fn address(text: &str) -> Result<Url, NotAnIssuer> {
    let url = Url::parse(text).map_err(|_| NotAnIssuer::NotAnAddress(text.to_owned()))?;
    let is_loopback = match url.host() {
        Some(url::Host::Ipv4(host)) => host.is_loopback(),
        Some(url::Host::Ipv6(host)) => host.to_canonical().is_loopback(),
        Some(url::Host::Domain(host)) => host == "localhost",
        None => return Err(NotAnIssuer::NotAnAddress(text.to_owned())),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback => Ok(url),
        "http" => Err(NotAnIssuer::NotSecure(text.to_owned())),
        _ => Err(NotAnIssuer::NotAnAddress(text.to_owned())),
    }
}

impl TokenVerifier for JwksTokens {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Arc<Identity>, TokenError>> {
        async move {
            let shared = &self.0;
            let (keys, generation) = shared.current().await?;
            match shared.verify(token, &keys, generation) {
                // A key may be new.
                Err(TokenError::UnknownKey) if shared.may_fetch() || shared.is_fetching() => {
                    shared.fetch_within(TIMEOUT).await;
                    let (keys, generation) = shared.held().ok_or(TokenError::NoKeys)?;
                    shared.verify(token, &keys, generation)
                }
                verified => verified,
            }
        }
        .boxed()
    }
}

impl Shared {
    fn verify(&self, token: &str, keys: &KeySet, generation: u64) -> Result<Arc<Identity>, TokenError> {
        let now = since_1970(SystemTime::now()).as_secs_f64();
        let verified = || verify(token, &Keys::Public(keys), &self.expected, now);
        self.cache.get_or_verify(token, generation, now, verified)
    }

    /// The keys, fetched if there are none or their time is over.
    async fn current(self: &Arc<Self>) -> Result<(Arc<KeySet>, u64), TokenError> {
        let is_expired = self.keys.lock().expires.is_none_or(|expires| Instant::now() >= expires);
        match self.held() {
            None => self.fetch_within(TIMEOUT * 2).await,
            // One request waits a moment for the new keys. The others go on with those that there are.
            Some(_) if is_expired && self.may_fetch() && !self.is_fetching() => {
                self.fetch_within(PATIENCE).await;
            }
            Some(held) => return Ok(held),
        }
        self.held().ok_or(TokenError::NoKeys)
    }

    fn held(&self) -> Option<(Arc<KeySet>, u64)> {
        let held = self.keys.lock();
        held.keys.as_ref().map(|keys| (Arc::clone(keys), held.generation))
    }

    /// Whether the last attempt is long enough ago.
    fn may_fetch(&self) -> bool {
        self.keys.lock().last_attempt.is_none_or(|last| last.elapsed() >= SHORTEST_INTERVAL)
    }

    fn is_fetching(&self) -> bool {
        self.fetching.try_lock().is_err()
    }

    /// Fetches the keys unless that was tried a moment ago, and waits for them for some time. The fetch goes on after
    /// that. Keys that somebody else is fetching are waited for, too.
    async fn fetch_within(self: &Arc<Self>, patience: Duration) {
        match Arc::clone(&self.fetching).try_lock_owned() {
            Ok(only_one) if self.may_fetch() => {
                self.keys.lock().last_attempt = Some(Instant::now());
                let shared = Arc::clone(self);
                let fetching = tokio::spawn(async move {
                    let fetched = shared.fetch().await;
                    shared.keep(fetched);
                    drop(only_one);
                });
                let _ = tokio::time::timeout(patience, fetching).await;
            }
            Ok(_) => {}
            Err(_) => drop(tokio::time::timeout(patience, self.fetching.lock()).await),
        }
    }

    fn keep(&self, fetched: Result<(KeySet, Duration), FetchError>) {
        // Counted from its end, so that an attempt that took long is not followed by another at once.
        self.keys.lock().last_attempt = Some(Instant::now());
        match fetched {
            Ok((keys, max_age)) => {
                if keys.is_empty() {
                    (self.warn)(&format!(
                        "{} has no key for RS256 or ES256 any more: no token is accepted",
                        self.issuer
                    ));
                }
                let mut held = self.keys.lock();
                held.keys = Some(Arc::new(keys));
                held.generation += 1;
                held.expires = Some(Instant::now() + max_age);
            }
            Err(error) => (self.warn)(&format!("the keys of {} cannot be fetched: {error}", self.issuer)),
        }
    }

    async fn fetch(&self) -> Result<(KeySet, Duration), FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let response = self.get(url).await?;
        let max_age = max_age(&response);
        let keys = KeySet::parse(&body(response).await?)?;
        Ok((keys, max_age))
    }

    /// Asks the issuer's metadata where its keys are (OpenID Connect Discovery, or RFC 8414).
    async fn discover(&self) -> Result<Url, FetchError> {
        let path = self.issuer.path().trim_end_matches('/');
        let paths = [
            format!("{path}/.well-known/openid-configuration"),
            format!("/.well-known/oauth-authorization-server{path}"),
        ];
        let mut failure = FetchError::NoMetadata;
        for path in paths {
            let mut url = self.issuer.clone();
            url.set_path(&path);
            match self.metadata(url).await {
                Ok(jwks_uri) => return Ok(jwks_uri),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn metadata(&self, url: Url) -> Result<Url, FetchError> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let text = body(self.get(url).await?).await?;
        let Metadata { issuer, jwks_uri } =
            serde_json::from_slice(&text).map_err(|_| FetchError::NoMetadata)?;
        if issuer != self.expected.issuer {
            return Err(FetchError::OtherIssuer);
        }
        address(&jwks_uri).map_err(FetchError::Address)
    }

    async fn get(&self, url: Url) -> Result<Response, FetchError> {
        let response = self.client.get(url).header("accept", "application/json").send().await?;
        match response.status().as_u16() {
            200 => Ok(response),
            status => Err(FetchError::Status(status)),
        }
    }
}

#[derive(Debug, Error)]
enum FetchError {
    #[error(transparent)]
    Request(#[from] reqwest::Error),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is too large")]
    TooLarge,
    #[error("it has no metadata with `issuer` and `jwks_uri`")]
    NoMetadata,
    #[error("its metadata is of another issuer")]
    OtherIssuer,
    #[error("its metadata names keys at an address that cannot be used: {0}")]
    Address(NotAnIssuer),
    #[error(transparent)]
    Keys(#[from] pintle_auth::JwksError),
}

async fn body(mut response: Response) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST {
            return Err(FetchError::TooLarge);
        }
    }
    Ok(body)
}

/// How long the keys may be used, as their response says.
fn max_age(response: &Response) -> Duration {
    let control =
        response.headers().get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let seconds = control.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(MAX_AGE, Duration::from_secs).clamp(AGES.0, AGES.1)
}

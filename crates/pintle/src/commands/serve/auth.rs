//! Who may call over HTTP: tokens of the local secret, of an authorization server, or none.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use pintle_auth::{Identity, LocalSecret, TokenCache, TokenError, since_1970};
use pintle_contract::DenyRules;
use pintle_tool::Caller;
use pintle_wire::{Authentication, JwksTokens, TokenSource, TokenVerifier, Tokens};

use crate::{
    error::StartError,
    notices,
    secret::{FileStamp, SecretFileError, SecretFolder},
    settings::{HttpAuth, ListenHttp, Serve, SettingError},
};

/// How long a secret is used without looking whether it was rotated, and a token whether it was revoked.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Decides who may call.
pub(super) fn authentication(
    serve: &Serve,
    listen: &ListenHttp,
    secret: Option<SecretFolder>,
    denied: &Arc<DenyRules>,
) -> Result<Authentication, StartError> {
    let tokens =
        |verifier, source| Authentication::Tokens(Tokens { verifier, denied: Arc::clone(denied), source });
    match &listen.auth {
        HttpAuth::Anyone => {
            notices::warning("--auth none: every program on this machine can call, without a token");
            Ok(Authentication::Anyone(Arc::new(Caller::anonymous().restricted_to(serve.permissions.clone()))))
        }
        HttpAuth::Local => {
            let verifier = LocalTokens::new(secret.ok_or(SecretFileError::NoStateFolder)?)?;
            Ok(tokens(Arc::new(verifier), TokenSource::Operator))
        }
        HttpAuth::Jwks(options) => {
            let (issuer, public_url) = (options.issuer.clone(), listen.public_url.clone());
            let verifier = JwksTokens::new(options.clone(), notices::warning)
                .map_err(|error| pintle_positions::Located::nowhere(SettingError::from(error)))?;
            Ok(tokens(Arc::new(verifier), TokenSource::AuthorizationServer { issuer, public_url }))
        }
    }
}

/// Checks the tokens of the local secret. The secret may be rotated and tokens be revoked while the server runs.
struct LocalTokens {
    folder: SecretFolder,
    held: Mutex<Held>,
    cache: TokenCache,
}

struct Held {
    /// None if the secret cannot be used: then no token is valid.
    secret: Option<Arc<LocalSecret>>,
    revoked: Arc<HashSet<String>>,
    stamps: [FileStamp; 2],
    looked: Instant,
    /// Changes whenever the secret or the revocations do.
    generation: u64,
}

impl LocalTokens {
    fn new(folder: SecretFolder) -> Result<Self, SecretFileError> {
        folder.load_or_create()?;
        // Taken once there is a secret: otherwise a secret that is removed later would look like no change.
        let stamps = folder.stamps();
        let secret = Some(Arc::new(folder.load()?));
        let revoked = Arc::new(folder.revoked()?);
        let held = Held { secret, revoked, stamps, looked: Instant::now(), generation: 0 };
        Ok(Self { folder, held: Mutex::new(held), cache: TokenCache::default() })
    }

    /// The secret and the revocations as they are now.
    fn current(&self) -> Option<(Arc<LocalSecret>, Arc<HashSet<String>>, u64)> {
        let mut held = self.held.lock();
        if held.looked.elapsed() >= LOOK_INTERVAL {
            held.looked = Instant::now();
            let stamps = self.folder.stamps();
            if stamps != held.stamps {
                self.reload(&mut held, stamps);
            }
        }
        held.secret.as_ref().map(|secret| (Arc::clone(secret), Arc::clone(&held.revoked), held.generation))
    }

    /// Without a secret that can be used, and without the revocations, nobody may call.
    fn reload(&self, held: &mut Held, stamps: [FileStamp; 2]) {
        held.stamps = stamps;
        held.generation += 1;
        match self.folder.load().and_then(|secret| Ok((secret, self.folder.revoked()?))) {
            Ok((secret, revoked)) => {
                (held.secret, held.revoked) = (Some(Arc::new(secret)), Arc::new(revoked));
            }
            Err(error) => {
                notices::warning(&format!("no token is accepted any more: {error}"));
                held.secret = None;
            }
        }
    }
}

impl TokenVerifier for LocalTokens {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Arc<Identity>, TokenError>> {
        let verified = || {
            let (secret, revoked, generation) = self.current().ok_or(TokenError::Signature)?;
            let now = since_1970(SystemTime::now()).as_secs_f64();
            let identity = self.cache.get_or_verify(token, generation, now, || secret.verify(token, now))?;
            match &identity.token_id {
                Some(id) if revoked.contains(id) => Err(TokenError::Revoked),
                _ => Ok(identity),
            }
        };
        std::future::ready(verified()).boxed()
    }
}

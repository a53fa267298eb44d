//! `pintle token`: the tokens of clients that call over HTTP.

use std::{
    io::Read,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use pintle_auth::{MintError, Minted, TokenRequest, since_1970};
use serde_json::{Map, Value, json};

use crate::{
    cli::{TokenAction, TokenArguments},
    error::StartError,
    notices, output,
    secret::{SecretFolder, random},
    settings::{Given, state_dir},
};

/// The longest text that is read as a token.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// Mints, inspects, rotates or revokes. Exit code 0, 1 for a token that is not valid, 2 if something cannot be done.
pub fn run(arguments: TokenArguments) -> Result<ExitCode, StartError> {
    let given = Given::read(arguments.flags)?;
    let folder = SecretFolder::new(state_dir(&given)?.as_deref())?;
    match arguments.action {
        TokenAction::Mint { sub, scope, ttl } => mint(&folder, &sub, &scope, ttl),
        TokenAction::Inspect { token } => inspect(&folder, &read_token(token)?),
        TokenAction::Rotate => {
            folder.rotate()?;
            notices::plain("the secret is new; all tokens that were minted before have ended");
            Ok(ExitCode::SUCCESS)
        }
        TokenAction::Revoke { token } => revoke(&folder, &read_token(token)?),
    }
}

fn mint(
    folder: &SecretFolder,
    subject: &str,
    scopes: &[String],
    lifetime: Duration,
) -> Result<ExitCode, StartError> {
    // Several scopes may come in one text, as they do in a token.
    let scopes: Vec<String> =
        scopes.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    let request = TokenRequest { subject, scopes: &scopes, lifetime: lifetime.as_secs().max(1) };
    let minted = folder.load_or_create()?.mint(&request, since_1970(SystemTime::now()).as_secs(), random()?);
    let Minted { token, token_id } = minted.map_err(|error| match error {
        MintError::Subject => StartError::Subject,
        MintError::Scope(error) => StartError::Scope(error),
    })?;
    if scopes.is_empty() {
        notices::warning("the token grants nothing; name what it may do, such as --scope 'read:/'");
    }
    output::line(&token);
    notices::plain(&format!("token {token_id} of {subject}; end it with `pintle token revoke {token_id}`"));
    Ok(ExitCode::SUCCESS)
}

fn inspect(folder: &SecretFolder, token: &str) -> Result<ExitCode, StartError> {
    let verified = folder
        .load()?
        .verify(token, since_1970(SystemTime::now()).as_secs_f64())
        .map_err(|error| error.to_string());
    let is_revoked = |id: &String| folder.revoked().map(|revoked| revoked.contains(id));
    let problem = match verified {
        Ok(identity) => match identity.token_id.as_ref().map(is_revoked).transpose()? {
            Some(true) => Some(pintle_auth::TokenError::Revoked.to_string()),
            _ => None,
        },
        Err(error) => Some(error),
    };
    let mut shown = json!({"valid": problem.is_none()});
    if let Some(problem) = &problem {
        shown["problem"] = json!(problem);
    }
    if let Some(claims) = claims(token) {
        shown["claims"] = Value::Object(claims);
    }
    output::json(&shown);
    Ok(if problem.is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn revoke(folder: &SecretFolder, token: &str) -> Result<ExitCode, StartError> {
    let id = match claims(token) {
        Some(claims) => claims.get("jti").and_then(Value::as_str).map(str::to_owned),
        // An id has no dots, so this is a token that was cut off or mistyped.
        None if token.contains('.') => None,
        None => Some(token.to_owned()),
    };
    let is_id = |id: &String| !id.is_empty() && id.len() <= 256 && !id.contains(char::is_whitespace);
    let id = id.filter(is_id).ok_or(StartError::NoTokenId)?;
    folder.load()?;
    folder.revoke(&id)?;
    notices::plain(&format!("token {id} has ended"));
    Ok(ExitCode::SUCCESS)
}

/// The claims of a token, whether it is valid or not.
fn claims(token: &str) -> Option<Map<String, Value>> {
    let claims = token.split('.').nth(1)?;
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// A token that was given, or comes by standard input, where it shows in no list of processes.
fn read_token(given: String) -> Result<String, StartError> {
    if given != "-" {
        return Ok(given);
    }
    let mut token = String::new();
    std::io::stdin().take(LONGEST_TOKEN).read_to_string(&mut token).map_err(StartError::ArgumentsNotRead)?;
    Ok(token.trim().to_owned())
}

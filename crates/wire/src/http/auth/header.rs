//! The `Authorization` header.

use axum::http::{HeaderMap, header::AUTHORIZATION};
use pintle_auth::TokenError;

/// The token of a request.
pub(super) fn bearer_token(headers: &HeaderMap) -> Result<&str, TokenError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Err(TokenError::Missing),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(TokenError::SeveralHeaders),
    };
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(TokenError::NotBearer)?;
    let token = token.trim_matches(' ');
    let is_token = !token.is_empty() && !token.bytes().any(|byte| matches!(byte, b' ' | b',' | b'\t'));
    if scheme.eq_ignore_ascii_case("bearer") && is_token { Ok(token) } else { Err(TokenError::NotBearer) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_has_one_bearer_token() {
        for (values, expected) in [
            (&[][..], Err(TokenError::Missing)),
            (&["Bearer a.b.c"], Ok("a.b.c")),
            (&["bearer  a.b.c "], Ok("a.b.c")),
            (&["BEARER x"], Ok("x")),
            (&["Bearer"], Err(TokenError::NotBearer)),
            (&["Bearer "], Err(TokenError::NotBearer)),
            (&[""], Err(TokenError::NotBearer)),
            (&["Basic YTpi"], Err(TokenError::NotBearer)),
            (&["Bearer a b"], Err(TokenError::NotBearer)),
            (&["Bearer a,Bearer b"], Err(TokenError::NotBearer)),
            (&["a.b.c"], Err(TokenError::NotBearer)),
            (&["Bearer \u{e9}"], Err(TokenError::NotBearer)),
            (&["Bearer a", "Bearer a"], Err(TokenError::SeveralHeaders)),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).expect("a header"));
            }
            assert_eq!(bearer_token(&headers), expected, "{values:?}");
        }
    }
}

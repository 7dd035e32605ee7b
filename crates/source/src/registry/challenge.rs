//! What a registry wants before it answers: the header `WWW-Authenticate`, and the token that it sends to a server for.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::url::{HttpUrl, Protocols, Scheme, UrlError};

/// The longest header that is read, in bytes.
const MAX_HEADER: usize = 4096;

/// The most bytes of an answer with a token.
pub const MAX_TOKEN_ANSWER: u64 = 64 << 10;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// How long a token lasts at least, and if nothing is said about it.
const SHORTEST: Duration = Duration::from_mins(1);

/// What a registry wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Challenge {
    /// User and password.
    Basic,
    /// A token of another server.
    Bearer {
        /// The URL of the server with tokens.
        realm: String,
        /// What the token is for.
        service: String,
        /// What it has to permit; empty if the registry does not say.
        scope: String,
    },
}

/// Why there is no token.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TokenError {
    /// The URL of the server can't be used.
    #[error("the registry sends for a token to a URL that can't be used: {0}")]
    Realm(String),
    /// The answer is no token.
    #[error("the answer of the server with tokens has no token of at most {MAX_TOKEN} visible characters")]
    None,
}

impl Challenge {
    /// Returns what a header asks for, the token if there is a choice; `None` if nothing of it is known here.
    pub fn parse(header: &str) -> Option<Self> {
        if header.len() > MAX_HEADER {
            return None;
        }
        let mut found = None;
        let mut rest = header.trim();
        while !rest.is_empty() {
            let end = rest.find([' ', ',']).unwrap_or(rest.len());
            let (scheme, behind) = rest.split_at_checked(end)?;
            let (parameters, behind) = parameters(behind);
            rest = behind;
            if scheme.eq_ignore_ascii_case("basic") {
                found.get_or_insert(Self::Basic);
            } else if scheme.eq_ignore_ascii_case("bearer") {
                let mut of = [String::new(), String::new(), String::new()];
                let [realm, service, scope] = &mut of;
                for (name, value) in parameters {
                    match name.to_ascii_lowercase().as_str() {
                        "realm" => *realm = value,
                        "service" => *service = value,
                        "scope" => *scope = value,
                        _ => {}
                    }
                }
                let [realm, service, scope] = of;
                return Some(Self::Bearer { realm, service, scope });
            }
        }
        found
    }
}

/// Returns the parameters at the beginning of a text, and what is behind them: the next scheme, or nothing.
fn parameters(mut text: &str) -> (Vec<(&str, String)>, &str) {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        let end =
            text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
        let (name, behind) = text.split_at_checked(end).unwrap_or((text, ""));
        let Some(value) = behind.strip_prefix('=').filter(|_| !name.is_empty()) else { break };
        let Some((value, behind)) = value_of(value) else { return (found, "") };
        found.push((name, value));
        text = behind;
    }
    (found, text)
}

/// Returns the value at the beginning of a text, and what is behind it; `None` if a quote is not closed.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, behind) = text.split_at_checked(end)?;
        return Some((value.to_owned(), behind));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(at + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

/// A token.
#[derive(Clone, Eq, PartialEq)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// How long it lasts from when it was asked for.
    pub lasts: Duration,
}

// It is a secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("lasts", &self.lasts).finish_non_exhaustive()
    }
}

/// Where a token is had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenUrl {
    /// The URL, without user and password.
    pub url: HttpUrl,
    /// Whether user and password of the registry may go there: to the registry itself, or where it sends over https from https.
    pub takes_credentials: bool,
}

/// Returns where the token is that `server` asks for, with `own_scope` if the registry does not say what the token has to permit.
///
/// # Errors
///
/// If the URL can't be used, or leads from https to http.
pub fn token_url(
    server: &HttpUrl,
    (realm, service, scope): (&str, &str, &str),
    own_scope: &str,
    protocols: Protocols,
) -> Result<TokenUrl, TokenError> {
    let wrong = |error: UrlError| TokenError::Realm(error.to_string());
    if !realm.contains("://") {
        return Err(TokenError::Realm("it has no scheme".to_owned()));
    }
    let realm = server.join(realm, protocols).map_err(wrong)?.without_credentials();
    let scope = if scope.is_empty() { own_scope } else { scope };
    let mut query: Vec<String> = realm.query().map(str::to_owned).into_iter().collect();
    for (name, value) in [("service", service), ("scope", scope)] {
        if !value.is_empty() {
            query.push(format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        }
    }
    let is_safe = server.scheme() == Scheme::Https && realm.scheme() == Scheme::Https;
    Ok(TokenUrl {
        takes_credentials: is_safe || server.is_same_server(&realm),
        url: realm.with_query(&query.join("&")),
    })
}

/// Returns the token in an answer.
///
/// # Errors
///
/// If there is none that can be sent.
pub fn token(answer: &[u8]) -> Result<Token, TokenError> {
    let answer: Value = serde_json::from_slice(answer).map_err(|_| TokenError::None)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let token = text("token").or_else(|| text("access_token")).ok_or(TokenError::None)?;
    let is_fine = token.len() <= MAX_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_fine {
        return Err(TokenError::None);
    }
    let seconds = answer.get("expires_in").and_then(Value::as_u64);
    let lasts = seconds.map_or(SHORTEST, Duration::from_secs).max(SHORTEST);
    Ok(Token { text: token.to_owned(), lasts })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Protocols = Protocols { has_http: true };

    fn bearer(realm: &str, service: &str, scope: &str) -> Challenge {
        let [realm, service, scope] = [realm, service, scope].map(str::to_owned);
        Challenge::Bearer { realm, service, scope }
    }

    #[test]
    fn a_challenge_is_read_in_all_its_forms() {
        for (header, found) in [
            (
                r#"Bearer realm="https://a/t",service="s",scope="repository:x:pull""#,
                Some(bearer("https://a/t", "s", "repository:x:pull")),
            ),
            (r#"bearer Realm="https://a/t" , service=s"#, Some(bearer("https://a/t", "s", ""))),
            (r#"Bearer realm="a\"b,c""#, Some(bearer("a\"b,c", "", ""))),
            (r#"Basic realm="x", Bearer realm="https://a/t""#, Some(bearer("https://a/t", "", ""))),
            (r#"Basic realm="x""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            (r#"Digest qop="auth, auth-int", Basic realm=x"#, Some(Challenge::Basic)),
            (r#"Bearer realm="open"#, Some(bearer("", "", ""))),
            ("Negotiate", None),
            ("", None),
            (",,,", None),
            (&*format!("Basic {}", "x".repeat(MAX_HEADER)), None),
        ] {
            assert_eq!(Challenge::parse(header), found, "{header}");
        }
    }

    #[test]
    fn credentials_go_where_the_registry_sends_them_over_https_and_nowhere_else() {
        for (server, realm, found) in [
            ("https://a.example", "https://a.example/token", Some(true)),
            ("https://a.example", "https://auth.example/token?x=1", Some(true)),
            ("https://a.example", "http://a.example/token", None),
            ("https://a.example", "https://me:word@auth.example/token", None),
            ("https://a.example", "/token", None),
            ("https://a.example", "", None),
            ("http://a.example", "http://a.example/token", Some(true)),
            ("http://a.example", "http://b.example/token", Some(false)),
            ("http://a.example", "https://b.example/token", Some(false)),
        ] {
            let server = HttpUrl::parse(server, BOTH).unwrap();
            let url = token_url(&server, (realm, "s", ""), "repository:x:pull", BOTH);
            assert_eq!(url.ok().map(|url| url.takes_credentials), found, "{realm}");
        }
        let server = HttpUrl::parse("https://me:word@a.example", BOTH).unwrap();
        let url = token_url(&server, ("https://a.example/t?x=1", "a b", ""), "r:x:pull", BOTH).unwrap().url;
        assert_eq!(url.to_string(), "https://a.example/t?x=1&service=a%20b&scope=r%3Ax%3Apull");
        assert_eq!(url.credentials(), None);
    }

    #[test]
    fn a_token_is_a_short_visible_text() {
        for (answer, seconds) in [
            (r#"{"token":"abc"}"#, 60),
            (r#"{"token":"","access_token":"abc","expires_in":300}"#, 300),
            (r#"{"token":"abc","expires_in":1}"#, 60),
            (r#"{"token":"abc","expires_in":"soon"}"#, 60),
        ] {
            let expected = Token { text: "abc".to_owned(), lasts: Duration::from_secs(seconds) };
            assert_eq!(token(answer.as_bytes()), Ok(expected), "{answer}");
        }
        let long = format!(r#"{{"token":"{}"}}"#, "a".repeat(MAX_TOKEN + 1));
        for answer in ["", "{}", "[]", r#"{"token":7}"#, r#"{"token":"a\r\nb"}"#, &long] {
            assert_eq!(token(answer.as_bytes()), Err(TokenError::None));
        }
    }
}

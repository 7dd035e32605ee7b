//! Who may ask: a user name and a password, as a Secret says now.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::cluster::request::{Requests, encode_segment};

/// How long what a Secret said is believed.
const BELIEVED: Duration = Duration::from_secs(5);

/// How many Secrets of namespaces are known at a time. Who asks for one after the other does not have the API server asked
/// without end.
const MAX_NAMESPACES: usize = 64;

/// What stands for a user name and a password.
type Proof = [u8; 32];

/// Knows who may ask.
pub(super) struct Access {
    requests: Requests,
    namespace: String,
    secret: String,
    known: Mutex<BTreeMap<String, (Instant, Option<Proof>)>>,
    /// Whether it was told that the operator's Secret is not there.
    is_told: AtomicBool,
}

impl Access {
    /// Returns the access that a Secret gives, and Secrets of that name in other namespaces for those.
    pub(super) fn new(requests: Requests, namespace: &str, secret: &str) -> Self {
        Self {
            requests,
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            known: Mutex::default(),
            is_told: AtomicBool::new(false),
        }
    }

    /// Returns whether a request may ask at its path.
    ///
    /// # Errors
    ///
    /// When nobody can say: the Secret can't be read.
    pub(super) async fn admits(&self, headers: &HeaderMap, path: &str) -> Result<bool, ()> {
        let Some(given) = given(headers) else { return Ok(false) };
        let own = self.proof(&self.namespace).await?;
        if own.is_none() && !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the broker answers nobody: Secret {}/{} has no username and password",
                self.namespace,
                self.secret
            );
        }
        if own.is_some_and(|own| are_same(&own, &given)) {
            return Ok(true);
        }
        let Some(namespace) = namespace_of(path).filter(|namespace| *namespace != self.namespace) else {
            return Ok(false);
        };
        Ok(self.proof(namespace).await?.is_some_and(|its| are_same(&its, &given)))
    }

    /// Returns what the Secret of a namespace asks for.
    async fn proof(&self, namespace: &str) -> Result<Option<Proof>, ()> {
        let mut known = self.known.lock().await;
        let now = Instant::now();
        known.retain(|_, (read, _)| now.duration_since(*read) < BELIEVED);
        if let Some((_, proof)) = known.get(namespace) {
            return Ok(*proof);
        }
        if known.len() >= MAX_NAMESPACES && namespace != self.namespace {
            return Ok(None);
        }
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}",
            encode_segment(namespace),
            encode_segment(&self.secret)
        );
        let found = match self.requests.get(&path).await {
            // Whoever keeps the operator out of a namespace lets nobody in there.
            Err(error) if error.code() == 403 && namespace != self.namespace => None,
            found => found.map_err(|error| tracing::warn!("the broker can't tell who asks: {error}"))?,
        };
        let proof = found.as_ref().and_then(proof_of);
        known.insert(namespace.to_owned(), (now, proof));
        Ok(proof)
    }
}

/// Returns the user name and the password of a request, as they are compared.
fn given(headers: &HeaderMap) -> Option<Proof> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    let pair = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (username, password) = pair.split_at_checked(colon)?;
    Some(proof(username, password.get(1..)?))
}

/// Returns what a Secret asks for, if it names both.
fn proof_of(secret: &Value) -> Option<Proof> {
    let field = |name: &str| {
        let bytes = STANDARD.decode(secret.get("data")?.get(name)?.as_str()?).ok()?;
        Some(bytes).filter(|bytes| !bytes.is_empty())
    };
    Some(proof(&field("username")?, &field("password")?))
}

fn proof(username: &[u8], password: &[u8]) -> Proof {
    let mut hash = Sha256::new();
    hash.update(Sha256::digest(username));
    hash.update(Sha256::digest(password));
    hash.finalize().into()
}

/// Compares in a time that does not tell how much is the same.
fn are_same(one: &Proof, other: &Proof) -> bool {
    one.iter().zip(other).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

/// Returns the namespace that a path is about, if it can be one.
fn namespace_of(path: &str) -> Option<&str> {
    let namespace = path.strip_prefix("/ns/")?.split('/').next()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&namespace.len()).then_some(namespace).filter(|name| name.bytes().all(is_plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, text.parse().unwrap());
        headers
    }

    fn basic(pair: &str) -> HeaderMap {
        headers(&format!("Basic {}", STANDARD.encode(pair)))
    }

    #[test]
    fn only_the_same_name_and_password_are_the_same() {
        let data = json!({"username": STANDARD.encode("user"), "password": STANDARD.encode("pa:ss")});
        let wanted = proof_of(&json!({"data": data})).unwrap();
        assert!(are_same(&wanted, &given(&basic("user:pa:ss")).unwrap()));
        for pair in ["user:pa:s", "user:", ":pa:ss", "userp:a:ss", "user:pa:ss:", "User:pa:ss"] {
            assert!(!are_same(&wanted, &given(&basic(pair)).unwrap()), "{pair}");
        }
    }

    #[test]
    fn what_is_no_basic_auth_and_what_is_half_a_secret_is_nobody() {
        for text in ["", "Basic", "Basic %%%", "Bearer dXNlcjpwYXNz", "Basic dXNlcg=="] {
            assert!(given(&headers(text)).is_none(), "{text}");
        }
        let name = STANDARD.encode("user");
        for data in [json!({}), json!({"username": name}), json!({"username": name, "password": ""})] {
            assert!(proof_of(&json!({"data": data})).is_none(), "{data}");
        }
    }

    #[test]
    fn a_path_is_about_one_namespace_or_none() {
        assert_eq!(namespace_of("/ns/team/v2/catalog"), Some("team"));
        for path in ["/cluster/v2/catalog", "/ns/", "/ns/../v2", "/ns/A/v2/catalog", "/nsx/team"] {
            assert_eq!(namespace_of(path), None, "{path}");
        }
    }
}

//! Who a client is. Everybody who shows a known token may do everything.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::cluster::lock;

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// The user that the administrator's token stands for.
    pub(crate) fn admin() -> User {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        User { name: "admin".to_owned(), uid: "admin".to_owned(), groups }
    }

    pub(crate) fn anonymous() -> User {
        let groups = vec!["system:unauthenticated".to_owned()];
        User { name: "system:anonymous".to_owned(), uid: String::new(), groups }
    }

    pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> User {
        User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }

    /// Returns the user as reviews show it.
    pub(crate) fn to_value(&self) -> Value {
        json!({"username": self.name, "uid": self.uid, "groups": self.groups})
    }
}

/// How many issued tokens are known at a time.
const LIMIT: usize = 10_000;

/// The tokens that were issued to service accounts, by token.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<BTreeMap<String, User>>);

impl Tokens {
    /// Makes a token known.
    pub(crate) fn add(&self, token: String, user: User) {
        let mut tokens = lock(&self.0);
        if tokens.len() >= LIMIT {
            tokens.pop_first();
        }
        tokens.insert(token, user);
    }

    /// Returns whose token this is.
    pub(crate) fn user(&self, token: &str) -> Option<User> {
        lock(&self.0).get(token).cloned()
    }
}

/// Returns the token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

//! Authentication by tokens. Every client with a known token may do everything, but for what it does in the name of others.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Mutex;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use crate::sync::lock;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    /// What else is known of it.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
    /// Whether somebody else acts in its name: then its roles say what it may do.
    pub(crate) is_impersonated: bool,
}

impl User {
    /// The user that the administrator's token stands for.
    pub(crate) fn admin() -> User {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let (name, uid) = ("admin".to_owned(), "admin".to_owned());
        User { name, uid, groups, extra: BTreeMap::new(), is_impersonated: false }
    }

    pub(crate) fn anonymous() -> User {
        let groups = vec!["system:unauthenticated".to_owned()];
        let (name, uid) = ("system:anonymous".to_owned(), String::new());
        User { name, uid, groups, extra: BTreeMap::new(), is_impersonated: false }
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
            extra: BTreeMap::new(),
            is_impersonated: false,
        }
    }

    /// Returns the user as reviews show it.
    pub(crate) fn to_value(&self) -> Value {
        let mut shown = json!({"username": self.name, "groups": self.groups});
        if let Some(fields) = shown.as_object_mut() {
            fields.extend((!self.uid.is_empty()).then(|| ("uid".to_owned(), json!(self.uid))));
            fields.extend((!self.extra.is_empty()).then(|| ("extra".to_owned(), json!(self.extra))));
        }
        shown
    }
}

/// How many issued tokens are known at a time.
const LIMIT: usize = 10_000;

/// Finds the user of a token: the administrator's token, and those that were issued to service accounts.
///
/// How long it takes tells nothing of the tokens that are known.
#[derive(Debug)]
pub(crate) struct Authenticator {
    admin_token: String,
    /// What tokens are found by, which nobody outside can compute.
    key: RandomState,
    issued: Mutex<BTreeMap<u64, (String, User)>>,
}

impl Authenticator {
    /// Returns an authenticator that knows the administrator's token only.
    pub(crate) fn new(admin_token: String) -> Authenticator {
        Authenticator { admin_token, key: RandomState::new(), issued: Mutex::default() }
    }

    /// Returns the token of the administrator.
    pub(crate) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Adds a token of a service account; some other is dropped when there are too many.
    pub(crate) fn issue(&self, token: String, user: User) {
        let mut issued = lock(&self.issued);
        if issued.len() >= LIMIT {
            issued.pop_first();
        }
        issued.insert(self.key.hash_one(&token), (token, user));
    }

    /// Returns the user that a token stands for, nothing if it is not known.
    pub(crate) fn user(&self, token: &str) -> Option<User> {
        if is_same(token, &self.admin_token) {
            return Some(User::admin());
        }
        let issued = lock(&self.issued);
        let (known, user) = issued.get(&self.key.hash_one(token))?;
        is_same(token, known).then(|| user.clone())
    }
}

/// Compares two tokens in a time that depends on nothing but their lengths.
fn is_same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Returns the token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

//! What registries wanted to see, so that the next conversation begins with it and costs no refusal and no token.
//!
//! It is in memory only, under a hash of who asks whom for what.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How many are remembered. When there are more, all are forgotten: that costs a few requests.
const MOST: usize = 1_000;

/// How long before its end a token is used no more, as it has to last until its request is there.
const MARGIN: Duration = Duration::from_secs(10);

/// The longest that a token is believed to last.
const LONGEST: Duration = Duration::from_hours(1);

/// Who asks whom for what.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Occasion([u8; 32]);

impl Occasion {
    /// Returns what stands for a server, the user and password as a header has them, and what is to be permitted.
    pub(super) fn new(server: &str, basic: &str, scope: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [server, basic, scope] {
            hash.update(Sha256::digest(part));
        }
        Self(hash.finalize().into())
    }
}

/// Remembers headers `Authorization`, and until when they are of use.
#[derive(Default)]
pub(crate) struct Authorizations(Mutex<BTreeMap<Occasion, (String, Option<Instant>)>>);

impl Authorizations {
    /// Returns the header that was wanted before, if it is of use.
    pub(super) fn get(&self, occasion: Occasion) -> Option<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.retain(|_, (_, until)| until.is_none_or(|until| until > now));
        known.get(&occasion).map(|(header, _)| header.clone())
    }

    /// Remembers a header; for ever, if it is of use as long as the password is.
    pub(super) fn put(&self, occasion: Occasion, header: &str, lasts: Option<Duration>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = lasts.map(|lasts| Instant::now() + lasts.min(LONGEST).saturating_sub(MARGIN));
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(occasion, (header.to_owned(), until));
    }

    /// Forgets a header that is of no use.
    pub(super) fn forget(&self, occasion: Occasion) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&occasion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_used_until_shortly_before_its_end_and_by_nobody_else() {
        let known = Authorizations::default();
        let own = Occasion::new("https://a", "Basic x", "repository:web:pull");
        known.put(own, "Bearer t", Some(Duration::from_mins(1)));
        for other in [
            Occasion::new("https://b", "Basic x", "repository:web:pull"),
            Occasion::new("https://a", "Basic y", "repository:web:pull"),
            Occasion::new("https://a", "Basic x", "repository:web:pull,push"),
            Occasion::new("https://aBasic x", "", "repository:web:pull"),
        ] {
            assert_eq!(known.get(other), None);
        }
        tokio::time::advance(Duration::from_secs(49)).await;
        assert_eq!(known.get(own).as_deref(), Some("Bearer t"));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(known.get(own), None);
        known.put(own, "Basic x", None);
        tokio::time::advance(Duration::from_hours(1000)).await;
        assert_eq!(known.get(own).as_deref(), Some("Basic x"));
        known.forget(own);
        assert_eq!(known.get(own), None);
        for number in 0..=MOST {
            known.put(Occasion::new(&number.to_string(), "", ""), "x", None);
        }
        assert!(known.0.lock().unwrap().len() <= MOST);
    }
}

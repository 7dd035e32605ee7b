//! Faults on purpose: plans name the requests that fail, wait, or lose their connection.
//!
//! ```text
//! server.faults().add(FaultPlan::on(Method::PATCH, "/api/v1/namespaces/*/configmaps/*").nth(3).fail(500));
//! server.faults().add(FaultPlan::any().times(2).too_many_requests(1));
//! server.faults().add(FaultPlan::on(Method::POST, "*").every(3).fail(500));
//! server.faults().drop_watches();
//! server.faults().expire_revisions();
//! ```

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use http::Method;
use tokio::sync::watch;

use crate::storage::Storage;
use crate::sync::lock;

/// Which requests are hit, and by what.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    method: Option<Method>,
    path: String,
    first: u64,
    times: u64,
    step: u64,
    effect: Effect,
}

/// What happens to a request that a plan hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The connection is closed before the request is carried out.
    Cut,
    /// The request is carried out, and the connection is closed before the client gets the answer.
    CutAnswer,
    /// The request waits, then it is carried out.
    Delay(Duration),
    /// The request is refused with this HTTP status.
    Fail(u16),
    /// The request is refused because of too many requests; the client should wait so many seconds.
    TooManyRequests(u32),
}

impl FaultPlan {
    /// Begins a plan for requests of this method whose path matches; `*` stands for any characters.
    ///
    /// Watches and lists differ by their query, which is part of what is matched if `path` has a `?`.
    pub fn on(method: Method, path: &str) -> FaultPlan {
        FaultPlan { method: Some(method), path: path.to_owned(), ..FaultPlan::any() }
    }

    /// Begins a plan for all requests.
    pub fn any() -> FaultPlan {
        FaultPlan {
            method: None,
            path: "*".to_owned(),
            first: 1,
            times: 1,
            step: 1,
            effect: Effect::Fail(500),
        }
    }

    /// The first request that is hit, counted from 1 among those that match.
    #[must_use]
    pub fn nth(self, first: u64) -> FaultPlan {
        FaultPlan { first: first.max(1), ..self }
    }

    /// How many requests are hit, one after the other; `u64::MAX` hits for ever.
    #[must_use]
    pub fn times(self, times: u64) -> FaultPlan {
        FaultPlan { times, ..self }
    }

    /// Of so many requests one is hit, for ever: the last of them.
    #[must_use]
    pub fn every(self, step: u64) -> FaultPlan {
        let step = step.max(1);
        FaultPlan { first: step, times: u64::MAX, step, ..self }
    }

    /// The request is refused with this HTTP status.
    #[must_use]
    pub fn fail(self, status: u16) -> FaultPlan {
        FaultPlan { effect: Effect::Fail(status), ..self }
    }

    /// The request waits, then it is carried out.
    #[must_use]
    pub fn delay(self, time: Duration) -> FaultPlan {
        FaultPlan { effect: Effect::Delay(time), ..self }
    }

    /// The connection is closed before the request is carried out.
    #[must_use]
    pub fn cut(self) -> FaultPlan {
        FaultPlan { effect: Effect::Cut, ..self }
    }

    /// The request is carried out, and the connection is closed before the client gets the answer.
    #[must_use]
    pub fn cut_answer(self) -> FaultPlan {
        FaultPlan { effect: Effect::CutAnswer, ..self }
    }

    /// The request is refused with status 429; the client should wait so many seconds.
    #[must_use]
    pub fn too_many_requests(self, retry_after: u32) -> FaultPlan {
        FaultPlan { effect: Effect::TooManyRequests(retry_after), ..self }
    }

    fn matches(&self, method: &Method, path: &str, query: &str) -> bool {
        if self.method.as_ref().is_some_and(|wanted| wanted != method) {
            return false;
        }
        match self.path.split_once('?') {
            Some((wanted, query_wanted)) => glob(wanted, path) && glob(query_wanted, query),
            None => glob(&self.path, path),
        }
    }
}

/// Returns whether `text` is `pattern`, in which `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[derive(Debug)]
struct Armed {
    plan: FaultPlan,
    seen: u64,
}

#[derive(Debug, Default)]
struct Plans {
    armed: Vec<Armed>,
    hit: u64,
}

/// The faults of a server. Clones share the same plans.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    plans: Arc<Mutex<Plans>>,
    drops: watch::Sender<u64>,
    storage: Weak<Storage>,
}

impl Faults {
    /// Returns no faults for the server with this storage.
    pub(crate) fn new(storage: &Arc<Storage>) -> Faults {
        Faults { storage: Arc::downgrade(storage), ..Faults::default() }
    }

    /// Adds a plan. Of several that match the earliest added hits.
    pub fn add(&self, plan: FaultPlan) {
        lock(&self.plans).armed.push(Armed { plan, seen: 0 });
    }

    /// Removes all plans.
    pub fn clear(&self) {
        lock(&self.plans).armed.clear();
    }

    /// Returns how many requests have been hit.
    pub fn hits(&self) -> u64 {
        lock(&self.plans).hit
    }

    /// Ends all open watches, as a load balancer does now and then.
    pub fn drop_watches(&self) {
        self.drops.send_modify(|epoch| *epoch += 1);
    }

    /// Drops the history: watches and lists that continue from an older revision get 410.
    pub fn expire_revisions(&self) {
        if let Some(storage) = self.storage.upgrade() {
            storage.forget_history();
        }
    }

    pub(crate) fn drops(&self) -> watch::Receiver<u64> {
        self.drops.subscribe()
    }

    /// Returns what happens to this request, if it is hit.
    pub(crate) fn strike(&self, method: &Method, path: &str, query: &str) -> Option<Effect> {
        let mut plans = lock(&self.plans);
        let mut effect = None;
        for armed in &mut plans.armed {
            if !armed.plan.matches(method, path, query) {
                continue;
            }
            armed.seen += 1;
            let past = armed.seen - armed.seen.min(armed.plan.first);
            let is_next = past.is_multiple_of(armed.plan.step) && past / armed.plan.step < armed.plan.times;
            if armed.seen >= armed.plan.first && is_next && effect.is_none() {
                effect = Some(armed.plan.effect.clone());
            }
        }
        plans.hit += u64::from(effect.is_some());
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, matches) in [
            ("*", "/api", true),
            ("/api", "/api", true),
            ("/api", "/api/v1", false),
            ("/api/*/pods", "/api/v1/namespaces/a/pods", true),
            ("/api/*/pods", "/api/v1/namespaces/a/pods/b", false),
            ("*watch*", "a=b&watch=1", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn only_the_requests_of_the_plan_are_hit() {
        let faults = Faults::default();
        faults.add(FaultPlan::on(Method::GET, "/a?*watch=1*").nth(2).times(2).fail(503));
        let strike = |query: &str| faults.strike(&Method::GET, "/a", query);
        assert_eq!(strike(""), None);
        assert_eq!(strike("watch=1"), None);
        assert_eq!(strike("watch=1"), Some(Effect::Fail(503)));
        assert_eq!(strike("watch=1"), Some(Effect::Fail(503)));
        assert_eq!(strike("watch=1"), None);
        assert_eq!(faults.hits(), 2);
    }
}

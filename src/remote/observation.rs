//! What is known of a request to a repository when it came to its end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A request to a repository that came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FetchObservation {
    /// How the server was spoken to, `https`, `git` or `oci`; of chart repositories what was asked for, `index` or `archive`.
    pub scheme: &'static str,
    /// `fetched`, `unchanged` or `failed`.
    pub outcome: &'static str,
    /// From asking for its turn to its end.
    pub took: Duration,
}

type Listener = Box<dyn Fn(FetchObservation) + Send + Sync>;

/// Reports requests to a listener, once there is one.
#[derive(Clone, Default)]
pub struct FetchMetrics(Arc<OnceLock<Listener>>);

impl FetchMetrics {
    /// Sets the listener; a second one is ignored.
    pub fn listen(&self, listener: impl Fn(FetchObservation) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    pub(crate) fn observe(&self, observation: FetchObservation) {
        if let Some(listener) = self.0.get() {
            listener(observation);
        }
    }
}

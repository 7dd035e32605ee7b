//! What is known of a call of a platform when it was answered.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A call of a platform that was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BrokerObservation {
    /// `GET`, `PUT`, `PATCH`, `DELETE` or `other`.
    pub method: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// From the end of its head to the answer, with the wait for its turn.
    pub took: Duration,
}

type Listener = Box<dyn Fn(BrokerObservation) + Send + Sync>;

/// Reports calls to a listener, once there is one.
#[derive(Clone, Default)]
pub struct BrokerMetrics(Arc<OnceLock<Listener>>);

impl BrokerMetrics {
    /// Sets the listener; a second one is ignored.
    pub fn listen(&self, listener: impl Fn(BrokerObservation) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    pub(super) fn observe(&self, observation: BrokerObservation) {
        if let Some(listener) = self.0.get() {
            listener(observation);
        }
    }
}

//! Calls whose answer a platform waits for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::{BrokerAnswer, BrokerCallId};
use tokio::sync::oneshot;

/// Calls whose answer is waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingCalls {
    waiting: Arc<Mutex<BTreeMap<BrokerCallId, oneshot::Sender<BrokerAnswer>>>>,
    last: Arc<AtomicU64>,
}

/// A call whose answer is waited for. What it asked for is done although it is dropped.
pub(super) struct PendingCall {
    pub(super) id: BrokerCallId,
    answer: oneshot::Receiver<BrokerAnswer>,
    all: PendingCalls,
}

impl PendingCalls {
    /// Returns a new one.
    pub(super) fn add(&self) -> PendingCall {
        let id = BrokerCallId::new(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        PendingCall { id, answer, all: self.clone() }
    }

    fn take(&self, id: BrokerCallId) -> Option<oneshot::Sender<BrokerAnswer>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// Passes an answer on. Who waited for it may have gone.
    pub(super) fn answer(&self, id: BrokerCallId, answer: BrokerAnswer) {
        if let Some(sender) = self.take(id) {
            let _ = sender.send(answer);
        }
    }
}

impl PendingCall {
    /// Returns the answer; `None` if the operator has ended.
    pub(super) async fn answered(mut self) -> Option<BrokerAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.all.take(self.id);
    }
}

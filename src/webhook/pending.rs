//! Reviews whose answer the API server waits for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Event, ReviewId, ReviewRefusal};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::driver::Inbox;

/// What is answered to a review.
pub(super) type Outcome = Result<Arc<Value>, ReviewRefusal>;

/// Reviews whose answer is waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingReviews {
    waiting: Arc<Mutex<BTreeMap<ReviewId, oneshot::Sender<Outcome>>>>,
    last: Arc<AtomicU64>,
}

/// A review whose answer is waited for. When it is dropped before, the engine is told that nobody waits any more.
pub(super) struct PendingReview {
    pub(super) id: ReviewId,
    answer: oneshot::Receiver<Outcome>,
    all: PendingReviews,
    inbox: Inbox,
}

impl PendingReviews {
    /// Returns a new one.
    pub(super) fn add(&self, inbox: &Inbox) -> PendingReview {
        let id = ReviewId::new(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        PendingReview { id, answer, all: self.clone(), inbox: inbox.clone() }
    }

    fn take(&self, id: ReviewId) -> Option<oneshot::Sender<Outcome>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// Passes an answer on. Who waited for it may have gone.
    pub(super) fn answer(&self, id: ReviewId, outcome: Outcome) {
        if let Some(sender) = self.take(id) {
            let _ = sender.send(outcome);
        }
    }
}

impl PendingReview {
    /// Returns the answer; `None` if the operator has ended.
    pub(super) async fn answered(mut self) -> Option<Outcome> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingReview {
    fn drop(&mut self) {
        if self.all.take(self.id).is_some() {
            self.inbox.answer(Event::ReviewAbandoned { id: self.id });
        }
    }
}

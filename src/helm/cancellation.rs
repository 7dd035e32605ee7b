//! How work on a release is ended from outside, and how it tells what it waits for.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::oneshot;

/// Takes what work on a release waits for; `None` when that is over.
pub type Listener = Arc<dyn Fn(Option<String>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Whether work on a release has to end now: the operator ends, or something newer takes its place. Its clones hear of the same end.
#[derive(Clone)]
pub struct Cancellation {
    end: Shared<BoxFuture<'static, ()>>,
    /// Who is told what is waited for meanwhile.
    listener: Option<Listener>,
}

impl Cancellation {
    /// Returns one that is never requested.
    pub fn never() -> Self {
        Self { end: std::future::pending().boxed().shared(), listener: None }
    }

    /// Returns one that is requested when `signal` is sent. A sender that is dropped requests nothing.
    pub fn on(signal: oneshot::Receiver<()>) -> Self {
        let requested = async move {
            if signal.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Self { end: requested.boxed().shared(), listener: None }
    }

    /// Returns it with somebody who is told what the work waits for.
    #[must_use]
    pub fn telling(self, listener: Listener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Tells what the work waits for; `None` when that is over.
    pub(super) async fn waits_for(&self, what: Option<String>) {
        if let Some(listener) = &self.listener {
            listener(what).await;
        }
    }

    /// Returns as soon as it is requested.
    pub(super) async fn requested(&self) {
        self.end.clone().await;
    }

    /// Reports whether it is requested.
    pub(super) fn is_requested(&self) -> bool {
        self.end.clone().now_or_never().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_requests_it_and_a_dropped_sender_does_not() {
        assert!(!Cancellation::never().is_requested());
        let (sender, receiver) = oneshot::channel();
        let cancellation = Cancellation::on(receiver);
        let clone = cancellation.clone();
        assert!(!cancellation.is_requested());
        sender.send(()).unwrap();
        assert!(cancellation.is_requested() && clone.is_requested());
        let (sender, receiver) = oneshot::channel();
        drop(sender);
        assert!(!Cancellation::on(receiver).is_requested());
    }
}

//! The end of the operator, as work on a release learns of it.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::oneshot;

/// Whether work on a release has to end now, because the operator ends. Its clones hear of the same end.
#[derive(Clone)]
pub struct Cancellation(Shared<BoxFuture<'static, ()>>);

impl Cancellation {
    /// Returns one that is never requested.
    pub fn never() -> Self {
        Self(std::future::pending().boxed().shared())
    }

    /// Returns one that is requested when `signal` is sent. A sender that is dropped requests nothing.
    pub fn on(signal: oneshot::Receiver<()>) -> Self {
        let requested = async move {
            if signal.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Self(requested.boxed().shared())
    }

    /// Returns as soon as it is requested.
    pub(super) async fn requested(&self) {
        self.0.clone().await;
    }

    /// Reports whether it is requested.
    pub(super) fn is_requested(&self) -> bool {
        self.0.clone().now_or_never().is_some()
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

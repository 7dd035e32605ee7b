//! A network that holds a request up: it is carried out long after it was given up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use apiserver::ApiServer;
use http::Request;
use kube::Client;
use kube::client::Body;
use tower::ServiceExt as _;

/// A request that is on its way.
#[derive(Clone, Default)]
pub(crate) struct HeldRequest {
    request: Arc<Mutex<Option<Request<Body>>>>,
    is_held: Arc<AtomicBool>,
}

impl HeldRequest {
    /// Returns a client whose first request that `is_slow` holds for gets no answer, and the place where it is kept.
    pub(crate) fn new(
        server: &ApiServer,
        is_slow: impl Fn(&Request<Body>) -> bool + Clone + Send + Sync + 'static,
    ) -> (Self, Client) {
        let (held, server) = (Self::default(), server.clone());
        let keeper = held.clone();
        let network = tower::service_fn(move |request: Request<Body>| {
            let (endpoint, keeper) = (server.service(), keeper.clone());
            let holds = is_slow(&request) && !keeper.is_held.swap(true, Ordering::Relaxed);
            async move {
                if holds {
                    *keeper.request.lock().unwrap() = Some(request);
                    return std::future::pending().await;
                }
                endpoint.oneshot(request).await
            }
        });
        (held, Client::new(network, "default"))
    }

    /// Has it carried out now, and returns the status of the answer, which nobody waits for.
    pub(crate) async fn carry_out(&self, server: &ApiServer) -> u16 {
        let request = self.request.lock().unwrap().take().unwrap();
        server.service().oneshot(request).await.unwrap().status().as_u16()
    }
}

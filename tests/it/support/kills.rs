//! An operator that is killed before or after one of its writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use addon_operator::app;
use addon_operator::cluster::connect_in_process;
use http::{Method, Request};
use kube::client::Body;
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::DEADLINE;
use super::in_process::Cluster;

/// How many lives are lived side by side: most of a life is spent waiting.
const LANES: usize = 4;

/// When it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moment {
    /// Before it sends the write.
    Before,
    /// Before it has the answer.
    After,
    /// Before it sends a request that reads; such requests are counted then.
    Reading,
}

/// Runs an operator that is killed at its write, or read, of this number, counted from 1. Returns whether it came to that.
pub(crate) async fn killed(
    cluster: &Cluster,
    options: &[(&str, &str)],
    (number, moment): (usize, Moment),
    done: impl AsyncFn(),
) -> bool {
    let (strike, mut struck) = watch::channel(false);
    let writes = Arc::new(AtomicUsize::new(0));
    let server = cluster.server.service();
    // What the API server does for a request outlives who asked.
    let outside = tokio::runtime::Handle::current();
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_read = request.method() == Method::GET;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let counts = if moment == Moment::Reading { is_read && !is_watch } else { !is_read };
        let write = if counts { writes.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let (server, strike, outside) = (server.clone(), strike.clone(), outside.clone());
        async move {
            let is_over = *strike.borrow();
            if is_over || (write == number && moment != Moment::After) {
                strike.send_replace(true);
                return std::future::pending().await;
            }
            let answer = outside.spawn(server.oneshot(request)).await.unwrap();
            if write == number {
                strike.send_replace(true);
            }
            if *strike.borrow() { std::future::pending().await } else { answer }
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (keep, ended) = watch::channel(false);
    let client = connect_in_process(service, "ops");
    let around = cluster.around(client, false, ended, options);
    runtime.spawn(app::run(around, drop));
    let is_struck = tokio::select! {
        _ = struck.wait_for(|struck| *struck) => true,
        () = done() => false,
    };
    // All that it did is dropped where it stands; files that are being written are complete.
    tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DEADLINE)).await.unwrap();
    drop(keep);
    is_struck
}

/// Lives a life for each number from 0 on, several side by side, to the first whose kill did not come any more: `live` returns whether
/// it came. Returns how many kills came.
pub(crate) async fn lives(live: impl AsyncFn(usize) -> bool) -> usize {
    let (next, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let lane = async || {
        while live(next.fetch_add(1, Ordering::SeqCst)).await {
            kills.fetch_add(1, Ordering::SeqCst);
        }
    };
    futures::future::join_all((0..LANES).map(|_| lane())).await;
    kills.into_inner()
}

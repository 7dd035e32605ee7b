//! An operator that is killed before or after one of its writes, and what it finds.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use addon_operator::app;
use addon_operator::cluster::connect_in_process;
use addon_operator::config::Environment;
use http::{Method, Request};
use kube::client::Body;
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::in_process::Cluster;
use super::repository::Repository;
use super::{ApiServer, DEADLINE};

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

/// A cluster and its files as they are when some work begins. Lives begin there again and again, and what was before is lived once.
///
/// They share the repository, which says the same to all of them.
pub(crate) struct Beginning {
    dir: TempDir,
    repository: Repository,
}

impl Beginning {
    /// Returns a new cluster that [`Self::of`] can be called with.
    pub(crate) async fn cluster() -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let server = server(&dir);
        Cluster::on(dir, server).await
    }

    /// Ends a cluster on which no operator runs.
    pub(crate) async fn of(cluster: Cluster, repository: Repository) -> Self {
        cluster.server.shutdown().await.unwrap();
        Self { dir: cluster.dir, repository }
    }

    /// Returns a cluster of its own that is as this one was, and the repository.
    pub(crate) fn again(&self) -> (Cluster, Repository) {
        let copy = tempfile::tempdir().unwrap();
        // With links and modes as they are.
        let copied = Command::new("cp").arg("-a").arg(self.dir.path().join(".")).arg(copy.path()).status();
        assert!(copied.unwrap().success());
        let server = server(&copy);
        (Cluster { dir: copy, server }, self.repository.clone())
    }
}

/// Returns a server whose state lies in this directory.
fn server(dir: &TempDir) -> ApiServer {
    ApiServer::builder().impersonation().state(dir.path().join("state")).build().unwrap()
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

impl Moment {
    /// Returns the numbers of the requests at which kills come.
    ///
    /// A kill before a write leaves the cluster as it was after the write before. So every second write is enough for each of the
    /// two moments: together they leave every state that there is. A read changes nothing. With `EVERY_KILL` each request is hit.
    fn number(self, turn: usize) -> usize {
        let sample = match self {
            Self::Before | Self::After => 2,
            Self::Reading => 4,
        };
        let is_every_one = Environment::of_process().text("EVERY_KILL").is_some();
        1 + turn * if is_every_one { 1 } else { sample }
    }
}

/// Lives a life for each request that is hit at this moment, several side by side, to the first whose kill did not come any more:
/// `live` is told the number of the request, counted from 1, and returns whether the kill came. Returns how many kills came.
pub(crate) async fn lives(moment: Moment, live: impl AsyncFn(usize) -> bool) -> usize {
    let (next, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let lane = async || {
        while live(moment.number(next.fetch_add(1, Ordering::SeqCst))).await {
            kills.fetch_add(1, Ordering::SeqCst);
        }
    };
    futures::future::join_all((0..LANES).map(|_| lane())).await;
    kills.into_inner()
}

//! What a run of the operator needs, and how it ends.

use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

use crate::cluster::RequestMetrics;
use crate::config::{Environment, Settings};
use crate::fence::Fence;

/// How long the operator waits before it asks an API server that was not there again.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How a run of the operator ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The API server was away and `--once` does not wait for it.
    ClusterAway,
    /// As asked for.
    Done,
    /// `--once` ended before all modules had converged: it was asked to end, or a whole round brought none further.
    NotConverged,
}

/// What a run needs.
pub struct Surroundings {
    /// The settings.
    pub settings: Settings,
    /// The environment of hooks.
    pub environment: Environment,
    /// The API server.
    pub client: Client,
    /// The API server for what hooks write.
    pub patcher: Client,
    /// What measures the requests of both.
    pub request_metrics: [RequestMetrics; 2],
    /// What keeps this process from acting when another one may.
    pub fence: Fence,
    /// The host of the API server, which no source may lead to; `None` if it is in this process.
    pub api_server: Option<String>,
    /// Whether to end when all modules have converged.
    pub once: bool,
    /// Whether a port that is taken is replaced by a free one.
    pub any_port: bool,
    /// Becomes true when the operator shall end.
    pub shutdown: watch::Receiver<bool>,
}

//! How a server is set up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::Limits;

/// How a server is set up. [`Config::default`] is a server as the tests of operators want it.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// How much history each resource keeps.
    pub history: Limits,
    /// How long simulated workloads take to become ready; without it nothing runs.
    pub simulate: Option<Duration>,
    /// Where the cluster is kept across restarts.
    pub state: Option<PathBuf>,
    /// Where each request is written down, one JSON object a line.
    pub audit: Option<PathBuf>,
    /// The token that clients of the socket must show; a random one when absent.
    pub token: Option<String>,
    /// Whether clients may act in the name of other users, whose rights are those of their roles; refused otherwise.
    pub impersonation: bool,
    /// Where random names and identities begin; anywhere when absent.
    pub seed: Option<u64>,
    /// The source of the time.
    pub clock: Clock,
}

/// The source of the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Returns a clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// Returns the time of this moment.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

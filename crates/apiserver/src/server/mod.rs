//! A server: made from a configuration, used in process or served on a socket.

pub(crate) mod audit;
mod call;
pub(crate) mod endpoint;
pub(crate) mod gzip;
pub(crate) mod routes;
pub(crate) mod transport;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;

use crate::bootstrap;
use crate::cluster::Cluster;
use crate::config::{Clock, Config};
use crate::controllers::{simulation, worker};
use crate::fault_injection::Faults;
use crate::random;
use crate::status::ApiError;
use crate::storage::StateError;
use crate::webhooks::conversion;
use audit::Audit;
use endpoint::Endpoint;
use transport::{Serving, TransportError, serve};

/// A Kubernetes API server.
///
/// It needs nothing but a tokio runtime. [`ApiServer::service`] answers requests in process,
/// [`ApiServer::serve`] also on a socket; both show the same cluster.
#[derive(Clone, Debug)]
pub struct ApiServer {
    cluster: Arc<Cluster>,
    audit: Option<Arc<Audit>>,
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The audit log could not be opened.
    #[error("--audit: open the audit log {path}: {1}", path = .0.display())]
    Audit(PathBuf, #[source] std::io::Error),
    /// The system has no random numbers for the token.
    #[error("make a token: the system gave no random numbers; set one yourself")]
    Random,
    /// The state file could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The socket could not be served.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Sets a server up step by step.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    config: Config,
}

impl Builder {
    /// Simulates workloads, which become ready after `delay`.
    #[must_use]
    pub fn simulate(mut self, delay: Duration) -> Builder {
        self.config.simulate = Some(delay);
        self
    }

    /// Keeps the cluster in this file.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Builder {
        self.config.state = Some(path.into());
        self
    }

    /// Writes each request into this file.
    #[must_use]
    pub fn audit(mut self, path: impl Into<PathBuf>) -> Builder {
        self.config.audit = Some(path.into());
        self
    }

    /// Sets the token that clients of the socket must show. Without it, a random one is made.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Builder {
        self.config.token = Some(token.into());
        self
    }

    /// Lets clients act in the name of other users, whose rights are those of their roles.
    #[must_use]
    pub fn impersonation(mut self) -> Builder {
        self.config.impersonation = true;
        self
    }

    /// Makes names and identities the same in each run.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Builder {
        self.config.seed = Some(seed);
        self
    }

    /// Sets the clock of the server.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.config.clock = clock;
        self
    }

    /// Keeps this many changes of each resource for watches.
    #[must_use]
    pub fn history(mut self, events: usize) -> Builder {
        self.config.history.events = events;
        self
    }

    /// Returns the server.
    pub fn build(self) -> Result<ApiServer, StartError> {
        ApiServer::new(self.config)
    }
}

impl ApiServer {
    /// Begins to set a server up.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a server with a new cluster, or the one that is kept in the state file.
    pub fn new(config: Config) -> Result<ApiServer, StartError> {
        let audit = match &config.audit {
            Some(path) => {
                let open = Audit::open(path).map_err(|source| StartError::Audit(path.clone(), source));
                Some(Arc::new(open?))
            }
            None => None,
        };
        let token = match config.token.clone() {
            Some(token) => token,
            None => random::secret().map_err(|_| StartError::Random)?,
        };
        let cluster = Arc::new(Cluster::new(config, token));
        cluster.load_state()?;
        bootstrap::fill(&cluster);
        if cluster.config.simulate.is_some() {
            simulation::start(&cluster);
        }
        if let Some(file) = &cluster.state_file {
            file.start(&cluster.storage);
        }
        Ok(ApiServer { cluster, audit })
    }

    /// Returns the server as a service for clients in this process, who need no token.
    pub fn service(&self) -> Endpoint {
        Endpoint { cluster: Arc::clone(&self.cluster), audit: self.audit.clone(), checks_token: false }
    }

    /// Serves the cluster on a socket, with TLS; clients must show the token.
    pub fn serve(&self, listener: TcpListener) -> Result<Serving, StartError> {
        let service = Endpoint { checks_token: true, ..self.service() };
        Ok(serve(listener, service, self.cluster.authenticator.admin_token())?)
    }

    /// Returns objects of one kind in the version `desired`, as the webhook of their definition converts them.
    ///
    /// # Errors
    ///
    /// When the kind or a version is unknown, when no webhook converts it, and when the webhook fails.
    pub async fn convert(&self, objects: Vec<Value>, desired: &str) -> Result<Vec<Value>, ApiError> {
        conversion::requested(&self.cluster, objects, desired).await
    }

    /// Returns the faults of the server, which tests may plan.
    pub fn faults(&self) -> Faults {
        self.cluster.faults.clone()
    }

    /// Waits until the server has done everything that follows from the requests so far: garbage collection,
    /// namespaces, definitions.
    pub async fn settled(&self) {
        worker::settled(&self.cluster).await;
    }

    /// Returns whether nothing is left to do and every client has received all events of its watches.
    ///
    /// Only clients in this process count: what a socket still holds is not known.
    pub fn is_still(&self) -> bool {
        self.cluster.is_still()
    }

    /// Finishes what follows from the requests so far and writes the state file, if there is one.
    pub async fn shutdown(&self) -> Result<(), StartError> {
        self.settled().await;
        self.cluster.save_state()?;
        Ok(())
    }
}

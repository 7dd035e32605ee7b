//! The server as a program of its own.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::regular_file;
use crate::server::{ApiServer, StartError};

/// What was asked for on the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address and port of the socket.
    pub listen: SocketAddr,
    /// Where the kubeconfig is written.
    pub kubeconfig_out: PathBuf,
    /// How long simulated workloads take to become ready; without it nothing runs.
    pub simulate: Option<Duration>,
    /// Where the cluster is kept across restarts.
    pub state: Option<PathBuf>,
    /// Where each request is written down.
    pub audit: Option<PathBuf>,
}

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The address cannot be listened on.
    #[error("listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The kubeconfig cannot be written.
    #[error("--kubeconfig-out: write the kubeconfig {path}: {1}", path = .0.display())]
    Kubeconfig(PathBuf, #[source] io::Error),
    /// Signals cannot be received.
    #[error("wait for signals: {0}")]
    Signals(io::Error),
    /// The server could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Runs a server until SIGINT or SIGTERM; the kubeconfig is written when it answers requests.
pub async fn run(options: Options) -> Result<(), RunError> {
    let mut builder = ApiServer::builder();
    if let Some(delay) = options.simulate {
        builder = builder.simulate(delay);
    }
    if let Some(path) = &options.state {
        builder = builder.state(path);
    }
    if let Some(path) = &options.audit {
        builder = builder.audit(path);
    }
    let mut signals = Signals::new().map_err(RunError::Signals)?;
    let address = options.listen;
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen(address, source))?;
    let server = builder.build()?;
    let serving = server.serve(listener)?;
    regular_file::replace(&options.kubeconfig_out, serving.kubeconfig())
        .map_err(|source| RunError::Kubeconfig(options.kubeconfig_out.clone(), source))?;
    tracing::info!(address = %serving.address(), kubeconfig = %options.kubeconfig_out.display(), "serving");
    signals.next().await;
    serving.shutdown().await;
    server.shutdown().await?;
    Ok(())
}

struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

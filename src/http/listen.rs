//! The listeners on the TCP port and on the socket.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connection;
use super::debug::{self, DebugState};
use super::public::{self, Health};
use crate::config::Settings;
use crate::telemetry::Telemetry;

/// Why a listener can't be opened.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The port is taken or not allowed.
    #[error("can't listen on {address}: {source} (--prometheus-listen-port sets another port)")]
    Port {
        /// The address that was asked for.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The socket can't be made.
    #[error("can't make the socket {path}: {source} (--debug-unix-socket sets another place)")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The running servers.
#[derive(Debug)]
pub struct HttpServers {
    /// The address of the TCP port.
    pub address: SocketAddr,
    socket: PathBuf,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
}

/// Starts servers on the port, on the socket, and on `--debug-http-addr`.
///
/// With `any_port` a port that is taken is replaced by a free one.
pub async fn serve(
    settings: &Settings,
    state: &DebugState,
    telemetry: &Arc<Telemetry>,
    health: Health,
    any_port: bool,
) -> Result<HttpServers, ListenError> {
    let listener = bind(&settings.listen_address, settings.listen_port, any_port).await?;
    let address =
        listener.local_addr().map_err(|source| ListenError::Port { address: String::new(), source })?;
    let (stop, stopped) = watch::channel(false);
    let public = public::router(state.questions.clone(), Arc::clone(telemetry), health);
    let mut servers = vec![tokio::spawn(connection::serve(listener, public, stopped.clone()))];
    let debug = debug::router(state.clone());
    let socket = bind_socket(&settings.debug_socket)?;
    let (router, mut stopped_too) = (debug.clone(), stopped.clone());
    servers.push(tokio::spawn(async move {
        let stop = async move { connection::requested(&mut stopped_too).await };
        let _ = axum::serve(socket, router).with_graceful_shutdown(stop).await;
    }));
    if !settings.debug_http_addr.is_empty() {
        let address = settings.debug_http_addr.clone();
        let address = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address };
        let listener =
            TcpListener::bind(&address).await.map_err(|source| ListenError::Port { address, source })?;
        servers.push(tokio::spawn(connection::serve(listener, debug, stopped)));
    }
    Ok(HttpServers { address, socket: settings.debug_socket.clone(), stop, servers })
}

async fn bind(address: &str, port: u16, any_port: bool) -> Result<TcpListener, ListenError> {
    match TcpListener::bind((address, port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if any_port && error.kind() == io::ErrorKind::AddrInUse => TcpListener::bind((address, 0))
            .await
            .map_err(|source| ListenError::Port { address: format!("{address}:0"), source }),
        Err(source) => Err(ListenError::Port { address: format!("{address}:{port}"), source }),
    }
}

/// Creates the socket with mode 0600. One that a killed operator left is replaced.
fn bind_socket(path: &Path) -> Result<UnixListener, ListenError> {
    let bind = || {
        if let Some(parent) = path.parent()
            && !parent.as_os_str().is_empty()
        {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    bind().map_err(|source| ListenError::Socket { path: path.to_owned(), source })
}

impl HttpServers {
    /// Stops the servers, drops open connections and removes the socket.
    pub fn close(self) {
        self.stop.send_replace(true);
        for server in self.servers {
            server.abort();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

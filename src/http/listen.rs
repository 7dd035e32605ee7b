//! The listeners on the TCP port and on the socket.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connection::{self, LIMITS};
use super::debug;
use super::debug_state::DebugState;
use super::public;
use crate::config::Settings;
use crate::directory_trust::{self, Refusal};
use crate::file_lock::FileLock;
use crate::telemetry::Telemetry;

/// Why a listener can't be opened.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The port is taken or not allowed.
    #[error("can't listen on {address}: {problem} (--prometheus-listen-port sets another port)")]
    Port {
        /// The address that was asked for.
        address: String,
        /// The error of the system. It is no source: it stands in the text.
        problem: io::Error,
    },
    /// Another operator has the socket.
    #[error(
        "another operator answers on the socket {path}: end it, or set another place with --debug-unix-socket"
    )]
    Taken {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The socket can't be made.
    #[error("can't make the socket {path}: {problem} (--debug-unix-socket sets another place)")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system. It is no source: it stands in the text.
        problem: io::Error,
    },
    /// Others could put a socket of theirs in its place.
    #[error("{0}")]
    Untrusted(String),
}

/// How long something that listens on the socket has to answer before it counts as living.
const ANSWER: Duration = Duration::from_secs(1);

/// How long another start may hold the lock of the directory of the socket.
const LOCKED: Duration = Duration::from_secs(5);

/// The running servers.
#[derive(Debug)]
pub struct HttpServers {
    /// The address of the TCP port.
    pub address: SocketAddr,
    socket: PathBuf,
    /// Which file the socket is. Another operator may have put its own there.
    identity: (u64, u64),
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
    any_port: bool,
) -> Result<HttpServers, ListenError> {
    let listener = bind(&settings.listen_address, settings.listen_port, any_port).await?;
    let address =
        listener.local_addr().map_err(|problem| ListenError::Port { address: String::new(), problem })?;
    let (stop, stopped) = watch::channel(false);
    let public = public::router(state.questions.clone(), Arc::clone(telemetry));
    let mut servers = vec![tokio::spawn(connection::serve(listener, public, LIMITS, stopped.clone()))];
    let debug = debug::router(state.clone());
    let debug_over_tcp = debug::router(DebugState { shows_secrets: false, ..state.clone() });
    let socket = bind_socket(&settings.debug_socket).await?;
    let identity = identity(&settings.debug_socket);
    let (router, mut stopped_too) = (debug, stopped.clone());
    servers.push(tokio::spawn(async move {
        let stop = async move { connection::requested(&mut stopped_too).await };
        let _ = axum::serve(socket, router).with_graceful_shutdown(stop).await;
    }));
    if !settings.debug_http_addr.is_empty() {
        let address = settings.debug_http_addr.clone();
        let address = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address };
        let listener =
            TcpListener::bind(&address).await.map_err(|problem| ListenError::Port { address, problem })?;
        servers.push(tokio::spawn(connection::serve(listener, debug_over_tcp, LIMITS, stopped)));
    }
    Ok(HttpServers { address, socket: settings.debug_socket.clone(), identity, stop, servers })
}

async fn bind(address: &str, port: u16, any_port: bool) -> Result<TcpListener, ListenError> {
    match TcpListener::bind((address, port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if any_port && error.kind() == io::ErrorKind::AddrInUse => TcpListener::bind((address, 0))
            .await
            .map_err(|problem| ListenError::Port { address: format!("{address}:0"), problem }),
        Err(problem) => Err(ListenError::Port { address: format!("{address}:{port}"), problem }),
    }
}

/// Locks a directory, as long as what is returned lives. One that can't be locked is no reason not to start.
async fn lock(directory: &Path) -> Option<FileLock> {
    let directory = File::open(directory).ok()?;
    tokio::task::spawn_blocking(|| FileLock::new(directory, LOCKED).ok()).await.ok()?
}

/// Creates the socket with mode 0600. One that a killed operator left is replaced; nothing else is.
async fn bind_socket(path: &Path) -> Result<UnixListener, ListenError> {
    let failed = |problem| ListenError::Socket { path: path.to_owned(), problem };
    directory_trust::make_above(path).map_err(|refusal| match refusal {
        Refusal::Io(problem) => failed(problem),
        Refusal::NoDirectory(_) | Refusal::Untrusted(..) => {
            ListenError::Untrusted(refusal.told(path, "the socket", "--debug-unix-socket"))
        }
    })?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    // Of two operators that start at once, one makes the socket, and the other finds that it lives. Otherwise both could
    // find a dead one, and the second would remove what the first has made.
    let _lock = lock(directory).await;
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let what = "something else that is no socket stands there";
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, what)));
        }
        Ok(_) if lives(path).await => return Err(ListenError::Taken { path: path.to_owned() }),
        Ok(_) => std::fs::remove_file(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Returns whether anybody answers on a socket. One who takes connections and is slow does.
///
/// A process that was just killed takes connections until the system has closed its files, and so does a child of it that
/// it had forked and that is not another program yet. Both answer nothing: the connection ends with them.
async fn lives(path: &Path) -> bool {
    let answered = async {
        loop {
            match UnixStream::connect(path).await {
                Ok(stream) => {
                    if answers(stream).await {
                        return true;
                    }
                }
                Err(error) => {
                    let none = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
                    // A reset one was taken into the queue, and the queue has gone since: it is asked for again.
                    if error.kind() != io::ErrorKind::ConnectionReset {
                        return !none.contains(&error.kind());
                    }
                }
            }
        }
    };
    tokio::time::timeout(ANSWER, answered).await.unwrap_or(true)
}

/// Returns whether an answer comes, of whatever content, before the other side is gone.
async fn answers(mut stream: UnixStream) -> bool {
    // A server that is too busy to read says so, and is one.
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: socket\r\nConnection: close\r\n\r\n").await;
    stream.read(&mut [0; 16]).await.is_ok_and(|length| length > 0)
}

/// Returns the device and the number of a file; zeros if there is none.
fn identity(path: &Path) -> (u64, u64) {
    std::fs::symlink_metadata(path).map_or((0, 0), |found| (found.dev(), found.ino()))
}

impl HttpServers {
    /// Stops the servers, drops open connections and removes the socket.
    pub fn close(self) {
        self.stop.send_replace(true);
        for server in self.servers {
            server.abort();
        }
        if identity(&self.socket) == self.identity {
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn of_two_starts_at_once_on_a_dead_socket_one_wins_and_the_other_names_it() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let path = dir.path().join(format!("socket-{round}"));
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            let barrier = Barrier::new(2);
            let start = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                barrier.wait();
                let outcome = runtime.block_on(async {
                    let listener = bind_socket(&path).await?;
                    // The other asks who is there.
                    let (mut asking, _) = listener.accept().await.unwrap();
                    let _ = asking.read(&mut [0; 256]).await.unwrap();
                    asking.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    Ok(())
                });
                // Both have tried before one of them ends.
                barrier.wait();
                outcome
            };
            let outcomes = std::thread::scope(|scope| {
                let [first, second] = [scope.spawn(start), scope.spawn(start)];
                [first.join().unwrap(), second.join().unwrap()]
            });
            let taken =
                |outcome: &&Result<(), ListenError>| matches!(outcome, Err(ListenError::Taken { .. }));
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "round {round}");
            assert_eq!(outcomes.iter().filter(taken).count(), 1, "round {round}: {outcomes:?}");
        }
    }

    /// What a process leaves that is killed while somebody asks it: a socket that takes connections, and then none.
    #[tokio::test]
    async fn a_socket_whose_process_dies_while_it_is_asked_is_dead_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let dying = UnixListener::bind(&path).unwrap();
        let dies = async {
            // It takes one connection, answers nothing, and has another one in its queue when it is gone.
            drop(dying.accept().await.unwrap());
            let waits = UnixStream::connect(&path).await.unwrap();
            drop(dying);
            drop(waits);
        };
        let (bound, ()) = tokio::join!(bind_socket(&path), dies);
        assert!(bound.is_ok(), "{bound:?}");
    }

    #[tokio::test]
    async fn a_socket_that_is_closed_while_a_connection_to_it_is_made_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        for _ in 0..20 {
            let dying = UnixListener::bind(&path).unwrap();
            // The connection waits in the queue when the queue goes.
            let (lives, ()) = tokio::join!(lives(&path), async { drop(dying) });
            assert!(!lives);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[tokio::test]
    async fn one_who_takes_connections_and_answers_nothing_is_slow_and_keeps_its_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _slow = UnixListener::bind(&path).unwrap();
        assert!(matches!(bind_socket(&path).await, Err(ListenError::Taken { .. })));
    }
}

//! The server as a program of its own.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;

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
    #[error("write the kubeconfig {path}: {1}", path = .0.display())]
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
    write_private(&options.kubeconfig_out, serving.kubeconfig())
        .map_err(|source| RunError::Kubeconfig(options.kubeconfig_out.clone(), source))?;
    tracing::info!(address = %serving.address(), kubeconfig = %options.kubeconfig_out.display(), "serving");
    signals.next().await;
    serving.shutdown().await;
    server.shutdown().await?;
    Ok(())
}

/// Writes a file that only its owner can read, whatever mode the one had that it replaces. Readers see the old text or the new one.
///
/// Pipes and devices are written to as they are, and a link goes on to lead to the file.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut draft = path.clone().into_os_string();
    draft.push(format!(".{}", std::process::id()));
    // One that a process with the same number left behind is not written into: others may have opened it.
    let _ = fs::remove_file(&draft);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn slip_04_a_kubeconfig_is_private_whatever_it_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_private(&path, "first").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("first", 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        // Who has the old file open does not read the new token.
        let mut open = fs::File::open(&path).unwrap();
        write_private(&path, "second").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("second", 0o600));
        assert_eq!(io::read_to_string(&mut open).unwrap(), "first");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        write_private(&link, "third").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no draft is left");
        write_private(Path::new("/dev/null"), "nothing").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert!(write_private(&dir.path().join("missing/kubeconfig"), "").is_err());
    }
}

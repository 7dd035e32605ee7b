//! An API server on a socket that can be cut off, and stopped and started again: its state and its address stay.

use std::net::SocketAddr;
use std::path::PathBuf;

use addon_operator::cluster::{Access, RateLimit, connect};
use addon_operator::fence::Fence;
use apiserver::{ApiServer, Serving};
use kube::Client;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::files::write;

/// The token of the API server, which has to stay the same.
const TOKEN: &str = "a-token-that-stays";

/// The address of an API server, wherever that runs. While it is nowhere, connections are closed at once.
struct Gate {
    address: SocketAddr,
    leads_to: watch::Sender<Option<SocketAddr>>,
    task: JoinHandle<()>,
}

impl Gate {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (leads_to, target) = watch::channel(None);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(stream, target.clone()));
            }
        });
        Self { address, leads_to, task }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what comes on a connection until the gate leads elsewhere. Then the connection is cut.
async fn pass_on(mut stream: TcpStream, mut target: watch::Receiver<Option<SocketAddr>>) {
    let address = *target.borrow_and_update();
    let Some(address) = address else { return };
    let Ok(mut server) = TcpStream::connect(address).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut stream, &mut server) => {}
        _ = target.changed() => {}
    }
}

/// Returns a client that a kubeconfig leads to the API server.
pub(crate) async fn connected(kubeconfig: PathBuf) -> Client {
    // As the program does. Another test of this process may have done so before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let access = Access { kubeconfig: Some(kubeconfig), ..Access::default() };
    connect(&access, &RateLimit::new(0.0, 1), &Fence::none()).await.unwrap()
}

/// An API server whose outages are real.
pub(crate) struct Outage {
    dir: TempDir,
    gate: Gate,
    /// How many changes of each resource it remembers.
    history: usize,
    running: Option<(ApiServer, Serving)>,
}

impl Outage {
    /// Starts an API server that remembers so many changes of each resource.
    pub(crate) async fn new(history: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut outage = Self { dir, gate: Gate::new().await, history, running: None };
        outage.start().await;
        outage.reconnect();
        outage
    }

    /// Returns a client that reaches the API server wherever it is.
    pub(crate) async fn client(&self) -> Client {
        let path = self.dir.path().join("kubeconfig");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: 'https://{}', insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: a, user: {{token: {TOKEN}}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a, namespace: default}}}}]\n",
            self.gate.address
        );
        write(&path, &kubeconfig);
        connected(path).await
    }

    /// Returns the API server that runs, for people who are beside it.
    pub(crate) fn server(&self) -> ApiServer {
        self.running.as_ref().unwrap().0.clone()
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Cuts all connections; new ones are closed at once. The API server runs on.
    pub(crate) fn cut_off(&self) {
        self.gate.leads_to.send_replace(None);
    }

    /// Lets connections through again.
    pub(crate) fn reconnect(&self) {
        let address = self.running.as_ref().unwrap().1.address();
        self.gate.leads_to.send_replace(Some(address));
    }

    /// Stops the API server.
    pub(crate) async fn stop(&mut self) {
        self.cut_off();
        if let Some((server, serving)) = self.running.take() {
            serving.shutdown().await;
            server.shutdown().await.unwrap();
        }
    }

    /// Starts the API server with the state that it had when it was stopped. Nobody can reach it yet.
    pub(crate) async fn start(&mut self) {
        let builder = ApiServer::builder().state(self.state()).token(TOKEN).history(self.history);
        let server = builder.build().unwrap();
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        self.running = Some((server, serving));
    }
}

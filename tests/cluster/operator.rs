//! An operator in this process, outside of the cluster that it works on.

use std::path::Path;

use addon_operator::app::{self, Outcome, Surroundings};
use addon_operator::config::{Environment, OptionSources, Settings};
use addon_operator::fence::Fence;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// An operator that runs.
pub(crate) struct Running {
    pub(crate) port: u16,
    shutdown: watch::Sender<bool>,
    operator: JoinHandle<anyhow::Result<Outcome>>,
}

impl Running {
    /// Starts one with the files of a directory, in a namespace, with more options. Returns it once it answers.
    pub(crate) async fn start(client: &Client, dir: &Path, namespace: &str, more: &[(&str, &str)]) -> Self {
        let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
        let flags = [
            ("modules-dir", path("modules")),
            ("global-hooks-dir", path("global-hooks")),
            ("tmp-dir", path("tmp")),
            ("source-dir", path("sources")),
            ("debug-unix-socket", path("socket")),
            ("namespace", namespace.to_owned()),
            ("prometheus-listen-address", "127.0.0.1".to_owned()),
            ("prometheus-listen-port", "0".to_owned()),
        ];
        let more = more.iter().map(|(flag, text)| (*flag, (*text).to_owned()));
        let flags = flags.into_iter().chain(more).map(|(flag, text)| (flag.to_owned(), text)).collect();
        let settings = Settings::new(&OptionSources::new(flags, Environment::default())).unwrap();
        let (shutdown, ended) = watch::channel(false);
        let around = Surroundings {
            settings,
            environment: Environment::default().with("PATH", "/usr/local/bin:/usr/bin:/bin"),
            patcher: client.clone(),
            client: client.clone(),
            request_metrics: app::request_metrics(),
            fence: Fence::none(),
            api_server: None,
            once: false,
            any_port: true,
            shutdown: ended,
        };
        let (told, mut listening) = mpsc::unbounded_channel();
        let operator = tokio::spawn(app::run(around, move |address| told.send(address).unwrap_or(())));
        let port = listening.recv().await.unwrap().port();
        Self { port, shutdown, operator }
    }

    /// Ends it, and waits for its end.
    pub(crate) async fn stop(self) {
        self.shutdown.send_replace(true);
        assert_eq!(self.operator.await.unwrap().unwrap(), Outcome::Done);
    }
}

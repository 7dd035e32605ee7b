//! The broker as the other adapters have it: its port, and what it writes into the cluster.

use std::io;
use std::sync::Arc;

use engine::{BrokerAnswer, BrokerCallId, BrokerRegistration, ConfigText, Failure};
use kube::Client;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::access::Access;
use super::listener::Listener;
use super::observation::BrokerMetrics;
use super::pending::PendingCalls;
use super::records::Records;
use super::registration::{Brokers, owner};
use crate::cluster::request::Requests;
use crate::driver::Inbox;
use crate::lasting_task::lasting;

/// How the broker is reached, and what it is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens: `0.0.0.0:8081`, or `:8081` for every address.
    pub address: String,
    /// The operator's namespace.
    pub namespace: String,
    /// The operator's ConfigMap, which tells operators apart.
    pub config_map: String,
    /// The Secret with `username` and `password`.
    pub secret: String,
    /// The address under which platforms reach it. Its port 0 stands for the port where it listens.
    pub url: String,
}

/// Why there is no broker.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// The port is taken or not allowed, or the text is no address.
    #[error("can't listen on {address} for the broker: {source} (--osb-listen sets another address)")]
    Port {
        /// The address that was asked for.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The broker.
pub struct Broker {
    options: Options,
    listener: Arc<TcpListener>,
    requests: Requests,
    pending: PendingCalls,
    records: Records,
    metrics: BrokerMetrics,
}

impl Broker {
    /// Returns a broker that has its port, and answers nobody yet.
    ///
    /// # Errors
    ///
    /// When the port can't be listened on.
    pub async fn bind(client: Client, mut options: Options) -> Result<Self, BrokerError> {
        let given = options.address.clone();
        let address = if given.starts_with(':') { format!("0.0.0.0{given}") } else { given };
        let failed = |source| BrokerError::Port { address: address.clone(), source };
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        if let Some(host) = options.url.strip_suffix(":0") {
            options.url = format!("{host}:{port}");
        }
        let requests = Requests::new(client);
        let records = Records::new(requests.clone(), &options.namespace, &options.config_map);
        Ok(Self {
            options,
            listener: Arc::new(listener),
            requests,
            pending: PendingCalls::default(),
            records,
            metrics: BrokerMetrics::default(),
        })
    }

    /// Returns what reports calls.
    pub fn metrics(&self) -> &BrokerMetrics {
        &self.metrics
    }

    /// Answers platforms until the task is aborted.
    pub fn listen(&self, inbox: &Inbox) -> JoinHandle<()> {
        let access = Access::new(self.requests.clone(), &self.options.namespace, &self.options.secret);
        let answering = Listener::new(
            Arc::new(access),
            self.pending.clone(),
            inbox.clone(),
            self.requests.clone(),
            self.metrics.clone(),
        );
        let listener = Arc::clone(&self.listener);
        tokio::spawn(async move {
            lasting("the listener of the broker", || answering.clone().listen(Arc::clone(&listener))).await;
        })
    }

    /// Passes the answer to a call on.
    pub fn answer(&self, id: BrokerCallId, answer: BrokerAnswer) {
        self.pending.answer(id, answer);
    }

    /// Returns what is kept of instances.
    ///
    /// # Errors
    ///
    /// When the Secret can't be read.
    pub async fn instances(&self) -> Result<Option<ConfigText>, Failure> {
        self.records.read().await
    }

    /// Writes down what is to be kept of instances.
    ///
    /// # Errors
    ///
    /// When the Secret can't be written. It says what it said before then.
    pub async fn keep(&self, text: &ConfigText) -> Result<(), Failure> {
        self.records.write(text).await
    }

    /// Makes the objects of Service Catalog say what is offered. Returns whether there is a Service Catalog.
    ///
    /// # Errors
    ///
    /// When not everything could be written.
    pub async fn register(&self, registration: &BrokerRegistration) -> Result<bool, Failure> {
        let Options { namespace, config_map, secret, url, .. } = &self.options;
        let brokers = Brokers {
            requests: &self.requests,
            name: format!("addon-operator-{namespace}"),
            owner: owner(namespace, config_map),
            namespace,
            secret,
            url: url.trim_end_matches('/'),
        };
        brokers.register(registration).await
    }
}

//! The parts together: what listens, what it shows, and what the API server is told.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Failure, FailureKind, ReviewId, WebhookCertificate, WebhookClient, WebhookRegistration};
use kube::Client;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::certificate_secret::CertificateSecret;
use super::certificates::{Shown, bundle, clients_of, provider, read};
use super::error::WebhookError;
use super::listener::Listener;
use super::options::Options;
use super::pending::{Outcome, PendingReviews};
use super::registration::{Registered, register};
use super::renewal::{Origin, Renewal, Serving};
use crate::cluster::request::Requests;
use crate::driver::Inbox;
use crate::lasting_task::lasting;

/// Takes reviews and tells the API server of it.
pub struct Webhooks {
    options: Options,
    listener: Arc<TcpListener>,
    requests: Requests,
    pending: PendingReviews,
    serving: Arc<Mutex<Option<Serving>>>,
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        // What follows the certificate has this, too, and would write the Secret for ever.
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Webhooks {
    /// Returns what takes reviews once it is asked to. Until then only its port is taken. With `any_port` a port that is
    /// taken is replaced by a free one.
    ///
    /// # Errors
    ///
    /// When the port can't be listened on.
    pub async fn bind(client: Client, mut options: Options, any_port: bool) -> Result<Self, WebhookError> {
        let (address, port) = (options.address.0.as_str(), options.address.1);
        let bound = match TcpListener::bind((address, port)).await {
            Err(error) if any_port && error.kind() == std::io::ErrorKind::AddrInUse => {
                TcpListener::bind((address, 0)).await
            }
            bound => bound,
        };
        let failed = |problem| WebhookError::Port { address: format!("{address}:{port}"), problem };
        let listener = bound.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        if let WebhookClient::Url(url) = &mut options.client
            && let Some(host) = url.strip_suffix(":0")
        {
            *url = format!("{host}:{port}");
        }
        let (listener, requests) = (Arc::new(listener), Requests::new(client));
        Ok(Self { options, listener, requests, pending: PendingReviews::default(), serving: Arc::default() })
    }

    /// Returns where the API server reaches the listener.
    pub fn client(&self) -> &WebhookClient {
        &self.options.client
    }

    /// Passes the answer to a review on.
    pub fn answer(&self, id: ReviewId, outcome: Outcome) {
        self.pending.answer(id, outcome);
    }

    /// Begins to take reviews. Returns the certificate that it takes them with.
    ///
    /// # Errors
    ///
    /// When there is no certificate that the API server would accept, or the port can't be listened on.
    pub async fn serve(&self, inbox: &Inbox) -> Result<WebhookCertificate, Failure> {
        self.start(inbox).await.map_err(|error| error.failure())
    }

    async fn start(&self, inbox: &Inbox) -> Result<WebhookCertificate, WebhookError> {
        let (host, clock) = (self.options.host(), self.options.clock.clone());
        let origin = if let Some(files) = &self.options.certificates {
            Origin::Files(files.clone(), read(files, &host, clock.now())?)
        } else {
            let secret = CertificateSecret::new(&self.options, &self.requests);
            secret.await_others().await;
            let (held, _) = secret.agree(None, &[]).await?;
            Origin::Secret(Box::new(secret), Box::new(held))
        };
        let certificate = origin.certificate().clone();
        let shown = Arc::new(Shown::new(Arc::clone(&certificate.key)));
        let versions =
            rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let unusable =
            |error: rustls::Error| WebhookError::Unusable { place: host.clone(), problem: error.to_string() };
        let tls = versions.map_err(unusable)?;
        let tls = match self.options.client_authorities.as_slice() {
            [] => tls.with_no_client_auth(),
            files => tls.with_client_cert_verifier(clients_of(files)?),
        };
        let mut tls = tls.with_cert_resolver(Arc::clone(&shown) as _);
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = Arc::clone(&self.listener);
        let answering = Listener::new(TlsAcceptor::from(Arc::new(tls)), self.pending.clone(), inbox.clone());
        let listening = tokio::spawn(async move {
            lasting("the listener of webhooks", || answering.clone().listen(Arc::clone(&listener))).await;
        });
        let (ca_bundle, valid_for) = (bundle(&certificate.ca), certificate.valid_for);
        let renewal = Renewal {
            serving: Arc::clone(&self.serving),
            inbox: inbox.clone(),
            requests: self.requests.clone(),
            clock,
            host,
        };
        {
            // What follows the certificate looks at this, and must not find nothing.
            let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
            let renewing = tokio::spawn(renewal.follow(origin));
            *serving = Some(Serving::new(shown, &certificate, vec![listening, renewing]));
        }
        if let Ok(address) = self.listener.local_addr() {
            tracing::info!("webhooks are answered on {address}");
        }
        Ok(WebhookCertificate { ca_bundle, valid_for })
    }

    /// Tells the API server which webhooks there are.
    pub async fn register(&self, registration: &WebhookRegistration) -> Registered {
        let Options { name, client, namespace, .. } = &self.options;
        if let Some(serving) = &mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner) {
            serving.tells();
        }
        let registered = register(&self.requests, (name.as_str(), client), registration, namespace).await;
        if matches!(&registered, (Ok(()), refusals, _) if refusals.is_empty())
            && registration.narrowed.is_empty()
            && let Some(serving) = &mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner)
            && trusts(registration, serving.ca_bundle())
        {
            serving.show_next();
        }
        registered
    }
}

/// Returns whether everything in a registration trusts these certificates.
fn trusts(registration: &WebhookRegistration, ca_bundle: &str) -> bool {
    let configurations = [&registration.validating, &registration.mutating].into_iter().flatten();
    let webhooks = configurations.filter_map(|object| object.get("webhooks")?.as_array()).flatten();
    let mut bundles = webhooks.map(|webhook| webhook.pointer("/clientConfig/caBundle"));
    let conversions = registration.conversions.values().flatten();
    let mut others = conversions.map(|conversion| conversion.pointer("/webhook/clientConfig/caBundle"));
    let is_ours = |bundle: Option<&Value>| bundle.and_then(Value::as_str) == Some(ca_bundle);
    bundles.all(is_ours) && others.all(is_ours)
}

/// Takes everything back that an operator with these options told the API server, and its certificate.
///
/// # Errors
///
/// When not everything was taken back.
pub async fn uninstall(client: Client, options: &Options) -> Result<(), Failure> {
    let requests = Requests::new(client);
    let nothing =
        WebhookRegistration { sweep: Some(std::collections::BTreeSet::new()), ..Default::default() };
    let own = (options.name.as_str(), &options.client);
    let (outcome, refusals, _) = register(&requests, own, &nothing, &options.namespace).await;
    outcome.and(refusals.into_iter().next().map_or(Ok(()), |refusal| Err(refusal.failure)))?;
    let gone = requests.delete(&options.secret_path()).await;
    gone.map(drop).map_err(|error| Failure::of(FailureKind::Cluster, &error))
}

//! The parts together: what listens, what it shows, and what the API server is told.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Event, Failure, FailureKind, ReviewId, WebhookCertificate, WebhookClient, WebhookRegistration};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::authority::{Issued, issue};
use super::certificates::{
    CertificateFiles, Checked, Given, Shown, bundle, check, clients_of, provider, read,
};
use super::clock::Clock;
use super::error::WebhookError;
use super::listener::Listener;
use super::pending::{Outcome, PendingReviews};
use super::registration::register;
use crate::cluster::request::{PatchKind, Requests, encode_segment};
use crate::directory_watch::DirectoryWatch;
use crate::driver::Inbox;
use crate::lasting_task::lasting;

/// How long files must be unchanged before they are read: a certificate and its key are written one after the other.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is tried to write the Secret when others write it at the same moment.
const ATTEMPTS: usize = 5;

/// How long to wait before a certificate that could not be renewed is renewed again.
const RENEW_AGAIN: Duration = Duration::from_mins(5);

/// How long who does not tell the API server of webhooks goes on to show a certificate when there is another one. By then whoever
/// leads has got that, too: a node is about two minutes late with the files of a Secret, and clocks differ.
const SHOWN_ON: SignedDuration = SignedDuration::from_mins(10);

/// The annotation of the Secret that says when its certificate is to be renewed.
const RENEW_AT: &str = "addon-operator.io/renew-at";

/// How reviews are taken.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address and the port; 0 for a free one.
    pub address: (String, u16),
    /// The files with the certificate; `None` for a certificate of our own.
    pub certificates: Option<CertificateFiles>,
    /// The files with authorities that clients must have a certificate of; without any, every client is answered.
    pub client_authorities: Vec<PathBuf>,
    /// The operator's namespace.
    pub namespace: String,
    /// The name of the configurations.
    pub name: String,
    /// Where the API server reaches the listener. The port 0 of a URL stands for the port of the listener.
    pub client: WebhookClient,
    /// What time it is for certificates.
    pub clock: Clock,
}

/// Takes reviews and tells the API server of it.
pub struct Webhooks {
    options: Options,
    listener: Arc<TcpListener>,
    requests: Requests,
    pending: PendingReviews,
    serving: Arc<Mutex<Option<Serving>>>,
}

/// What listens.
struct Serving {
    shown: Arc<Shown>,
    /// The certificate that is shown as soon as the API server trusts it.
    next: Option<Checked>,
    ca_bundle: Arc<str>,
    /// Whether this operator tells the API server what to trust. For a standby another one does.
    tells: bool,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
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
        let failed = |source| WebhookError::Port { address: format!("{address}:{port}"), source };
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
        self.start(inbox).await.map_err(|error| failure(&error))
    }

    async fn start(&self, inbox: &Inbox) -> Result<WebhookCertificate, WebhookError> {
        let host = self.options.host();
        let certificates = Certificates { options: self.options.clone(), requests: self.requests.clone() };
        let (checked, renew_at) = certificates.first(&host).await?;
        let shown = Arc::new(Shown::new(Arc::clone(&checked.key)));
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
        let (ca_bundle, valid_for) = (bundle(&checked.ca), checked.valid_for);
        let renewal =
            Renewal { certificates, serving: Arc::clone(&self.serving), inbox: inbox.clone(), host };
        let renewing = tokio::spawn(renewal.follow(checked, renew_at));
        let serving = Serving {
            shown,
            next: None,
            ca_bundle: Arc::clone(&ca_bundle),
            tells: false,
            tasks: vec![listening, renewing],
        };
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(serving);
        if let Ok(address) = self.listener.local_addr() {
            tracing::info!("webhooks are answered on {address}");
        }
        Ok(WebhookCertificate { ca_bundle, valid_for })
    }

    /// Tells the API server which webhooks there are.
    ///
    /// # Errors
    ///
    /// When not everything was written.
    pub async fn register(&self, registration: &WebhookRegistration) -> Result<(), Failure> {
        let Options { name, client, namespace, .. } = &self.options;
        if let Some(serving) = &mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner) {
            serving.tells = true;
        }
        register(&self.requests, (name.as_str(), client), registration, namespace).await?;
        if let Some(serving) = &mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner)
            && trusts(registration, &serving.ca_bundle)
            && let Some(next) = serving.next.take()
        {
            serving.shown.replace(next.key);
        }
        Ok(())
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
    register(&requests, (options.name.as_str(), &options.client), &nothing, &options.namespace).await?;
    let gone = requests.delete(&options.secret_path()).await;
    gone.map(drop).map_err(|error| Failure::of(FailureKind::Cluster, &error))
}

fn failure(error: &WebhookError) -> Failure {
    let kind = match error {
        WebhookError::Secret { source, .. } if source.code() == 403 => FailureKind::Forbidden,
        WebhookError::Secret { .. } => FailureKind::Cluster,
        WebhookError::Port { .. }
        | WebhookError::File { .. }
        | WebhookError::Unusable { .. }
        | WebhookError::Watch { .. }
        | WebhookError::Make(_) => FailureKind::Files,
    };
    Failure::of(kind, error)
}

impl Options {
    /// Returns the name that the API server expects in the certificate.
    fn host(&self) -> String {
        match &self.client {
            WebhookClient::Service(name) => format!("{name}.{}.svc", self.namespace),
            WebhookClient::Url(url) => {
                let uri: Option<http::Uri> = url.parse().ok();
                let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
                host.trim_start_matches('[').trim_end_matches(']').to_owned()
            }
        }
    }

    /// Returns the name of the Secret with our own certificate.
    fn secret(&self) -> String {
        match &self.client {
            WebhookClient::Service(name) => format!("{name}-tls"),
            WebhookClient::Url(_) => format!("{}-tls", self.name),
        }
    }

    fn secret_path(&self) -> String {
        format!("{}/{}", self.secrets(), encode_segment(&self.secret()))
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", encode_segment(&self.namespace))
    }
}

/// Where certificates come from.
struct Certificates {
    options: Options,
    requests: Requests,
}

impl Certificates {
    /// Returns the certificate to begin with, and when it is to be renewed, if that is our business.
    async fn first(&self, host: &str) -> Result<(Checked, Option<Timestamp>), WebhookError> {
        if let Some(files) = &self.options.certificates {
            return Ok((read(files, host, self.options.clock.now())?, None));
        }
        let (checked, renew_at) = self.own(host, None).await?;
        Ok((checked, Some(renew_at)))
    }

    /// Returns the certificate of the Secret; a new one is written if there is none that can be used, or if it is as old as
    /// `outworn`.
    async fn own(&self, host: &str, outworn: Option<&str>) -> Result<(Checked, Timestamp), WebhookError> {
        let name = format!("{}/{}", self.options.namespace, self.options.secret());
        let secret = |source| WebhookError::Secret { name: name.clone(), source };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let found = self.requests.get(&self.options.secret_path()).await.map_err(secret)?;
            let now = self.options.clock.now();
            let known = found.as_ref().and_then(|found| usable(found, &name, host, now));
            if let Some((checked, renew_at)) = &known
                && *renew_at > now
                && outworn.is_none_or(|outworn| outworn != checked.ca)
            {
                return Ok((checked.clone(), *renew_at));
            }
            let issued = issue(host, now)?;
            // The API server goes on to trust the certificate that is shown until it knows the new one.
            let older =
                known.as_ref().and_then(|(checked, _)| first_certificate(&checked.ca)).unwrap_or_default();
            let ca = format!("{}{older}", issued.ca);
            let place = format!("Secret {name}");
            let checked = check(
                &Given {
                    place: &place,
                    cert: issued.cert.as_bytes(),
                    key: issued.key.as_bytes(),
                    ca: ca.as_bytes(),
                },
                host,
                now,
            )?;
            match self.write(found.as_ref(), &issued, &ca).await {
                Ok(()) => return Ok((checked, issued.renew_at)),
                // Another replica was faster: its certificate is as good.
                Err(error) if error.code() == 409 && attempts < ATTEMPTS => {}
                Err(error) => return Err(secret(error)),
            }
        }
    }

    async fn write(
        &self,
        found: Option<&Value>,
        issued: &Issued,
        ca: &str,
    ) -> Result<(), crate::cluster::RequestError> {
        let data = json!({
            "ca.crt": STANDARD.encode(ca),
            "tls.crt": STANDARD.encode(&issued.cert),
            "tls.key": STANDARD.encode(&issued.key),
        });
        let mut metadata = json!({
            "name": self.options.secret(),
            "namespace": self.options.namespace,
            "labels": {"app.kubernetes.io/managed-by": "addon-operator"},
            "annotations": {RENEW_AT: issued.renew_at.to_string()},
        });
        let Some(found) = found else {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": metadata, "data": data});
            return self.requests.create(&self.options.secrets(), &secret).await.map(drop);
        };
        let seen = found.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        metadata.as_object_mut().map(|fields| fields.insert("resourceVersion".to_owned(), seen));
        let change = json!({"metadata": metadata, "data": data});
        self.requests.edit(&self.options.secret_path(), PatchKind::Merge, &change).await.map(drop)
    }
}

/// Returns the certificate of a Secret and when it is to be renewed, if it can be used.
fn usable(secret: &Value, name: &str, host: &str, now: Timestamp) -> Option<(Checked, Timestamp)> {
    let field = |field: &str| STANDARD.decode(secret.pointer("/data")?.get(field)?.as_str()?).ok();
    let (cert, key, ca) = (field("tls.crt")?, field("tls.key")?, field("ca.crt")?);
    let renew_at = secret.pointer("/metadata/annotations")?.get(RENEW_AT)?.as_str()?.parse().ok()?;
    let place = format!("Secret {name}");
    match check(&Given { place: &place, cert: &cert, key: &key, ca: &ca }, host, now) {
        Ok(checked) => Some((checked, renew_at)),
        Err(error) => {
            tracing::warn!("{error}; a new one is made");
            None
        }
    }
}

/// Returns the first of several certificates in PEM.
fn first_certificate(pem: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = pem.find(END)? + END.len();
    pem.get(..end)
}

/// Follows the certificate: its files change, or it is renewed.
struct Renewal {
    certificates: Certificates,
    serving: Arc<Mutex<Option<Serving>>>,
    inbox: Inbox,
    host: String,
}

impl Renewal {
    async fn follow(self, mut current: Checked, mut renew_at: Option<Timestamp>) {
        if let Some(files) = self.certificates.options.certificates.clone() {
            return self.follow_files(files, current).await;
        }
        let clock = self.certificates.options.clock.clone();
        loop {
            let again = || clock.now().checked_add(RENEW_AGAIN).unwrap_or(Timestamp::MAX);
            clock.until(renew_at.unwrap_or_else(again)).await;
            match self.certificates.own(&self.host, Some(&current.ca)).await {
                Ok((checked, next)) => {
                    renew_at = Some(next);
                    current = checked.clone();
                    if let Some(time) = self.renewed(checked) {
                        clock.until(time).await;
                        self.show_next();
                    }
                }
                Err(error) => {
                    tracing::warn!("{error}; the certificate of webhooks is renewed again in 5 minutes");
                    renew_at = None;
                }
            }
        }
    }

    async fn follow_files(&self, files: CertificateFiles, mut current: Checked) {
        let (signal, mut changes) = tokio::sync::mpsc::channel(1);
        let watched = DirectoryWatch::new(signal, |_| true).and_then(|mut watch| {
            files.directories().iter().try_for_each(|directory| watch.add(directory)).map(|()| watch)
        });
        let _guard = match watched {
            Ok(guard) => guard,
            Err(source) => {
                let error = WebhookError::Watch { path: files.cert, source };
                return tracing::warn!("{error}; a new certificate is used after a restart");
            }
        };
        let clock = self.certificates.options.clock.clone();
        // It may have been replaced before the watch began.
        let mut is_changed = true;
        let mut show_at: Option<Timestamp> = None;
        loop {
            if !is_changed {
                let shown = async {
                    match show_at {
                        Some(time) => clock.until(time).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    change = changes.recv() => if change.is_none() {
                        return;
                    },
                    () = shown => {
                        self.show_next();
                        show_at = None;
                        continue;
                    }
                }
            }
            while tokio::time::timeout(PAUSE, changes.recv()).await.is_ok_and(|change| change.is_some()) {}
            is_changed = false;
            match read(&files, &self.host, clock.now()) {
                Ok(checked) if checked.key.cert == current.key.cert && checked.ca == current.ca => {}
                Ok(mut checked) => {
                    let before = std::mem::replace(&mut current, checked.clone());
                    if checked.ca != before.ca {
                        // Other replicas get the files at other times, and show the certificate before until then.
                        checked.ca = format!("{}\n{}", checked.ca.trim_end(), before.ca);
                    }
                    show_at = self.renewed(checked);
                }
                Err(error) => tracing::warn!("{error}; the old one stays in use"),
            }
        }
    }

    /// Has the API server trust a certificate, and shows it then. Returns when [`Self::show_next`] is to look after it.
    fn renewed(&self, checked: Checked) -> Option<Timestamp> {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = serving.as_mut()?;
        let (ca_bundle, valid_for) = (bundle(&checked.ca), checked.valid_for);
        let mut show_at = None;
        if serving.ca_bundle == ca_bundle && serving.next.is_none() {
            // It is trusted already.
            serving.shown.replace(checked.key);
        } else {
            serving.ca_bundle = Arc::clone(&ca_bundle);
            serving.next = Some(checked);
            show_at = self.certificates.options.clock.now().checked_add(SHOWN_ON).ok();
        }
        let certificate = WebhookCertificate { ca_bundle, valid_for };
        self.inbox.answer(Event::WebhookCertificateRenewed { certificate });
        show_at
    }

    /// Shows the next certificate, unless this operator has to tell the API server of it before.
    fn show_next(&self) {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(serving) = serving.as_mut().filter(|serving| !serving.tells)
            && let Some(next) = serving.next.take()
        {
            serving.shown.replace(next.key);
        }
    }
}

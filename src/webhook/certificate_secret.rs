//! The Secret with our own certificate: all replicas show what is in it, so it says which authorities the API server has to trust.
//!
//! ```text
//! usable, not old                ─▶ taken; the authority of what this replica shows still is added, if it is not in ca.crt
//! usable, to be renewed          ─▶ another certificate takes its place, and its authority stays in ca.crt
//! gone or unusable               ─▶ what this replica has is written again
//! gone or unusable, at the start ─▶ a new certificate, if nobody else writes it again
//! ```
//!
//! So `ca.crt` has the authorities of all that any replica shows. Whoever leads tells the API server of all of them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::authority::{Issued, issue};
use super::certificates::{Checked, Given, authorities, check, with_authorities};
use super::error::WebhookError;
use super::options::Options;
use super::registration::is_registered;
use crate::cluster::RequestError;
use crate::cluster::list::Collection;
use crate::cluster::request::{PatchKind, Requests};

/// How often it is tried to write the Secret when others write it at the same moment.
const ATTEMPTS: usize = 5;

/// How often it is looked whether others write the Secret again.
const LOOKS: usize = 20;

/// How long is waited between two of these looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The annotation of the Secret that says when its certificate is to be renewed.
const RENEW_AT: &str = "addon-operator.io/renew-at";

/// The Secret of the operators of a namespace.
pub(super) struct CertificateSecret {
    options: Options,
    requests: Requests,
    /// `namespace/name`
    name: String,
    host: String,
}

/// A certificate of our own, as it is in the Secret.
#[derive(Clone, Debug)]
pub(super) struct OwnCertificate {
    /// Its authorities are all that are to be trusted; that of this certificate comes first.
    issued: Issued,
    pub(super) checked: Checked,
}

impl OwnCertificate {
    /// Returns when it is to be renewed.
    pub(super) fn renew_at(&self) -> Timestamp {
        self.issued.renew_at
    }

    /// Returns whether this is the same certificate, and the same is to be trusted.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.issued.cert == other.issued.cert && self.issued.ca == other.issued.ca
    }
}

impl CertificateSecret {
    /// Returns the Secret that these options name, which need not exist.
    pub(super) fn new(options: &Options, requests: &Requests) -> Self {
        let name = format!("{}/{}", options.namespace, options.secret());
        Self { options: options.clone(), requests: requests.clone(), name, host: options.host() }
    }

    /// Returns the Secret as a collection, to watch it.
    pub(super) fn collection(&self) -> Collection {
        let selector = format!("metadata.name={}", self.options.secret());
        Collection::new(&self.options.secrets()).with_fields(&selector)
    }

    /// Returns what people call it: `Secret namespace/name`.
    pub(super) fn title(&self) -> String {
        format!("Secret {}", self.name)
    }

    fn error(&self, source: RequestError) -> WebhookError {
        WebhookError::Secret { name: self.name.clone(), source }
    }

    /// Waits for the Secret of others, if it is gone and the API server knows webhooks: whoever answers them writes it again within
    /// moments. A certificate of another authority would not be trusted before the leader has told of it.
    pub(super) async fn await_others(&self) {
        for look in 0..LOOKS {
            match self.requests.get(&self.options.secret_path()).await {
                Ok(None) if look > 0 || is_registered(&self.requests, &self.options.name).await => {
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                }
                _ => return,
            }
        }
    }

    /// Returns the certificate that all replicas have. The Secret is written if it has none, or not all authorities that
    /// are to be trusted.
    ///
    /// `own` is the newest that this replica has, and `shown` the authorities of what it shows. Also returns whether something was
    /// written.
    pub(super) async fn agree(
        &self,
        own: Option<&OwnCertificate>,
        shown: &[String],
    ) -> Result<(OwnCertificate, bool), WebhookError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let found = self.requests.get(&self.options.secret_path()).await;
            let found = found.map_err(|error| self.error(error))?;
            let now = self.options.clock.now();
            let wanted = match found.as_ref().map(|found| self.read(found, now)) {
                Some(Ok(known)) if known.issued.renew_at > now => {
                    let Some(ca) = with_authorities(&known.issued.ca, shown) else {
                        return Ok((known, false));
                    };
                    Issued { ca, ..known.issued }
                }
                // The API server goes on to trust what is shown until it knows the new one.
                Some(Ok(known)) => self.another(now, authorities(&known.issued.ca).take(1), shown)?,
                lost => {
                    let how = match &lost {
                        Some(Err(error)) => error.to_string(),
                        Some(Ok(_)) | None => format!("{} is gone", self.title()),
                    };
                    let own = own.filter(|own| own.issued.renew_at > now);
                    if let Some(own) = own.filter(|own| self.checked(&own.issued, now).is_ok()) {
                        tracing::warn!("{how}; the certificate in use is written into it again");
                        let ca = with_authorities(&own.issued.ca, shown);
                        Issued { ca: ca.unwrap_or_else(|| own.issued.ca.clone()), ..own.issued.clone() }
                    } else {
                        if lost.is_some() {
                            tracing::warn!("{how}; a new one is made");
                        }
                        self.another(now, std::iter::empty(), shown)?
                    }
                }
            };
            let checked = self.checked(&wanted, now)?;
            match self.write(found.as_ref(), &wanted).await {
                Ok(()) => return Ok((OwnCertificate { issued: wanted, checked }, true)),
                // Another replica was faster: its certificate is as good. Or somebody deletes it.
                Err(error) if matches!(error.code(), 404 | 409) && attempts < ATTEMPTS => {}
                Err(error) => return Err(self.error(error)),
            }
        }
    }

    /// Makes a certificate. Those of `before` and `shown` are trusted, too.
    fn another<'a>(
        &self,
        now: Timestamp,
        before: impl Iterator<Item = &'a str>,
        shown: &[String],
    ) -> Result<Issued, WebhookError> {
        let issued = issue(&self.host, now)?;
        let others: Vec<String> = before.map(ToOwned::to_owned).chain(shown.iter().cloned()).collect();
        let ca = with_authorities(&issued.ca, &others).unwrap_or_else(|| issued.ca.clone());
        Ok(Issued { ca, ..issued })
    }

    fn checked(&self, issued: &Issued, now: Timestamp) -> Result<Checked, WebhookError> {
        let [cert, key, ca] = [&issued.cert, &issued.key, &issued.ca].map(String::as_bytes);
        check(&Given { place: &self.title(), cert, key, ca }, &self.host, now)
    }

    /// Returns the certificate of the Secret, or why there is none that can be used.
    fn read(&self, secret: &Value, now: Timestamp) -> Result<OwnCertificate, WebhookError> {
        let unusable = |problem: String| WebhookError::Unusable { place: self.title(), problem };
        let field = |name: &str| {
            let text = secret.pointer("/data").and_then(|data| data.get(name)).and_then(Value::as_str);
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            text.ok_or_else(|| unusable(format!("{name} is missing or no text")))
        };
        let (cert, key, ca) = (field("tls.crt")?, field("tls.key")?, field("ca.crt")?);
        let annotations = secret.pointer("/metadata/annotations");
        let renew_at = annotations.and_then(|all| all.get(RENEW_AT)?.as_str()?.parse().ok());
        let renew_at =
            renew_at.ok_or_else(|| unusable(format!("the annotation {RENEW_AT} is missing or no time")))?;
        let issued = Issued { ca, cert, key, renew_at };
        let checked = self.checked(&issued, now)?;
        // Whatever somebody wrote there: it is over with the certificate.
        let end = now.checked_add(checked.valid_for).unwrap_or(Timestamp::MAX);
        Ok(OwnCertificate { issued: Issued { renew_at: issued.renew_at.min(end), ..issued }, checked })
    }

    async fn write(&self, found: Option<&Value>, issued: &Issued) -> Result<(), RequestError> {
        let data = json!({
            "ca.crt": STANDARD.encode(&issued.ca),
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

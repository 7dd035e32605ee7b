//! How reviews are taken, and the names that follow from that.

use std::path::PathBuf;

use engine::WebhookClient;

use super::certificates::CertificateFiles;
use super::clock::Clock;
use crate::cluster::request::encode_segment;

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

impl Options {
    /// Returns the name that the API server expects in the certificate.
    pub(super) fn host(&self) -> String {
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
    pub(super) fn secret(&self) -> String {
        match &self.client {
            WebhookClient::Service(name) => format!("{name}-tls"),
            WebhookClient::Url(_) => format!("{}-tls", self.name),
        }
    }

    pub(super) fn secret_path(&self) -> String {
        format!("{}/{}", self.secrets(), encode_segment(&self.secret()))
    }

    pub(super) fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", encode_segment(&self.namespace))
    }
}

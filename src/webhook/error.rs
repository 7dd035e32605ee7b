//! What goes wrong with certificates and the listener.

use std::io;
use std::path::PathBuf;

use engine::{Failure, FailureKind};

use crate::cluster::RequestError;

/// Why reviews can't be taken.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The port is taken or not allowed.
    #[error("can't listen on {address}: {problem} (--admission-server-listen-port sets another port)")]
    Port {
        /// The address that was asked for.
        address: String,
        /// The error of the system. It is no source: it stands in the text.
        problem: io::Error,
    },
    /// A file of the directory with certificates can't be read.
    #[error(
        "can't read {path}: {problem} (--admission-server-certs-dir has to hold tls.crt, tls.key and ca.crt, unless other files are named)"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system. It is no source: it stands in the text.
        problem: io::Error,
    },
    /// A certificate or a key is none, does not fit, is expired or has another name.
    #[error("the certificate in {place} can't be used: {problem}")]
    Unusable {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The files can't be watched.
    #[error("can't watch {path}: {source}")]
    Watch {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Our own certificate could not be made.
    #[error("can't make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The Secret with our own certificate can't be read or written.
    #[error("Secret {name} with the certificate of webhooks: {source}")]
    Secret {
        /// `namespace/name`
        name: String,
        /// Why not.
        source: RequestError,
    },
}

impl WebhookError {
    /// Returns it as the engine gets it.
    pub(super) fn failure(&self) -> Failure {
        let kind = match self {
            Self::Secret { source, .. } if source.code() == 403 => FailureKind::Forbidden,
            Self::Secret { .. } => FailureKind::Cluster,
            Self::Port { .. }
            | Self::File { .. }
            | Self::Unusable { .. }
            | Self::Watch { .. }
            | Self::Make(_) => FailureKind::Files,
        };
        Failure::of(kind, self)
    }
}

//! Certificates of the listener: how they are read and checked, and which one is shown.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::error::WebhookError;

/// The files of a directory with certificates.
const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";

/// How many bytes each of them may have.
const LONGEST: u64 = 1 << 20;

/// A certificate in PEM, as somebody gives it.
pub(super) struct Given<'g> {
    /// Where it is, for messages.
    pub(super) place: &'g str,
    pub(super) cert: &'g [u8],
    pub(super) key: &'g [u8],
    pub(super) ca: &'g [u8],
}

/// A certificate that was checked.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) key: Arc<CertifiedKey>,
    /// What the API server has to trust: PEM.
    pub(super) ca: String,
}

/// The certificate that is shown. It can be replaced while connections are open.
#[derive(Debug)]
pub(super) struct Shown(RwLock<Arc<CertifiedKey>>);

impl Shown {
    pub(super) fn new(key: Arc<CertifiedKey>) -> Self {
        Self(RwLock::new(key))
    }

    /// Shows another certificate on new connections.
    pub(super) fn replace(&self, key: Arc<CertifiedKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Returns what makes and checks signatures.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Checks a certificate as the API server will: its key fits, the authority signed it, it has the name `host`, and it is
/// valid now.
pub(super) fn check(given: &Given<'_>, host: &str) -> Result<Checked, WebhookError> {
    let unusable = |problem: String| WebhookError::Unusable { place: given.place.to_owned(), problem };
    let certificates = |pem: &[u8], what: &str| -> Result<Vec<CertificateDer<'static>>, WebhookError> {
        let list = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let list = list.map_err(|error| unusable(format!("{what} is no PEM: {error}")))?;
        if list.is_empty() { Err(unusable(format!("{what} has no certificate"))) } else { Ok(list) }
    };
    let chain = certificates(given.cert, CERT)?;
    let authorities = certificates(given.ca, CA)?;
    let key = PrivateKeyDer::from_pem_slice(given.key)
        .map_err(|_| unusable(format!("{KEY} has no private key in PEM")))?;
    let mut roots = rustls::RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| unusable(format!("{CA}: {error}")))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    let verifier = verifier.build().map_err(|error| unusable(format!("{CA}: {error}")))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| unusable(format!("{host}: {error}")))?;
    let (leaf, others) = chain.split_first().ok_or_else(|| unusable(format!("{CERT} is empty")))?;
    verifier
        .verify_server_cert(leaf, others, &name, &[], UnixTime::now())
        .map_err(|error| unusable(format!("{CERT} is not accepted for {host}: {error}")))?;
    let key = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| unusable(format!("{KEY} does not fit {CERT}: {error}")))?;
    let ca = String::from_utf8_lossy(given.ca).into_owned();
    Ok(Checked { key: Arc::new(key), ca })
}

/// Reads the certificate of a directory.
pub(super) fn read(directory: &Path, host: &str) -> Result<Checked, WebhookError> {
    let file = |name: &str| {
        let path = directory.join(name);
        read_file(&path).map_err(|source| WebhookError::File { path, source })
    };
    let (cert, key, ca) = (file(CERT)?, file(KEY)?, file(CA)?);
    let place = directory.display().to_string();
    check(&Given { place: &place, cert: &cert, key: &key, ca: &ca }, host)
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > LONGEST {
        let problem = format!("it has {bytes} bytes, more than the {LONGEST} that are read");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
    }
    std::fs::read(path)
}

/// Returns certificates as configurations of webhooks have them.
pub(super) fn bundle(pem: &str) -> Arc<str> {
    STANDARD.encode(pem).into()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::super::authority::{Issued, issue};
    use super::*;

    const HOST: &str = "hooks.ops.svc";

    fn problem(issued: &Issued, key: &str, ca: &str, host: &str) -> String {
        let given =
            Given { place: "x", cert: issued.cert.as_bytes(), key: key.as_bytes(), ca: ca.as_bytes() };
        check(&given, host).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_we_issue_is_accepted_and_nothing_that_does_not_fit() {
        let now = Timestamp::now();
        let (own, other) = (issue(HOST, now).unwrap(), issue(HOST, now).unwrap());
        let given =
            Given { place: "x", cert: own.cert.as_bytes(), key: own.key.as_bytes(), ca: own.ca.as_bytes() };
        check(&given, HOST).unwrap();
        let cases = [
            (problem(&own, &other.key, &own.ca, HOST), "tls.key does not fit"),
            (problem(&own, &own.key, &other.ca, HOST), "is not accepted for hooks.ops.svc"),
            (problem(&own, &own.key, &own.ca, "others.ops.svc"), "is not accepted for others.ops.svc"),
            (problem(&own, "garbage", &own.ca, HOST), "no private key"),
            (problem(&own, &own.key, "garbage", HOST), "ca.crt has no certificate"),
        ];
        for (found, expected) in cases {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_certificate_is_renewed_long_before_it_is_refused() {
        let life = SignedDuration::from_hours(365 * 24);
        let now = Timestamp::now();
        let old = issue(HOST, now - life * 9 / 10).unwrap();
        assert!(old.renew_at < now);
        let given = |issued: &Issued| {
            let [cert, key, ca] =
                [&issued.cert, &issued.key, &issued.ca].map(|text| text.clone().into_bytes());
            check(&Given { place: "x", cert: &cert, key: &key, ca: &ca }, HOST).map(drop)
        };
        given(&old).unwrap();
        let expired = issue(HOST, now - life - SignedDuration::from_hours(1)).unwrap();
        assert!(given(&expired).unwrap_err().to_string().contains("xpired"));
    }
}

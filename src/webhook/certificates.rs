//! Certificates of the listener: how they are read and checked, and which one is shown.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;

use super::error::WebhookError;

/// The files with a certificate, its key, and the authorities that the API server has to trust.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateFiles {
    /// The certificate, and those between it and the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities.
    pub ca: PathBuf,
}

impl CertificateFiles {
    /// Returns the directories that they are in, each once.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = [&self.cert, &self.key, &self.ca]
            .into_iter()
            .filter_map(|file| Some(file.parent()?.to_owned()))
            .collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

/// What is in a certificate, a key and authorities, for messages.
const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";

/// How many bytes each of them may have.
const LONGEST: u64 = 1 << 20;

/// How many authorities are trusted for certificates of our own: replicas show no more than one or two.
const MOST_AUTHORITIES: usize = 8;

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
    /// How long it is valid.
    pub(super) valid_for: Duration,
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
/// valid at `now`.
pub(super) fn check(given: &Given<'_>, host: &str, now: Timestamp) -> Result<Checked, WebhookError> {
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
        .verify_server_cert(leaf, others, &name, &[], UnixTime::since_unix_epoch(since_epoch(now)))
        .map_err(|error| unusable(format!("{CERT} is not accepted for {host}: {error}")))?;
    let end = not_after(leaf)
        .ok_or_else(|| unusable(format!("the time until which {CERT} is valid can't be read")))?;
    let valid_for = Duration::try_from(end.duration_since(now)).unwrap_or_default();
    let key = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| unusable(format!("{KEY} does not fit {CERT}: {error}")))?;
    let ca = String::from_utf8_lossy(given.ca).into_owned();
    Ok(Checked { key: Arc::new(key), ca, valid_for })
}

fn since_epoch(time: Timestamp) -> Duration {
    Duration::try_from(time.as_duration()).unwrap_or_default()
}

/// Returns the time until which a certificate is valid: `tbsCertificate.validity.notAfter` of RFC 5280.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    const VERSION: u8 = 0xa0;
    const UTC_TIME: u8 = 0x17;
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // The serial number, the algorithm and the issuer come before.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (tag, text, _) = element(element(validity)?.2)?;
    let text = std::str::from_utf8(text).ok()?;
    // Years of two digits are those from 1950 to 2049.
    let century = match text.get(..2) {
        Some(year) if tag == UTC_TIME => {
            if year < "50" {
                "20"
            } else {
                "19"
            }
        }
        _ => "",
    };
    jiff::fmt::strtime::parse("%Y%m%d%H%M%SZ", format!("{century}{text}"))
        .ok()?
        .to_datetime()
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}

/// Returns the tag and the content of the first element in DER, and what comes behind it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (bytes, rest) =
            rest.split_at_checked(usize::from(*first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Reads a certificate from its files.
pub(super) fn read(files: &CertificateFiles, host: &str, now: Timestamp) -> Result<Checked, WebhookError> {
    let (cert, key, ca) = (read_file(&files.cert)?, read_file(&files.key)?, read_file(&files.ca)?);
    let place = files.cert.display().to_string();
    check(&Given { place: &place, cert: &cert, key: &key, ca: &ca }, host, now)
}

/// Returns what lets clients in that show a certificate of one of the authorities in these files.
pub(super) fn clients_of(files: &[PathBuf]) -> Result<Arc<dyn ClientCertVerifier>, WebhookError> {
    let mut roots = rustls::RootCertStore::empty();
    for path in files {
        let pem = read_file(path)?;
        let unusable =
            |problem: String| WebhookError::Unusable { place: path.display().to_string(), problem };
        let before = roots.len();
        for authority in CertificateDer::pem_slice_iter(&pem) {
            let authority = authority.map_err(|error| unusable(format!("it is no PEM: {error}")))?;
            roots.add(authority).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(unusable("it has no certificate".to_owned()));
        }
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    verifier.map_err(|error| WebhookError::Unusable {
        place: "--admission-server-client-ca".to_owned(),
        problem: error.to_string(),
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, WebhookError> {
    read_bytes(path).map_err(|problem| WebhookError::File { path: path.to_owned(), problem })
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > LONGEST {
        let problem = format!("it has {bytes} bytes, more than the {LONGEST} that are read");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
    }
    std::fs::read(path)
}

/// Returns the certificates of a text in PEM, one by one.
pub(super) fn authorities(pem: &str) -> impl Iterator<Item = &str> {
    const END: &str = "-----END CERTIFICATE-----";
    pem.split_inclusive(END).filter(|text| text.ends_with(END)).map(str::trim)
}

/// Returns authorities with `others` behind the first of them, if one of those is missing. The last ones go if they are too many.
pub(super) fn with_authorities(pem: &str, others: &[String]) -> Option<String> {
    let known: Vec<&str> = authorities(pem).collect();
    let mut all = known.clone();
    for other in others.iter().map(String::as_str) {
        if !all.contains(&other) {
            all.insert(all.len().min(1), other);
        }
    }
    all.truncate(MOST_AUTHORITIES);
    (all != known).then(|| all.iter().flat_map(|authority| [*authority, "\n"]).collect())
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
        check(&given, host, Timestamp::now()).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_we_issue_is_accepted_and_nothing_that_does_not_fit() {
        let now = Timestamp::now();
        let (own, other) = (issue(HOST, now).unwrap(), issue(HOST, now).unwrap());
        let given =
            Given { place: "x", cert: own.cert.as_bytes(), key: own.key.as_bytes(), ca: own.ca.as_bytes() };
        check(&given, HOST, now).unwrap();
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
    fn authorities_come_behind_that_of_the_certificate_and_are_limited() {
        let now = Timestamp::now();
        let made: Vec<String> = (0..10).map(|_| issue(HOST, now).unwrap().ca.trim().to_owned()).collect();
        let of = |first: usize, others: &[usize]| {
            let others: Vec<String> = others.iter().map(|other| made[*other].clone()).collect();
            with_authorities(&format!("{}\n", made[first]), &others)
        };
        assert_eq!((of(0, &[]), of(0, &[0])), (None, None));
        assert_eq!(of(0, &[1, 0, 1]).unwrap(), format!("{}\n{}\n", made[0], made[1]));
        let all = of(0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let all: Vec<&str> = authorities(&all).collect();
        assert_eq!((all.len(), all[0], all[1]), (8, made[0].as_str(), made[9].as_str()));
        assert_eq!(authorities("garbage").count(), 0);
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
            check(&Given { place: "x", cert: &cert, key: &key, ca: &ca }, HOST, now)
        };
        let left = given(&old).unwrap().valid_for.as_secs().abs_diff((life / 10).unsigned_abs().as_secs());
        assert!(left <= 2, "the end is off by {left} s");
        let expired = issue(HOST, now - life - SignedDuration::from_hours(1)).unwrap();
        assert!(given(&expired).map(drop).unwrap_err().to_string().contains("xpired"));
    }

    #[test]
    fn the_end_of_a_certificate_is_read_on_both_sides_of_2050_and_garbage_has_none() {
        let end = |year: i32| {
            let mut params = rcgen::CertificateParams::new(vec![HOST.to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 3, 4);
            let key = rcgen::KeyPair::generate().unwrap();
            not_after(params.self_signed(&key).unwrap().der()).unwrap().to_string()
        };
        assert_eq!([end(2049), end(2050)], ["2049-03-04T00:00:00Z", "2050-03-04T00:00:00Z"]);
        for garbage in [&[][..], &[0x30], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x02, 0x30, 0x00]] {
            assert_eq!(not_after(garbage), None);
        }
    }

    #[test]
    fn files_that_are_missing_too_long_or_no_certificates_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("garbage"), "garbage").unwrap();
        std::fs::File::create(path("long")).unwrap().set_len(LONGEST + 1).unwrap();
        let cases = [
            ("missing", "can't read"),
            ("long", "more than the 1048576"),
            ("garbage", "it has no certificate"),
        ];
        for (name, problem) in cases {
            let error = clients_of(&[path(name)]).map(drop).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(problem), "{error}");
        }
    }
}

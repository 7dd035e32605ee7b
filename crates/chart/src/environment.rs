//! What templates may ask of what is not in the chart: the time, chance, certificates, the cluster.

use std::net::IpAddr;

/// The port through which a render reaches what is not in the chart.
///
/// Every answer is the adapter's; an error becomes the error of the function that asked.
pub trait Environment {
    /// Returns the time now, in the local time zone.
    fn now(&mut self) -> jiff::Zoned;

    /// Fills `bytes` with random ones, fit for passwords.
    fn random(&mut self, bytes: &mut [u8]);

    /// Returns a new private key in PEM, as `genPrivateKey` prints it.
    fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError>;

    /// Returns a new certificate.
    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError>;

    /// Returns one address of `host`, or an empty text if there is none.
    fn resolve(&mut self, host: &str) -> Result<String, EnvironmentError>;

    /// Returns an object of the cluster, or a list if `name` is empty; an empty
    /// object if there is none.
    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<serde_json::Value, EnvironmentError>;
}

/// The kind of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// DSA with 2048 bits.
    Dsa,
    /// ECDSA on P-256.
    Ecdsa,
    /// Ed25519.
    Ed25519,
    /// RSA with 4096 bits.
    Rsa,
}

/// The certificate that a template asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The common name of the subject.
    pub common_name: String,
    /// Addresses among the alternative names.
    pub addresses: Vec<IpAddr>,
    /// Host names among the alternative names.
    pub hosts: Vec<String>,
    /// How long it is valid, in days from now.
    pub days: i64,
    /// Whether it may sign others.
    pub authority: bool,
    /// The private key in PEM; without one an RSA key with 2048 bits is made.
    pub key: Option<String>,
    /// Who signs it; without one it signs itself.
    pub issuer: Option<Certificate>,
}

/// A certificate and its private key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// Prints no key.
impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate")
    }
}

/// Why the outside gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvironmentError(pub String);

/// An environment that always answers the same: for tests, and for renders without a cluster.
///
/// Time stands still, random bytes are counted up from a seed, keys and
/// certificates have the shape of real ones only, and the cluster is empty.
#[derive(Clone, Debug)]
pub struct FixedEnvironment {
    /// The time it is.
    pub now: jiff::Zoned,
    /// The state of the random bytes.
    pub seed: u64,
}

impl Default for FixedEnvironment {
    fn default() -> Self {
        Self { now: jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC), seed: 1 }
    }
}

impl FixedEnvironment {
    /// Returns a block of PEM around `len` bytes.
    fn pem(&mut self, label: &str, len: usize) -> String {
        use base64::Engine as _;
        let mut bytes = vec![0; len];
        self.random(&mut bytes);
        // Everything in PEM is a sequence, and begins with another one.
        for (byte, fixed) in bytes.iter_mut().zip([0x30, 0x82, 0x03, 0x00, 0x30]) {
            *byte = fixed;
        }
        let body = base64::engine::general_purpose::STANDARD.encode(bytes);
        let mut pem = format!("-----BEGIN {label}-----\n");
        for line in body.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END ");
        pem.push_str(label);
        pem.push_str("-----\n");
        pem
    }
}

impl Environment for FixedEnvironment {
    fn now(&mut self) -> jiff::Zoned {
        self.now.clone()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // SplitMix64: every seed gives a sequence without short cycles.
            self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.seed;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (mixed ^ (mixed >> 31)).to_le_bytes().first().copied().unwrap_or_default();
        }
    }

    fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError> {
        Ok(match kind {
            KeyKind::Dsa => self.pem("DSA PRIVATE KEY", 800),
            KeyKind::Ecdsa => self.pem("EC PRIVATE KEY", 121),
            KeyKind::Ed25519 => self.pem("PRIVATE KEY", 48),
            KeyKind::Rsa => self.pem("RSA PRIVATE KEY", 2349),
        })
    }

    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError> {
        let key = match &request.key {
            Some(key) => key.clone(),
            None => self.pem("RSA PRIVATE KEY", 1192),
        };
        Ok(Certificate { cert: self.pem("CERTIFICATE", 780), key })
    }

    fn resolve(&mut self, _host: &str) -> Result<String, EnvironmentError> {
        Ok(String::new())
    }

    fn lookup(
        &mut self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
        _name: &str,
    ) -> Result<serde_json::Value, EnvironmentError> {
        Ok(serde_json::Value::Object(serde_json::Map::new()))
    }
}

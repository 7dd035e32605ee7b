//! Our own certificate authority: makes the certificate of the webhooks, and says when it is to be renewed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};

/// How long a certificate and its authority are valid.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How much earlier it is valid, for clocks that are behind.
const EARLIER: SignedDuration = SignedDuration::from_hours(1);

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub(super) struct Issued {
    /// The authority: what the API server has to trust.
    pub(super) ca: String,
    pub(super) cert: String,
    pub(super) key: String,
    /// When it is to be renewed: after two thirds of its life.
    pub(super) renew_at: Timestamp,
}

// It holds a private key.
impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("renew_at", &self.renew_at).finish_non_exhaustive()
    }
}

/// Returns a new certificate for a host, signed by an authority that signs nothing else: its key is thrown away.
pub(super) fn issue(host: &str, now: Timestamp) -> Result<Issued, rcgen::Error> {
    let mut authority = params("addon-operator webhooks", now);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut leaf = params(host, now);
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    leaf.subject_alt_names = vec![match host.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(host.try_into()?),
    }];
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &authority)?;
    let renew_at = now.checked_add(LIFE * 2 / 3).unwrap_or(now);
    Ok(Issued { ca: authority.pem(), cert: leaf.pem(), key: key.serialize_pem(), renew_at })
}

fn params(name: &str, now: Timestamp) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at =
        |time: Timestamp| epoch + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let mut params = CertificateParams::default();
    params.not_before = at(now.checked_sub(EARLIER).unwrap_or(now));
    params.not_after = at(now.checked_add(LIFE).unwrap_or(now));
    params.distinguished_name = DistinguishedName::new();
    // A common name has 64 letters at most; clients look at the alternative names.
    params.distinguished_name.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    params
}

//! Keys and certificates for templates, in the forms that Helm's functions give.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::environment::{Certificate, CertificateRequest, KeyKind};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, RsaKeySize, SanType, SerialNumber,
};

use super::dsa_key;

/// The OID of P-256 inside an `ECPrivateKey`, with its context tag.
const P256: [u8; 12] = [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// What stands before the 32 bytes of an Ed25519 key in PKCS#8.
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Why there is no key or certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    /// The key could not be made or read, or the certificate not be signed.
    #[error("{0}")]
    Crypto(#[from] rcgen::Error),
    /// The key is not in the form that was expected.
    #[error("the private key has an unknown form")]
    Form,
    /// The end of the certificate's life is too far away.
    #[error("{0} days are out of range")]
    Days(i64),
}

/// Returns a new private key in PEM.
pub(super) fn private_key(kind: KeyKind) -> Result<String, KeyError> {
    match kind {
        KeyKind::Dsa => Ok(pem("DSA PRIVATE KEY", &dsa_key::key(&mut |bytes| rand::fill(bytes)))),
        KeyKind::Rsa => rsa_pem(&rsa(RsaKeySize::_4096)?),
        KeyKind::Ecdsa => {
            let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
            Ok(pem("EC PRIVATE KEY", &sec1(key.serialized_der()).ok_or(KeyError::Form)?))
        }
        KeyKind::Ed25519 => {
            let key = KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
            let inner = pkcs8_key(key.serialized_der()).ok_or(KeyError::Form)?;
            let (_, seed, _) = element(inner).ok_or(KeyError::Form)?;
            Ok(pem("PRIVATE KEY", &[&ED25519, seed].concat()))
        }
    }
}

/// Returns a new certificate that is valid from `now` on.
pub(super) fn certificate(request: &CertificateRequest, now: Timestamp) -> Result<Certificate, KeyError> {
    let (key, key_pem) = if let Some(text) = &request.key {
        (KeyPair::from_pem(text)?, text.clone())
    } else {
        let key = rsa(RsaKeySize::_2048)?;
        let text = rsa_pem(&key)?;
        (key, text)
    };
    let params = params(request, now)?;
    let cert = match &request.issuer {
        Some(issuer) => {
            let issuer = Issuer::from_ca_cert_pem(&issuer.cert, KeyPair::from_pem(&issuer.key)?)?;
            params.signed_by(&key, &issuer)?
        }
        None => params.self_signed(&key)?,
    };
    Ok(Certificate { cert: pem("CERTIFICATE", cert.der()), key: key_pem })
}

fn params(request: &CertificateRequest, now: Timestamp) -> Result<CertificateParams, KeyError> {
    let out_of_range = || KeyError::Days(request.days);
    let start = u64::try_from(now.as_second()).map_err(|_| out_of_range())?;
    let life = request.days.checked_mul(24 * 60 * 60).ok_or_else(out_of_range)?;
    let end = start.checked_add_signed(life).filter(|end| *end < 253_402_300_800).ok_or_else(out_of_range)?;
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::default();
    params.not_before = epoch + Duration::from_secs(start);
    params.not_after = epoch + Duration::from_secs(end);
    let mut serial = [0; 16];
    rand::fill(&mut serial);
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, request.common_name.as_str());
    for address in &request.addresses {
        params.subject_alt_names.push(SanType::IpAddress(*address));
    }
    for host in &request.hosts {
        params.subject_alt_names.push(SanType::DnsName(host.as_str().try_into()?));
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = request.issuer.is_some();
    params.is_ca = if request.authority {
        params.key_usages.push(KeyUsagePurpose::KeyCertSign);
        IsCa::Ca(BasicConstraints::Unconstrained)
    } else {
        IsCa::ExplicitNoCa
    };
    Ok(params)
}

fn rsa(size: RsaKeySize) -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size)
}

/// Returns an RSA key in the older form, PKCS#1, which is what templates get from Helm.
fn rsa_pem(key: &KeyPair) -> Result<String, KeyError> {
    Ok(pem("RSA PRIVATE KEY", pkcs8_key(key.serialized_der()).ok_or(KeyError::Form)?))
}

/// Returns the key inside PKCS#8.
fn pkcs8_key(der: &[u8]) -> Option<&[u8]> {
    let (_, content, _) = element(der)?;
    let (_, _version, rest) = element(content)?;
    let (_, _algorithm, rest) = element(rest)?;
    let (_, key, _) = element(rest)?;
    Some(key)
}

/// Returns an `ECPrivateKey` that names its curve.
fn sec1(pkcs8: &[u8]) -> Option<Vec<u8>> {
    let (_, content, _) = element(pkcs8_key(pkcs8)?)?;
    let (_, _version, rest) = element(content)?;
    let (_, secret, rest) = element(rest)?;
    let mut body = vec![2, 1, 1, 4, u8::try_from(secret.len()).ok()?];
    body.extend_from_slice(secret);
    body.extend_from_slice(&P256);
    let mut rest = rest;
    while let Some((tag, inner, behind)) = element(rest) {
        if tag == 0xa1 {
            body.extend_from_slice(&[tag, u8::try_from(inner.len()).ok()?]);
            body.extend_from_slice(inner);
        }
        rest = behind;
    }
    let mut der = vec![0x30, u8::try_from(body.len()).ok().filter(|length| *length < 0x80)?];
    der.extend_from_slice(&body);
    Some(der)
}

/// Returns the tag and the content of the first DER element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        (bytes.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at_checked(64).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = behind;
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str) -> CertificateRequest {
        CertificateRequest {
            common_name: name.to_owned(),
            addresses: vec!["127.0.0.1".parse().unwrap()],
            hosts: vec!["a.b".to_owned()],
            days: 365,
            authority: false,
            key: None,
            issuer: None,
        }
    }

    #[test]
    fn keys_have_the_form_that_helm_gives_them() {
        for (kind, label) in [(KeyKind::Ecdsa, "EC PRIVATE KEY"), (KeyKind::Ed25519, "PRIVATE KEY")] {
            let text = private_key(kind).unwrap();
            assert!(text.starts_with(&format!("-----BEGIN {label}-----\n")), "{text}");
            KeyPair::from_pem(&text).unwrap();
        }
        assert!(private_key(KeyKind::Dsa).unwrap().starts_with("-----BEGIN DSA PRIVATE KEY-----\n"));
    }

    #[test]
    fn an_authority_signs_a_certificate() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let authority = certificate(&CertificateRequest { authority: true, ..request("ca") }, now).unwrap();
        assert!(authority.key.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        let ec = private_key(KeyKind::Ecdsa).unwrap();
        let signed = CertificateRequest { issuer: Some(authority), key: Some(ec), ..request("leaf") };
        let leaf = certificate(&signed, now).unwrap();
        assert!(leaf.cert.starts_with("-----BEGIN CERTIFICATE-----\n"));
        assert!(leaf.key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        let far = CertificateRequest { days: i64::MAX, ..request("x") };
        assert!(certificate(&far, now).is_err());
    }
}

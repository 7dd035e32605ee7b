//! Validation of requests for certificates, and of what signers and approvers say of them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::names;
use rcgen::CertificateSigningRequestParams;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};
use serde_json::Value;

use super::errors::{Report, at, item};
use crate::fields::{get, int, list, text, texts};

/// What a key may be for.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const CONDITIONS: &str = "status.conditions";
const CERTIFICATE: &str = "status.certificate";

/// Who writes what of a status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The signer, who gives the certificate.
    Signer,
    /// The approver, who says whether there will be one.
    Approver,
}

pub(super) fn request(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let request = text(spec, "request");
    if let Some(wrong) = request_error(&decoded(request)) {
        let request = if request.is_empty() { Value::Null } else { Value::from(request) };
        report.invalid("spec.request", request, wrong);
    }
    if list(spec, "usages").is_empty() {
        report.required("spec.usages", "");
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in texts(spec, "usages").enumerate() {
        let path = item("spec.usages", index);
        report.one_of(&path, usage, &USAGES);
        if !seen.insert(usage) {
            report.duplicate(&path, usage);
        }
    }
    signer(text(spec, "signerName"), report);
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        report.invalid("spec.expirationSeconds", seconds, detail);
    }
}

/// Returns the blocks of a text in PEM: how each is called, and its bytes. Blocks that are broken are left out.
fn blocks(pem: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    pem.split("-----BEGIN ").skip(1).filter_map(|block| {
        let (label, rest) = block.split_once("-----")?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let lines = body.lines().map(str::trim).filter(|line| !line.contains(':'));
        Some((label, STANDARD.decode(lines.collect::<String>()).ok()?))
    })
}

/// Returns the text that a field has in base64.
fn decoded(field: &str) -> String {
    String::from_utf8_lossy(&STANDARD.decode(field).unwrap_or_default()).into_owned()
}

/// Returns what is wrong with a request: it has a form and a signature of its own.
fn request_error(pem: &str) -> Option<&'static str> {
    let Some(("CERTIFICATE REQUEST", bytes)) = blocks(pem).next() else {
        return Some("PEM block type must be CERTIFICATE REQUEST");
    };
    // What else is asked for is read by the signer.
    match CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(bytes)) {
        Err(rcgen::Error::CouldNotParseCertificationRequest) => {
            Some("asn1: structure error: malformed certification request")
        }
        Err(rcgen::Error::InvalidCertificationRequestSignature) => Some("x509: ECDSA verification failure"),
        Ok(_) | Err(_) => None,
    }
}

fn signer(name: &str, report: &mut Report) {
    const PATH: &str = "spec.signerName";
    const LONGEST_DOMAIN: usize = 253;
    const LONGEST: usize = LONGEST_DOMAIN + 1 + LONGEST_DOMAIN + 1 + 63;
    if name.is_empty() {
        return report.required(PATH, "");
    }
    if name == "kubernetes.io/legacy-unknown" {
        return report.invalid(PATH, name, "the legacy signerName is not allowed via this API version");
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts.as_slice() else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return report.invalid(PATH, name, detail);
    };
    if domain.len() > LONGEST_DOMAIN {
        report.too_long(PATH, LONGEST_DOMAIN);
    }
    labels(domain, names::label, report);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        report.invalid(PATH, *domain, detail);
    }
    labels(path, names::subdomain, report);
    if name.len() > LONGEST {
        report.too_long(PATH, LONGEST);
    }
}

/// Reports the first label of a part of a signer's name that breaks a rule.
fn labels(part: &str, rule: fn(&str) -> Vec<String>, report: &mut Report) {
    let wrong = part.split('.').map(|label| (label, rule(label))).find(|(_, wrong)| !wrong.is_empty());
    for (label, text) in
        wrong.into_iter().flat_map(|(label, wrong)| wrong.into_iter().map(move |text| (label, text)))
    {
        report.invalid("spec.signerName", part, &format!("validating label {label:?}: {text}"));
    }
}

/// Checks what a signer says.
pub(super) fn signed(new: &Value, old: &Value, report: &mut Report) {
    status(new, old, Writer::Signer, report);
}

/// Checks what an approver says.
pub(super) fn approved(new: &Value, old: &Value, report: &mut Report) {
    status(new, old, Writer::Approver, report);
}

fn status(new: &Value, old: &Value, writer: Writer, report: &mut Report) {
    request(new, report);
    conditions(new, old, report);
    for kind in ["Approved", "Denied", "Failed"] {
        let (is, was) = (of_kind(new, kind), of_kind(old, kind));
        if is.len() < was.len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            report.forbidden(CONDITIONS, &detail);
        } else if writer == Writer::Signer && kind != "Failed" && is.len() > was.len() {
            report.forbidden(CONDITIONS, &format!("updates may not add a condition of type {kind:?}"));
        }
    }
    let (is, was) = (text(new, CERTIFICATE), text(old, CERTIFICATE));
    if is == was {
        return;
    }
    if let Some(wrong) = Some(is).filter(|is| !is.is_empty()).and_then(|is| certificate_error(&decoded(is))) {
        report.invalid(CERTIFICATE, "<certificate data>", &wrong);
    }
    if writer == Writer::Approver {
        report.forbidden(CERTIFICATE, "updates may not set certificate content");
    } else if !was.is_empty() {
        report.forbidden(CERTIFICATE, "updates may not modify existing certificate content");
    }
}

fn of_kind<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(object, CONDITIONS).iter().filter(|condition| text(condition, "type") == kind).collect()
}

/// Checks conditions. What was wrong before may stay so.
fn conditions(new: &Value, old: &Value, report: &mut Report) {
    let was: Vec<&str> = list(old, CONDITIONS).iter().map(|condition| text(condition, "type")).collect();
    let both = was.contains(&"Approved") && was.contains(&"Denied");
    let repeated = was.iter().collect::<BTreeSet<_>>().len() < was.len();
    let mut seen = BTreeSet::new();
    for (index, condition) in list(new, CONDITIONS).iter().enumerate() {
        let path = item(CONDITIONS, index);
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if kind.is_empty() && !was.contains(&"") {
            report.required(&at(&path, "type"), "");
        }
        let decides = matches!(kind, "Approved" | "Denied" | "Failed");
        let known = if decides { &["True"][..] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            report.required(&at(&path, "status"), "");
        } else {
            report.one_of(&at(&path, "status"), status, known);
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !both && !other.is_empty() && seen.contains(other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            report.invalid(CONDITIONS, kind, detail);
        }
        if !seen.insert(kind) && !repeated {
            report.duplicate(&at(&path, "type"), kind);
        }
    }
}

/// Returns what is wrong with certificates: there is at least one, and nothing else.
fn certificate_error(pem: &str) -> Option<String> {
    let mut found = false;
    for (label, bytes) in blocks(pem) {
        if label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {label:?}"));
        }
        if rustls::server::ParsedCertificate::try_from(&CertificateDer::from(bytes)).is_err() {
            return Some("x509: malformed certificate".to_owned());
        }
        found = true;
    }
    (!found).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

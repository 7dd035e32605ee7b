//! Private keys and certificates.

use super::args::{Answer, INT, LIST, STRING, any, bytes, int, string};
use super::encodings::base64_decoded;
use crate::environment::{Certificate, CertificateRequest, KeyKind};
use crate::value::{CallError, Context, Function, Object, Type, Value};

/// As how many steps a new RSA key of 4096 bits counts, which only a template asks for by name. It takes seconds.
const LARGE_KEY_STEPS: usize = 10_000_000;

/// As how many steps the new key of a certificate counts, one of 2048 bits.
const KEY_STEPS: usize = 2_000_000;

/// As how many steps another key counts, or a signature.
const SIGNATURE_STEPS: usize = 200_000;

const CERTIFICATE_NAME: &str = "sprig.certificate";
const CERTIFICATE: Type = Type::Named(CERTIFICATE_NAME);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("buildCustomCert", &[STRING, STRING], CERTIFICATE, custom),
    Function::new("genCA", &[STRING, INT], CERTIFICATE, |context, args| authority(context, args, None)),
    Function::new("genCAWithKey", &[STRING, INT, STRING], CERTIFICATE, |context, args| {
        authority(context, args, Some(2))
    }),
    Function::new("genPrivateKey", &[STRING], STRING, |context, args| {
        Ok(private_key(context, &string(args, 0))?.into())
    }),
    Function::new("genSelfSignedCert", &[STRING, LIST, LIST, INT], CERTIFICATE, |context, args| {
        signed(context, args, None, None)
    }),
    Function::new(
        "genSelfSignedCertWithKey",
        &[STRING, LIST, LIST, INT, STRING],
        CERTIFICATE,
        |context, args| signed(context, args, None, Some(4)),
    ),
    Function::new("genSignedCert", &[STRING, LIST, LIST, INT, CERTIFICATE], CERTIFICATE, |context, args| {
        signed(context, args, Some(4), None)
    }),
    Function::new(
        "genSignedCertWithKey",
        &[STRING, LIST, LIST, INT, CERTIFICATE, STRING],
        CERTIFICATE,
        |context, args| signed(context, args, Some(4), Some(5)),
    ),
];

/// A certificate as templates see it: a struct with `Cert` and `Key`.
struct CertificateObject(Certificate);

impl Object for CertificateObject {
    fn type_name(&self) -> &str {
        CERTIFICATE_NAME
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", self.0.cert.as_str().into()), ("Key", self.0.key.as_str().into())]
    }
}

fn value(certificate: Certificate) -> Value {
    Value::object(CertificateObject(certificate))
}

/// Returns a new private key, or says in its place why there is none.
fn private_key(context: &mut dyn Context, kind: &str) -> Result<String, CallError> {
    let kind = match kind {
        "" | "rsa" => KeyKind::Rsa,
        "dsa" => KeyKind::Dsa,
        "ecdsa" => KeyKind::Ecdsa,
        "ed25519" => KeyKind::Ed25519,
        other => return Ok(format!("Unknown type {other}")),
    };
    context.count(if kind == KeyKind::Rsa { LARGE_KEY_STEPS } else { SIGNATURE_STEPS })?;
    let key = context.environment().private_key(kind);
    Ok(key.unwrap_or_else(|error| format!("failed to generate private key: {error}")))
}

fn custom(_: &mut dyn Context, args: &[Value]) -> Answer {
    let decoded = |index, what: &str| {
        base64_decoded(bytes(args, index))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|_| CallError::new(format!("unable to decode base64 {what}")))
    };
    let cert = decoded(0, "certificate")?;
    let key = decoded(1, "private key")?;
    let (_, body) = pem_block(&cert).ok_or_else(|| CallError::new("unable to decode certificate"))?;
    if !is_certificate(&body) {
        return Err(CallError::new(
            "error parsing certificate: decodedCert.Bytes: x509: malformed certificate",
        ));
    }
    check_key(&key).map_err(|why| format!("error parsing private key: {why}"))?;
    Ok(value(Certificate { cert, key }))
}

/// Checks that a text is a private key in PEM, as far as its label and shape show.
fn check_key(text: &str) -> Result<(), String> {
    let (label, body) = pem_block(text).ok_or("no PEM data in input")?;
    let is_sequence = body.first() == Some(&0x30);
    match label.strip_suffix("PRIVATE KEY").map(str::trim_end) {
        None => Err(format!("no private key data in PEM block of type {label}")),
        Some("") if !is_sequence => {
            Err("decoding PEM as PKCS#8: asn1: structure error: tags don't match".to_owned())
        }
        Some(kind @ ("RSA" | "EC" | "DSA")) if !is_sequence => {
            Err(format!("parsing {kind} private key from PEM: asn1: structure error: tags don't match"))
        }
        Some("" | "RSA" | "EC" | "DSA") => Ok(()),
        Some(kind) => Err(format!("invalid private key type {kind}")),
    }
}

/// Returns the label of the first block of PEM, and what it holds.
fn pem_block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    // Headers end with an empty line.
    let body = if body.contains(": ") { body.split_once("\n\n")?.1 } else { body };
    let body: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    Some((label, base64_decoded(&body).ok()?))
}

/// Reports whether this begins as a certificate of X.509 does: a sequence in a sequence.
fn is_certificate(der: &[u8]) -> bool {
    let inner = match der {
        [0x30, len, rest @ ..] if *len < 0x80 => rest,
        [0x30, 0x81, _, rest @ ..] | [0x30, 0x82, _, _, rest @ ..] | [0x30, 0x83, _, _, _, rest @ ..] => rest,
        _ => return false,
    };
    inner.first() == Some(&0x30)
}

fn authority(context: &mut dyn Context, args: &[Value], key: Option<usize>) -> Answer {
    let request = CertificateRequest {
        common_name: string(args, 0).into_owned(),
        addresses: Vec::new(),
        hosts: Vec::new(),
        days: int(args, 1),
        authority: true,
        key: given_key(args, key)?,
        issuer: None,
    };
    made(context, &request)
}

fn signed(context: &mut dyn Context, args: &[Value], issuer: Option<usize>, key: Option<usize>) -> Answer {
    let issuer = issuer.map(|index| {
        let object: Option<&CertificateObject> = any(args, index).as_object();
        object.map(|object| object.0.clone()).ok_or_else(|| CallError::new("unable to decode certificate"))
    });
    let key = given_key(args, key)?;
    let request = CertificateRequest {
        common_name: string(args, 0).into_owned(),
        addresses: addresses(any(args, 1))?,
        hosts: hosts(any(args, 2))?,
        days: int(args, 3),
        authority: false,
        key,
        issuer: issuer.transpose()?,
    };
    made(context, &request)
}

fn made(context: &mut dyn Context, request: &CertificateRequest) -> Answer {
    context.count(if request.key.is_none() { KEY_STEPS } else { SIGNATURE_STEPS })?;
    let certificate = context.environment().certificate(request);
    certificate.map(value).map_err(|error| error.to_string().into())
}

/// Returns the private key that the template gives; it must be PEM.
fn given_key(args: &[Value], index: Option<usize>) -> Result<Option<String>, CallError> {
    let Some(index) = index else {
        return Ok(None);
    };
    let key = string(args, index).into_owned();
    check_key(&key).map_err(|why| format!("parsing private key: {why}"))?;
    Ok(Some(key))
}

fn addresses(list: &Value) -> Result<Vec<std::net::IpAddr>, CallError> {
    texts(list, "error parsing ip: ")?
        .iter()
        .map(|text| text.parse().map_err(|_| CallError::new(format!("error parsing ip: {text}"))))
        .collect()
}

fn hosts(list: &Value) -> Result<Vec<String>, CallError> {
    texts(list, "error processing alternate dns name: ")
}

fn texts(list: &Value, what: &str) -> Result<Vec<String>, CallError> {
    let Some(list) = list.as_list() else {
        return Ok(Vec::new());
    };
    list.items()
        .iter()
        .map(|item| {
            if let Some(text) = item.as_text() {
                return Ok(text.lossy().into_owned());
            }
            let shown = super::format::plain(item)?;
            let shown = String::from_utf8_lossy(&shown);
            Err(CallError::new(format!("{what}{shown} is not a string")))
        })
        .collect()
}

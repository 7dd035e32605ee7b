//! Bundles of sigstore, which cosign writes from version 3 on: one JSON text with a signature and what it is of.
//!
//! Beside a file it signs the bytes. In a registry it is a manifest that refers to another one, and signs a statement which names the
//! digest of that. Certificates and logs that may be in it are not looked at: keys are trusted, and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::simple_signing::MAX_SIGNATURES;
use crate::digest::Digest;

/// The type of such a text, up to its version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.";

/// The type of what is signed that is about something else.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// What a statement says of its subjects: that they are signed, and nothing else. Others, such as lists of what is in an image, are
/// no signatures.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// The most bytes of a text.
pub const MAX_BUNDLE: u64 = 64 << 10;

/// A statement with its signatures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Statement {
    /// The bytes that are signed.
    pub message: Vec<u8>,
    /// The signatures, the first of them.
    pub signatures: Vec<Vec<u8>>,
    /// The digests of what it is about.
    pub subjects: Vec<Digest>,
}

fn bytes(value: Option<&Value>) -> Option<Vec<u8>> {
    STANDARD.decode(value?.as_str()?).ok()
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn is_bundle(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|kind| kind.starts_with(BUNDLE))
}

/// Returns the signature of a file, if a text is a bundle with one.
pub fn message_signature(text: &[u8]) -> Option<Vec<u8>> {
    let bundle: Value = serde_json::from_slice(text).ok()?;
    bytes(bundle.get("messageSignature")?.get("signature"))
}

/// Returns the statement that a bundle signs, if it says that its subjects are signed.
pub fn statement(text: &[u8]) -> Option<Statement> {
    let bundle: Value = serde_json::from_slice(text).ok()?;
    let envelope = bundle.get("dsseEnvelope")?;
    let kind = envelope.get("payloadType")?.as_str().filter(|kind| *kind == STATEMENT)?;
    let payload = bytes(envelope.get("payload"))?;
    let signatures = list(envelope, "signatures").filter_map(|its| bytes(its.get("sig")));
    let signatures = signatures.take(MAX_SIGNATURES).collect();
    let statement: Value = serde_json::from_slice(&payload).ok()?;
    if statement.get("predicateType")?.as_str()? != SIGNED {
        return None;
    }
    let digest = |subject: &Value| {
        let hex = subject.get("digest")?.get("sha256")?.as_str()?;
        Digest::parse(&format!("sha256:{hex}")).ok()
    };
    let subjects = list(&statement, "subject").take(MAX_SIGNATURES).filter_map(digest).collect();
    // What is signed says also what it is, so that nothing else can be taken for it.
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend(payload);
    Some(Statement { message, signatures, subjects })
}

/// Returns the descriptors of bundles in the list of what refers to a manifest, the first of them, with their digests.
pub fn referrers(index: &[u8]) -> Vec<(Digest, Value)> {
    let index: Value = serde_json::from_slice(index).unwrap_or_default();
    let found = list(&index, "manifests").filter(|its| is_bundle(its.get("artifactType")));
    let found =
        found.filter_map(|its| Some((Digest::parse(its.get("digest")?.as_str()?).ok()?, its.clone())));
    found.take(MAX_SIGNATURES).collect()
}

/// Returns the digest of the bundle that a manifest has.
pub fn layer(manifest: &[u8]) -> Option<Digest> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let is_one = |layer: &&Value| {
        let size = layer.get("size").and_then(Value::as_u64);
        is_bundle(layer.get("mediaType")) && size.is_some_and(|size| size <= MAX_BUNDLE)
    };
    let layer = list(&manifest, "layers").find(is_one)?;
    Digest::parse(layer.get("digest")?.as_str()?).ok()
}

/// Returns the tag under which registries list what refers to a manifest that have no call for that.
pub fn tag(manifest: &Digest) -> String {
    format!("sha256-{}", manifest.hex())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(kind: &str, statement: &Value) -> Vec<u8> {
        let payload = STANDARD.encode(statement.to_string());
        let signatures = json!([{"sig": "AAEC"}, {"sig": "!"}, {}]);
        json!({"dsseEnvelope": {"payload": payload, "payloadType": kind, "signatures": signatures}})
            .to_string()
            .into_bytes()
    }

    fn says(what: &str, digest: &str) -> Value {
        json!({"predicateType": what, "subject": [{"digest": {"sha256": digest}}, {"digest": {"sha1": "00"}}]})
    }

    #[test]
    fn a_statement_is_a_signature_if_it_says_so() {
        let digest = Digest::of(b"manifest");
        let signed = says(SIGNED, digest.hex());
        let found = statement(&envelope(STATEMENT, &signed)).unwrap();
        let text = signed.to_string();
        let message = format!("DSSEv1 28 {STATEMENT} {} {text}", text.len());
        assert_eq!(found.message, message.as_bytes());
        assert_eq!((found.signatures, found.subjects), (vec![vec![0, 1, 2]], vec![digest.clone()]));
        for none in [
            envelope("text/plain", &signed),
            envelope(STATEMENT, &says("https://spdx.dev/Document", digest.hex())),
            envelope(STATEMENT, &json!([])),
            br#"{"dsseEnvelope":{}}"#.to_vec(),
            b"{}".to_vec(),
            b"text".to_vec(),
        ] {
            assert_eq!(statement(&none), None);
        }
    }

    #[test]
    fn of_what_refers_to_a_manifest_only_bundles_are_looked_at() {
        let digest = Digest::of(b"x");
        let named = |kind: &str| json!({"artifactType": kind, "digest": digest.to_string()});
        let own = named("application/vnd.dev.sigstore.bundle.v0.3+json");
        let index = json!({"manifests": [named("application/spdx+json"), own, {"artifactType": BUNDLE}, {}]});
        assert_eq!(referrers(index.to_string().as_bytes()), [(digest.clone(), own.clone())]);
        let many = json!({"manifests": vec![own; MAX_SIGNATURES + 1]}).to_string();
        assert_eq!(referrers(many.as_bytes()).len(), MAX_SIGNATURES);
        assert_eq!(referrers(b"no"), []);
        let manifest = |kind: &str, size: u64| {
            json!({"layers": [{"mediaType": kind, "size": size, "digest": digest.to_string()}]}).to_string()
        };
        assert_eq!(
            layer(manifest("application/vnd.dev.sigstore.bundle.v0.3+json", 7).as_bytes()),
            Some(digest.clone())
        );
        for none in [
            manifest("application/json", 7),
            manifest(BUNDLE, MAX_BUNDLE + 1),
            "{}".to_owned(),
            "no".to_owned(),
        ] {
            assert_eq!(layer(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_bundle_beside_a_file_has_its_signature() {
        let bundle = json!({"messageSignature": {"signature": "AAEC"}}).to_string();
        assert_eq!(message_signature(bundle.as_bytes()), Some(vec![0, 1, 2]));
        for none in ["{}", "AAEC", r#"{"messageSignature":{"signature":"!"}}"#, ""] {
            assert_eq!(message_signature(none.as_bytes()), None, "{none}");
        }
    }
}

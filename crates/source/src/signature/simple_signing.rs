//! What cosign writes beside an image: the tag `sha256-<digest>.sig` names a manifest whose layers are texts that name the digest,
//! and whose annotations are the signatures of these texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::digest::Digest;

/// The type of a text.
const TEXT: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// The annotation with the signature of a text, in base64.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// What a text says that it is.
const KINDS: [&str; 2] = ["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];

/// The most signatures of one manifest that are looked at.
pub const MAX_SIGNATURES: usize = 20;

/// The most bytes of a text.
pub const MAX_TEXT: u64 = 64 << 10;

/// One signature, and where the text is that it signs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Signed {
    /// The digest of the text.
    pub text: Digest,
    /// The signature of the text.
    pub signature: Vec<u8>,
}

/// Returns the tag of the signatures of a manifest.
pub fn tag(manifest: &Digest) -> String {
    format!("sha256-{}.sig", manifest.hex())
}

/// Returns the signatures that a manifest names, the first of them. Layers that are none are left out.
pub fn signatures(manifest: &[u8]) -> Vec<Signed> {
    let manifest: Value = serde_json::from_slice(manifest).unwrap_or_default();
    let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
    let signed = |layer: &Value| {
        let text = |name: &str| layer.get(name).and_then(Value::as_str);
        if text("mediaType") != Some(TEXT) || layer.get("size").and_then(Value::as_u64)? > MAX_TEXT {
            return None;
        }
        let signature = layer.get("annotations")?.get(SIGNATURE)?.as_str()?;
        let signature = STANDARD.decode(signature.trim()).ok()?;
        Some(Signed { text: Digest::parse(text("digest")?).ok()?, signature })
    };
    layers.filter_map(signed).take(MAX_SIGNATURES).collect()
}

/// Returns the digest of the manifest that a text is about; `None` if it is no such text.
///
/// It names an image, too. That is where it was when it was signed, and says nothing about where it is now.
pub fn subject(text: &[u8]) -> Option<Digest> {
    let text: Value = serde_json::from_slice(text).ok()?;
    let critical = text.get("critical")?;
    let kind = critical.get("type")?.as_str()?;
    let digest = critical.get("image")?.get("docker-manifest-digest")?.as_str()?;
    if KINDS.contains(&kind) { Digest::parse(digest).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_signatures_of_a_manifest_have_a_tag_of_its_digest() {
        assert_eq!(tag(&Digest::of(b"")), format!("sha256-{}.sig", Digest::of(b"").hex()));
    }

    #[test]
    fn a_layer_is_a_signature_if_all_of_it_is_there() {
        let digest = Digest::of(b"text");
        let layer = |kind: &str, size: u64, signature: &str, digest: &str| json!({"mediaType": kind, "size": size, "digest": digest, "annotations": {SIGNATURE: signature}});
        let its = digest.to_string();
        let layers = json!([
            layer(TEXT, 7, "AAEC", &its),
            layer("application/json", 7, "AAEC", &its),
            layer(TEXT, MAX_TEXT + 1, "AAEC", &its),
            layer(TEXT, 7, "!", &its),
            layer(TEXT, 7, "AAEC", "sha256:0"),
            {"mediaType": TEXT, "size": 7, "digest": its},
        ]);
        let found = signatures(json!({ "layers": layers }).to_string().as_bytes());
        assert_eq!(found, [Signed { text: digest, signature: vec![0, 1, 2] }]);
        let many = vec![layer(TEXT, 7, "AAEC", &its); MAX_SIGNATURES + 5];
        assert_eq!(signatures(json!({ "layers": many }).to_string().as_bytes()).len(), MAX_SIGNATURES);
        for none in ["", "[]", "{}", r#"{"layers":7}"#] {
            assert_eq!(signatures(none.as_bytes()), []);
        }
    }

    #[test]
    fn a_text_is_about_one_manifest() {
        let digest = Digest::of(b"manifest");
        let text = |kind: &str, digest: &str| {
            let image = json!({"docker-manifest-digest": digest});
            let identity = json!({"docker-reference": "registry.corp/web"});
            json!({"critical": {"identity": identity, "image": image, "type": kind}, "optional": null})
                .to_string()
        };
        for kind in KINDS {
            assert_eq!(subject(text(kind, &digest.to_string()).as_bytes()), Some(digest.clone()));
        }
        for none in [&*text("atomic", &digest.to_string()), &text(KINDS[0], "sha256:0"), "{}", "", "[]"] {
            assert_eq!(subject(none.as_bytes()), None, "{none}");
        }
    }
}

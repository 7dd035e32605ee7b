//! A registry of charts and bundles on loopback, over a repository that answers as a test says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use super::repository::{Reply, Repository, digest};

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

pub(crate) const BUNDLE: &str = "application/vnd.addon-operator.bundle.content.v1.tar+gzip";

/// A registry, and what it wants to see.
pub(crate) struct Registry<'r> {
    repository: &'r Repository,
    guard: Option<(String, String)>,
}

impl<'r> Registry<'r> {
    pub(crate) fn open(repository: &'r Repository) -> Self {
        Self { repository, guard: None }
    }

    /// Returns one that wants this `Authorization`, and answers others with this challenge.
    pub(crate) fn guarded(repository: &'r Repository, wanted: &str, challenge: &str) -> Self {
        Self { repository, guard: Some((wanted.to_owned(), challenge.to_owned())) }
    }

    /// Returns the URL of what is below a path, as a Repository has it.
    pub(crate) fn url(&self, path: &str) -> String {
        let url = self.repository.url(path);
        format!("oci://{}", url.split_once("://").unwrap().1)
    }

    /// Says what is answered at a path below `/v2/`.
    pub(crate) fn put(&self, path: &str, reply: Reply) {
        let reply = match &self.guard {
            Some((wanted, challenge)) => Reply::Guarded(wanted.clone(), challenge.clone(), Box::new(reply)),
            None => reply,
        };
        self.repository.put(&format!("/v2/{path}"), reply);
    }

    /// Signs a manifest as cosign does: the text of a `subject`, and its signature.
    pub(crate) fn sign(&self, name: &str, manifest: &str, subject: &str, key: &KeyPair) {
        let text = json!({
            "critical": {
                "identity": {"docker-reference": "registry.corp/web"},
                "image": {"docker-manifest-digest": subject},
                "type": "cosign container image signature",
            },
            "optional": null,
        });
        let text = text.to_string().into_bytes();
        let signature = STANDARD.encode(key.sign(&text).unwrap());
        let layer = json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "size": text.len(),
            "digest": format!("sha256:{}", digest(&text)), "annotations": {"dev.cosignproject.cosign/signature": signature},
        });
        let signatures = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [layer]});
        self.put_manifest(name, &format!("{}.sig", manifest.replace(':', "-")), &signatures);
        self.put(&format!("{name}/blobs/sha256:{}", digest(&text)), Reply::File(text));
    }

    /// Lists tags on one page.
    pub(crate) fn tags(&self, name: &str, tags: &[&str]) {
        let page = json!({"name": name, "tags": tags}).to_string();
        self.put(&format!("{name}/tags/list?n=1000"), Reply::Typed("application/json", page.into_bytes()));
    }

    /// Keeps an archive under a tag.
    pub(crate) fn push(&self, name: &str, tag: &str, packed: &[u8]) {
        self.put_manifest(name, tag, &manifest(packed));
        self.put(&format!("{name}/blobs/sha256:{}", digest(packed)), Reply::File(packed.to_vec()));
    }

    /// Keeps a packed bundle under a tag, and returns the digest of its manifest.
    pub(crate) fn push_bundle(&self, name: &str, tag: &str, packed: &[u8]) -> String {
        let manifest = bundle_manifest(packed);
        self.put_manifest(name, tag, &manifest);
        self.put(&format!("{name}/blobs/sha256:{}", digest(packed)), Reply::File(packed.to_vec()));
        format!("sha256:{}", digest(manifest.to_string().as_bytes()))
    }

    pub(crate) fn put_manifest(&self, name: &str, tag: &str, manifest: &Value) {
        let served = manifest["mediaType"].as_str().unwrap_or(MANIFEST).to_owned();
        let text = manifest.to_string().into_bytes();
        let headers =
            vec![("content-type", served), ("docker-content-digest", format!("sha256:{}", digest(&text)))];
        let reply = Reply::With(headers, text);
        self.put(&format!("{name}/manifests/{tag}"), reply);
    }
}

/// Returns the manifest of a bundle, as tools write it that push any file.
pub(crate) fn bundle_manifest(packed: &[u8]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": format!("sha256:{}", digest(b"{}")), "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": format!("sha256:{}", digest(packed)), "size": packed.len()}],
    })
}

/// Returns the manifest of a chart, as `helm push` writes it.
pub(crate) fn manifest(packed: &[u8]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": format!("sha256:{}", digest(b"{}")), "size": 2},
        "layers": [{"mediaType": ARCHIVE, "digest": format!("sha256:{}", digest(packed)), "size": packed.len()}],
    })
}

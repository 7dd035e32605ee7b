//! The manifest of a chart or a bundle in a registry: which of its layers is the archive.

use serde_json::{Value, json};

use crate::digest::Digest;

/// The most bytes of a manifest.
pub const MAX_MANIFEST: u64 = 4 << 20;

/// What is asked for. Lists are named too, so that registries send them and not a 404: the reason can be told then.
pub const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// The type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The type of a list of manifests.
pub const LIST: &str = "application/vnd.oci.image.index.v1+json";

/// The types of lists of manifests.
const LISTS: [&str; 2] = [LIST, "application/vnd.docker.distribution.manifest.list.v2+json"];

/// What a registry can have for us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Artifact {
    /// What people call it.
    noun: &'static str,
    /// How it is pushed.
    push: &'static str,
    /// The type of its metadata, if only that one will do.
    config: Option<&'static str>,
    /// The type of its archive.
    archive: &'static str,
}

/// A chart of Helm.
pub const CHART: Artifact = Artifact {
    noun: "chart",
    push: "helm push",
    config: Some("application/vnd.cncf.helm.config.v1+json"),
    archive: "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
};

/// A bundle of a module. Its metadata may have any type: tools that push any file choose it themselves.
pub const BUNDLE: Artifact =
    Artifact { noun: "bundle", push: "addon-operator source push", config: None, archive: BUNDLE_ARCHIVE };

/// The type of the archive of a bundle.
pub const BUNDLE_ARCHIVE: &str = "application/vnd.addon-operator.bundle.content.v1.tar+gzip";

/// What has no metadata has this as its config.
pub const EMPTY: &[u8] = b"{}";

/// The type of [`EMPTY`].
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";

/// The annotations that tools show.
const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";

/// The annotation with the time at which a manifest was made, and how long that may be, in bytes.
const CREATED: &str = "org.opencontainers.image.created";
const MAX_TIME: usize = 64;

/// How much of a foreign type is quoted, in characters.
const QUOTED: usize = 100;

/// How many types of layers are quoted.
const SHOWN: usize = 3;

/// The archive of a chart or a bundle, as its manifest names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layer {
    /// The digest of the archive.
    pub digest: Digest,
    /// How long it is said to be, in bytes.
    pub size: u64,
}

/// Why a manifest is none of what is wanted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON.
    #[error("the manifest is not JSON")]
    Json,
    /// It is a list of manifests.
    #[error(
        "the tag names a list of manifests, as images for several platforms have: a {noun} has one manifest, push it with `{push}`",
        noun = .0.noun, push = .0.push
    )]
    List(Artifact),
    /// It is something else.
    #[error("the manifest has the type {found:?}, that of a {noun} is {MANIFEST:?}", found = .0, noun = .1.noun)]
    Type(String, Artifact),
    /// It is an image, or something else.
    #[error(
        "the tag names no {noun}: its config has the type {found:?}, that of a {noun} is {wanted:?}",
        found = .0, noun = .1.noun, wanted = .1.config.unwrap_or_default()
    )]
    Config(String, Artifact),
    /// There is no archive.
    #[error("the manifest has no layer with the type {wanted:?}{others}", wanted = .0.archive, others = others(.1))]
    NoLayer(Artifact, Vec<String>),
    /// There is more than one.
    #[error("the manifest has {count} layers with the type {of:?}, a {noun} has one", count = .0, of = .1.archive, noun = .1.noun)]
    Layers(usize, Artifact),
    /// The digest can't be checked.
    #[error(
        "the layer with the {noun} has no digest that can be checked: it is sha256: and 64 hexadecimal digits",
        noun = .0.noun
    )]
    Digest(Artifact),
    /// The archive is too large.
    #[error("the {noun} has {size} bytes packed, the most are {most}", noun = .artifact.noun)]
    Size {
        /// How long it is said to be.
        size: u64,
        /// How long it may be.
        most: u64,
        /// What was wanted.
        artifact: Artifact,
    },
}

/// Returns which types there are, if there are some: who looks for a mistake wants to know.
fn others(types: &[String]) -> String {
    match types {
        [] => String::new(),
        types => format!(", there are {}", types.join(", ")),
    }
}

impl Artifact {
    /// Returns the archive that a manifest names. `content_type` is what the server says that it is; the manifest itself counts
    /// before that. `most` is how long an archive may be, in bytes.
    ///
    /// # Errors
    ///
    /// If it is no such manifest.
    pub fn layer(self, content_type: &str, manifest: &[u8], most: u64) -> Result<Layer, ManifestError> {
        let manifest: Value = serde_json::from_slice(manifest).map_err(|_| ManifestError::Json)?;
        let served = content_type.split(';').next().unwrap_or_default().trim();
        let own = text(&manifest, "mediaType");
        let of = if own.is_empty() { served } else { own };
        if LISTS.contains(&of) || manifest.get("manifests").is_some() {
            return Err(ManifestError::List(self));
        }
        // Without a type of its own, and served as any JSON, its content says what it is.
        if of != MANIFEST && !(own.is_empty() && matches!(served, "" | "application/json")) {
            return Err(ManifestError::Type(quoted(of), self));
        }
        let config = manifest.get("config").map(|config| text(config, "mediaType")).unwrap_or_default();
        if self.config.is_some_and(|wanted| config != wanted) {
            return Err(ManifestError::Config(quoted(config), self));
        }
        let layers = || manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
        let found: Vec<&Value> = layers().filter(|layer| text(layer, "mediaType") == self.archive).collect();
        let layer = match found.as_slice() {
            [layer] => layer,
            [] => {
                let types = layers().take(SHOWN).map(|layer| quoted(text(layer, "mediaType")));
                return Err(ManifestError::NoLayer(self, types.collect()));
            }
            layers => return Err(ManifestError::Layers(layers.len(), self)),
        };
        let digest = Digest::parse(text(layer, "digest")).map_err(|_| ManifestError::Digest(self))?;
        let size = layer.get("size").and_then(Value::as_u64).unwrap_or_default();
        if size > most {
            Err(ManifestError::Size { size, most, artifact: self })
        } else {
            Ok(Layer { digest, size })
        }
    }
}

/// Returns the manifest of a bundle, the same for the same bundle: a signature of it stays right however often it is pushed.
/// `title` is the name of its file, and `size` the length of its archive in bytes.
pub fn of_bundle(archive: &Digest, size: u64, title: &str, version: &str) -> Vec<u8> {
    let layer = json!({
        "mediaType": BUNDLE_ARCHIVE, "digest": archive.to_string(), "size": size, "annotations": {TITLE: title},
    });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE_ARCHIVE,
        "config": {"mediaType": EMPTY_TYPE, "digest": Digest::of(EMPTY).to_string(), "size": EMPTY.len()},
        "layers": [layer],
        "annotations": {TITLE: title, VERSION: version},
    });
    manifest.to_string().into_bytes()
}

/// Returns when a manifest was made, as it is written there; `None` if it does not say that.
pub fn created(manifest: &[u8]) -> Option<String> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let created = text(manifest.get("annotations")?, CREATED);
    (!created.is_empty() && created.len() <= MAX_TIME).then(|| created.to_owned())
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Value {
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CHART.config, "digest": "x", "size": 1},
            "layers": [
                {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "x", "size": 1},
                {"mediaType": CHART.archive, "digest": Digest::of(b"").to_string(), "size": 7},
            ],
        })
    }

    fn read(served: &str, change: impl FnOnce(&mut Value)) -> Result<Layer, ManifestError> {
        let mut manifest = manifest();
        change(&mut manifest);
        CHART.layer(served, manifest.to_string().as_bytes(), 20)
    }

    #[test]
    fn the_archive_of_a_chart_is_found_among_its_layers() {
        let found = Ok(Layer { digest: Digest::of(b""), size: 7 });
        assert_eq!(read(MANIFEST, |_| ()), found);
        let untyped = |manifest: &mut Value| drop(manifest.as_object_mut().unwrap().remove("mediaType"));
        for served in
            [MANIFEST, "application/vnd.oci.image.manifest.v1+json; charset=utf-8", "application/json", ""]
        {
            assert_eq!(read(served, untyped), found, "{served}");
        }
        assert_eq!(
            read("application/octet-stream", untyped),
            Err(ManifestError::Type("application/octet-stream".into(), CHART))
        );
    }

    #[test]
    fn the_time_of_a_manifest_is_read_if_it_has_one() {
        let with = |time: &str| json!({"annotations": {CREATED: time}}).to_string();
        assert_eq!(created(with("2026-01-01T00:00:00Z").as_bytes()).as_deref(), Some("2026-01-01T00:00:00Z"));
        for none in [with(""), with(&"1".repeat(MAX_TIME + 1)), "{}".to_owned(), "x".to_owned()] {
            assert_eq!(created(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_chart_says_so() {
        let docker = "application/vnd.docker.distribution.manifest.v2+json";
        let image = "application/vnd.oci.image.config.v1+json";
        assert_eq!(
            read(MANIFEST, |manifest| manifest["mediaType"] = json!(LISTS[0])),
            Err(ManifestError::List(CHART))
        );
        assert_eq!(
            read(LISTS[1], |manifest| manifest["mediaType"] = json!("")),
            Err(ManifestError::List(CHART))
        );
        assert_eq!(read("", |manifest| manifest["manifests"] = json!([])), Err(ManifestError::List(CHART)));
        assert_eq!(
            read("", |manifest| manifest["mediaType"] = json!(docker)),
            Err(ManifestError::Type(docker.into(), CHART))
        );
        assert_eq!(
            read("", |manifest| manifest["config"]["mediaType"] = json!(image)),
            Err(ManifestError::Config(image.into(), CHART))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"] = json!([])),
            Err(ManifestError::NoLayer(CHART, Vec::new()))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"] = json!(7)),
            Err(ManifestError::NoLayer(CHART, Vec::new()))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"][0] = manifest["layers"][1].clone()),
            Err(ManifestError::Layers(2, CHART))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"][1]["digest"] = json!("sha512:00")),
            Err(ManifestError::Digest(CHART))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"][1]["size"] = json!(21)),
            Err(ManifestError::Size { size: 21, most: 20, artifact: CHART })
        );
        assert_eq!(CHART.layer("", b"<html>", 20), Err(ManifestError::Json));
    }

    #[test]
    fn the_manifest_of_a_bundle_is_read_as_it_is_written_and_is_always_the_same() {
        let write = || of_bundle(&Digest::of(b"x"), 1, "web-1.0.0.tgz", "1.0.0");
        assert_eq!(BUNDLE.layer(MANIFEST, &write(), 20), Ok(Layer { digest: Digest::of(b"x"), size: 1 }));
        assert_eq!(write(), write());
        assert!(matches!(CHART.layer(MANIFEST, &write(), 20), Err(ManifestError::Config(..))));
    }

    #[test]
    fn a_bundle_is_the_layer_with_its_type_whatever_the_config_is() {
        let mut manifest = manifest();
        manifest["config"]["mediaType"] = json!("application/vnd.oci.empty.v1+json");
        let read = |manifest: &Value| BUNDLE.layer("", manifest.to_string().as_bytes(), 20);
        let said = read(&manifest).unwrap_err().to_string();
        assert!(said.contains("no layer with the type") && said.contains(CHART.archive), "{said}");
        manifest["layers"][1]["mediaType"] = json!(BUNDLE_ARCHIVE);
        assert_eq!(read(&manifest), Ok(Layer { digest: Digest::of(b""), size: 7 }));
        manifest["mediaType"] = json!(LISTS[0]);
        let said = read(&manifest).unwrap_err().to_string();
        assert!(
            said.contains("a bundle has one manifest, push it with `addon-operator source push`"),
            "{said}"
        );
    }
}

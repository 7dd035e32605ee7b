//! The manifest of a chart in a registry: which of its layers is the archive.

use serde_json::Value;

use crate::digest::Digest;

/// The most bytes of a manifest.
pub const MAX_MANIFEST: u64 = 4 << 20;

/// What is asked for. Lists are named too, so that registries send them and not a 404: the reason can be told then.
pub const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// The type of the manifest of a chart.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The types of lists of manifests.
const LISTS: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];

/// The type of the metadata of a chart.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// The type of the archive of a chart.
const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The annotation with the time at which a manifest was made, and how long that may be, in bytes.
const CREATED: &str = "org.opencontainers.image.created";
const MAX_TIME: usize = 64;

/// How much of a foreign type is quoted, in characters.
const QUOTED: usize = 100;

/// The archive of a chart, as its manifest names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layer {
    /// The digest of the archive.
    pub digest: Digest,
    /// How long it is said to be, in bytes.
    pub size: u64,
}

/// Why a manifest is none of a chart.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON.
    #[error("the manifest is not JSON")]
    Json,
    /// It is a list of manifests.
    #[error(
        "the tag names a list of manifests, as images for several platforms have: a chart has one manifest, push it with `helm push`"
    )]
    List,
    /// It is something else.
    #[error("the manifest has the type {0:?}, that of a chart is {MANIFEST:?}")]
    Type(String),
    /// It is an image, or something else.
    #[error("the tag names no chart: its config has the type {0:?}, that of a chart is {CONFIG:?}")]
    Config(String),
    /// There is no archive.
    #[error("the manifest has no layer with the type {ARCHIVE:?}")]
    NoLayer,
    /// There is more than one.
    #[error("the manifest has {0} layers with the type {ARCHIVE:?}, a chart has one")]
    Layers(usize),
    /// The digest can't be checked.
    #[error(
        "the layer with the chart has no digest that can be checked: it is sha256: and 64 hexadecimal digits"
    )]
    Digest,
    /// The archive is too large.
    #[error("the chart has {size} bytes packed, the most are {most}")]
    Size {
        /// How long it is said to be.
        size: u64,
        /// How long it may be.
        most: u64,
    },
}

/// Returns the archive that a manifest names. `content_type` is what the server says that it is; the manifest itself counts before
/// that. `most` is how long an archive may be, in bytes.
///
/// # Errors
///
/// If it is no manifest of a chart.
pub fn layer(content_type: &str, manifest: &[u8], most: u64) -> Result<Layer, ManifestError> {
    let manifest: Value = serde_json::from_slice(manifest).map_err(|_| ManifestError::Json)?;
    let served = content_type.split(';').next().unwrap_or_default().trim();
    let own = text(&manifest, "mediaType");
    let of = if own.is_empty() { served } else { own };
    if LISTS.contains(&of) || manifest.get("manifests").is_some() {
        return Err(ManifestError::List);
    }
    // Without a type of its own, and served as any JSON, its content says what it is.
    if of != MANIFEST && !(own.is_empty() && matches!(served, "" | "application/json")) {
        return Err(ManifestError::Type(quoted(of)));
    }
    let config = manifest.get("config").map(|config| text(config, "mediaType")).unwrap_or_default();
    if config != CONFIG {
        return Err(ManifestError::Config(quoted(config)));
    }
    let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
    let found: Vec<&Value> = layers.filter(|layer| text(layer, "mediaType") == ARCHIVE).collect();
    let layer = match found.as_slice() {
        [layer] => layer,
        [] => return Err(ManifestError::NoLayer),
        layers => return Err(ManifestError::Layers(layers.len())),
    };
    let digest = Digest::parse(text(layer, "digest")).map_err(|_| ManifestError::Digest)?;
    let size = layer.get("size").and_then(Value::as_u64).unwrap_or_default();
    if size > most { Err(ManifestError::Size { size, most }) } else { Ok(Layer { digest, size }) }
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
    use serde_json::json;

    use super::*;

    fn manifest() -> Value {
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, "digest": "x", "size": 1},
            "layers": [
                {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "x", "size": 1},
                {"mediaType": ARCHIVE, "digest": Digest::of(b"").to_string(), "size": 7},
            ],
        })
    }

    fn read(served: &str, change: impl FnOnce(&mut Value)) -> Result<Layer, ManifestError> {
        let mut manifest = manifest();
        change(&mut manifest);
        layer(served, manifest.to_string().as_bytes(), 20)
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
            Err(ManifestError::Type("application/octet-stream".into()))
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
            Err(ManifestError::List)
        );
        assert_eq!(read(LISTS[1], |manifest| manifest["mediaType"] = json!("")), Err(ManifestError::List));
        assert_eq!(read("", |manifest| manifest["manifests"] = json!([])), Err(ManifestError::List));
        assert_eq!(
            read("", |manifest| manifest["mediaType"] = json!(docker)),
            Err(ManifestError::Type(docker.into()))
        );
        assert_eq!(
            read("", |manifest| manifest["config"]["mediaType"] = json!(image)),
            Err(ManifestError::Config(image.into()))
        );
        assert_eq!(read("", |manifest| manifest["layers"] = json!([])), Err(ManifestError::NoLayer));
        assert_eq!(read("", |manifest| manifest["layers"] = json!(7)), Err(ManifestError::NoLayer));
        assert_eq!(
            read("", |manifest| manifest["layers"][0] = manifest["layers"][1].clone()),
            Err(ManifestError::Layers(2))
        );
        assert_eq!(
            read("", |manifest| manifest["layers"][1]["digest"] = json!("sha512:00")),
            Err(ManifestError::Digest)
        );
        assert_eq!(
            read("", |manifest| manifest["layers"][1]["size"] = json!(21)),
            Err(ManifestError::Size { size: 21, most: 20 })
        );
        assert_eq!(layer("", b"<html>", 20), Err(ManifestError::Json));
    }
}

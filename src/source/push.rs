//! Bundles go to registries (OCI).

use std::path::Path;

use ::source::bundle::Problem;
use ::source::digest::Digest;
use ::source::registry::manifest::{self, MANIFEST};
use ::source::registry::reference::{self, RegistryUrl};
use bytes::Bytes;

use super::client::Client;
use super::publish;

/// A bundle that was pushed.
#[derive(Debug)]
pub struct Pushed {
    /// Where it is, with its tag.
    pub place: String,
    /// The digest of its archive.
    pub digest: Digest,
    /// The digest of its manifest, which is what cosign signs.
    pub manifest: Digest,
}

/// Checks the bundle in a directory or in a `.tgz`, and gives it to a registry under the tag of its version. What had that tag
/// before has it no more.
///
/// # Errors
///
/// All that is wrong with the bundle, or why the registry does not take it.
pub async fn push(client: &Client, path: &Path, to: &RegistryUrl) -> Result<Pushed, Vec<Problem>> {
    let (bundle, title, archive) = publish::archive_of(path)?;
    let wrong = |message: String| vec![Problem { path: to.to_string(), message }];
    let version = bundle.version.to_string();
    let tag = reference::tag(&version).map_err(|error| wrong(error.to_string()))?;
    let repository = to.bundle(bundle.name.as_str()).map_err(|error| wrong(error.to_string()))?;
    let place = format!("oci://{}/{}:{tag}", to.host(), repository.name());
    let size = archive.len().try_into().unwrap_or(u64::MAX);
    let digest = Digest::of(&archive);
    let text = manifest::of_bundle(&digest, size, &title, &version);
    let pushing = async {
        let mut session = client.session(to, repository)?.for_push();
        session.push_blob(&digest, archive.into()).await?;
        session.push_blob(&Digest::of(manifest::EMPTY), Bytes::from_static(manifest::EMPTY)).await?;
        session.push_manifest(&tag, MANIFEST, text.clone().into()).await
    };
    pushing.await.map_err(|error| wrong(error.to_string()))?;
    Ok(Pushed { place, digest, manifest: Digest::of(&text) })
}

//! Copies a source with all that it names, so that it can be served where nothing else can be reached.
//!
//! A web server's source becomes a directory with an index, bundles and their signatures. A registry's becomes repositories of
//! another registry, or a directory that any web server can serve as one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::source::bundle::Problem;
use ::source::chunk::MAX_PACKED_BYTES;
use ::source::digest::Digest;
use ::source::index::{Index, Line, MAX_INDEX_BYTES};
use ::source::registry::manifest::{ACCEPT, BUNDLE, LIST, MANIFEST, MAX_MANIFEST};
use ::source::registry::reference::{self, RegistryUrl, is_registry};
use ::source::signature::{detached, sigstore, simple_signing};
use ::source::url::{BundleUrl, HttpUrl, IndexUrl};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::client::Client;
use super::publish;
use super::verification::referrers;
use crate::remote::http::{Answer, Get, HttpError};
use crate::remote::registry::{ANY, RegistryError, Session};

/// The name of the index that is written.
const INDEX: &str = "index.yaml";

/// A bundle of a source, of which one version is wanted, or all.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Exactly this version.
    pub version: Option<String>,
}

/// Where a copy goes.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A directory, which is made.
    Directory(PathBuf),
    /// A registry, and the path below which each bundle has its repository.
    Registry(RegistryUrl),
}

/// A bundle that was copied.
#[derive(Debug)]
pub struct Copied {
    /// Where it is now.
    pub place: String,
    /// The digest of its archive.
    pub digest: Digest,
    /// Whether a signature was copied with it.
    pub is_signed: bool,
}

type Outcome<T> = Result<T, Vec<Problem>>;

fn wrong(place: &(impl ToString + ?Sized), message: &(impl ToString + ?Sized)) -> Vec<Problem> {
    vec![Problem { path: place.to_string(), message: message.to_string() }]
}

/// Copies the source at a URL, or some bundles of it. All that is there is copied, and all that is wrong is returned; an index
/// is written only when nothing is.
///
/// # Errors
///
/// All that could not be copied.
pub async fn mirror(
    client: &Client,
    from: &str,
    parts: &[Part],
    to: &Destination,
) -> Result<Vec<Copied>, Vec<Problem>> {
    if is_registry(from) {
        let registry = RegistryUrl::parse(from).map_err(|error| wrong("the source", &error))?;
        return of_registry(client, &registry, parts, to).await;
    }
    let url = IndexUrl::parse(from, client.allowed.protocols).map_err(|error| wrong("the source", &error))?;
    match (url, to) {
        (IndexUrl::Http(url), Destination::Directory(directory)) => {
            of_web(client, &client.as_user(url), parts, directory).await
        }
        (IndexUrl::Http(url), Destination::Registry(_)) => Err(wrong(
            &url,
            "it is copied into a directory: only what is in a registry goes into another one",
        )),
        (IndexUrl::Git(url), _) => Err(wrong(&url, "copy a repository of git with `git clone --mirror`")),
    }
}

/// Returns whether a version is wanted.
fn is_wanted(parts: &[Part], name: &str, version: &str) -> bool {
    let fits = |part: &Part| part.name == name && part.version.as_deref().is_none_or(|only| only == version);
    parts.is_empty() || parts.iter().any(fits)
}

/// Returns a problem for each part that is not there.
fn missing<'p>(
    parts: &'p [Part],
    there: &'p BTreeSet<(String, String)>,
) -> impl Iterator<Item = Problem> + 'p {
    let is_there = move |part: &Part| {
        let mut versions = there.iter().filter(|(name, _)| *name == part.name);
        versions.any(|(_, version)| part.version.as_ref().is_none_or(|only| only == version))
    };
    parts.iter().filter(move |part| !is_there(part)).map(|part| {
        let version = part.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        Problem {
            path: format!("{}{version}", part.name),
            message: "the source does not offer it".to_owned(),
        }
    })
}

/// Copies the source of a web server.
async fn of_web(
    client: &Client,
    url: &HttpUrl,
    parts: &[Part],
    directory: &Path,
) -> Result<Vec<Copied>, Vec<Problem>> {
    let text = file(client, url, MAX_INDEX_BYTES as u64).await.map_err(|error| wrong(url, &error))?;
    let index = Index::parse(&text).map_err(|error| wrong(url, &error))?;
    fs::create_dir_all(directory).map_err(|error| wrong(&directory.display(), &error))?;
    let (mut copied, mut problems, mut there) = (Vec::new(), Vec::new(), BTreeSet::new());
    let index_url = IndexUrl::Http(url.clone());
    for line in index.lines() {
        there.insert((line.name.clone(), line.version.clone()));
        if is_wanted(parts, &line.name, &line.version) {
            match bundle_of_web(client, &index_url, line, directory).await {
                Ok(bundle) => copied.push(bundle),
                Err(found) => problems.extend(found),
            }
        }
    }
    problems.extend(missing(parts, &there));
    if problems.is_empty() {
        publish::index(directory)?;
        // The URL of the source goes on to name it.
        let own = url.path().rsplit('/').next().filter(|name| !name.is_empty() && *name != INDEX);
        if let Some(own) = own {
            let own = directory.join(own);
            fs::copy(directory.join(INDEX), &own).map_err(|error| wrong(&own.display(), &error))?;
        }
    }
    if problems.is_empty() { Ok(copied) } else { Err(problems) }
}

async fn bundle_of_web(client: &Client, index: &IndexUrl, line: &Line, directory: &Path) -> Outcome<Copied> {
    let of = || format!("{} {}", line.name, line.version);
    let entry = line.outcome.as_ref().map_err(|problem| wrong(&of(), problem))?;
    let given = entry.urls.first().map(String::as_str);
    let url = index.bundle(&line.name, entry.version.original(), given, client.allowed.protocols);
    let BundleUrl::Http(url) = url.map_err(|error| wrong(&of(), &error))? else {
        return Err(wrong(&of(), "it is a directory of a repository"));
    };
    let archive = file(client, &url, MAX_PACKED_BYTES as u64).await.map_err(|error| wrong(&of(), &error))?;
    let digest = Digest::of(&archive);
    if let Some(expected) = entry.digest.as_ref().filter(|expected| **expected != digest) {
        return Err(wrong(&of(), &format!("its digest is {digest}, that of the index is {expected}")));
    }
    let signature = match file(client, &url.below(detached::SUFFIX, url.query()), detached::MAX_FILE).await {
        Ok(signature) => Some(signature),
        Err(HttpError::Status { status: StatusCode::NOT_FOUND | StatusCode::GONE, .. }) => None,
        Err(error) => return Err(wrong(&of(), &format!("its signature can't be fetched: {error}"))),
    };
    let place = directory.join(format!("{}-{}.tgz", line.name, entry.version.original()));
    publish::write(&place, &archive).map_err(|error| wrong(&place.display(), &error))?;
    if let Some(signature) = &signature {
        let beside = place.with_added_extension(detached::SUFFIX.trim_start_matches('.'));
        publish::write(&beside, signature).map_err(|error| wrong(&beside.display(), &error))?;
    }
    Ok(Copied { place: place.display().to_string(), digest, is_signed: signature.is_some() })
}

async fn file(client: &Client, url: &HttpUrl, limit: u64) -> Result<Vec<u8>, HttpError> {
    match client.http.get(Get { url, known: None, limit }, Vec::new()).await? {
        Answer::New(bytes, _) => Ok(bytes),
        Answer::Unchanged => Ok(Vec::new()),
    }
}

/// Copies bundles of a registry.
async fn of_registry(
    client: &Client,
    from: &RegistryUrl,
    parts: &[Part],
    to: &Destination,
) -> Result<Vec<Copied>, Vec<Problem>> {
    let mut names: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    if names.is_empty() {
        names.insert(from.own_name().map_err(|error| wrong(from, &error))?);
    }
    let (mut copied, mut problems, mut there) = (Vec::new(), Vec::new(), BTreeSet::new());
    for name in names {
        match bundle_of_registry(client, from, (name, parts), to, &mut there).await {
            Ok(found) => copied.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    problems.extend(missing(parts, &there));
    if problems.is_empty() { Ok(copied) } else { Err(problems) }
}

async fn bundle_of_registry(
    client: &Client,
    from: &RegistryUrl,
    (name, parts): (&str, &[Part]),
    to: &Destination,
    there: &mut BTreeSet<(String, String)>,
) -> Outcome<Vec<Copied>> {
    let failed = |error: RegistryError| wrong(from, &error);
    let repository = from.bundle(name).map_err(|error| wrong(from, &error))?;
    let mut source = client.session(from, repository).map_err(failed)?;
    let versions = source.tags().await.map_err(failed)?.whole_versions();
    let mut keep = Keep::open(client, to, name)?;
    let mut copied = Vec::new();
    for version in versions {
        there.insert((name.to_owned(), version.clone()));
        if is_wanted(parts, name, &version) {
            let tag = reference::tag(&version).map_err(|error| wrong(from, &error))?;
            copied.push(copy_version(&mut source, &mut keep, &tag).await?);
        }
    }
    keep.finish()?;
    Ok(copied)
}

/// Copies one version with its signatures.
async fn copy_version(source: &mut Session<'_>, keep: &mut Keep<'_>, tag: &str) -> Outcome<Copied> {
    let of = format!("{}:{tag}", source.repository().name());
    let failed = |error: RegistryError| wrong(&of, &error);
    let url = source.repository().manifest_of(source.server(), tag);
    let (manifest, headers, _) = source.get(&url, ACCEPT, MAX_MANIFEST).await.map_err(failed)?;
    let served = headers.get(CONTENT_TYPE).and_then(|served| served.to_str().ok()).unwrap_or_default();
    let layer = BUNDLE.layer(served, &manifest, MAX_PACKED_BYTES as u64);
    let layer = layer.map_err(|error| wrong(&of, &error))?;
    let digest = Digest::of(&manifest);
    copy_manifest(source, keep, (&of, tag), manifest).await?;
    let signatures = simple_signing::tag(&digest);
    let url = source.repository().manifest_of(source.server(), &signatures);
    let mut is_signed = match source.get(&url, ACCEPT, MAX_MANIFEST).await {
        Ok((manifest, ..)) => {
            copy_manifest(source, keep, (&of, &signatures), manifest).await?;
            true
        }
        Err(error) if error.is_missing() => false,
        Err(error) => return Err(failed(error)),
    };
    let mut bundles = Vec::new();
    for (referrer, descriptor) in referrers(source, &digest).await.map_err(failed)? {
        let url = source.repository().manifest_of(source.server(), &referrer.to_string());
        let (manifest, ..) = source.get(&url, ACCEPT, MAX_MANIFEST).await.map_err(failed)?;
        let own = Digest::of(&manifest);
        if own != referrer {
            return Err(wrong(&of, &format!("what the registry has as {referrer} has the digest {own}")));
        }
        copy_manifest(source, keep, (&of, &referrer.to_string()), manifest).await?;
        bundles.push(descriptor);
    }
    if !bundles.is_empty() {
        // Who has no call for what refers to a manifest looks here.
        let list = json!({"schemaVersion": 2, "mediaType": LIST, "manifests": bundles}).to_string();
        keep.manifest(&sigstore::tag(&digest), LIST, list.into_bytes()).await?;
        is_signed = true;
    }
    Ok(Copied { place: keep.place(tag), digest: layer.digest, is_signed })
}

/// Copies what a manifest names, and then the manifest.
async fn copy_manifest(
    source: &mut Session<'_>,
    keep: &mut Keep<'_>,
    (of, tag): (&str, &str),
    manifest: Vec<u8>,
) -> Outcome<()> {
    let read: Value = serde_json::from_slice(&manifest).map_err(|error| wrong(of, &error))?;
    let layers = read.get("layers").and_then(Value::as_array).into_iter().flatten();
    for named in read.get("config").into_iter().chain(layers) {
        let digest = named.get("digest").and_then(Value::as_str).unwrap_or_default();
        let digest = Digest::parse(digest).map_err(|error| wrong(of, &error))?;
        let url = source.repository().blob(source.server(), &digest);
        let found = source.get(&url, ANY, MAX_PACKED_BYTES as u64).await;
        let (bytes, ..) = found.map_err(|error| wrong(of, &error))?;
        let own = Digest::of(&bytes);
        if own != digest {
            return Err(wrong(of, &format!("what the registry has as {digest} has the digest {own}")));
        }
        keep.blob(&digest, bytes).await?;
    }
    keep.manifest(tag, MANIFEST, manifest).await
}

/// Where the versions of one bundle of a registry are kept.
enum Keep<'k> {
    Registry(Box<Session<'k>>, String),
    /// The files that a web server answers with as a registry does.
    Directory(PathBuf, String),
}

impl<'k> Keep<'k> {
    fn open(client: &'k Client, to: &Destination, name: &str) -> Outcome<Self> {
        match to {
            Destination::Registry(to) => {
                let repository = to.bundle(name).map_err(|error| wrong(to, &error))?;
                let place = format!("oci://{}/{}", to.host(), repository.name());
                let session = client.session(to, repository).map_err(|error| wrong(to, &error))?;
                Ok(Self::Registry(Box::new(session.for_push()), place))
            }
            Destination::Directory(directory) => {
                let root = directory.join("v2").join(name);
                for part in ["blobs", "manifests", "tags"] {
                    let part = root.join(part);
                    fs::create_dir_all(&part).map_err(|error| wrong(&part.display(), &error))?;
                }
                Ok(Self::Directory(root, name.to_owned()))
            }
        }
    }

    fn place(&self, tag: &str) -> String {
        match self {
            Self::Registry(_, place) => format!("{place}:{tag}"),
            Self::Directory(root, _) => root.join("manifests").join(tag).display().to_string(),
        }
    }

    async fn blob(&mut self, digest: &Digest, bytes: Vec<u8>) -> Outcome<()> {
        match self {
            Self::Registry(session, place) => {
                session.push_blob(digest, Bytes::from(bytes)).await.map_err(|error| wrong(place, &error))
            }
            Self::Directory(root, _) => write(&root.join("blobs").join(digest.to_string()), &bytes),
        }
    }

    async fn manifest(&mut self, tag: &str, kind: &str, bytes: Vec<u8>) -> Outcome<()> {
        match self {
            Self::Registry(session, place) => {
                let pushed = session.push_manifest(tag, kind, Bytes::from(bytes)).await;
                pushed.map_err(|error| wrong(place, &error))
            }
            Self::Directory(root, _) => write(&root.join("manifests").join(tag), &bytes),
        }
    }

    /// Writes the list of tags that a directory has.
    fn finish(self) -> Outcome<()> {
        let Self::Directory(root, name) = self else { return Ok(()) };
        let manifests = root.join("manifests");
        let tags = || -> io::Result<BTreeSet<String>> {
            let entries = fs::read_dir(&manifests)?;
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        let tags = tags().map_err(|error| wrong(&manifests.display(), &error))?;
        write(&root.join("tags").join("list"), json!({"name": name, "tags": tags}).to_string().as_bytes())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    publish::write(path, bytes).map_err(|error| wrong(&path.display(), &error))
}

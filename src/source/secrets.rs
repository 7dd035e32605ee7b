//! Bundles and the registry of addons in Secrets, so that a restart needs nothing from outside.
//!
//! A bundle is in Secrets of at most 900 KiB each that are never changed; the registry is one Secret, written last.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::sync::{Mutex, PoisonError};

use ::source::chunk::{self, MAX_CHUNKS};
use ::source::template::SecretData;
use engine::{Digest, Failure, FailureKind, Registry};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};

use super::tree::hex;
use crate::cluster::{failure, is_already_there, is_conflict, is_not_found};
use crate::remote::http::Sink;

/// The label of all Secrets with parts of bundles: the beginning of the digest.
const BUNDLE: &str = "addon-operator.io/bundle";

/// The label that says whose they are: a hash of the operator's ConfigMap.
const OWNER: &str = "addon-operator.io/sources-owner";

/// The annotation with the digest of the whole bundle.
const DIGEST: &str = "addon-operator.io/digest";

/// The annotation with the number of parts.
const PARTS: &str = "addon-operator.io/parts";

/// The key of a part.
const PART_KEY: &str = "part";

/// The key of the registry.
const REGISTRY_KEY: &str = "registry.json.gz";

/// How many parts of bundles are deleted at a time: sources wait for that.
const DELETED_AT_A_TIME: usize = 8;

/// How much of a digest is in names and labels.
const SHORT: usize = 20;

/// The longest registry as it is written, and as it is unpacked, in bytes.
const LONGEST_PACKED: usize = 960 << 10;
const LONGEST_REGISTRY: u64 = 64 << 20;

/// What people do about a registry that somebody else writes.
const FOREIGN: &str = "another operator may be running; restart this one so that it reads the registry again";

/// The Secrets of one operator.
pub(super) struct Secrets {
    client: Client,
    namespace: String,
    /// What names begin with: that of the ConfigMap.
    name: String,
    owner: String,
    registry: Mutex<KnownRegistry>,
}

/// The parts of one bundle.
#[derive(Default)]
struct Parts {
    names: BTreeSet<String>,
    /// How many there have to be.
    count: usize,
}

/// The registry as it was read or written last.
#[derive(Clone, Default)]
struct KnownRegistry {
    is_read: bool,
    /// Which write it is; `None` if there is none.
    version: Option<String>,
    /// What it says, and what was written and not answered.
    texts: Vec<Vec<u8>>,
}

/// Returns what a request that failed means, and which right is missing if it was that.
fn failed(what: &str, verb: &str, namespace: &str, error: &kube::Error) -> Failure {
    let failure = failure(what, error);
    let is_refused = matches!(error, kube::Error::Api(status) if status.code == 403);
    if is_refused && failure.kind != FailureKind::Terminating {
        return Failure { kind: FailureKind::Forbidden, ..failure }.advise(format!(
            "give the operator's ServiceAccount a role with the verb {verb} on secrets in namespace {namespace}"
        ));
    }
    failure
}

impl Secrets {
    /// Returns the Secrets of the operator whose ConfigMap this is.
    pub(super) fn new(client: Client, namespace: &str, config_map: &str) -> Self {
        let hash = hex(&Sha256::digest(format!("{namespace}/{config_map}")));
        Self {
            client,
            namespace: namespace.to_owned(),
            name: config_map.to_owned(),
            owner: hash.chars().take(16).collect(),
            registry: Mutex::default(),
        }
    }

    fn api(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the data of a Secret that fills placeholders; `None` if there is none.
    pub(super) async fn data(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, kube::Error> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get_opt(name).await?;
        let data =
            |secret: Secret| secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        Ok(secret.map(|secret| data(secret).collect()))
    }

    fn part_name(&self, digest: &Digest, number: usize) -> String {
        format!("{}-bundle-{}-{number}", self.name, short(digest))
    }

    /// Returns the parts that there are, by the digest of their bundle.
    async fn parts(&self) -> Result<BTreeMap<String, Parts>, Failure> {
        let selector = format!("{BUNDLE},{OWNER}={}", self.owner);
        let listed = self.api().list_metadata(&ListParams::default().labels(&selector)).await;
        let what = format!("can't list the Secrets with bundles in {}", self.namespace);
        let listed = listed.map_err(|error| failed(&what, "list", &self.namespace, &error))?;
        let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
        for item in listed {
            let mut annotations = item.metadata.annotations.unwrap_or_default();
            let digest = annotations.remove(DIGEST).unwrap_or_default();
            let found = parts.entry(digest).or_default();
            found.count =
                annotations.remove(PARTS).and_then(|count| count.parse().ok()).unwrap_or(found.count);
            found.names.extend(item.metadata.name);
        }
        Ok(parts)
    }

    /// Writes the parts that are missing of all these bundles. `packed` returns an archive.
    pub(super) async fn write_bundles<R>(
        &self,
        digests: &BTreeSet<Digest>,
        packed: impl Fn(Digest) -> R,
    ) -> Result<Vec<(Digest, Failure)>, Failure>
    where
        R: Future<Output = Result<Vec<u8>, Failure>>,
    {
        let (there, none) = (self.parts().await?, Parts::default());
        let mut problems = Vec::new();
        for digest in digests {
            let found = there.get(digest.as_str()).unwrap_or(&none);
            let mut numbers = 1..=found.count;
            if found.count > 0 && numbers.all(|number| found.names.contains(&self.part_name(digest, number)))
            {
                continue;
            }
            let written =
                async { self.write_bundle(digest, &found.names, &packed(digest.clone()).await?).await };
            if let Err(failure) = written.await {
                problems.push((digest.clone(), failure));
            }
        }
        Ok(problems)
    }

    async fn write_bundle(
        &self,
        digest: &Digest,
        there: &BTreeSet<String>,
        packed: &[u8],
    ) -> Result<(), Failure> {
        let count = chunk::split(packed).len();
        for (part, number) in chunk::split(packed).zip(1..) {
            let name = self.part_name(digest, number);
            if !there.contains(&name) {
                self.write_part(digest, &name, part, count).await?;
            }
        }
        Ok(())
    }

    async fn write_part(
        &self,
        digest: &Digest,
        name: &str,
        part: &[u8],
        count: usize,
    ) -> Result<(), Failure> {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some([label(BUNDLE, &short(digest)), label(OWNER, &self.owner)].into()),
                annotations: Some([label(DIGEST, digest.as_str()), label(PARTS, &count.to_string())].into()),
                ..ObjectMeta::default()
            },
            immutable: Some(true),
            data: Some([(PART_KEY.to_owned(), ByteString(part.to_vec()))].into()),
            ..Secret::default()
        };
        let what = format!("can't write Secret {}/{name}", self.namespace);
        let api = self.api();
        match api.create(&PostParams::default(), &secret).await {
            Ok(_) => return Ok(()),
            Err(error) if !is_already_there(&error) => {
                return Err(failed(&what, "create", &self.namespace, &error));
            }
            // Somebody took its labels, or it is a rest of something else. What it says can't be changed.
            Err(_) => {}
        }
        match api.delete(name, &DeleteParams::default()).await {
            Err(error) if !is_not_found(&error) => {
                return Err(failed(&what, "delete", &self.namespace, &error));
            }
            _ => {}
        }
        let created = api.create(&PostParams::default(), &secret).await;
        created.map(|_| ()).map_err(|error| failed(&what, "create", &self.namespace, &error))
    }

    /// Reads a bundle part by part into `sink`. Its digest is not checked.
    pub(super) async fn read_bundle(&self, digest: &Digest, sink: &mut impl Sink) -> Result<(), Failure> {
        let mut write =
            |part: Vec<u8>| sink.write(&part).map_err(|error| Failure::of(FailureKind::Files, &error));
        let (first, count) = self.read_part(digest, 1).await?;
        write(first)?;
        for number in 2..=count.min(MAX_CHUNKS) {
            write(self.read_part(digest, number).await?.0)?;
        }
        Ok(())
    }

    /// Returns a part, and how many there are.
    async fn read_part(&self, digest: &Digest, number: usize) -> Result<(Vec<u8>, usize), Failure> {
        let name = self.part_name(digest, number);
        let what = format!("can't read Secret {}/{name}", self.namespace);
        let secret = self.api().get(&name).await;
        let secret = secret.map_err(|error| failed(&what, "get", &self.namespace, &error))?;
        let count = secret.metadata.annotations.unwrap_or_default().remove(PARTS);
        let count = count.and_then(|count| count.parse().ok()).unwrap_or(1);
        let part = secret.data.unwrap_or_default().remove(PART_KEY).map(|part| part.0);
        Ok((part.unwrap_or_default(), count))
    }

    /// Removes all bundles but these.
    pub(super) async fn drop_all_but(&self, keep: &BTreeSet<Digest>) -> Result<(), Failure> {
        let is_kept = |digest: &str| keep.iter().any(|kept| kept.as_str() == digest);
        let parts = self.parts().await?.into_iter().filter(|(digest, _)| !is_kept(digest));
        let names = parts.flat_map(|(_, parts)| parts.names);
        let deleting: Vec<_> = names.map(|name| self.delete_part(name)).collect();
        stream::iter(deleting).buffered(DELETED_AT_A_TIME).try_collect().await
    }

    async fn delete_part(&self, name: String) -> Result<(), Failure> {
        match self.api().delete(&name, &DeleteParams::default()).await {
            Err(error) if !is_not_found(&error) => {
                let what = format!("can't delete Secret {}/{name}", self.namespace);
                Err(failed(&what, "delete", &self.namespace, &error))
            }
            _ => Ok(()),
        }
    }

    fn registry_name(&self) -> String {
        format!("{}-sources", self.name)
    }

    fn known(&self) -> KnownRegistry {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn know(&self, known: KnownRegistry) {
        *self.registry.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Asks the API server for the registry as it is written.
    async fn ask_registry(&self) -> Result<(Option<String>, Vec<u8>), Failure> {
        let name = self.registry_name();
        let secret = self.api().get_opt(&name).await;
        let what = format!("can't read Secret {}/{name}", self.namespace);
        let secret = secret.map_err(|error| failed(&what, "get", &self.namespace, &error))?;
        let Some(secret) = secret else { return Ok((None, Vec::new())) };
        let text = secret.data.unwrap_or_default().remove(REGISTRY_KEY).map(|text| text.0);
        Ok((Some(secret.metadata.resource_version.unwrap_or_default()), text.unwrap_or_default()))
    }

    /// Reads the registry; an empty one if there is none.
    pub(super) async fn read_registry(&self) -> Result<Registry, Failure> {
        let (version, text) = self.ask_registry().await?;
        let registry = match &version {
            None => Registry::default(),
            Some(_) => unpack(&text).map_err(|problem| {
                let text = format!("Secret {}/{}: {problem}", self.namespace, self.registry_name());
                let advice = "restore it, or delete it: then sources are fetched again, and modules of sources stay as they are meanwhile";
                Failure::new(FailureKind::Values, text).advise(advice)
            })?,
        };
        self.know(KnownRegistry { is_read: true, version, texts: vec![text] });
        Ok(registry)
    }

    /// Writes the registry, unless it says so already.
    ///
    /// # Errors
    ///
    /// When it can't be written, or says something else than what was read or written before.
    pub(super) async fn write_registry(&self, registry: &Registry) -> Result<(), Failure> {
        let what = format!("can't write Secret {}/{}", self.namespace, self.registry_name());
        let wrong = |problem: &str| Failure::new(FailureKind::Cluster, format!("{what}: {problem}"));
        let text = pack(registry).map_err(|problem| wrong(&problem))?;
        if text.len() > LONGEST_PACKED {
            let failure = wrong("the registry of addons is too long for a Secret");
            return Err(Failure { kind: FailureKind::Values, ..failure }
                .advise("list fewer addons: spec.repositories[].include chooses some of an index"));
        }
        let mut known = self.known();
        if !known.is_read {
            let (version, found) = self.ask_registry().await?;
            known = KnownRegistry { is_read: true, version, texts: vec![found] };
        }
        if known.version.is_some() && known.texts.first() == Some(&text) {
            self.know(known);
            return Ok(());
        }
        if known.version.is_none() && registry.addons.is_empty() {
            return Ok(());
        }
        // Should the answer be lost, this is what it may say.
        known.texts.push(text.clone());
        self.know(known.clone());
        let mut written = self.put_registry(&text, known.version.clone()).await;
        if written.as_ref().is_err_and(|error| is_conflict(error) || is_not_found(error)) {
            let (version, found) = self.ask_registry().await?;
            if version.is_some() && !known.texts.contains(&found) {
                return Err(wrong("somebody else changed it meanwhile").advise(FOREIGN));
            }
            // Only its metadata was changed, or it was deleted.
            written = self.put_registry(&text, version).await;
        }
        let version = written.map_err(|error| {
            let verb = if known.version.is_some() { "update" } else { "create" };
            failed(&what, verb, &self.namespace, &error)
        })?;
        self.know(KnownRegistry { is_read: true, version, texts: vec![text] });
        Ok(())
    }

    async fn put_registry(
        &self,
        text: &[u8],
        version: Option<String>,
    ) -> Result<Option<String>, kube::Error> {
        let name = self.registry_name();
        let is_new = version.is_none();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some([(OWNER.to_owned(), self.owner.clone())].into()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            data: Some([(REGISTRY_KEY.to_owned(), ByteString(text.to_vec()))].into()),
            ..Secret::default()
        };
        let params = PostParams::default();
        let written = if is_new {
            self.api().create(&params, &secret).await?
        } else {
            self.api().replace(&name, &params, &secret).await?
        };
        Ok(written.metadata.resource_version)
    }
}

fn short(digest: &Digest) -> String {
    digest.hex().chars().take(SHORT).collect()
}

fn pack(registry: &Registry) -> Result<Vec<u8>, String> {
    let json = registry.to_json().map_err(|error| error.to_string())?;
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&json).and_then(|()| out.finish()).map_err(|error| error.to_string())
}

fn unpack(text: &[u8]) -> Result<Registry, String> {
    let mut json = Vec::new();
    let mut limited = GzDecoder::new(text).take(LONGEST_REGISTRY);
    limited.read_to_end(&mut json).map_err(|error| format!("{REGISTRY_KEY} can't be unpacked: {error}"))?;
    Registry::from_json(&json).map_err(|error| error.to_string())
}

//! Records of releases in Secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::record::{self, DATA_KEY, Encoder, Parts, Record, SECRET_TYPE, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::error::ReleaseError;
use super::marks::{Marks, ORIGIN, Origin, OriginLabels};
use super::record_parts::{self, EncodedRecord, PARTS};
use super::source_mark::{SOURCE, short_hash};
use super::upgrade_plan::Revision;
use crate::cluster::list::{Collection, Metadata, MetadataOnly};
use crate::cluster::request::{Cause, PATIENCE, PatchKind, RequestError, Requests};

/// The label that says whose release it is.
pub(super) const OWNER: &str = "addon-operator.io/owner";

/// The label with the number of the revision that the other labels were written for.
const REVISION: &str = "addon-operator.io/revision";

/// The label with the `ServiceAccount` as which a release is changed, if not as the operator.
const ACCOUNT: &str = "addon-operator.io/service-account";

/// The label with the checksum of what was rendered.
pub(super) const CHECKSUM: &str = "moduleChecksum";

/// The label that says whether the release is left alone.
pub(super) const MAINTENANCE: &str = "maintenance.deckhouse.io/no-resource-reconciliation";

/// The label by which people have a release removed without the hooks of its deletion.
const SKIP_HOOKS: &str = "addon-operator.io/skip-hooks";

/// The Secrets of one namespace.
#[derive(Clone)]
pub(super) struct Storage {
    requests: Requests,
    namespace: String,
    owner: String,
    /// The `ServiceAccount` as which the requests are made, if not as the operator.
    account: Option<String>,
    encoder: Arc<Mutex<Encoder>>,
    /// How many parts each record has of which that is known, by release and revision.
    parts: Arc<watch::Sender<BTreeMap<(String, u32), usize>>>,
}

/// One revision as its Secret's metadata describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredRevision {
    pub(super) version: u32,
    pub(super) status: Status,
    pub(super) labels: BTreeMap<String, String>,
    /// Which write of the Secret this is.
    pub(super) written: String,
}

impl StoredRevision {
    pub(super) fn revision(&self) -> Revision {
        Revision { version: self.version, status: self.status }
    }

    /// Reports whether somebody wants the release removed without its hooks.
    pub(super) fn skips_hooks(&self) -> bool {
        self.label(SKIP_HOOKS) == Some("true")
    }

    /// Reports whether its module came from a source.
    pub(super) fn has_source(&self) -> bool {
        self.label(SOURCE).is_some_and(|label| !label.is_empty())
    }

    /// Returns where its module and its chart come from.
    pub(super) fn origin(&self) -> OriginLabels {
        OriginLabels::of(&self.labels)
    }

    /// Reports whether other Secrets may hold parts of its record.
    fn may_have_parts(&self) -> bool {
        self.labels.contains_key(PARTS)
    }

    /// Returns the value of a label.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

impl Storage {
    pub(super) fn new(requests: Requests, namespace: &str, owner: String, account: Option<&str>) -> Self {
        let account = account.map(str::to_owned);
        let (encoder, parts) = (Arc::default(), Arc::default());
        Self { requests, namespace: namespace.to_owned(), owner, account, encoder, parts }
    }

    /// Returns how many parts each record has of which that is known, by release and revision. Those in one Secret have none.
    pub(super) fn parts(&self) -> &watch::Sender<BTreeMap<(String, u32), usize>> {
        &self.parts
    }

    /// Returns what asks as the storage does.
    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the label of releases of this operator.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns in whose name it asks, for people.
    pub(super) fn asker(&self) -> String {
        match &self.account {
            Some(account) => format!("ServiceAccount {}/{account}", self.namespace),
            None => "the operator's ServiceAccount".to_owned(),
        }
    }

    /// Returns what packs records.
    pub(super) fn encoder(&self) -> MutexGuard<'_, Encoder> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the namespace of the Secrets.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reports whether we wrote a revision. `helm` carries labels on to the revisions that
    /// it writes after ours, so the owner alone says little.
    pub(super) fn is_ours(&self, stored: &StoredRevision) -> bool {
        stored.label(OWNER) == Some(&self.owner)
            && stored.label(REVISION).is_none_or(|revision| revision == stored.version.to_string())
    }

    /// Returns the path of the Secrets.
    pub(super) fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    /// Returns the records of all releases, of which only the metadata is read.
    pub(super) fn all(&self) -> Collection {
        Collection::new(&self.collection()).with_labels("owner=helm").metadata_only()
    }

    fn path(&self, release: &str, version: u32) -> String {
        format!("{}/{}", self.collection(), record::secret_name(release, version))
    }

    /// Returns the revisions of a release, the oldest first. One request for metadata.
    pub(super) async fn history(&self, release: &str) -> Result<Vec<StoredRevision>, RequestError> {
        let selector = format!("name={release},owner=helm");
        let found = self.requests.list_metadata(&self.collection(), &selector).await?;
        let mut history: Vec<StoredRevision> =
            found.into_iter().filter_map(|item| stored(item, release)).collect();
        history.sort_by_key(|stored| stored.version);
        Ok(history)
    }

    /// Lists the records of all releases by their metadata, and tells `each` of them with its release, in no particular
    /// order. Returns the version behind which to watch them.
    pub(super) async fn list(
        &self,
        mut each: impl FnMut(&str, &StoredRevision),
    ) -> Result<String, RequestError> {
        let mut pages = self.all().pages(&self.requests, PATIENCE);
        while let Some(page) = pages.next().await? {
            for item in page {
                let item: MetadataOnly = self.read_item(&item)?;
                let Some((release, _)) = record::parse_secret_name(&item.metadata.name) else { continue };
                let release = release.to_owned();
                if let Some(stored) = stored(item.metadata, &release) {
                    each(&release, &stored);
                }
            }
        }
        Ok(pages.into_version())
    }

    /// Reads our deployed records, and returns which write of each can be read, by release.
    ///
    /// The labels of a record that was cut are whole. No more than one page of records is held at a time.
    pub(super) async fn readable(&self) -> Result<BTreeMap<String, String>, RequestError> {
        let selector = format!("owner=helm,{OWNER}={},status={}", self.owner, Status::Deployed.name());
        let own = Collection::new(&self.collection()).with_labels(&selector).of_large();
        let mut pages = own.pages(&self.requests, PATIENCE);
        let mut readable = BTreeMap::new();
        while let Some(page) = pages.next().await? {
            let storage = self.clone();
            let read = move || -> Result<Vec<(String, String)>, RequestError> {
                let mut found = Vec::new();
                for item in page {
                    let secret: RecordSecret<'_> = storage.read_item(&item)?;
                    let Some((release, _)) = record::parse_secret_name(&secret.metadata.name) else {
                        continue;
                    };
                    // Its parts are read when somebody asks for it.
                    if secret.metadata.labels.is_some_and(|labels| labels.parts.is_some()) {
                        continue;
                    }
                    if unpack(secret.data.and_then(|data| data.release).unwrap_or_default().as_ref()).is_ok()
                    {
                        found.push((release.to_owned(), secret.metadata.version.into_owned()));
                    }
                }
                Ok(found)
            };
            // A page takes longer than others may be kept waiting.
            let found = tokio::task::spawn_blocking(read).await;
            let failed = |error: tokio::task::JoinError| {
                RequestError::new("GET", &self.collection(), Cause::Unreadable(error.to_string()))
            };
            readable.extend(found.map_err(failed)??);
        }
        Ok(readable)
    }

    fn read_item<'i, T: Deserialize<'i>>(&self, item: &'i [u8]) -> Result<T, RequestError> {
        let unreadable = |error: serde_json::Error| {
            RequestError::new("GET", &self.collection(), Cause::Unreadable(error.to_string()))
        };
        serde_json::from_slice(item).map_err(unreadable)
    }

    /// Reports whether a release with these labels is one of this operator, in whose name it asks.
    pub(super) fn owns(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.get(OWNER) == Some(&self.owner) && labels.get(ACCOUNT) == self.account.as_ref()
    }

    /// Returns the names of all releases that are ours, each with whether one of its records has the mark of a source.
    pub(super) async fn owned(&self) -> Result<BTreeMap<String, bool>, RequestError> {
        let selector = format!("owner=helm,{OWNER}={}", self.owner);
        let own = Collection::new(&self.collection()).with_labels(&selector).metadata_only();
        let mut pages = own.pages(&self.requests, PATIENCE);
        // A record has many labels and there are many for each release: only names are held, each once.
        let mut owned = BTreeMap::new();
        while let Some(page) = pages.next().await? {
            for item in page {
                let mut item: MetadataOnly = self.read_item(&item)?;
                if !self.owns(&item.metadata.labels) {
                    continue;
                }
                let is_marked = item.metadata.labels.get(SOURCE).is_some_and(|label| !label.is_empty());
                if let Some(name) = item.metadata.labels.remove("name") {
                    *owned.entry(name).or_default() |= is_marked;
                }
            }
        }
        Ok(owned)
    }

    /// Reads one record; none if there is no such revision.
    pub(super) async fn read(&self, release: &str, version: u32) -> Result<Option<Record>, ReleaseError> {
        let Some(secret) = self.requests.get(&self.path(release, version)).await? else { return Ok(None) };
        let data = secret.pointer(&format!("/data/{DATA_KEY}")).and_then(Value::as_str).unwrap_or_default();
        let broken = |problem: String| ReleaseError::Record { release: release.to_owned(), version, problem };
        let head = unpack(data).map_err(broken)?;
        let labels = secret.pointer("/metadata/labels").and_then(Value::as_object);
        let parts = labels.map_or(Ok(None), |labels| record_parts::parts_of(labels, version));
        match parts.map_err(broken)? {
            None => Ok(Some(head)),
            // Its name and number are those that it was asked for by, whatever it says.
            Some(parts) => {
                let head = Record { name: release.to_owned(), version, ..head };
                self.with_parts(head, parts).await.map(Some)
            }
        }
    }

    /// Writes the record of a new revision, of which `encoded` is the form, and returns which write that is. `now`
    /// is in seconds. The Secret that Helm reads comes first.
    pub(super) async fn create(
        &self,
        record: &Record,
        encoded: &EncodedRecord,
        marks: &Marks,
        now: i64,
    ) -> Result<String, RequestError> {
        let mut labels = self.labels(record, &marks.all_labels());
        labels.insert("createdAt".to_owned(), now.to_string());
        labels.extend(
            encoded.parts().map(|parts| (PARTS.to_owned(), record_parts::label(record.version, &parts))),
        );
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": record::secret_name(&record.name, record.version),
                "namespace": self.namespace,
                "labels": labels,
                "annotations": marks.annotations(),
            },
            "type": SECRET_TYPE,
            "data": { DATA_KEY: STANDARD.encode(encoded.data()) },
        });
        let made = self.requests.make_known(&self.collection(), &secret).await?;
        if let EncodedRecord::Split(split) = encoded {
            self.write_parts((&record.name, record.version), split, &made.uid).await?;
        }
        Ok(made.version)
    }

    /// Writes a record over the one that is there and returns which write that is. Labels
    /// that are not named stay.
    pub(super) async fn update(
        &self,
        record: &Record,
        marks: &Marks,
        now: i64,
    ) -> Result<String, ReleaseError> {
        let (data, parts) = self.encode_again(record).await?;
        let mut labels: BTreeMap<String, Value> = self
            .labels(record, &marks.all_labels())
            .into_iter()
            .map(|(key, value)| (key, value.into()))
            .collect();
        labels.extend(
            parts.map(|parts| (PARTS.to_owned(), record_parts::label(record.version, &parts).into())),
        );
        labels.insert("modifiedAt".to_owned(), now.to_string().into());
        labels.insert("createdAt".to_owned(), Value::Null);
        let change = json!({
            "metadata": { "labels": labels, "annotations": marks.annotations() },
            "data": { DATA_KEY: STANDARD.encode(data) },
        });
        let path = self.path(&record.name, record.version);
        Ok(self.requests.edit(&path, PatchKind::Merge, &change).await?)
    }

    /// Writes the data of a record over what was read of it, and returns which write that is. Its state and whose it is stay.
    ///
    /// # Errors
    ///
    /// 409 if somebody wrote it since `stored` was read.
    pub(super) async fn rewrite(
        &self,
        record: &Record,
        stored: &StoredRevision,
    ) -> Result<String, ReleaseError> {
        let (data, parts) = self.encode_again(record).await?;
        let labels: BTreeMap<&str, String> =
            parts.iter().map(|parts| (PARTS, record_parts::label(record.version, parts))).collect();
        let change = json!({
            "metadata": { "resourceVersion": stored.written, "labels": labels },
            "data": { DATA_KEY: STANDARD.encode(data) },
        });
        let path = self.path(&record.name, record.version);
        Ok(self.requests.edit(&path, PatchKind::Merge, &change).await?)
    }

    /// Returns the data of the Secret that Helm reads, of a record that is there already, and which parts it has. Its parts stay as
    /// they are; one that has become too large for a Secret gets some.
    async fn encode_again(&self, record: &Record) -> Result<(String, Option<Parts>), ReleaseError> {
        if let Some(parts) = &record.parts {
            return Ok((self.encode_head(record)?, Some(parts.clone())));
        }
        let encoded = self.encode(record)?;
        let parts = encoded.parts();
        match encoded {
            EncodedRecord::Whole(data) => Ok((data, parts)),
            EncodedRecord::Split(split) => {
                self.add_parts(&record.name, record.version, &split).await?;
                Ok((split.head, parts))
            }
        }
    }

    /// Writes marks on a record, our own labels among them, and nothing else; returns which write that is.
    pub(super) async fn mark(
        &self,
        release: &str,
        version: u32,
        marks: &Marks,
    ) -> Result<String, RequestError> {
        let mut labels = marks.all_labels();
        labels.insert(OWNER.to_owned(), self.owner.clone());
        labels.insert(REVISION.to_owned(), version.to_string());
        labels.extend(self.account.iter().map(|account| (ACCOUNT.to_owned(), account.clone())));
        let patch = json!({ "metadata": { "labels": labels, "annotations": marks.annotations() } });
        self.requests.edit(&self.path(release, version), PatchKind::Merge, &patch).await
    }

    /// Writes on a record where its module and its chart come from; returns which write that is.
    pub(super) async fn mark_origin(
        &self,
        release: &str,
        version: u32,
        origin: &Origin,
    ) -> Result<String, RequestError> {
        let (labels, annotations) = origin.change();
        let patch = json!({ "metadata": { "labels": labels, "annotations": annotations } });
        self.requests.edit(&self.path(release, version), PatchKind::Merge, &patch).await
    }

    /// Deletes a revision; it is no error if there is none. The Secret that Helm reads goes last.
    pub(super) async fn delete(&self, release: &str, stored: &StoredRevision) -> Result<(), RequestError> {
        if stored.may_have_parts() {
            self.delete_parts(release, stored.version).await?;
        }
        self.requests.delete(&self.path(release, stored.version)).await.map(|_| ())
    }

    /// Deletes those revisions of `history` that have one of these numbers.
    pub(super) async fn delete_all(
        &self,
        release: &str,
        history: &[StoredRevision],
        versions: &[u32],
    ) -> Result<(), RequestError> {
        for stored in history.iter().filter(|stored| versions.contains(&stored.version)) {
            self.delete(release, stored).await?;
        }
        Ok(())
    }

    fn labels(&self, record: &Record, extra: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = record::labels(record, extra);
        labels.insert(OWNER.to_owned(), self.owner.clone());
        labels.insert(REVISION.to_owned(), record.version.to_string());
        labels.extend(self.account.iter().map(|account| (ACCOUNT.to_owned(), account.clone())));
        labels
    }
}

/// Reads the data of a Secret, as its JSON has it. An error says what is wrong.
fn unpack(data: &str) -> Result<Record, String> {
    let data = STANDARD.decode(data).map_err(|error| error.to_string())?;
    record::decode(&data).map_err(|error| error.to_string())
}

/// As much as is read of a Secret with a record.
#[derive(Deserialize)]
struct RecordSecret<'s> {
    #[serde(borrow)]
    metadata: RecordMetadata<'s>,
    #[serde(borrow, default)]
    data: Option<RecordData<'s>>,
}

#[derive(Deserialize)]
struct RecordMetadata<'s> {
    #[serde(borrow)]
    name: Cow<'s, str>,
    #[serde(borrow, rename = "resourceVersion")]
    version: Cow<'s, str>,
    #[serde(borrow, default)]
    labels: Option<RecordLabels<'s>>,
}

#[derive(Deserialize)]
struct RecordLabels<'s> {
    /// That of `PARTS`.
    #[serde(borrow, default, rename = "addon-operator.io/record-parts")]
    parts: Option<Cow<'s, str>>,
}

#[derive(Deserialize)]
struct RecordData<'s> {
    #[serde(borrow, default)]
    release: Option<Cow<'s, str>>,
}

/// Returns what the metadata of a Secret says about a revision of `release`.
pub(super) fn stored(secret: Metadata, release: &str) -> Option<StoredRevision> {
    let Metadata { name, labels, resource_version: written, .. } = secret;
    // The name is what Helm reads a revision by; labels can be edited.
    let (_, version) = record::parse_secret_name(&name).filter(|(name, _)| *name == release)?;
    let status = labels.get("status").map_or(Status::Unknown, |status| Status::from_name(status));
    Some(StoredRevision { version, status, labels, written })
}

/// Returns labels of a revision that a new one carries on: those of users.
pub(super) fn carried(stored: &StoredRevision) -> BTreeMap<String, String> {
    let own = [OWNER, REVISION, ACCOUNT, CHECKSUM, MAINTENANCE, SKIP_HOOKS, PARTS];
    let is_own = |key: &str| own.contains(&key) || ORIGIN.contains(&key);
    stored
        .labels
        .iter()
        .filter(|(key, _)| !record::SYSTEM_LABELS.contains(&key.as_str()) && !is_own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns the owner of releases: a hash of the operator's ConfigMap.
pub(super) fn owner(namespace: &str, config_map: &str) -> String {
    short_hash(&format!("{namespace}/{config_map}"), 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_known_by_the_name_of_its_secret() {
        let item = |name: &str, status: &str| Metadata {
            name: name.to_owned(),
            resource_version: "7".to_owned(),
            namespace: None,
            annotations: BTreeMap::new(),
            labels: [("status", status), ("team", "a"), (OWNER, "x")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        };
        let found = stored(item("sh.helm.release.v1.rel.v3", "deployed"), "rel").unwrap();
        assert_eq!((found.version, found.status), (3, Status::Deployed));
        assert_eq!(carried(&found), [("team".to_owned(), "a".to_owned())].into());
        assert!(stored(item("sh.helm.release.v1.other.v3", "deployed"), "rel").is_none());
        assert!(stored(item("sh.helm.release.v1.rel.vx", "deployed"), "rel").is_none());
        let strange = stored(item("sh.helm.release.v1.rel.v1", "cut"), "rel").unwrap();
        assert_eq!(strange.status, Status::Unknown);
    }

    #[test]
    fn the_owner_depends_on_the_config_map() {
        assert_eq!(owner("ns", "cm").len(), 16);
        assert_ne!(owner("ns", "cm"), owner("ns", "other"));
    }
}

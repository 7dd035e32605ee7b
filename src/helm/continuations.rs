//! Records that fit no Secret: continuation Secrets beside the one that Helm reads. See docs/operating.md#large-records.
//!
//! The label of the head says which parts there are, so that a list of metadata is enough to know it; nothing is asked for records
//! that fit. The head is written before its parts and removed behind them: whatever a kill leaves has a head, which leads to the
//! rest. Parts are owned by their head, too, so that the cluster removes them if somebody else deletes it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::record::{self, EncodeRecordError, Parts, Record, SplitRecord};
use serde_json::{Value, json};

use super::error::ReleaseError;
use super::object::uid;
use super::record_parts::{COMING, EncodedRecord, PARTS, stubs};
use super::storage::Storage;
use crate::cluster::list::Collection;
use crate::cluster::request::{PatchKind, RequestError};

/// The type of a part.
const PART_TYPE: &str = "addon-operator.io/record-part";

/// The key of a part's data.
const PART_KEY: &str = "part";

/// The labels of a part: its release, its revision, and its digest.
const RELEASE: &str = "addon-operator.io/record-release";
const REVISION: &str = "addon-operator.io/record-revision";
const DIGEST: &str = "addon-operator.io/record-digest";

/// How often a part is written where another stands.
const ATTEMPTS: usize = 3;

/// Returns the name of a part; they are counted from 1.
fn part_name(release: &str, version: u32, number: usize) -> String {
    format!("{}.part{number}", record::secret_name(release, version))
}

/// Returns the release and the revision that a Secret is a part of, by its name.
pub(super) fn parse_part_name(name: &str) -> Option<(&str, u32)> {
    let (head, number) = name.rsplit_once(".part")?;
    number.parse::<usize>().ok()?;
    record::parse_secret_name(head)
}

impl Storage {
    /// Returns the parts of all records, of which only the metadata is read.
    pub(super) fn all_parts(&self) -> Collection {
        Collection::new(&self.collection()).with_labels(RELEASE).metadata_only()
    }

    /// Returns a record as Secrets hold it: in one if that is enough.
    ///
    /// # Errors
    ///
    /// It needs too many, or has no form.
    pub(super) fn encode(&self, record: &Record) -> Result<EncodedRecord, EncodeRecordError> {
        // The lock ends here: a match would hold it.
        let whole = self.encoder().encode(record);
        match whole {
            Err(EncodeRecordError::Large { .. }) => {
                self.encoder().split(record, &stubs(&record.manifest)).map(EncodedRecord::Split)
            }
            outcome => outcome.map(EncodedRecord::Whole),
        }
    }

    /// Returns the data of the Secret that Helm reads, of a record that has parts.
    pub(super) fn encode_head(&self, record: &Record) -> Result<String, EncodeRecordError> {
        self.encoder().head(record, &stubs(&record.manifest))
    }

    fn tell_parts(&self, release: &str, version: u32, count: usize) {
        self.parts()
            .send_if_modified(|parts| parts.insert((release.to_owned(), version), count) != Some(count));
    }

    /// Reads the parts of a record, and returns it as a whole.
    ///
    /// # Errors
    ///
    /// A part is not there or not as it was written, or the API server does not answer.
    pub(super) async fn with_parts(&self, head: Record, parts: Parts) -> Result<Record, ReleaseError> {
        let (release, version) = (head.name.clone(), head.version);
        self.tell_parts(&release, version, parts.count);
        let broken = |problem: String| ReleaseError::Record {
            release: release.clone(),
            version,
            problem: format!("{problem}; put it back as it was, or a new revision takes its place"),
        };
        let mut packed = Vec::new();
        for number in 1..=parts.count {
            let name = part_name(&release, version, number);
            let path = format!("{}/{name}", self.collection());
            let shown = format!("its continuation, Secret {}/{name},", self.namespace());
            let Some(secret) = self.requests().get(&path).await? else {
                return Err(broken(format!("{shown} is missing")));
            };
            let data =
                secret.pointer(&format!("/data/{PART_KEY}")).and_then(Value::as_str).unwrap_or_default();
            let part = STANDARD.decode(data).unwrap_or_default();
            let digest = secret.pointer("/metadata/labels").and_then(|labels| labels.get(DIGEST));
            if digest.and_then(Value::as_str) != Some(&record::digest(&part)) {
                return Err(broken(format!("{shown} was altered")));
            }
            packed.extend(part);
        }
        let first = part_name(&release, version, 1);
        if record::digest(&packed) != parts.digest {
            let what = format!("its continuations, from Secret {}/{first} on,", self.namespace());
            return Err(broken(format!("{what} are not those that were written with it")));
        }
        let whole = record::restore(head, &packed).map(|whole| Record { parts: Some(parts), ..whole });
        whole.map_err(|error| {
            broken(format!("its continuations, from Secret {}/{first} on: {error}", self.namespace()))
        })
    }

    /// Writes the parts of a record, whose head has this `uid`.
    pub(super) async fn write_parts(
        &self,
        (release, version): (&str, u32),
        split: &SplitRecord,
        uid: &str,
    ) -> Result<(), RequestError> {
        self.tell_parts(release, version, split.parts.len());
        for (index, part) in split.parts.iter().enumerate() {
            let name = part_name(release, version, index + 1);
            let labels: BTreeMap<&str, String> = [
                (RELEASE, release.to_owned()),
                (REVISION, version.to_string()),
                (DIGEST, record::digest(part)),
            ]
            .into();
            let owner = json!({
                "apiVersion": "v1", "kind": "Secret", "name": record::secret_name(release, version), "uid": uid,
            });
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name, "namespace": self.namespace(), "labels": labels, "ownerReferences": [owner],
                },
                "type": PART_TYPE,
                "immutable": true,
                "data": { PART_KEY: STANDARD.encode(part) },
            });
            self.write_part(&name, &secret).await?;
        }
        Ok(())
    }

    /// Writes a part. One that stands there is of a record that is gone, or of an attempt that was cut off.
    async fn write_part(&self, name: &str, secret: &Value) -> Result<(), RequestError> {
        for attempt in 1.. {
            match self.requests().make(&self.collection(), secret).await {
                Err(error) if error.is_already_there() && attempt < ATTEMPTS => {
                    self.requests().delete(&format!("{}/{name}", self.collection())).await?;
                }
                outcome => return outcome.map(drop),
            }
        }
        Ok(())
    }

    /// Gives parts to a record that was whole, and has become too large for that: it says first that they are coming, so that its
    /// deletion looks for them from then on. Its head is written behind that. Nothing is done if it is gone.
    pub(super) async fn add_parts(
        &self,
        release: &str,
        version: u32,
        split: &SplitRecord,
    ) -> Result<(), RequestError> {
        let path = format!("{}/{}", self.collection(), record::secret_name(release, version));
        let change = json!({"metadata": {"labels": { PARTS: COMING }}});
        self.requests().edit(&path, PatchKind::Merge, &change).await?;
        let Some(head) = self.requests().get(&path).await? else { return Ok(()) };
        self.write_parts((release, version), split, uid(&head)).await
    }

    /// Deletes all parts of a revision.
    pub(super) async fn delete_parts(&self, release: &str, version: u32) -> Result<(), RequestError> {
        let selector = format!("{RELEASE}={release},{REVISION}={version}");
        self.parts().send_if_modified(|parts| parts.remove(&(release.to_owned(), version)).is_some());
        for part in self.requests().list_metadata(&self.collection(), &selector).await? {
            self.requests().delete(&format!("{}/{}", self.collection(), part.name)).await?;
        }
        Ok(())
    }
}

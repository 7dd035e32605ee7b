//! Records of releases: what Helm keeps in Secrets.

mod encode;
mod parts;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use encode::{DecodeRecordError, EncodeRecordError, Encoder, MAX_RECORD_BYTES, decode, encode};
pub use parts::{MAX_PART_BYTES, MAX_PARTS, Parts, SplitRecord, digest, restore};

use crate::chart::{Chart, File};
use crate::manifest::{DeletePolicy, Hook, HookEvent, LogPolicy};
use crate::metadata::Metadata;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";

/// The key in a Secret's data.
pub const DATA_KEY: &str = "release";

/// Labels that Helm itself sets; everything else is the user's.
pub const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// Returns the name of the Secret of one revision.
pub fn secret_name(release: &str, version: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{version}")
}

/// Returns the release and the revision that the name of a Secret says.
pub fn parse_secret_name(name: &str) -> Option<(&str, u32)> {
    let (release, version) = name.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?;
    Some((release, version.parse().ok()?))
}

/// Returns the labels of a Secret: Helm's and `extra`, which can't override them.
pub fn labels(record: &Record, extra: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut labels = extra.clone();
    labels.retain(|key, _| !SYSTEM_LABELS.contains(&key.as_str()));
    labels.insert("name".to_owned(), record.name.clone());
    labels.insert("owner".to_owned(), "helm".to_owned());
    labels.insert("status".to_owned(), record.info.status.name().to_owned());
    labels.insert("version".to_owned(), record.version.to_string());
    labels
}

/// One revision of a release.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The name of the release.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What became of it.
    #[serde(default)]
    pub info: Info,
    /// The chart with its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Box<RawValue>>,
    /// The values that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<RawValue>>,
    /// The objects, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks and how they ran last.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub hooks: Vec<HookRecord>,
    /// The number of the revision.
    #[serde(default)]
    pub version: u32,
    /// The namespace of the release.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// How its objects were written: [`SERVER_SIDE`], or something else for patches of the client. Helm 4 goes on in the same way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apply_method: String,
    /// What of it is not in the Secret that Helm reads. The record itself does not say it.
    #[serde(skip)]
    pub parts: Option<Parts>,
}

/// The method of a record whose objects were written by server-side apply.
pub const SERVER_SIDE: &str = "ssa";

/// What became of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// When the first revision was installed.
    #[serde(default)]
    pub first_deployed: Time,
    /// When this revision was installed.
    #[serde(default)]
    pub last_deployed: Time,
    /// When the release was uninstalled.
    #[serde(default)]
    pub deleted: Time,
    /// One sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The state.
    #[serde(default)]
    pub status: Status,
    /// The rendered NOTES.txt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// The state of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Its objects are in the cluster.
    Deployed,
    /// Something went wrong.
    Failed,
    /// Being installed, or cut off while it was.
    PendingInstall,
    /// Being rolled back to, or cut off while it was.
    PendingRollback,
    /// Being upgraded to, or cut off while it was.
    PendingUpgrade,
    /// A later revision took its place.
    Superseded,
    /// Its objects were deleted and the record was kept.
    Uninstalled,
    /// Its objects are being deleted, or were until somebody was cut off.
    Uninstalling,
    /// Anything else.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployed => "deployed",
            Self::Failed => "failed",
            Self::PendingInstall => "pending-install",
            Self::PendingRollback => "pending-rollback",
            Self::PendingUpgrade => "pending-upgrade",
            Self::Superseded => "superseded",
            Self::Uninstalled => "uninstalled",
            Self::Uninstalling => "uninstalling",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the state of that name; any other name is [`Status::Unknown`].
    pub fn from_name(name: &str) -> Self {
        [
            Self::Deployed,
            Self::Failed,
            Self::PendingInstall,
            Self::PendingRollback,
            Self::PendingUpgrade,
            Self::Superseded,
            Self::Uninstalled,
            Self::Uninstalling,
        ]
        .into_iter()
        .find(|status| status.name() == name)
        .unwrap_or(Self::Unknown)
    }

    /// Reports whether somebody was cut off in the middle of an operation.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingRollback | Self::PendingUpgrade)
    }
}

/// A point in time, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time(pub Option<Timestamp>);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(time) => serializer.collect_str(time),
            None => serializer.serialize_str(""),
        }
    }
}

/// Times that can't be read count as none: nothing depends on them.
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self(text.and_then(|text| text.parse().ok())))
    }
}

/// A hook and how it ran last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The template it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// When it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub events: Vec<HookEvent>,
    /// The last run.
    #[serde(default)]
    pub last_run: HookRun,
    /// Hooks of one moment run from the lowest weight on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// When it is deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub delete_policies: Vec<DeletePolicy>,
    /// When its output is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub output_log_policies: Vec<LogPolicy>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// One run of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// When it began.
    #[serde(default)]
    pub started_at: Time,
    /// When it was done.
    #[serde(default)]
    pub completed_at: Time,
    /// `Running`, `Succeeded`, `Failed`, `Unknown`; empty before the first run.
    #[serde(default)]
    pub phase: String,
}

impl From<&Hook> for HookRecord {
    fn from(hook: &Hook) -> Self {
        Self {
            name: hook.name.clone(),
            kind: hook.kind.clone(),
            path: hook.path.clone(),
            manifest: hook.manifest.clone(),
            events: hook.events.clone(),
            last_run: HookRun::default(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
            output_log_policies: hook.log_policies.clone(),
        }
    }
}

impl From<&HookRecord> for Hook {
    fn from(record: &HookRecord) -> Self {
        Self {
            name: record.name.clone(),
            kind: record.kind.clone(),
            path: record.path.clone(),
            manifest: record.manifest.clone(),
            events: record.events.clone(),
            weight: record.weight,
            delete_policies: record.delete_policies.clone(),
            log_policies: record.output_log_policies.clone(),
        }
    }
}

/// The form in which a record holds a chart.
#[derive(Serialize)]
struct StoredChart<'c> {
    metadata: &'c Metadata,
    lock: &'c Option<Value>,
    templates: Option<Vec<StoredFile<'c>>>,
    values: Option<&'c Map<String, Value>>,
    schema: Option<Base64<'c>>,
    files: Option<Vec<StoredFile<'c>>>,
}

#[derive(Serialize)]
struct StoredFile<'c> {
    name: &'c str,
    data: Base64<'c>,
}

struct Base64<'c>(&'c [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(self.0))
    }
}

/// Returns the form in which a record holds `chart`; its dependencies are not part of it.
pub fn stored_chart(chart: &Chart) -> Result<Box<RawValue>, EncodeRecordError> {
    raw(&StoredChart {
        metadata: &chart.metadata,
        lock: &chart.lock,
        templates: stored_files(&chart.templates),
        values: chart.values.as_deref(),
        schema: chart.schema.as_deref().map(Base64),
        files: stored_files(&chart.files),
    })
}

/// Returns the form in which a record holds the user's values; no values are left out.
pub fn stored_config(values: &Map<String, Value>) -> Result<Option<Box<RawValue>>, EncodeRecordError> {
    if values.is_empty() { Ok(None) } else { raw(values).map(Some) }
}

fn stored_files(files: &[File]) -> Option<Vec<StoredFile<'_>>> {
    let stored = files.iter().map(|File { name, data }| StoredFile { name, data: Base64(data) });
    (!files.is_empty()).then(|| stored.collect())
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, EncodeRecordError> {
    let text = golang::json::to_vec(value).map_err(EncodeRecordError::Json)?;
    let text = String::from_utf8(text).map_err(|_| EncodeRecordError::Text)?;
    RawValue::from_string(text).map_err(EncodeRecordError::Json)
}

#[cfg(test)]
mod tests;

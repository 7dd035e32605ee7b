//! Records that fit no Secret: a head that Helm reads as a record, and the rest in parts.
//!
//! The rest has what never changes of a revision: its chart, its values, and what it rendered to. So only the head is written when
//! the state of a revision changes. The head has as much of that as it can hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::encode::{DecodeRecordError, EncodeRecordError, Encoder, unpack};
use super::{HookRecord, Record};

/// The most bytes of the rest in one part. A Secret may hold 1 MiB with everything.
pub const MAX_PART_BYTES: usize = 1_000_000;

/// The most parts that a record may have.
pub const MAX_PARTS: usize = 32;

/// How many digits of a digest are kept: a label has at most 63.
const DIGITS: usize = 40;

/// What of a chart Helm needs to show a revision, and what a shorter head has.
const SHOWN: [&str; 3] = ["lock", "metadata", "values"];
const LEAST: [&str; 1] = ["metadata"];

/// Which parts a record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// How many there are, from 1 to [`MAX_PARTS`].
    pub count: usize,
    /// The digest of all of them, one behind the other.
    pub digest: String,
}

/// A record in several pieces.
#[derive(Clone, Debug)]
pub struct SplitRecord {
    /// The data of the Secret that Helm reads.
    pub head: String,
    /// The parts in their order, each of at most [`MAX_PART_BYTES`].
    pub parts: Vec<Vec<u8>>,
}

impl SplitRecord {
    /// Returns which parts it has.
    pub fn reference(&self) -> Parts {
        let mut sum = Sha256::new();
        self.parts.iter().for_each(|part| sum.update(part));
        Parts { count: self.parts.len(), digest: digits(sum) }
    }
}

/// What never changes of a revision.
#[derive(Deserialize, Serialize)]
struct Rest {
    chart: Option<Box<RawValue>>,
    config: Option<Box<RawValue>>,
    manifest: String,
    /// The documents of the hooks, in their order.
    hooks: Vec<String>,
}

/// Returns the digest of a part.
pub fn digest(part: &[u8]) -> String {
    digits(Sha256::new_with_prefix(part))
}

fn digits(sum: Sha256) -> String {
    sum.finalize().iter().take(DIGITS / 2).fold(String::new(), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Encoder {
    /// Returns a record in pieces. `stubs` stand for its manifest if the head can't hold it.
    ///
    /// # Errors
    ///
    /// It needs more than [`MAX_PARTS`], or has no form.
    pub fn split(&mut self, record: &Record, stubs: &str) -> Result<SplitRecord, EncodeRecordError> {
        self.split_within(record, stubs, MAX_PARTS)
    }

    /// Does the same with `most` parts at most.
    pub(super) fn split_within(
        &mut self,
        record: &Record,
        stubs: &str,
        most: usize,
    ) -> Result<SplitRecord, EncodeRecordError> {
        let rest = Rest {
            chart: record.chart.clone(),
            config: record.config.clone(),
            manifest: record.manifest.clone(),
            hooks: record.hooks.iter().map(|hook| hook.manifest.clone()).collect(),
        };
        let json = golang::json::to_vec(&rest).map_err(EncodeRecordError::Json)?;
        let packed = self.pack(&json).map_err(EncodeRecordError::Gzip)?;
        let parts: Vec<Vec<u8>> = packed.chunks(MAX_PART_BYTES).map(<[u8]>::to_vec).collect();
        if parts.len() > most {
            let (name, bytes, most) = (record.name.clone(), packed.len(), most * MAX_PART_BYTES);
            return Err(EncodeRecordError::TooLarge { name, bytes, most });
        }
        Ok(SplitRecord { head: self.head(record, stubs)?, parts })
    }

    /// Returns the data of the Secret that Helm reads, of a record that has parts. `stubs` stand for its manifest if it is too
    /// large for that.
    ///
    /// # Errors
    ///
    /// Not even the least of it fits, or it has no form.
    pub fn head(&mut self, record: &Record, stubs: &str) -> Result<String, EncodeRecordError> {
        let chart = |kept: &[&str]| record.chart.as_deref().map(|chart| reduced(chart, kept)).transpose();
        let shown = Record { chart: chart(&SHOWN)?, ..record.clone() };
        match self.encode(&shown) {
            Err(EncodeRecordError::Large { .. }) => {}
            outcome => return outcome,
        }
        let without_document = |hook: &HookRecord| HookRecord { manifest: String::new(), ..hook.clone() };
        self.encode(&Record {
            chart: chart(&LEAST)?,
            config: None,
            manifest: stubs.to_owned(),
            hooks: record.hooks.iter().map(without_document).collect(),
            ..record.clone()
        })
    }
}

/// Returns a chart with some of its fields.
fn reduced(chart: &RawValue, kept: &[&str]) -> Result<Box<RawValue>, EncodeRecordError> {
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(chart.get()).map_err(EncodeRecordError::Json)?;
    fields.retain(|name, _| kept.contains(&name.as_str()));
    super::raw(&fields)
}

/// Returns the whole record, of which `head` is what Helm reads and `packed` are all parts, one behind the other.
///
/// # Errors
///
/// The parts are not those of a record, or of another one.
pub fn restore(head: Record, packed: &[u8]) -> Result<Record, DecodeRecordError> {
    let json = unpack(packed)?;
    let rest: Rest = serde_json::from_slice(&json).map_err(DecodeRecordError::Json)?;
    if rest.hooks.len() != head.hooks.len() {
        return Err(DecodeRecordError::OtherRecord);
    }
    let whole = |(hook, manifest): (HookRecord, String)| HookRecord { manifest, ..hook };
    Ok(Record {
        chart: rest.chart,
        config: rest.config,
        manifest: rest.manifest,
        hooks: head.hooks.into_iter().zip(rest.hooks).map(whole).collect(),
        ..head
    })
}

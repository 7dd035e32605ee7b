//! What must hold for the data of every Secret that claims to hold a release.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::manifest::{self, Hook};
use chart::record::{self, EncodeRecordError, HookRecord, Record, Status};

/// Reads `bytes` as they are, as what base64 holds, and as what gzip in base64 holds: random changes would hardly ever
/// leave these intact.
pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    check(STANDARD.encode(bytes).as_bytes());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    if packed.write_all(bytes).is_ok()
        && let Ok(packed) = packed.finish()
    {
        check(STANDARD.encode(packed).as_bytes());
    }
}

fn check(data: &[u8]) {
    let read = match record::decode(data) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let name = record::secret_name(&read.name, read.version);
    assert_eq!(record::parse_secret_name(&name), Some((&*read.name, read.version)));
    assert_eq!(Status::from_name(read.info.status.name()), read.info.status);
    let labels = record::labels(&read, &BTreeMap::new());
    assert_eq!(labels.get("name"), Some(&read.name));
    for document in manifest::split(&read.manifest) {
        assert!(!document.trim().is_empty());
    }
    for hook in &read.hooks {
        let again = HookRecord::from(&Hook::from(hook));
        assert_eq!(again, HookRecord { last_run: again.last_run.clone(), ..hook.clone() });
    }
    let Some(once) = rewritten(&read) else { return };
    assert_eq!((&once.name, once.version, &once.info), (&read.name, read.version, &read.info));
    assert_eq!((&once.manifest, &once.hooks), (&read.manifest, &read.hooks));
    let Some(twice) = rewritten(&once) else { return };
    assert_eq!(text(&once), text(&twice), "what was written once stays as it is");
}

/// Returns the record as it is read after it was written; nothing if it does not fit a Secret.
fn rewritten(record: &Record) -> Option<Record> {
    match record::encode(record) {
        Ok(data) => Some(record::decode(data.as_bytes()).unwrap()),
        Err(EncodeRecordError::Large { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn text(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

//! The record in a Lease, as the leader election of client-go writes it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// How many letters of a holder's name are kept. That of a pod has at most 253, and it is shown to people.
const HOLDER: usize = 512;

/// Who holds a Lease, and since when. Times of day are texts: nothing is decided by other people's clocks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LeaseRecord {
    /// Who holds it; `None` when nobody does.
    pub holder: Option<Arc<str>>,
    /// How long it is held without being renewed, if the record says so.
    pub duration: Option<Duration>,
    /// When the holder took it.
    pub acquired: Option<String>,
    /// When the holder renewed it last.
    pub renewed: Option<String>,
    /// How often its holder changed.
    pub transitions: u32,
    /// The resource version of the object.
    pub version: String,
}

impl LeaseRecord {
    /// Reads a Lease as the API server sends it. What can't be understood counts as not written.
    pub fn of(lease: &Value) -> Self {
        let text = |path: &str| lease.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let number = |path: &str| lease.pointer(path).and_then(Value::as_u64);
        let holder = text("/spec/holderIdentity").filter(|holder| !holder.trim().is_empty());
        Self {
            holder: holder.map(|holder| holder.chars().take(HOLDER).collect::<String>().into()),
            duration: number("/spec/leaseDurationSeconds").filter(|secs| *secs > 0).map(Duration::from_secs),
            acquired: text("/spec/acquireTime"),
            renewed: text("/spec/renewTime"),
            transitions: number("/spec/leaseTransitions")
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or_default(),
            version: text("/metadata/resourceVersion").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_of_client_go_is_read() {
        let lease = json!({
            "metadata": {"resourceVersion": "7"},
            "spec": {"holderIdentity": "a.1-2-3-4.ops.pod", "leaseDurationSeconds": 35, "leaseTransitions": 2,
                "acquireTime": "2026-01-01T00:00:00.000001Z", "renewTime": "2026-01-01T00:00:10.000001Z"},
        });
        let record = LeaseRecord::of(&lease);
        assert_eq!(record.holder.as_deref(), Some("a.1-2-3-4.ops.pod"));
        assert_eq!(record.duration, Some(Duration::from_secs(35)));
        assert_eq!((record.transitions, record.version.as_str()), (2, "7"));
        assert_eq!(record.renewed.as_deref(), Some("2026-01-01T00:00:10.000001Z"));
    }

    #[test]
    fn what_is_garbage_counts_as_not_written() {
        for spec in [
            json!(null),
            json!([]),
            json!({"holderIdentity": " ", "leaseDurationSeconds": -1, "leaseTransitions": "many"}),
            json!({"holderIdentity": 7, "leaseDurationSeconds": "35s", "leaseTransitions": u64::MAX}),
        ] {
            assert_eq!(LeaseRecord::of(&json!({"spec": spec})), LeaseRecord::default(), "{spec}");
        }
        let long = LeaseRecord::of(&json!({"spec": {"holderIdentity": "x".repeat(100_000)}}));
        assert_eq!(long.holder.unwrap().len(), HOLDER);
    }
}

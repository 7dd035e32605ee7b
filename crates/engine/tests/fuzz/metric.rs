//! What must hold for everything that a hook writes into `METRICS_PATH`.

use engine::metric::{self, MetricAction};

/// Reads `bytes`; operations that pass must be such that they can be exported.
pub(crate) fn run(bytes: &[u8]) {
    let operations = match metric::parse(bytes) {
        Ok(operations) => operations,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for operation in operations {
        let is_nameless = matches!(operation.action, MetricAction::Expire | MetricAction::Unknown(_));
        assert!(is_nameless || !operation.name.is_empty(), "{operation:?}");
        if let MetricAction::Add(value) = operation.action {
            assert!(value >= 0.0, "{operation:?}");
        }
    }
}

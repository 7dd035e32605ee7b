//! What must hold for everything that a hook prints.

use engine::hook::log::LineLog;
use engine::view::Secrets;

/// Logs `bytes` at once and byte by byte; both must give the same entries.
pub(crate) fn run(bytes: &[u8]) {
    let none = Secrets::default();
    let mut whole = LineLog::new(true);
    let mut entries = whole.push(bytes, &none);
    entries.extend(whole.finish(&none));
    let mut slow = LineLog::new(true);
    let mut singles: Vec<_> = bytes.iter().flat_map(|byte| slow.push(&[*byte], &none)).collect();
    singles.extend(slow.finish(&none));
    // Not assert_eq: what it would print can have megabytes.
    assert!(entries == singles, "{} and {} entries", entries.len(), singles.len());
    for entry in entries {
        assert!(entry.message.len() <= 10_000 + ":truncated".len());
        assert!(entry.fields.is_empty() || serde_json::from_str::<serde_json::Value>(&entry.fields).is_ok());
    }
}

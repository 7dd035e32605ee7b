//! What the Secret over the ConfigMap said before: failures of that time may quote it, and are shown still.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

/// How many parts of the Secret are remembered.
const MOST: usize = 256;

/// How many bytes of JSON they may have together.
const MOST_BYTES: usize = 4 << 20;

/// The parts of the Secret that are not in force any more, the last one at the end. The oldest make room.
#[derive(Debug, Default)]
pub(super) struct EarlierSecrets {
    parts: VecDeque<Part>,
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    values: Arc<Value>,
    bytes: usize,
}

impl EarlierSecrets {
    /// Remembers what a section had from the Secret until now.
    pub(super) fn add(&mut self, values: Arc<Value>) {
        if self.parts.iter().any(|part| part.values == values) {
            return;
        }
        let bytes = values.to_string().len();
        self.bytes += bytes;
        self.parts.push_back(Part { values, bytes });
        while self.parts.len() > MOST || (self.bytes > MOST_BYTES && self.parts.len() > 1) {
            let Some(oldest) = self.parts.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }

    /// Iterates over them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.parts.iter().map(|part| &*part.values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_make_room_and_nothing_is_there_twice() {
        let mut earlier = EarlierSecrets::default();
        for number in 0..2 * MOST {
            earlier.add(Arc::new(json!({"password": format!("number {number}")})));
            earlier.add(Arc::new(json!({"password": format!("number {number}")})));
        }
        assert_eq!(earlier.iter().count(), MOST);
        assert_eq!(earlier.iter().next(), Some(&json!({"password": format!("number {MOST}")})));
        earlier.add(Arc::new(json!("x".repeat(MOST_BYTES))));
        assert_eq!(earlier.iter().count(), 1, "the last one is kept, however long it is");
        earlier.add(Arc::new(json!({"password": "short"})));
        assert_eq!(earlier.iter().collect::<Vec<_>>(), [&json!({"password": "short"})]);
    }
}

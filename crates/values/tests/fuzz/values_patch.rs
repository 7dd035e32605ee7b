//! What must hold for every patch file that a hook leaves.

use std::sync::Arc;

use serde_json::json;
use values::Section;
use values::patch::{Patch, Root, Target};

/// Reads `bytes` as a patch; if it applies, the section stays a map and what is
/// stored gives the same result when it is replayed on it.
pub(crate) fn run(bytes: &[u8]) {
    for root in [Root::Global, Root::Module("m".to_owned())] {
        let Ok(patch) = Patch::read(bytes, Target::Values, &root) else {
            continue;
        };
        let statics = json!({"a": {"b": [1, {"c": null}]}, "s": "x"});
        let Ok(section) = Section::new(root, statics, Arc::default()) else {
            continue;
        };
        if let Ok(after) = section.with_values_patch(&patch) {
            assert!(after.result().is_object());
        }
        if let Ok(after) = section.with_config_patch(&patch) {
            assert!(after.result().is_object());
        }
    }
}

//! YAML as Go's `sigs.k8s.io/yaml` reads and writes it.
//!
//! The reader follows the rules that manifests and `values.yaml` files in the
//! field rely on: `yes` and `off` are booleans, `0123` is octal, `<<` merges,
//! the last of two equal keys wins, keys become strings. The writer quotes and
//! folds so that every string is read back as itself.
//!
//! What the operator prints itself (`-o yaml`) is written here, too: `serde_yaml` leaves `on`, `0123` and dates
//! without quotes, and programs written in Go read something else than a string.

mod base64;
mod build;
mod emit;
mod error;
mod events;
mod key;
mod lists;
mod locate;
mod merge_key;
mod order;
mod rules;
mod scalar;
mod timestamp;
mod write;

pub use build::{
    MAX_DEPTH, parse, parse_all, parse_all_v3, parse_each, parse_only, parse_plain, parse_strict,
    parse_within,
};
pub use emit::{emit, emit_pretty, emit_v3};
pub use error::{Position, YamlError, YamlProblem};
pub use lists::{ListPart, parse_lists, parse_only_lists};
pub use locate::locate;

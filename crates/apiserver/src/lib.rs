//! A small Kubernetes API server for development and tests.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod decode;
pub mod defaults;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod document;
pub mod kind;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod managed_fields;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod patch;
pub mod quantity;
pub mod schema;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod table;
pub mod time;
pub mod types;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod validation;

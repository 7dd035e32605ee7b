//! What an object of Kubernetes is, for the operator and for the embedded API server alike.
//!
//! Everything here is pure: trees and texts in, trees, texts and errors out.
//!
//! - [`types`] is the table of the fields of built-in kinds, and the form in which custom kinds have theirs.
//! - [`decode`] reads JSON as an object of a type, with the words of Go's decoder.
//! - [`patch`] applies and makes JSON patches, merge patches and strategic merge patches.
//! - [`managed_fields`] is server-side apply: who owns which fields.
//! - [`selector`] reads label and field selectors; [`names`] checks names, labels, ports and addresses.
//! - [`schema`] is OpenAPI: it completes, prunes and validates values and custom objects.
//! - [`legal`] makes names, keys and values of labels from any text.
//! - [`memory`] estimates what a tree takes.
//! - [`secret`] has texts of a Secret where the API server keeps them.
//! - [`readiness`] judges whether an object is as its specification asks.
//! - [`quantity`] and [`time`] are amounts and instants as fields hold them.

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod decode;
pub mod extent;
pub mod go_value;
pub mod legal;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod managed_fields;
pub mod memory;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod names;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod patch;
pub mod quantity;
pub mod readiness;
pub mod schema;
pub mod secret;
pub mod selector;
pub mod time;
pub mod types;

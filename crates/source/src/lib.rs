//! Module sources: URLs, indexes and bundles, without fetching anything.
//!
//! Everything here is pure: texts, bytes and trees in, decisions and messages out. An adapter fetches, unpacks and keeps.
//!
//! - [`url`] reads the URL of an index file, and says where a bundle lies; [`template`] fills its placeholders.
//! - [`allow`] decides which URLs and which private hosts may be used.
//! - [`index`] reads an index file; [`versions`] chooses from its lines.
//! - [`archive_path`] decides which entries of an archive may be unpacked.
//! - [`bundle`] lints a bundle that was unpacked.
//! - [`chart_repository`] reads indexes of charts, chooses versions, and says what the cluster keeps of a chart.
//! - [`credentials`] reads where the credentials of a release are, and puts them together.
//! - [`chunk`] splits a packed bundle into parts that fit a Secret; [`digest`] names it.
//! - [`git`] reads what git servers send.
//! - [`registry`] reads what registries (OCI) send, of charts and of bundles.
//! - [`signature`] reads public keys, and what a signature is about.
//! - [`mirror`] says what stands in for a URL.
//! - [`redact`] takes secrets out of messages.

pub mod allow;
pub mod archive_path;
pub mod bundle;
pub mod chart_repository;
pub mod chunk;
pub mod credentials;
pub mod digest;
pub mod git;
pub mod index;
pub mod mirror;
pub mod redact;
pub mod registry;
pub mod signature;
pub mod template;
pub mod url;
pub mod versions;

//! Charts and bundles in OCI registries: what addresses mean, and how answers of a registry are read. Nothing is fetched here.
//!
//! ```text
//! reference ─▶ (request) ─▶ challenge ─▶ (token) ─▶ tags ─▶ manifest ─▶ (layer)
//! ```

pub mod challenge;
pub mod docker_config;
pub mod manifest;
pub mod reference;
pub mod tags;

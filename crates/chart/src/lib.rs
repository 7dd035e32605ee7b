//! Helm charts: load, render, order and record, without doing anything itself.

pub mod call;
pub mod chart;
mod checksum;
pub mod coalesce;
pub mod decode;
pub mod dependency;
pub mod flags;
pub mod functions;
mod kept;
pub mod load;
pub mod manifest;
pub mod metadata;
mod name;
pub mod object;
pub mod printout;
pub mod record;
pub mod render;
pub mod schema;
pub mod semver;
pub mod strvals;
pub mod template;
pub mod value;
pub mod warning;
pub mod world;
pub mod yaml;

pub use checksum::checksum;
pub use name::{NameError, release_name};

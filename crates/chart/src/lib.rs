//! Helm charts: load, render, order and record, without doing anything itself.

pub mod chart;
mod checksum;
pub mod coalesce;
pub mod decode;
pub mod definitions;
pub mod dependency;
pub mod environment;
pub mod functions;
pub mod load;
pub mod manifest;
pub mod metadata;
pub mod object;
pub mod record;
mod release_name;
pub mod render;
pub mod render_cache;
pub mod schema;
pub mod semver;
pub mod strvals;
mod table;
pub mod template;
pub mod template_output;
pub mod value;
pub mod value_flags;
pub mod warnings;
pub mod yaml;

pub use checksum::checksum;
pub use release_name::{MAX_RELEASE_NAME, NameError, release_name};

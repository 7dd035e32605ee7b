//! What is watched and changed in the cluster.

mod config_source;
mod filtering;
mod kinds;
mod monitors;
mod patch;
mod stream;
mod watching;

pub use config_source::ConfigSource;
pub use monitors::{Healths, Monitors, WatchHealth};
pub use patch::Patcher;

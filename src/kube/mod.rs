//! What is watched and changed in the cluster.

mod config_map;
mod event_recorder;
mod monitor;
mod object_patch;

pub use config_map::{ConfigFeed, ConfigSource, ConfigSources};
pub use event_recorder::{EventRecorder, Written};
pub use monitor::{Monitors, WatchTiming, WatchTimings};
pub use object_patch::Patcher;

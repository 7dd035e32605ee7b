//! What is watched and changed in the cluster.

mod config_source;
mod events;
mod feed;
mod filtering;
mod following;
mod kinds;
mod monitors;
mod namespaces;
mod patch;
mod stream;
mod timings;
mod watching;

pub use config_source::ConfigSource;
pub use events::Events;
pub use monitors::{Healths, Monitors, WatchHealth};
pub use patch::Patcher;
pub use timings::{Timing, Timings};

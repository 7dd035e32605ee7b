//! Monitors: what bindings want to see of the cluster, and the watches that show it.

mod follow;
mod informer;
mod monitors;
mod namespaces;
mod object_filter;
mod timing;

pub use monitors::{Healths, Monitors, WatchHealth};
pub use timing::{Timing, Timings};

//! Monitors: what bindings want to see of the cluster, and the watches that show it.

mod changes;
mod condition;
mod follow;
mod informer;
mod listing;
mod monitors;
mod namespaces;
mod object_filter;
mod selection;
mod subscriptions;
mod timing;

pub use monitors::Monitors;
pub use timing::{WatchTiming, WatchTimings};

//! Releases: charts on disk, records in Secrets, objects in the cluster.

mod dsa;
pub mod files;
mod keys;
pub mod stack;
pub mod template;
pub mod world;

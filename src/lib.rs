//! The addon operator: adapters around the pure engine.

pub mod app;
pub mod broker;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod dev;
mod directory_trust;
mod directory_watch;
pub mod driver;
pub mod effects;
pub mod fence;
mod file_lock;
pub mod helm;
pub mod hook;
pub mod http;
mod http_listener;
pub mod kube;
mod lasting_task;
pub mod lease;
mod line_diff;
pub mod load;
pub mod process;
mod regular_file;
mod remote;
pub mod repository;
pub mod schedule;
pub mod source;
pub mod telemetry;
pub mod testing;
pub mod webhook;

/// The tests of this library have the heap of the program.
#[cfg(test)]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

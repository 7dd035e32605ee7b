//! A small Kubernetes API server for development and tests.
pub mod kind;

//! A small Kubernetes API server for development and tests.

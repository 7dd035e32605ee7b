//! A small Kubernetes API server for development and tests.
//!
//! ```text
//!            kubectl, helm, controllers             tests
//!                      │ TLS                          │ in process
//! server          transport ───────── endpoint ────────┘  faults, audit, tokens
//!                                        │
//!                                      routes ─────────── discovery, openapi, reviews
//!                              ┌─────────┴─────────┐
//! requests                   read                write    subresources
//!                              └─────────┬─────────┘
//!                                        │   ┌─────────── controllers: the work queue, after each request
//! cluster                             commit ──────────── passes changes to registry, work queue, state file
//!                                        │
//! state              storage, registry, services, authentication
//!                                        │
//! store                       revision → event; no I/O, no clock
//! ```
//!
//! A module imports only what stands below it: store, registry, strategy and definitions, storage, cluster, webhooks, request,
//! admission, read and write, subresources, controllers, server.
//!
//! A write passes these steps in this order (`write`):
//!
//! 1. decode the body, check its types, drop unknown fields;
//! 2. namespace, name and revision against the request; for a status, take the rest from the stored version;
//! 3. defaults;
//! 4. managed fields: what the client sent, so that what the server adds has no owner;
//! 5. for a new object: generated name, identity, time, first status;
//! 6. admission, which looks at other objects and fills in more; the generation is counted;
//! 7. validation;
//! 8. commit.
//!
//! A server-side apply merges managed fields first, then continues with step 1 for the merged object.

mod admission;
mod authentication;
mod authorization;
mod bootstrap;
pub mod cli;
mod cluster;
mod config;
mod controllers;
pub mod defaults;
mod definitions;
mod discovery;
mod fault_injection;
mod fields;
mod fingerprint;
pub mod kind;
mod object_meta;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod openapi;
mod pod_resources;
mod protobuf;
mod random;
mod read;
mod registry;
mod regular_file;
mod request;
mod response;
mod reviews;
mod server;
mod services;
mod status;
mod storage;
pub mod store;
mod strategy;
mod subresources;
mod sync;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod table;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod validation;
mod webhooks;
mod work_queue;
mod write;
mod yaml;

pub use cli::{Options, RunError, run};
pub use config::{Clock, Config};
pub use fault_injection::{Effect, FaultPlan, Faults};
pub use server::endpoint::{ConnectionCut, Endpoint};
pub use server::transport::{Serving, TransportError};
pub use server::{ApiServer, Builder, StartError};
pub use status::{ApiError, Cause};
pub use storage::StateError;

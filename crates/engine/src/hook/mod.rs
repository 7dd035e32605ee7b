//! What the operator and a hook say to each other, as plain data.
//!
//! ```text
//! hook --config ─▶ config ─▶ HookSpec
//! event ─▶ BindingContext ─▶ combine ─▶ RunContexts ─▶ BINDING_CONTEXT_PATH
//! METRICS_PATH ─▶ metric      KUBERNETES_PATCH_PATH ─▶ object_patch
//! VALIDATING_RESPONSE_PATH, CONVERSION_RESPONSE_PATH ─▶ response
//! ```

pub(crate) mod combine;
pub mod config;
pub mod context;
mod domain;
mod error_list;
mod limits;
pub mod log;
pub mod metric;
pub mod object_patch;
pub mod reconcile;
pub mod response;
pub mod selection;
pub mod snapshot;
pub mod spec;

pub use context::{BindingContext, RunContexts, Trigger};
pub use limits::HookLimits;
pub use reconcile::ReconcileBinding;
pub use selection::{MonitorSpec, Selection};
pub use spec::{
    AdmissionKind, ConfigVersion, HookKind, HookSpec, KubernetesBinding, Lifecycle, ScheduleBinding,
    WatchEvent,
};

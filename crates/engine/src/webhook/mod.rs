//! Webhooks: which reviews of the API server which hook answers, and what the API server is told of that.
//!
//! See docs/webhooks.md.
//!
//! ```text
//! hooks in service ─▶ index ─▶ registrar ─▶ configurations, definitions
//!                       ▼
//! review ─▶ request ─▶ reviews ─▶ run of a hook, beside the queues ─▶ response
//!                       ▲
//!                  conversion: rules, paths, what has to be the same afterwards
//! configuration_watch, mending: what others do to configurations and definitions, and how often it is put right
//! refused: webhooks that the API server does not take, which are left out
//! health: webhooks that fail or deny everything
//! ```

mod configuration_watch;
mod conversion;
mod health;
mod index;
mod mending;
mod refused;
mod registrar;
mod registration;
mod request;
mod response;
mod review;
mod reviews;
mod webhooks;

pub(crate) use response::Response;
pub(crate) use reviews::{Answered, Stage};
pub(crate) use webhooks::{WebhookStage, Webhooks};

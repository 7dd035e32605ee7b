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
//! ```

mod conversion;
mod index;
mod registrar;
mod registration;
mod request;
mod reviews;
mod webhooks;

pub(crate) use reviews::{Answered, Response, Stage};
pub(crate) use webhooks::Webhooks;

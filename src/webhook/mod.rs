//! Webhooks: takes reviews of the API server over HTTPS, and tells it that there is somebody to ask.
//!
//! ```text
//! files, or a Secret with our own authority ─▶ certificates ─▶ TLS
//! API server ─▶ listener ─▶ Event::ReviewRequested      Effect::AnswerReview ─▶ pending ─▶ answer
//! Effect::RegisterWebhooks ─▶ registration ─▶ configurations, definitions
//! ```

mod authority;
mod certificates;
mod clock;
mod error;
mod listener;
mod pending;
mod registration;
mod webhooks;

pub use certificates::CertificateFiles;
pub use clock::Clock;
pub use error::WebhookError;
pub use webhooks::{Options, Webhooks, uninstall};

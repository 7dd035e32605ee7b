//! Which of several operators may act, by a Lease of Kubernetes.
//!
//! See docs/high-availability.md.
//!
//! ```text
//!            Lease is free, or was not renewed for its time
//! waiting ────────────────────────────────────────────────▶ holding ──▶ given back, at an orderly end
//!    ▲                                                         │
//!    └── only warned ── somebody else holds it, or the renew ──┴──▶ lost: all ends at once
//!                       deadline passed
//! ```
//!
//! Whether a Lease is over is judged by how long its record has not changed here, never by the times in it.

mod candidate;
mod observation;

pub(crate) use candidate::{Candidate, Turn};

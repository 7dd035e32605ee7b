//! Module sources: configurations in the cluster become registered addons, and those become modules. See docs/sources.md.
//!
//! ```text
//! object ─▶ assessment ─▶ registration ─▶ AddonsCommit ─▶ modules
//!    ▲        what is        what is        in `main`
//!    │        wrong          registered
//!    └──────── status ◀──────────────────────────────────────┘
//! ```
//!
//! The registry is written before modules change, and modules are there before the status says Ready. Whoever changes the
//! registry holds it alone, from the check for conflicts until it is written.

mod adoption;
mod advance;
mod announcements;
mod assessment;
mod commit;
mod commits;
mod delete;
mod dependencies;
mod displaced;
mod first_releases;
mod guest;
mod index;
mod known;
mod known_sources;
mod line;
mod object;
mod pass;
mod patches;
mod planning;
mod registration;
mod release_records;
mod removals;
mod report;
mod restoration;
mod sources;
mod status;
mod sweep;
mod syncs;
mod versions;
mod view;
mod watches;

pub(crate) use sources::Sources;

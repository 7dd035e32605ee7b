//! Controllers: `reconcile` bindings of hooks. Each object is a key; a hook says what should be, and it is made so.
//!
//! ```text
//! watches ─▶ controller (objects, children, related) ─▶ key ─▶ hook ─▶ plan ─▶ status ─▶ pruning ─▶ finalizer
//! ```

mod claim;
mod comparison;
mod controllers;
mod finalizer;
mod finalizer_record;
mod identity;
mod index;
mod inheritance;
mod key_state;
mod leaving;
mod observed;
mod obstacle;
mod patches;
mod plan;
mod progress;
mod remark;
mod retirement;
mod single;
mod status;
mod status_write;
mod step;
mod stray_watch;
mod strays;
mod switching;
mod taking_over;
mod telling;
mod turns;
mod views;
mod watch;

pub(crate) use controllers::{Controllers, Followed};

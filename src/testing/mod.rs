//! `test`: hooks and modules are run by the engine and the adapters of production, on a cluster in this process.
//!
//! ```text
//! *.test.yaml ─▶ test_file ─▶ target, selection: what is loaded and what of it runs
//!                               │
//!                             runner ─▶ case: API server, engine, adapters; steps
//!                                        │ recorder: all events and effects, idle: when a step is over
//!                                      check ─▶ report, update
//! ```

mod case;
mod check;
mod idle;
mod node;
mod objects;
mod recorder;
mod render;
mod report;
mod runner;
mod selection;
mod target;
mod test_file;
mod update;

pub use runner::{Outcome, Tests, run};

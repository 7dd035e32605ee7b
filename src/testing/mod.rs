//! `test`: hooks and modules are run by the engine and the adapters of production, on a cluster in this process.
//!
//! ```text
//! *.test.yaml ─▶ file ─▶ place, subject: what is loaded and what of it runs
//!                          │
//!                        bench ─▶ case: API server, engine, adapters; steps
//!                                   │ tape: all events and effects, stillness: when a step is over
//!                                 check ─▶ report, rewrite
//! ```

mod bench;
mod case;
mod check;
mod file;
mod node;
mod objects;
mod place;
mod render;
mod report;
mod rewrite;
mod stillness;
mod subject;
mod tape;

pub use bench::{Outcome, Tests, run};

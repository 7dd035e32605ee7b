//! Integration tests of the operator, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that stumbles over a surprise has done its job"
)]

mod architecture;
mod asking;
mod docs;
mod driver;
mod events;
mod examples;
mod helm;
mod helm_drift;
mod helm_faults;
mod helm_records;
mod hooks;
mod in_process;
mod incidents;
mod jq;
mod loading;
mod metrics;
mod object_patches;
mod operator;
mod orphans;
mod page;
mod patching;
mod processes;
mod reference;
mod reload;
mod shell;
mod ship;
mod soak;
mod support;
mod terminal;
mod testing;
mod watches;

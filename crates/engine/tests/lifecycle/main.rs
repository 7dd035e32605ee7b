//! Lifetimes: events in, a trace of effects out.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that breaks has to say where"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "the pretend outside knows the answers it sent")]

mod broker;
mod build;
mod chart_tests;
mod chart_world;
mod charts;
mod config_map;
mod config_secret;
mod contexts;
mod control_plane;
mod controller_changes;
mod controller_fairness;
mod controller_figures;
mod controller_finalizers;
mod controller_ownership;
mod controller_remarks;
mod controller_removal;
mod controller_updates;
mod controller_wakes;
mod controllers;
#[expect(dead_code, reason = "tests of other crates count in other ways")]
#[path = "../../../../tests/memory/counting.rs"]
mod counting;
mod coverage;
mod discovery;
mod drift;
mod election;
mod endurance;
mod giving_way;
mod guests;
mod hooks;
mod kinds;
mod module_runs;
mod picture;
mod plans;
mod queueing;
mod random;
mod random_charts;
mod random_controllers;
mod reload;
mod replay;
mod repositories;
mod requirements;
mod retries;
mod scripts_ahead;
mod secrets;
mod source_costs;
mod source_deletions;
mod source_failures;
mod source_losses;
mod source_names;
mod source_pictures;
mod source_releases;
mod source_restores;
mod source_rollbacks;
mod source_updates;
mod source_webhooks;
mod source_withdrawals;
mod source_work;
#[expect(dead_code, reason = "the benchmark tells catalogs apart, and begins without sources")]
#[path = "../../benches/world/mod.rs"]
mod source_world;
mod sources;
mod start;
mod status;
mod upgrade_loops;
mod watches;
mod webhooks;
mod why;
mod world;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

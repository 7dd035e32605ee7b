//! Integration tests of the operator, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that stumbles over a surprise has done its job"
)]

/// Makes a test of each scenario. `tests/cluster` has another one, and a real API server.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        mod tests {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name().await;
                }
            )+
        }
    };
}

mod architecture;
mod asking;
mod broker;
mod broker_peers;
mod chart_behaviours;
mod chart_bundles;
mod chart_dependencies;
mod chart_figures;
mod chart_kills;
mod chart_limits;
mod chart_losses;
mod chart_modules;
mod chart_objects;
mod chart_outcomes;
mod chart_peers;
mod chart_recordings;
mod chart_registries;
mod chart_repositories;
mod chart_rights;
mod config_map;
mod config_secret;
mod control_groups;
mod docs;
mod driver;
mod events;
mod example_clusters;
mod example_controllers;
mod example_figures;
mod example_kills;
mod example_orders;
mod example_reasons;
mod example_refusals;
mod example_rest;
mod example_restarts;
mod example_rights;
mod examples;
mod git_modules;
mod git_peers;
mod git_sources;
mod guest_releases;
mod guest_requests;
mod helm;
mod helm_changes;
mod helm_command;
mod helm_drift;
mod helm_faults;
mod helm_hooks;
mod helm_large_records;
mod helm_merge;
mod helm_peers;
mod helm_readiness;
mod helm_records;
mod helm_server_side;
mod helm_unlabelled;
mod high_availability;
mod hooks;
mod in_process;
mod incidents;
mod jq;
mod kinds;
mod loading;
mod memory_pressure;
mod metrics;
mod module_sources;
mod module_tests;
mod moving;
mod namespaced_sources;
mod object_patches;
mod operator;
mod orphans;
mod outages;
mod page;
mod patching;
mod process_faults;
mod processes;
mod reconcile;
mod reference;
mod registry_peers;
mod release_places;
mod reload;
mod replay;
mod request_counts;
mod run_counts;
mod secrets;
mod shell;
mod ship;
mod soak;
mod source_alerts;
mod source_archives;
mod source_behaviours;
mod source_fetches;
mod source_kills;
mod source_losses;
mod source_mirrors;
mod source_publishing;
mod source_registries;
mod source_signatures;
mod source_speed;
mod source_stores;
mod source_updates;
mod state_kills;
mod support;
mod terminal;
mod testing;
mod watch_faults;
mod watches;
mod webhook_certificates;
mod webhook_listener;
mod webhooks;

/// The heap of the program: the limits of filters are counted in it.
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

//! What scenarios of `tests/it` stand on, with a real API server in the place of the embedded one.

#[path = "../../it/support/charts.rs"]
pub(crate) mod charts;
#[expect(dead_code, reason = "scripts are all that is written here")]
#[path = "../../it/support/files.rs"]
pub(crate) mod files;
#[expect(dead_code, reason = "git is asked in tests of this repository only")]
#[path = "../../it/support/git_server.rs"]
pub(crate) mod git_server;
#[expect(dead_code, reason = "requests are looked at in tests of this repository only")]
#[path = "../../it/support/in_process.rs"]
pub(crate) mod in_process;
#[expect(dead_code, reason = "git is asked in tests of this repository only")]
#[path = "../../../crates/source/tests/git/packs.rs"]
pub(crate) mod packs;
#[expect(dead_code, reason = "no look of these tests takes long itself")]
#[path = "../../it/support/pause.rs"]
pub(crate) mod pause;
#[expect(dead_code, reason = "the operator runs in this process here")]
#[path = "../../it/support/program.rs"]
pub(crate) mod program;
mod real_server;
#[expect(dead_code, reason = "bundles are in registries in tests of this repository only")]
#[path = "../../it/support/registry.rs"]
pub(crate) mod registry;
#[expect(dead_code, reason = "few of its answers are asked for here")]
#[path = "../../it/support/repository.rs"]
pub(crate) mod repository;
#[expect(dead_code, reason = "other kinds are defined in tests of this repository only")]
#[path = "../../it/support/server.rs"]
pub(crate) mod server;
#[path = "../../it/support/source_cluster.rs"]
pub(crate) mod source_cluster;

use std::time::Duration;

pub(crate) use real_server::ApiServer;

/// How long a fact is waited for before the test fails.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

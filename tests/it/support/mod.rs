//! What several files of tests need: files, an API server that is asked, the program and the operator in this process.

pub(crate) mod browser;
pub(crate) mod charts;
pub(crate) mod control_group;
pub(crate) mod docker_registry;
pub(crate) mod files;
pub(crate) mod git_server;
pub(crate) mod held;
pub(crate) mod in_process;
pub(crate) mod kills;
pub(crate) mod measured;
pub(crate) mod nginx;
pub(crate) mod outage;
#[expect(dead_code, reason = "tests of packs themselves make more of them")]
#[path = "../../../crates/source/tests/git/packs.rs"]
pub(crate) mod packs;
pub(crate) mod pause;
pub(crate) mod peer;
pub(crate) mod program;
pub(crate) mod registry;
pub(crate) mod release;
pub(crate) mod repository;
pub(crate) mod rights;
pub(crate) mod server;
pub(crate) mod source;
pub(crate) mod source_cluster;
pub(crate) mod watching;

use std::time::Duration;

/// The server that scenarios run on; `tests/cluster` puts a real one in its place.
pub(crate) use apiserver::ApiServer;

/// How long a fact is waited for before the test fails: much longer than it takes on a slow machine that does other things, too.
pub(crate) const DEADLINE: Duration = Duration::from_mins(3);

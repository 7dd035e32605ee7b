//! What keeps operators of one namespace apart, at the start and at the end.

use std::sync::Arc;

use anyhow::bail;
use engine::{Abort, ElectionConfig, ElectionMode};

use super::surroundings::{Outcome, Surroundings};
use crate::config::{self, Settings};
use crate::lease::LeaseObject;

/// Returns what the engine has to know; `None` if nothing keeps operators apart.
pub(super) fn config(settings: &Settings) -> Option<ElectionConfig> {
    let election = &settings.election;
    let mode = match election.mode {
        config::ElectionMode::Off => return None,
        config::ElectionMode::Refuse => ElectionMode::Refuse,
        config::ElectionMode::Standby => ElectionMode::Standby,
        config::ElectionMode::Warn => ElectionMode::Warn,
    };
    Some(ElectionConfig {
        mode,
        lease: election.lease.clone(),
        identity: election.identity.clone(),
        lease_duration: election.lease_duration,
        renew_deadline: election.renew_deadline,
        retry_period: election.retry_period,
    })
}

/// Returns the Lease of an election.
pub(super) fn lease(around: &Surroundings, election: Option<&ElectionConfig>) -> Option<Arc<LeaseObject>> {
    let object = |election| {
        let (client, fence) = (around.client.clone(), around.fence.clone());
        LeaseObject::new(client, &around.settings.namespace, election, fence)
    };
    election.map(object).map(Arc::new)
}

/// Ends an operator that may not act any more: what it had begun stops before it returns.
pub(super) fn aborted(around: &Surroundings, abort: Abort) -> anyhow::Result<Outcome> {
    around.fence.close();
    crate::process::end_all();
    match abort {
        // In the words and with the exit code of the reference operator: who restarts it makes it a standby.
        Abort::LeadershipLost => {
            tracing::warn!("Restarting because the leadership was handed over");
            Ok(Outcome::Done)
        }
        Abort::AnotherOperator(holder) => bail!(
            "another operator is at work in namespace {}: {holder} renews Lease {}; end one of them, or start both with --ha",
            around.settings.namespace,
            around.settings.election.lease
        ),
    }
}

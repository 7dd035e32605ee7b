//! What keeps operators of one namespace apart, at the start and at the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use engine::{Abort, ElectionConfig, ElectionMode};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::surroundings::{Outcome, Surroundings};
use crate::config::{self, Settings};
use crate::driver::Questions;
use crate::lease::LeaseObject;
use crate::process::memory;

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

/// How long behind an event all that it makes a standby do is done.
const SETTLED: Duration = Duration::from_millis(500);

/// How much a standby takes at least, of its own and of the files of its program.
const STANDBY_NEEDS: u64 = 16 << 20;

/// Gives back what a standby does not need each time after the engine has `decided` something: code that its start,
/// probes, scrapes and watches ran. Ends with the engine.
///
/// A standby has little to do, but nearly all of its code is mapped by that: each renewal of the Lease is an event.
pub(super) fn keep_standby_small(decided: Arc<Notify>, questions: &Questions) -> JoinHandle<()> {
    let questions = questions.clone();
    tokio::spawn(async move {
        loop {
            decided.notified().await;
            tokio::time::sleep(SETTLED).await;
            let Some(converge) = questions.converge().await else { return };
            if converge.standby_of.is_some() && memory::resident() > STANDBY_NEEDS {
                tokio::task::spawn_blocking(memory::give_back);
            }
        }
    })
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

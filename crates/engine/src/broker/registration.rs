//! What Service Catalog is told: one broker for the cluster, one for each namespace, and when their offer is another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::offers::catalog;
use crate::addon::{SourceKey, SourceKind};
use crate::config::Config;
use crate::context::Context;
use crate::effect::{BrokerRegistration, Effect};
use crate::failure::Failure;
use crate::module::Modules;
use crate::name::{RunId, Scope};
use crate::notice::Notice;
use crate::source::Sources;
use crate::time::Time;

/// Keeps the objects of Service Catalog in step with what is offered.
#[derive(Debug, Default)]
pub(super) struct Registrar {
    /// The state of the sources that was looked at last.
    edition: Option<u64>,
    /// What is to be there.
    wanted: Option<Arc<BrokerRegistration>>,
    /// What is there, as far as known.
    told: Option<Arc<BrokerRegistration>>,
    run: Option<(RunId, Arc<BrokerRegistration>)>,
    /// When it is tried again.
    again: Option<Time>,
    /// Whether it was told that it does not work.
    is_failure_told: bool,
}

impl Registrar {
    /// Tells Service Catalog what differs.
    pub(super) fn advance(&mut self, cx: &mut Context, sources: &Sources, modules: &Modules) {
        let Some(edition) = sources.edition() else { return };
        if self.edition != Some(edition) {
            self.edition = Some(edition);
            self.wanted = Some(Arc::new(wanted(sources, modules)));
        }
        if self.again.is_some_and(|at| at <= cx.now) {
            self.again = None;
            self.told = None;
        }
        if self.run.is_some() || self.again.is_some() || self.wanted == self.told {
            return;
        }
        if let Some(wanted) = &self.wanted {
            let run = cx.ids.run();
            self.run = Some((run, Arc::clone(wanted)));
            cx.push(Effect::RegisterBrokers { run, registration: Arc::clone(wanted) });
        }
    }

    /// Records what became of it: whether there is a Service Catalog, or why it could not be told.
    pub(super) fn registered(
        &mut self,
        cx: &mut Context,
        config: &Config,
        run: RunId,
        outcome: Result<bool, Failure>,
    ) {
        let Some((_, registration)) = self.run.take_if(|(its, _)| *its == run) else { return };
        match outcome {
            Ok(is_served) => {
                self.is_failure_told = false;
                self.told = Some(registration);
                // It may come later.
                self.again = (!is_served).then(|| cx.now + config.source_relist);
            }
            Err(failure) => {
                self.again = Some(cx.now + config.retry_delay);
                if !std::mem::replace(&mut self.is_failure_told, true) {
                    let message =
                        format!("Service Catalog is not told of the broker: {failure}; it is tried again");
                    cx.notify(Notice::Warned { scope: Scope::Global, message });
                }
            }
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.again
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.run.is_none()
    }
}

fn wanted(sources: &Sources, modules: &Modules) -> BrokerRegistration {
    let mut registration = BrokerRegistration::default();
    let mut namespaces: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for SourceKey { kind, namespace, .. } in sources.configurations() {
        match kind {
            SourceKind::Cluster => {
                registration.cluster.get_or_insert_with(|| offer("", sources, modules));
            }
            SourceKind::Namespaced => {
                let new = || offer(namespace, sources, modules);
                namespaces.entry(Arc::clone(namespace)).or_insert_with(new);
            }
        }
    }
    registration.namespaces = namespaces;
    registration
}

/// Returns a number for what is offered, which is another one when that is (FNV-1a).
fn offer(namespace: &str, sources: &Sources, modules: &Modules) -> String {
    let text = catalog(namespace, sources, modules).to_string();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

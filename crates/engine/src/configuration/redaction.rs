//! Notices quote no values: they end in the log, and whoever reads that need not know them.

use std::sync::Arc;

use serde_json::Value;

use super::Configuration;
use crate::context::Context;
use crate::name::{ModuleName, Scope};
use crate::notice::Notice;
use crate::view::{Secrets, masked_text};

impl Configuration {
    /// Masks the values in all notices that were added since the last call, unless notices may quote values.
    pub(crate) fn redact(&self, cx: &mut Context) {
        for notice in cx.out.unredacted() {
            self.redact_notice(notice);
        }
    }

    fn redact_notice(&self, notice: &mut Notice) {
        // Whose values its texts may quote: those of a module, or those of all.
        let module = match notice {
            Notice::TaskFinished { task, failure: Some(_), .. } | Notice::TaskWaits { task, .. } => {
                task.scope.module()
            }
            Notice::ModuleChanged { module, reason: Some(_), .. }
            | Notice::Warned { scope: Scope::Module(module), .. } => Some(&*module),
            Notice::ConfigChecked { .. }
            | Notice::DiscoveryFailed { .. }
            | Notice::Warned { scope: Scope::Global, .. }
            | Notice::WatchFailed { .. } => None,
            Notice::ConvergeFinished { .. }
            | Notice::ConvergeStarted { .. }
            | Notice::HookRan { .. }
            | Notice::Ready
            | Notice::ReadinessWaits { .. }
            | Notice::MetricsExported { .. }
            | Notice::MetricsForgotten { .. }
            | Notice::ModuleChanged { reason: None, .. }
            | Notice::ModulesDiscovered { .. }
            | Notice::QueueChanged { .. }
            | Notice::QueueCompacted { .. }
            | Notice::ReleaseDrifted { .. }
            | Notice::ReleaseRan { .. }
            | Notice::SnapshotChanged { .. }
            | Notice::Stuck { .. }
            | Notice::TaskFinished { failure: None, .. }
            | Notice::TaskQueued { .. }
            | Notice::TaskStarted { .. }
            | Notice::TaskStopped { .. } => return,
        };
        let secrets = self.secrets(module);
        if let Notice::TaskFinished { failure: Some(failure), .. }
        | Notice::DiscoveryFailed { failure }
        | Notice::WatchFailed { failure, .. } = notice
        {
            *failure = secrets.hide_in(failure);
        } else if let Notice::ConfigChecked { problems } = notice {
            for problem in problems {
                *problem = secrets.hide_in(problem);
            }
        } else if let Notice::ModuleChanged { reason: Some(text), .. }
        | Notice::TaskWaits { reason: text, .. }
        | Notice::Warned { message: text, .. } = notice
        {
            *text = secrets.hide(text).into_owned();
        }
    }

    /// Returns the values that notices about `module` must not quote, or about anything when it is `None`.
    pub(crate) fn secrets(&self, module: Option<&ModuleName>) -> Secrets<'static> {
        if self.config.quote_values {
            return Secrets::default();
        }
        let sections = self.sections_seen_by(module);
        let values: Vec<&Value> = sections.iter().map(AsRef::as_ref).collect();
        Secrets::of(&values).into_owned()
    }

    /// Returns a text without the values of a module and of the global section.
    pub(crate) fn without_values(&self, name: &ModuleName, text: &str) -> String {
        let owned = self.sections_seen_by(Some(name));
        let values: Vec<&Value> = owned.iter().map(AsRef::as_ref).collect();
        masked_text(text, &values)
    }

    /// Returns the values that whoever works for `module` can quote: its own and the global ones; all of them for `None`.
    fn sections_seen_by(&self, module: Option<&ModuleName>) -> Vec<Arc<Value>> {
        let own = module.and_then(|name| self.sections.get(name));
        let all = self.sections.values().filter(|_| own.is_none());
        let seen = std::iter::once(&self.global).chain(own).chain(all);
        seen.flat_map(|section| [Arc::clone(section.result()), section.config_or_null()]).collect()
    }
}

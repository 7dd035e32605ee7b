//! What is told quotes no values: notices end in the log, and whoever reads that need not know them.

use serde_json::Value;

use crate::engine::Engine;
use crate::name::{ModuleName, Scope};
use crate::notice::Notice;
use crate::view::Secrets;

impl Engine {
    /// Returns a notice without the values that its texts may quote.
    pub(crate) fn without_secrets(&self, mut notice: Notice) -> Notice {
        if self.config.quote_values {
            return notice;
        }
        let module = match quotes(&notice) {
            Quotes::Nobodys => return notice,
            Quotes::OfModule(module) => Some(module),
            Quotes::Anybodys => None,
        };
        let sections = self.sections_seen_by(module);
        let values: Vec<&Value> = sections.iter().map(AsRef::as_ref).collect();
        let secrets = Secrets::of(&values);
        if let Notice::TaskFinished { failure: Some(failure), .. }
        | Notice::DiscoveryFailed { failure }
        | Notice::WatchFailed { failure, .. } = &mut notice
        {
            *failure = secrets.hide_in(failure);
        } else if let Notice::ConfigChecked { problems } = &mut notice {
            for problem in problems {
                *problem = secrets.hide_in(problem);
            }
        } else if let Notice::ModuleChanged { reason: Some(text), .. }
        | Notice::TaskWaits { reason: text, .. }
        | Notice::Warned { message: text, .. } = &mut notice
        {
            *text = secrets.hide(text).into_owned();
        }
        notice
    }
}

/// Whose values the texts of a notice may quote.
enum Quotes<'n> {
    Nobodys,
    OfModule(&'n ModuleName),
    Anybodys,
}

fn quotes(notice: &Notice) -> Quotes<'_> {
    match notice {
        Notice::TaskFinished { task, failure: Some(_), .. } | Notice::TaskWaits { task, .. } => {
            task.scope.module().map_or(Quotes::Anybodys, Quotes::OfModule)
        }
        Notice::ModuleChanged { module, reason: Some(_), .. }
        | Notice::Warned { scope: Scope::Module(module), .. } => Quotes::OfModule(module),
        Notice::ConfigChecked { .. }
        | Notice::DiscoveryFailed { .. }
        | Notice::Warned { scope: Scope::Global, .. }
        | Notice::WatchFailed { .. } => Quotes::Anybodys,
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
        | Notice::TaskFinished { failure: None, .. }
        | Notice::TaskQueued { .. }
        | Notice::TaskStarted { .. }
        | Notice::TaskStopped { .. } => Quotes::Nobodys,
    }
}

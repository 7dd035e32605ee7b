//! Notices quote no values: they end in the log, and whoever reads that need not know them.

use std::sync::Arc;

use redaction::{Secrets, Unquotable};
use serde_json::Value;

use super::Configuration;
use crate::context::Context;
use crate::effect::ValuesInput;
use crate::failure::Failure;
use crate::hook::metric::MetricOperation;
use crate::name::{ModuleName, Scope};
use crate::notice::Notice;
use crate::view::ends;

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
            Notice::MetricsExported { hook, operations, .. } => {
                return self.redact_labels(hook.scope.module(), operations);
            }
            Notice::TaskFinished { task, failure: Some(_), .. } | Notice::TaskWaits { task, .. } => {
                task.scope.module()
            }
            Notice::ModuleChanged { module, reason: Some(_), .. }
            | Notice::Warned { scope: Scope::Module(module), .. } => Some(&*module),
            Notice::ReviewFailed { hook, .. } => hook.scope.module(),
            Notice::ConfigChecked { .. }
            | Notice::DiscoveryFailed { .. }
            | Notice::ElectionChanged { .. }
            | Notice::InstanceChanged { .. }
            | Notice::ModuleRolledBack { .. }
            | Notice::Warned { scope: Scope::Global, .. }
            | Notice::WatchFailed { .. } => None,
            Notice::CleanedUp
            | Notice::ConvergeFinished { .. }
            | Notice::ConvergeStarted { .. }
            | Notice::HookRan { .. }
            | Notice::Ready
            | Notice::ReadinessWaits { .. }
            | Notice::MetricsForgotten { .. }
            | Notice::ModuleLeft { .. }
            | Notice::ModuleChanged { reason: None, .. }
            | Notice::ModulesDiscovered { .. }
            | Notice::ScriptsAskedAgain { .. }
            | Notice::QueueChanged { .. }
            | Notice::QueueCompacted { .. }
            | Notice::ObjectMended { .. }
            | Notice::ReleaseDrifted { .. }
            | Notice::ReleaseRan { .. }
            | Notice::ReviewAnswered { .. }
            | Notice::SnapshotChanged { .. }
            | Notice::ChartStepped { .. }
            // What repositories and the API server say about bundles: no value is read for that, and there may be thousands of
            // modules.
            | Notice::SourceChanged { .. }
            | Notice::SourceReleases { .. }
            | Notice::SourcesAbsent { .. }
            | Notice::Stuck { .. }
            | Notice::TaskFinished { failure: None, .. }
            | Notice::TaskQueued { .. }
            | Notice::TaskStarted { .. }
            | Notice::TaskStopped { .. }
            | Notice::ReconcileKeysChanged { .. }
            | Notice::WatchRestored { .. }
            | Notice::WebhookCertificateChanged { .. } => return,
        };
        if self.config.quote_values {
            return;
        }
        hide(&self.secrets(module), notice);
    }

    /// Masks secrets in the labels that a hook of `module` exports. Other values are what labels are for.
    fn redact_labels(&self, module: Option<&ModuleName>, operations: &mut Arc<[MetricOperation]>) {
        if self.config.quote_values || operations.iter().all(|operation| operation.labels.is_empty()) {
            return;
        }
        // A global hook reads the global section only.
        let own = module.and_then(|name| self.sections.get(name));
        let sections = std::iter::once(&self.global).chain(own);
        let sections: Vec<Arc<Value>> =
            sections.flat_map(|section| [Arc::clone(section.result()), section.config_or_null()]).collect();
        let values: Vec<&Value> = sections.iter().map(AsRef::as_ref).collect();
        let secrets = Secrets::named(&values).with(self.config_secrets());
        for operation in Arc::make_mut(operations) {
            for label in operation.labels.values_mut() {
                *label = secrets.hide(label).into_owned();
            }
        }
    }

    /// Returns the values that notices about `module` must not quote, or about anything when it is `None`.
    pub(crate) fn secrets(&self, module: Option<&ModuleName>) -> Secrets<'static> {
        if self.config.quote_values {
            return Secrets::default();
        }
        self.with_secret(Secrets::shared(&self.sections_seen_by(module)))
    }

    /// Returns the same for texts that are made later. What the Secret over the ConfigMap says is not quoted, whatever may be.
    pub(super) fn unquotable(&self, module: Option<&ModuleName>) -> Unquotable {
        let seen = if self.config.quote_values { Vec::new() } else { self.sections_seen_by(module) };
        Unquotable::new(seen, self.config_secrets())
    }

    /// Returns `failure` with what everybody may read of it, for as long as it is shown.
    ///
    /// It can quote the values that are in force, and what was `read` when that began which failed. The values
    /// may have changed meanwhile.
    pub(crate) fn told(
        &self,
        failure: Failure,
        module: Option<&ModuleName>,
        read: Option<&ValuesInput>,
    ) -> Failure {
        let seen = self.sections_seen_by(module);
        let is_old = |section: &&Arc<Value>| !seen.iter().any(|now| Arc::ptr_eq(now, section));
        let read = read.into_iter().flat_map(ValuesInput::sections).filter(is_old);
        masked(&self.with_secret(Secrets::shared(seen.iter().chain(read))), failure)
    }

    /// Returns the texts of some sections and those of the Secret over the ConfigMap.
    fn with_secret(&self, seen: Arc<Secrets<'static>>) -> Secrets<'static> {
        Secrets::default().with(seen).with(self.config_secrets())
    }

    /// Returns a failure as notices may quote it.
    pub(crate) fn shown<'f>(&self, failure: &'f Failure) -> &'f Failure {
        if self.config.quote_values { failure } else { failure.for_everybody() }
    }

    /// Returns a text without the values of a module and of the global section.
    pub(crate) fn without_values(&self, name: &ModuleName, text: &str) -> String {
        let seen = Secrets::shared(&self.sections_seen_by(Some(name)));
        ends(&self.with_secret(seen).hide(text))
    }

    /// Returns the values that whoever works for `module` can quote: its own and the global ones; all of them for `None`.
    fn sections_seen_by(&self, module: Option<&ModuleName>) -> Vec<Arc<Value>> {
        let own = module.and_then(|name| self.sections.get(name));
        let all = self.sections.values().filter(|_| own.is_none());
        let seen = std::iter::once(&self.global).chain(own).chain(all);
        seen.flat_map(|section| [Arc::clone(section.result()), section.config_or_null()]).collect()
    }
}

/// Returns `failure` with what everybody may read of it who may not know `values`.
pub(super) fn without(values: &[&Value], failure: Failure) -> Failure {
    masked(&Secrets::of(values), failure)
}

fn masked(secrets: &Secrets<'_>, mut failure: Failure) -> Failure {
    let masked = failure.for_everybody().without(secrets);
    if masked != *failure.for_everybody() {
        failure.masked = Some(Arc::new(masked));
    }
    failure
}

/// Masks the secrets in the texts of a notice.
fn hide(secrets: &Secrets, notice: &mut Notice) {
    if let Notice::TaskFinished { failure: Some(failure), .. }
    | Notice::DiscoveryFailed { failure }
    | Notice::ReviewFailed { failure, .. }
    | Notice::WatchFailed { failure, .. } = notice
    {
        *failure = failure.for_everybody().without(secrets);
    } else if let Notice::ConfigChecked { problems } = notice {
        for (_, problem) in problems {
            *problem = problem.for_everybody().without(secrets);
        }
    } else if let Notice::ModuleChanged { reason: Some(text), .. }
    | Notice::TaskWaits { reason: text, .. }
    | Notice::ElectionChanged { message: text, .. }
    | Notice::InstanceChanged { message: text, .. }
    | Notice::ModuleRolledBack { message: text, .. }
    | Notice::Warned { message: text, .. } = notice
    {
        *text = secrets.hide(text).into_owned();
    }
}

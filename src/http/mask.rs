//! Masks values in failures, for readers who may not see values.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::view::{Secrets, View, ends};
use engine::{Failure, ModuleName};
use serde_json::Value;

use crate::driver::Questions;

/// Hides values in texts of failures.
#[derive(Default)]
pub(super) struct Mask {
    global: Vec<Arc<Value>>,
    modules: BTreeMap<ModuleName, [Arc<Value>; 2]>,
    /// What the Secret over the ConfigMap says.
    secret: Arc<Secrets<'static>>,
    /// The texts of all values, computed when they are first needed.
    all: OnceCell<Secrets<'static>>,
}

impl Mask {
    /// Returns the current picture with what everybody may read of it, and a mask for the values of this moment.
    ///
    /// Failures are told as they were masked when they happened; values that are in force by now are hidden, too. They
    /// are fetched only if there is a failure to show. `None` if the engine has ended.
    pub(super) async fn of(questions: &Questions) -> Option<(View, Self)> {
        let view = questions.view().await?.for_everybody();
        if !has_failure(&view) {
            return Some((view, Self::default()));
        }
        let inspection = questions.inspect().await?;
        let modules =
            inspection.modules.into_iter().map(|(name, scope)| (name, [scope.values, scope.config]));
        let global = vec![inspection.global.values, inspection.global.config];
        let (modules, secret) = (modules.collect(), inspection.secrets);
        Some((view, Self { global, modules, secret, all: OnceCell::new() }))
    }

    /// Returns a failure without the values that its process could see: those of `module` and the global ones.
    ///
    /// For a failure that belongs to no module, the values of all modules are hidden.
    pub(super) fn show(&self, failure: &Failure, module: Option<&ModuleName>) -> String {
        let Some(own) = module.and_then(|module| self.modules.get(module)) else {
            return self.text(&failure.to_string());
        };
        let values: Vec<&Value> = self.global.iter().chain(own).map(AsRef::as_ref).collect();
        ends(&Secrets::of(&values).with(Arc::clone(&self.secret)).hide(&failure.to_string()))
    }

    /// Returns a text without the values of any module.
    pub(super) fn text(&self, text: &str) -> String {
        let all = self.all.get_or_init(|| {
            let sections = self.global.iter().chain(self.modules.values().flatten());
            let all = Secrets::of(&sections.map(AsRef::as_ref).collect::<Vec<&Value>>()).into_owned();
            all.with(Arc::clone(&self.secret))
        });
        ends(&all.hide(text))
    }
}

fn has_failure(view: &View) -> bool {
    let broken = |module: &engine::view::ModuleView| {
        let has_reason = module.opinions.iter().any(|opinion| opinion.reason.is_some());
        has_reason
            || module.last_error.is_some()
            || module.unanswered.is_some()
            || module.unmended.is_some()
            || module.broken_version.is_some()
            || module.parked.is_some()
    };
    let tasks = || view.queues.iter().flat_map(|queue| &queue.tasks);
    !view.config_problems.is_empty()
        || !view.file_problems.is_empty()
        || !view.warnings.is_empty()
        || view.modules.iter().any(broken)
        || tasks().any(|task| task.last_failure.is_some() || task.waits_for.is_some())
        || view.watches.iter().any(|watch| watch.failure.is_some())
        || view.journal.iter().any(|end| end.failure.is_some())
}

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
        ends(&self.with_secret(Secrets::shared(self.global.iter().chain(own))).hide(&failure.to_string()))
    }

    /// Returns a text without the values of any module.
    pub(super) fn text(&self, text: &str) -> String {
        let all = self.all.get_or_init(|| {
            let sections = self.global.iter().chain(self.modules.values().flatten());
            self.with_secret(Secrets::shared(sections))
        });
        ends(&all.hide(text))
    }

    /// Returns the texts of some sections and those of the Secret over the ConfigMap.
    fn with_secret(&self, seen: Arc<Secrets<'static>>) -> Secrets<'static> {
        Secrets::default().with(seen).with(Arc::clone(&self.secret))
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

#[cfg(test)]
mod tests {
    use engine::FailureKind;

    use super::*;

    #[test]
    fn slip_02_a_page_collects_none_of_the_texts_that_were_collected_for_these_values() {
        let values: Vec<String> = (0..1_000).map(|n| format!("hunter-{n}")).collect();
        let values: Arc<Value> = Arc::new(values.into());
        let web = ModuleName::from("web");
        let mask = || Mask {
            modules: [(web.clone(), [Arc::clone(&values), Arc::default()])].into(),
            ..Mask::default()
        };
        let texts = Secrets::shared([&values]);
        let others = Arc::strong_count(&texts);
        let failure = Failure::new(FailureKind::HookExit, "no hunter-77");
        let pages = [mask(), mask(), mask()];
        for (page, number) in pages.iter().zip(1..) {
            assert_eq!(page.show(&failure, Some(&web)), "no ******");
            assert_eq!(page.text("hunter-78 and hunter-79"), "****** and ******");
            assert_eq!(Arc::strong_count(&texts), others + number, "each page has these very texts");
        }
    }
}

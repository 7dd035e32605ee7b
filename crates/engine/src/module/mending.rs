//! Puts right what others changed of a release, where its module asks for that.
//!
//! A mend writes the rendered fields of one object back. It runs no hook, adds no revision, and stands in no queue, so
//! that one that the API server refuses holds up nothing. See docs/modules.md#drift.

use std::sync::Arc;
use std::time::Duration;

use super::Modules;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::{RunId, Scope};
use crate::notice::Notice;
use crate::queue::Queues;
use crate::task::ModuleRun;
use crate::time::Time;

/// How long a mend waits for a run of its module, which writes its objects itself.
const BEHIND_RUN: Duration = Duration::from_secs(5);

impl Modules {
    /// Begins the mends that are due.
    pub(crate) fn advance_mends(&mut self, cx: &mut Context, configuration: &Configuration, queues: &Queues) {
        while let Some(key) = self.mends.take_due(cx.now) {
            let (name, object) = &key;
            let is_wanted = self.states.get(name).is_some_and(|module| {
                module.is_enforced(configuration)
                    && module.is_on()
                    && module.release_watched
                    && module.drift.differs(object)
            });
            if !is_wanted {
                continue;
            }
            let is_of_module = |run: &ModuleRun| run.module == *name && run.is_before_upgrade();
            if queues.in_flight().any(|running| running.task.module_run().is_some_and(is_of_module)) {
                self.mends.put(cx.now + BEHIND_RUN, key);
                continue;
            }
            let (run, target) = (cx.ids.run(), self.release_place(configuration, name));
            cx.push(Effect::MendObject { run, module: name.clone(), object: Arc::clone(object), target });
            self.mends.running.insert(run, key);
        }
    }

    /// Returns when the next mend is due.
    pub(crate) fn next_mend(&self) -> Option<Time> {
        self.mends.next_wakeup()
    }

    /// Returns whether no mend is under way.
    pub(crate) fn has_no_mends(&self) -> bool {
        self.mends.running.is_empty()
    }

    /// Records the end of a mend. One that failed is told once, and tried again.
    pub(crate) fn object_mended(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        run: RunId,
        outcome: Result<(), Failure>,
    ) {
        let Some(key) = self.mends.running.remove(&run) else { return };
        let (name, object) = &key;
        let Some(module) = self.states.get_mut(name) else { return };
        let Err(failure) = outcome else {
            // What somebody changed behind this write, and before its answer, differs still.
            if !self.mends.is_asked(&key) {
                module.drift.restored(object, cx.now);
            }
            cx.notify(Notice::ObjectMended { module: name.clone(), object: object.to_string() });
            return;
        };
        let failure = configuration.told(failure, Some(name), None);
        let Some((failures, delay)) = module.drift.mend_failed(object, &failure) else { return };
        if failures == 1 {
            let who = module.drift.writers(object).unwrap_or_else(|| "others".to_owned());
            let message = format!(
                "{object} was changed by {who} and can't be put right: {}; it is tried again",
                configuration.shown(&failure)
            );
            cx.notify(Notice::Warned { scope: Scope::Module(name.clone()), message });
        }
        self.mends.put(cx.now + delay, key);
    }
}

//! Whether the objects of releases are ready, for modules whose files ask for that.
//!
//! ```text
//! upgrade ─▶ awaited ── all are ready ─▶ ready ── next upgrade ─▶ awaited …
//!               └── its time is over ─▶ late: told, and still awaited
//! ```
//!
//! Nothing waits in a queue for it. Modules that require this one wait without a task.

use super::object_readiness::{Readiness, shown};
use super::{ModuleState, Modules};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::event::ReleaseAction;
use crate::module_settings::ReadinessWait;
use crate::name::{ModuleName, RunId, Scope};
use crate::notice::Notice;
use crate::release_target::ReleaseTarget;
use crate::time::Time;
use crate::view::span;

impl Modules {
    /// Asks whether the objects of a release are ready, if the module wants to know and they may not be.
    pub(super) fn await_readiness(
        &mut self,
        cx: &mut Context,
        name: &ModuleName,
        (action, target): (ReleaseAction, ReleaseTarget),
    ) {
        let Some(module) = self.states.get_mut(name) else { return };
        self.deadlines.remove(name);
        let is_asked = match action {
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => {
                module.spec.settings.readiness.wait == ReadinessWait::Objects
            }
            ReleaseAction::Absent
            | ReleaseAction::Uninstalled
            | ReleaseAction::Unmanaged
            | ReleaseAction::Unrecorded => false,
        };
        if !is_asked {
            module.readiness = Readiness::Unasked;
            return;
        }
        if action == ReleaseAction::Unchanged && matches!(module.readiness, Readiness::Ready) {
            return;
        }
        let (run, since) = (cx.ids.run(), cx.now);
        let deadline = since + module.spec.settings.readiness.timeout;
        self.deadlines.insert(name.clone(), deadline);
        module.readiness = Readiness::Awaited { run, since, unready: Vec::new(), is_late: false };
        cx.push(Effect::AwaitReadiness { run, module: name.clone(), target });
    }

    /// Records which objects of a release are not ready.
    pub(crate) fn readiness_changed(&mut self, run: RunId, name: &ModuleName, now_unready: Vec<String>) {
        let Some(module) = self.states.get_mut(name) else { return };
        let Readiness::Awaited { run: open, unready, .. } = &mut module.readiness else { return };
        if *open != run {
            return;
        }
        if now_unready.is_empty() {
            module.readiness = Readiness::Ready;
            self.deadlines.remove(name);
        } else {
            *unready = now_unready;
        }
        self.waits.changed();
    }

    /// Returns when objects are late that are not ready by then.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.deadlines.values().min().copied()
    }

    /// Tells of modules whose objects are not ready in time.
    pub(crate) fn check_readiness(&mut self, cx: &mut Context, configuration: &Configuration) {
        let now = cx.now;
        let is_due = |(name, at): (&ModuleName, &Time)| (*at <= now).then(|| name.clone());
        let late: Vec<ModuleName> = self.deadlines.iter().filter_map(is_due).collect();
        for name in late {
            self.deadlines.remove(&name);
            let Some(module) = self.states.get_mut(&name) else { continue };
            let Readiness::Awaited { unready, is_late, since, .. } = &mut module.readiness else { continue };
            *is_late = true;
            let message =
                format!("its objects are not ready after {}: {}", span(now.since(*since)), shown(unready));
            let message = configuration.without_values(&name, &message);
            cx.notify(Notice::Warned { scope: Scope::Module(name.clone()), message });
            self.waits.changed();
        }
    }

    /// Returns which objects of a module others wait for.
    pub(super) fn unready(module: &ModuleState) -> Option<String> {
        match &module.readiness {
            Readiness::Unasked | Readiness::Ready => None,
            Readiness::Awaited { unready, .. } => Some(shown(unready)),
        }
    }
}

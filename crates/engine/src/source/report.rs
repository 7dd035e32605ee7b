//! Writes the status of a configuration: what was decided, with what the modules do now.

use super::pass::{Go, Pass};
use super::patches;
use super::sources::Sources;
use super::status::{ModuleLine, ModuleLineState, SourcePhase, Status, shorten};
use crate::addon::{RegisteredAddon, SourceKey};
use crate::context::Context;
use crate::module::{Modules, Phase};
use crate::name::ModuleName;
use crate::reconcile::Step;
use crate::time::Time;

impl Sources {
    /// Returns whether the status of an object is not as it is to be, as far as modules are concerned.
    pub(super) fn is_status_stale(&self, modules: &Modules, now: Time, key: &SourceKey) -> bool {
        let object = self.known.get(key).and_then(|source| source.object.as_ref());
        object.is_some_and(|object| {
            self.desired_status(modules, now, key).is_some_and(|its| its != object.status)
        })
    }

    /// Writes the status, if it differs from what the object says.
    pub(super) fn write_status(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Go {
        let (desired, now) = (self.desired_status(modules, cx.now, key), self.config.time_of_day(cx.now));
        let Some(source) = self.known.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let is_left_alone = source.is_left_alone();
        let Some((desired, object)) = desired.zip(source.object.as_ref()) else {
            return Go::Stop(Pass::Idle, Step::Done);
        };
        if is_left_alone || desired == object.status {
            source.desired = Some(desired);
            return Go::On(Pass::Bumping);
        }
        // A status that says what it waits for is no news about when it was processed.
        let processed_at = source.decided.as_ref().map_or(&object.processed_at, |its| &its.processed_at);
        let step = patches::set_status(cx, key, object, &desired, (processed_at, &now));
        (source.desired, source.is_written) = (Some(desired), false);
        Go::Stop(Pass::Writing, step)
    }

    /// Goes on after the status was written.
    pub(super) fn written(&mut self, cx: &Context, key: &SourceKey) -> Go {
        self.note_written(cx, key);
        Go::On(Pass::Bumping)
    }

    /// Records that the status is written. What the watch says may be older for a moment.
    pub(super) fn note_written(&mut self, cx: &Context, key: &SourceKey) {
        let now = self.config.time_of_day(cx.now);
        let Some(source) = self.known.get_mut(key) else { return };
        if let Some((object, mut desired)) = source.object.as_mut().zip(source.desired.clone()) {
            if object.status == desired {
                source.is_written = true;
            } else {
                let conditions = desired.conditions(&object.conditions, &now);
                object.conditions = desired.take_conditions(conditions);
            }
            object.status = desired;
        }
    }

    /// Returns the status that an object is to have: what was decided, with what the modules do now.
    pub(super) fn desired_status(&self, modules: &Modules, now: Time, key: &SourceKey) -> Option<Status> {
        let source = self.known.get(key)?;
        let mut status = match (&source.decided, &source.object) {
            (Some(decided), _) => decided.status.clone(),
            (None, Some(object)) if source.is_held_back() => object.status.without_retained(),
            (None, _) => return None,
        };
        status.is_suspended = source.is_suspended();
        if status.phase == SourcePhase::None {
            status.phase = SourcePhase::Pending;
            status.message = if status.is_suspended { "it is suspended".to_owned() } else { String::new() };
        }
        if let Some(what) = source.waits_for.as_ref().filter(|_| !status.is_suspended) {
            status.phase = SourcePhase::Pending;
            status.message = format!("it waits for {what}");
        }
        let said = source.object.as_ref().map(|object| &object.status);
        let before = |name: &ModuleName| {
            let mut lines = said.into_iter().flat_map(Status::addons).filter_map(|line| line.module.as_ref());
            lines.find(|line| line.name == *name && !line.state.is_held_back() && !line.is_other_version())
        };
        status.place_modules(self.registration.of(key), |addon, held| self.held_text(now, addon, held));
        // What is off at a start may be switched on a moment later: it is what it was until all are decided.
        let is_known = self.is_converged || !source.is_adopted;
        let in_force = |module: &&mut ModuleLine| !module.state.is_held_back();
        for module in status.addons_mut().filter_map(|line| line.module.as_mut()).filter(in_force) {
            let before = before(&module.name);
            let was = before.map(|line| line.state).unwrap_or_default();
            module.state = state_of(modules, &module.name, was, is_known);
            if module.state == ModuleLineState::Error {
                // After a restart it is what it was until its first run ends.
                let said = || before.map(|line| line.message.clone()).unwrap_or_default();
                module.message = modules.error_of(&module.name).unwrap_or_else(said);
                shorten(&mut module.message);
            } else {
                // What an object said at a start may be over.
                module.message.clear();
            }
        }
        // What is registered goes on, too, if that could not be changed.
        let is_failed = status.phase == SourcePhase::Failed;
        let goes_on = |addon: &&RegisteredAddon| addon.is_retained || is_failed && addon.is_registered();
        let retained = self.registration.of(key).iter().filter(|addon| addon.is_active).filter(goes_on);
        status.add_retained(retained.map(|addon| (addon, !self.is_unloaded(modules, addon))));
        status.place_other_versions(self.registration.of(key));
        status.count_modules();
        Some(status)
    }
}

/// Returns what a module is doing. While that is not known, or about to be what it was, it is what it was.
fn state_of(
    modules: &Modules,
    name: &ModuleName,
    before: ModuleLineState,
    is_known: bool,
) -> ModuleLineState {
    let Some(module) = modules.get(name) else { return before };
    match module.phase() {
        Phase::Failed | Phase::Parked => ModuleLineState::Error,
        // What comes before a run failed: its CRDs are not there.
        Phase::Running | Phase::Starting if module.lacks_crds() => ModuleLineState::Error,
        Phase::Running => ModuleLineState::Running,
        Phase::Starting if before == ModuleLineState::Registered => ModuleLineState::Enabled,
        Phase::Disabled if is_known && module.is_decided() => ModuleLineState::Registered,
        Phase::Deleting
        | Phase::Disabled
        | Phase::Held
        | Phase::Orphaned
        | Phase::Starting
        | Phase::Waiting => before,
    }
}

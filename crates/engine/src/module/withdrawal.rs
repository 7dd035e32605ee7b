//! What may be left of modules that are withdrawn before they ran in this process: a process before this one may have run them.

use super::state::Release;
use super::{Lower, ModuleState, Modules, Phase};
use crate::configuration::Configuration;
use crate::effect::Effect;
use crate::event::OwnedReleases;
use crate::name::{ModuleName, ReleaseName};
use crate::queue::Next;
use crate::task::Answer;

impl Modules {
    /// Records that modules are withdrawn from now on. Those that were on, and that a process before this one may have run, are
    /// removed with their hooks, whether there is a release or not.
    pub(crate) fn withdraw<'n>(
        &mut self,
        configuration: &Configuration,
        names: impl Iterator<Item = &'n ModuleName>,
    ) {
        for name in names {
            let Some(module) = self.states.get_mut(name) else { continue };
            let was_on = match &module.decision {
                Some(decision) => decision.enabled,
                None => configuration.is_on_unless_withdrawn(&module.spec),
            };
            let may_have_run = was_on && module.may_have_run && !module.has_no_release(configuration);
            module.is_active |= may_have_run;
        }
    }

    /// Returns whether a module is there that was never on, as far as this process knows, and has no hook to run at its end. There may
    /// be a release of it. A process before this one may have known it, as `is_on_record` says.
    pub(crate) fn was_never_on(&self, name: &ModuleName, is_on_record: bool) -> bool {
        let Some(module) = self.states.get(name).filter(|module| !module.is_active) else { return false };
        let is_off = module.decision.as_ref().is_some_and(|decision| !decision.enabled);
        (is_on_record || is_off || !module.may_have_run)
            && matches!(module.release, Release::Absent | Release::Unknown)
    }

    /// Returns whether there is, or may be, something of a module to remove when it is off.
    pub(crate) fn leaves_something(&self, configuration: &Configuration, module: &ModuleState) -> bool {
        module.is_active || self.is_unseen(configuration, module)
    }

    /// Returns whether the configuration of a module that is off waits for its end, and nobody has looked whether there is a release
    /// of it. All releases are listed behind the first converge, which may not come to its end.
    pub(crate) fn is_unseen(&self, configuration: &Configuration, module: &ModuleState) -> bool {
        let is_of_bundle = module.spec.origin.digest().is_some() && module.phase != Phase::Orphaned;
        !self.are_releases_known
            && is_of_bundle
            && module.release == Release::Unknown
            && configuration.withdrawn_by(&module.spec.name).is_some()
    }

    /// Begins to look whether there is a release of a module, if that is needed before it is removed; a removal that uninstalls one
    /// anyway finds out by that.
    pub(super) fn look_for_release(&mut self, lower: &mut Lower<'_>, name: &ModuleName) -> Option<Next> {
        let module = self.states.get(name)?;
        let finds_out = module.is_active && module.may_leave_release(lower.configuration);
        if finds_out || !self.is_unseen(lower.configuration, module) {
            return None;
        }
        if module.has_no_release(lower.configuration) {
            self.release_seen(lower.configuration, name, Vec::new());
            return self.is_nothing(name).then_some(Next::Gone);
        }
        let left = module.places.all_left().cloned();
        let mut targets = vec![self.release_target(lower.configuration, name)];
        targets.extend(left);
        let run = lower.cx.ids.run();
        Some(Next::Run(run, Answer::Task, Box::new(Effect::ListReleases { run, targets })))
    }

    /// Records whether there is a release of a module that is to be removed, as the releases of its places say. What may not be
    /// listed may be there.
    pub(crate) fn release_seen(
        &mut self,
        configuration: &Configuration,
        name: &ModuleName,
        lists: Vec<OwnedReleases>,
    ) {
        let wanted = self.release_target(configuration, name);
        let release = ReleaseName::from(name.as_str());
        let is_ours = self.config.ignore_release.as_ref() != Some(&release);
        let Some(module) = self.states.get_mut(name).filter(|module| module.release == Release::Unknown)
        else {
            return;
        };
        let mut is_anywhere = false;
        for OwnedReleases { target, outcome } in lists {
            let is_listed = outcome.map_or(true, |owned| owned.iter().any(|owned| owned.name == release));
            if is_listed && is_ours {
                module.places.found(&target, &wanted);
                is_anywhere = true;
            } else {
                module.places.removed(&target);
            }
        }
        module.release = if is_anywhere { Release::Broken } else { Release::Absent };
        self.changed.insert(name.clone());
    }
}

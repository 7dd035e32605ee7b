//! Pictures of modules for people.

use super::state::Release;
use super::{ModuleState, Modules, Phase};
use crate::configuration::{Configuration, Opinion};
use crate::failure::Failure;
use crate::name::{BindingKey, HookName};
use crate::release_target::ReleaseTarget;
use crate::time::Time;
use crate::view::{DriftView, ModuleView, OpinionView, Source};

impl Modules {
    /// Returns a picture of all modules as they run, orphans last.
    pub(crate) fn views(&self, configuration: &Configuration, now: Time) -> Vec<ModuleView> {
        let is_orphan = |module: &&ModuleState| configuration.module_by_key(&module.spec.key).is_none();
        let orphans = self.states.values().filter(is_orphan);
        let own = self.own_target();
        let place = |module: &ModuleState| {
            Some(self.release_place(configuration, &module.spec.name)).filter(|place| *place != own)
        };
        let modules = self.in_order().chain(orphans);
        let requires = |module: &ModuleState| self.requirement_views(configuration, module);
        // Whatever they answered since, they were asked again by a run.
        let unanswered = |module: &ModuleState| {
            let unanswered = self.unread_hooks.unanswered(&module.spec.name);
            unanswered.filter(|_| module.spec.has_unread_hooks && module.is_on()).cloned()
        };
        let view = |module: &ModuleState| ModuleView {
            requires: requires(module),
            unanswered: unanswered(module),
            ..view(module, place(module), configuration, now)
        };
        modules.map(view).collect()
    }

    /// Returns the names of the global hooks.
    pub(crate) fn global_hook_names(&self) -> Vec<HookName> {
        self.global.hooks.iter().map(|hook| hook.id.name.clone()).collect()
    }

    /// Returns what of the files of all modules is broken.
    pub(crate) fn file_problems(&self) -> Vec<Failure> {
        self.broken_files.failures()
    }

    /// Returns the name of a kubernetes binding, if its hook can run.
    pub(crate) fn binding_name(&self, key: &BindingKey) -> Option<String> {
        Some(self.runnable_hook(&key.hook)?.spec.kubernetes.get(key.index)?.name.clone())
    }
}

fn view(
    module: &ModuleState,
    elsewhere: Option<ReleaseTarget>,
    configuration: &Configuration,
    now: Time,
) -> ModuleView {
    let spec = &module.spec;
    let (release, revision) = match module.release {
        Release::Absent => ("absent", None),
        // As Helm calls it. What is in the cluster may be as good as before: the change may only have been forbidden.
        Release::Broken => ("failed", None),
        Release::Deployed { revision, .. } => ("deployed", Some(revision)),
        Release::Unknown if !spec.has_chart => ("no chart", None),
        Release::Unknown => ("unknown", None),
        Release::Unmanaged => ("unmanaged", None),
    };
    ModuleView {
        name: spec.name.clone(),
        key: spec.key.clone(),
        order: spec.order,
        path: spec.path.clone(),
        // Known to the machine above.
        origin: None,
        phase: module.phase.as_str(),
        since: now.since(module.since),
        enabled: module.decision.as_ref().map(|_| module.is_on()),
        why: module.decision.as_ref().map_or_else(String::new, ToString::to_string),
        opinions: opinions(module, configuration, now),
        unasked: {
            let unasked = configuration.unasked(spec).into_iter();
            unasked.map(|opinion| opinion_view(opinion, module, configuration, now)).collect()
        },
        is_flag_heard: configuration.flag_refusal(spec, true).is_none(),
        config_problem: configuration.module_problem(&spec.key, now),
        has_secret_values: configuration.has_secret_values(&spec.key),
        last_error: module.last_error.clone(),
        // Known to those who ask.
        unanswered: None,
        revision,
        release,
        elsewhere,
        maintenance: configuration.maintenance_view(&spec.key, now),
        parked: module.parked.as_ref().map(|parked| parked.why.clone()),
        waits: module.reason.clone().filter(|_| module.phase == Phase::Waiting),
        readiness: module.readiness.view(now),
        requires: Vec::new(),
        held: module.reason.clone().filter(|_| module.phase == Phase::Held),
        package: spec.package.clone(),
        changed_objects: module.drift.differing().collect(),
        drift: match module.is_enforced(configuration) {
            true if module.drift.has_quarrel() => DriftView::Quarrel,
            true => DriftView::Mended,
            false => DriftView::Stays,
        },
        unmended: module.drift.unmended().filter(|_| module.is_enforced(configuration)),
        taken_objects: module.drift.taken().to_vec(),
        unwatched_kinds: module.drift.unwatched_kinds().to_vec(),
        broken_version: module.broken_version.clone().or_else(|| spec.broken.clone()),
        has_old_version: spec.broken.is_none(),
        hooks: spec.hooks.iter().map(|hook| hook.id.clone()).collect(),
    }
}

/// Returns who says what about a module; before the first discovery that is what flags say.
fn opinions(module: &ModuleState, configuration: &Configuration, now: Time) -> Vec<OpinionView> {
    let decision = module.decision.clone().unwrap_or_else(|| configuration.flags_of(&module.spec));
    decision.opinions.into_iter().map(|opinion| opinion_view(opinion, module, configuration, now)).collect()
}

fn opinion_view(
    opinion: Opinion,
    module: &ModuleState,
    configuration: &Configuration,
    now: Time,
) -> OpinionView {
    let flag = configuration.dynamic_flag(&module.spec.key);
    let (source, says, by, reason, since) = match opinion {
        Opinion::Static { on, file } => (Source::Static, on, file.to_string(), None, None),
        Opinion::Dynamic { on, hook } => {
            let (reason, since) = (flag.map(|flag| flag.cause.to_string()), flag.map(|flag| flag.since));
            (Source::Dynamic, on, hook.to_string(), reason, since)
        }
        Opinion::Config { on, object, key } => (Source::Config(object), on, key, None, None),
        Opinion::Script(verdict) => {
            let path = module.spec.enabled_script.as_ref().map(|script| script.path.to_string());
            // It may have said something else since, which the next discovery goes by.
            let said = module.script.as_ref().filter(|answer| answer.verdict == verdict);
            let since = said.map(|answer| answer.at);
            (Source::Script, verdict.enabled, path.unwrap_or_default(), verdict.reason, since)
        }
        Opinion::Withdrawn(source) => {
            let by = source.to_string();
            (Source::Withdrawn(source), false, by, None, None)
        }
    };
    OpinionView { source, says, by, reason, ago: since.map(|since| now.since(since)) }
}

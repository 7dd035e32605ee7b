//! How runs that fail are tried again, and what comes when they are not.

use std::sync::Arc;

use super::state::Parked;
use super::{Modules, Phase};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::ValuesInput;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::retry::RetryPolicy;
use crate::task::{ModuleRun, Task, TaskKind};

impl Modules {
    /// Returns how a task is tried again that failed.
    pub(crate) fn retry_policy(&self, task: &Task) -> RetryPolicy {
        let policy = match &task.kind {
            TaskKind::ModuleRun(run) => self.states.get(&run.module).map(|module| module.spec.settings.retry),
            TaskKind::HookRun(run) => self.loaded_hook(&run.hook).map(|hook| hook.spec.settings.retry),
            TaskKind::AddonsCommit
            | TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ParallelModuleRun(_) => None,
        };
        policy.unwrap_or_default()
    }

    /// Leaves a module alone whose `run` failed for the last time. What failed had `read` these values: those that somebody
    /// changed since then have had no attempt.
    pub(crate) fn park_runs(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        run: &ModuleRun,
        (failures, failure): (u32, &Failure),
        read: Option<&ValuesInput>,
    ) {
        let name = &run.module;
        let [global, own] = configuration.read_by_chart(name);
        let values = match read {
            Some(ValuesInput { global, module: Some(module), .. }) => {
                [Arc::clone(global), Arc::clone(&module.values)]
            }
            Some(ValuesInput { module: None, .. }) | None => [global, own],
        };
        let Some(module) = self.states.get_mut(name) else { return };
        let why = format!(
            "its run failed {failures} times, the last time because: {}; it does not run until its values or files change, or `module resume {name}`",
            configuration.shown(failure).message
        );
        let content = run.content.unwrap_or(module.spec.content);
        module.parked = Some(Parked { why: why.clone(), values, content, stops_runs: true });
        self.set_phase(cx, configuration, name, Phase::Parked, Some(why));
    }

    /// Returns why a module is not run at all, if it is parked. A change of its values or files ends that.
    pub(super) fn parked_runs(&mut self, configuration: &Configuration, name: &ModuleName) -> Option<String> {
        let module = self.states.get_mut(name)?;
        let parked = module.parked.as_ref().filter(|parked| parked.stops_runs)?;
        if parked.values == configuration.read_by_chart(name) && parked.content == module.spec.content {
            return Some(parked.why.clone());
        }
        module.parked = None;
        None
    }
}

//! What is known about the releases of modules, and when they are left alone.

use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::event::{Drift, ReleaseAction, ReleaseOutcome};
use crate::failure::Failure;
use crate::module::{Parked, Phase, Release, Upgrade};
use crate::name::{ModuleName, ReleaseName, RunId};
use crate::notice::Notice;
use crate::queue::queues::Place;
use crate::task::in_flight::{Running, Work};
use crate::task::{Task, TaskKind};

/// How many upgrades alike make a loop.
const LOOP: usize = 3;
/// Why a release was upgraded, and what that changed first.
struct Reason {
    cause: String,
    changed: Option<String>,
}

/// How many objects that others changed are remembered of one release.
const CHANGED: usize = 100;

/// How close together they are.
const LOOP_TIME: Duration = Duration::from_mins(15);

impl Engine {
    /// Takes in that a release was installed, upgraded or removed, or not.
    pub(crate) fn release_finished(&mut self, run: RunId, outcome: Result<ReleaseOutcome, Failure>) {
        let now = self.now;
        let stale = self.queues.running(run).is_some_and(|running| running.dropped);
        let known = self.queues.running(run).and_then(|running| match &running.work {
            Work::Release(module) => {
                Some((module.clone(), now.since(running.since), running.task.cause.clone()))
            }
            Work::Crds | Work::Hook(_) | Work::List | Work::Load | Work::Purge | Work::Script(_) => None,
        });
        if let Some((module, took, cause)) = &known {
            let action = outcome.as_ref().ok().map(|outcome| outcome.action);
            let startup = cause.is_of_start();
            self.notify(Notice::ReleaseRan { module: module.clone(), action, took: *took, startup });
            let release = known_release(&outcome);
            // Also when nobody waits any more: the cluster is as it is.
            match action {
                Some(action) if !stale => {
                    let root = cause.links().first().copied().unwrap_or_default().to_owned();
                    let changed = outcome.as_ref().ok().and_then(|outcome| outcome.changed.clone());
                    self.release_upgraded(module, action, release, Reason { cause: root, changed });
                }
                Some(_) | None => {
                    if let Some(module) = self.modules.get_mut(module) {
                        module.release = release;
                    }
                }
            }
        }
        let Some((queue, Running { task, .. })) = self.finish_run(run) else { return };
        match outcome {
            Ok(_) => self.release_done(&queue, task),
            Err(failure) => match &task.kind {
                TaskKind::ModulePurge(release) => {
                    // The reference operator tries it once; it comes back at the next start.
                    let message = format!(
                        "release {release} was not removed: {failure}; it is tried again at the next start"
                    );
                    self.notify(Notice::Warned { scope: crate::name::Scope::Global, message });
                    self.end(&queue, task, Some(failure));
                }
                TaskKind::ConvergeModules(_)
                | TaskKind::DiscoverHelmReleases
                | TaskKind::GlobalHookEnableKubernetesBindings(_)
                | TaskKind::GlobalHookRun(_)
                | TaskKind::GlobalHookWaitKubernetesSynchronization
                | TaskKind::ModuleDelete(_)
                | TaskKind::ModuleEnsureCrds(_)
                | TaskKind::ModuleHookRun(_)
                | TaskKind::ModuleRun(_)
                | TaskKind::ParallelModuleRun(_) => self.fail(&queue, task, failure),
            },
        }
    }

    /// Takes in what happened to the release of a module that runs.
    fn release_upgraded(
        &mut self,
        name: &ModuleName,
        action: ReleaseAction,
        release: Release,
        reason: Reason,
    ) {
        let now = self.now;
        let Some(module) = self.modules.get_mut(name) else { return };
        module.release = release;
        if action != ReleaseAction::Unchanged {
            module.changed_objects.clear();
        }
        let is_managed = match action {
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => true,
            ReleaseAction::Absent | ReleaseAction::Uninstalled | ReleaseAction::Unmanaged => false,
        };
        if is_managed != module.release_watched {
            module.release_watched = is_managed;
            let module = name.clone();
            self.out.push(if is_managed {
                Effect::WatchRelease { module }
            } else {
                Effect::ForgetRelease { module }
            });
        }
        if let (ReleaseAction::Upgraded, Release::Deployed { checksum, .. }) = (action, release) {
            self.count_upgrade(name, now, reason, checksum);
        }
    }

    fn release_done(&mut self, queue: &crate::name::QueueName, mut task: Task) {
        match &mut task.kind {
            TaskKind::ModuleRun(run) => {
                run.stage = self.after_helm(&run.module);
                self.resume(queue, task);
            }
            TaskKind::ModuleDelete(delete) => {
                delete.uninstalled();
                self.resume(queue, task);
            }
            TaskKind::ModulePurge(release) => {
                let name = ModuleName::from(release.as_str());
                self.orphan_purged(&name);
                self.end(queue, task, None);
            }
            TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookRun(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModuleHookRun(_)
            | TaskKind::ParallelModuleRun(_) => self.resume(queue, task),
        }
    }

    /// Remembers an upgrade and parks the module if it goes round in circles.
    fn count_upgrade(&mut self, name: &ModuleName, now: crate::Time, reason: Reason, checksum: u64) {
        let values = self.sections.get(name).map(|section| Arc::clone(section.result())).unwrap_or_default();
        let Some(module) = self.modules.get_mut(name) else { return };
        let Reason { cause, changed } = reason;
        let content = module.spec.content;
        let upgrade = Upgrade { at: now, cause, checksum, changed, values: Arc::clone(&values), content };
        module.upgrades.retain(|upgrade| now.since(upgrade.at) < LOOP_TIME);
        let alike = module.upgrades.iter().filter(|earlier| earlier.is_like(&upgrade)).count() + 1;
        module.upgrades.push_back(upgrade.clone());
        if alike < LOOP {
            return;
        }
        let Upgrade { cause, changed, .. } = upgrade;
        let what = changed.map(|changed| format!("; what keeps changing: {changed}")).unwrap_or_default();
        let why = format!(
            "its release was upgraded {LOOP} times within 15 minutes with the same result, each time because of: {cause}{what}; \
             its release is left alone until its values or its chart change, or `module resume {name}`"
        );
        module.parked = Some(Parked { why: why.clone(), values, content });
        self.set_phase(name, Phase::Parked, Some(why));
    }

    /// Returns whether the module's release is left alone. A change of its values or files ends that.
    pub(crate) fn is_release_left_alone(&mut self, name: &ModuleName) -> bool {
        let values = self.sections.get(name).map(|section| Arc::clone(section.result())).unwrap_or_default();
        let Some(module) = self.modules.get_mut(name) else { return false };
        let Some(parked) = &module.parked else { return false };
        if *parked.values == *values && parked.content == module.spec.content {
            return true;
        }
        module.parked = None;
        module.upgrades.clear();
        false
    }

    /// Takes in that a release differs from its chart.
    pub(crate) fn release_drifted(&mut self, name: &ModuleName, drift: Drift) {
        let (description, what) = match &drift {
            Drift::Absent(object) => ("AbsentHelmResourcesDetected", format!("{object} is gone")),
            Drift::Changed(object) => ("HelmReleaseDriftDetected", format!("{object} was changed")),
            Drift::Status(what) => ("HelmReleaseUnexpectedStatus", what.clone()),
        };
        let Some(module) = self.modules.get_mut(name).filter(|module| module.is_on()) else { return };
        if let Drift::Changed(object) = &drift
            && module.changed_objects.len() < CHANGED
        {
            module.changed_objects.insert(object.clone());
        }
        self.notify(Notice::ReleaseDrifted { module: name.clone(), drift, what: what.clone() });
        let is_running = self.queues.in_flight().any(|(_, running)| {
            running.task.module_run().is_some_and(|run| run.module == *name && run.is_before_upgrade())
        });
        if !is_running {
            let cause = Cause::outside(format!("release {name} drifted: {what}"));
            self.queue_module_run(name, Place::Back, description, &cause);
        }
    }

    /// Takes in which releases carry our label.
    pub(crate) fn releases_listed(&mut self, run: RunId, outcome: Result<Vec<ReleaseName>, Failure>) {
        let Some((queue, Running { task, .. })) = self.finish_run(run) else { return };
        let releases = match outcome {
            Ok(releases) => releases,
            Err(failure) => return self.fail(&queue, task, failure),
        };
        let mut tasks = Vec::new();
        for release in releases.into_iter().rev() {
            if self.config.ignore_release.as_ref() == Some(&release) {
                continue;
            }
            let name = ModuleName::from(release.as_str());
            let cause = task.cause.then(format!("release {release}"));
            match self.modules.get_mut(&name) {
                Some(module) if module.is_on() || module.phase == Phase::Orphaned => {}
                Some(module) => {
                    if module.release == Release::Unknown {
                        module.release = Release::Broken;
                    }
                    let kind = TaskKind::ModuleDelete(super::delete::ModuleDelete::new(name));
                    tasks.push(self.new_task(kind, "Operator-PostConvergeCleanup", cause, None));
                }
                None if self.catalog.complete => {
                    tasks.push(self.new_task(
                        TaskKind::ModulePurge(release),
                        "Operator-PostConvergeCleanup",
                        cause,
                        None,
                    ));
                }
                None => {
                    let message = format!(
                        "release {release} belongs to no module; it stays, because not all modules directories could be read or one is empty"
                    );
                    self.notify(Notice::Warned { scope: crate::name::Scope::Global, message });
                }
            }
        }
        self.end(&queue, task, None);
        self.put(&queue, Place::Front, tasks);
    }

    /// Forgets an orphaned module whose release is gone.
    fn orphan_purged(&mut self, name: &ModuleName) {
        let is_orphan = self.modules.get(name).is_some_and(|module| module.phase == Phase::Orphaned);
        if is_orphan {
            self.modules.remove(name);
            self.sections.remove(name);
        }
    }
}

fn known_release(outcome: &Result<ReleaseOutcome, Failure>) -> Release {
    match outcome {
        Err(_) => Release::Broken,
        Ok(outcome) => match outcome.action {
            ReleaseAction::Absent | ReleaseAction::Uninstalled => Release::Absent,
            ReleaseAction::Unmanaged => Release::Unmanaged,
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => {
                Release::Deployed { revision: outcome.revision, checksum: outcome.checksum }
            }
        },
    }
}

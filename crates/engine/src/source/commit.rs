//! How what is registered becomes modules: a task at the head of `main`, between two attempts of whatever fails there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::commits::Commit;
use super::known::work_key;
use super::known_sources::Role;
use super::sources::Sources;
use crate::addon::Digest;
use crate::cause::Cause;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, QueueName, RunId, Scope};
use crate::notice::Notice;
use crate::queue::{End, Next, Queues};
use crate::reconcile::WorkKey;
use crate::task::{Answer, Task, TaskKind, Trigger};
use crate::time::Time;

impl Sources {
    /// Queues the task that puts what is registered into force, if that is due.
    pub(super) fn queue_commit(&mut self, lower: &mut Lower<'_>) {
        let commits = &mut self.commits;
        let is_due = commits.retry_at.is_none_or(|at| at <= lower.cx.now);
        if commits.wanted == commits.in_force() || commits.is_queued || !is_due {
            return;
        }
        (commits.is_queued, commits.retry_at) = (true, None);
        let (main, cause) = (QueueName::main(), Cause::outside("addons registered"));
        let task = Task::new(lower.cx, &main, TaskKind::AddonsCommit, Trigger::AddonsChanged, cause, None);
        lower.queues.put(lower.cx, &main, End::Front, vec![task]);
    }

    /// Begins to load the modules as they are registered.
    pub(crate) fn advance_commit(&mut self, cx: &mut Context) -> Next {
        let (run, registry) = (cx.ids.run(), self.registration.registry());
        // What is lost holds up nobody else.
        let lost = self.lost.iter().cloned().collect();
        self.commits.loading = Some((self.commits.wanted, Arc::clone(&registry)));
        Next::Run(run, Answer::Task, Box::new(Effect::LoadModules { run, registry, lost }))
    }

    /// Returns what was loaded.
    pub(crate) fn loaded(&mut self, modules: &Modules, queues: &Queues) -> Option<Commit> {
        self.commits.is_queued = false;
        let (version, registry) = self.commits.loading.take()?;
        let runs = queues.in_flight().filter_map(|running| {
            let bundle = modules.bundle_of(running.task.module()?);
            Some((running.run, bundle.cloned()))
        });
        Some(Commit { version, registry, runs: runs.collect() })
    }

    /// Has it tried again: modules could not be loaded.
    pub(crate) fn not_loaded(&mut self, now: Time) {
        (self.commits.is_queued, self.commits.loading) = (false, None);
        self.commits.retry_at = Some(now + self.config.retry_delay);
    }

    /// Records that what was loaded is in force, and lets those go on that wait for that.
    pub(crate) fn committed(&mut self, modules: &Modules, lower: &Lower<'_>, commit: &Commit) {
        if !self.unloaded.is_empty() {
            let loaded: BTreeSet<Digest> = modules.bundles().into_values().collect();
            self.unloaded.retain(|digest| !loaded.contains(digest));
            self.sweep.want();
        }
        let is_old = |run: &RunId| {
            let module = lower.queues.running(*run).and_then(|running| running.task.module());
            let now = module.map(|name| modules.bundle_of(name).cloned());
            let queue = lower.queues.running(*run).map(|running| running.task.head.queue.clone());
            let home = queue.map(|queue| queue.home().cloned().unwrap_or(queue));
            let guest = module.and_then(|name| lower.configuration.guest_queue(name));
            let is_of_other = home.as_ref().is_some_and(QueueName::is_of_namespace) && guest != home;
            now.is_some() && (is_of_other || now.as_ref() != commit.runs.get(run))
        };
        let in_flight = lower.queues.in_flight().map(|running| running.run);
        self.commits.old_runs.extend(in_flight.filter(is_old));
        self.commits.outdated = modules.outdated_bundles();
        let changed = self.commits.put_into_force(commit.version);
        for key in &changed {
            self.sweep.want_of(key);
        }
        self.edition += 1;
        self.removals.want();
        for key in self.commits.take_waiting() {
            self.reconciles.resume(&work_key(&key));
        }
    }

    /// Records that hooks of the bundle before gave way to their own in some modules. What runs of them may be of that bundle still.
    pub(crate) fn hooks_replaced(
        &mut self,
        modules: &Modules,
        queues: &Queues,
        replaced: &BTreeSet<ModuleName>,
    ) {
        if replaced.is_empty() {
            return;
        }
        let of_them = queues
            .in_flight()
            .filter(|running| running.task.module().is_some_and(|name| replaced.contains(name)));
        self.commits.old_runs.extend(of_them.map(|running| running.run));
        self.commits.outdated = modules.outdated_bundles();
        self.commits.left_bundles();
    }

    /// Makes the configurations of a role go on that wait.
    pub(super) fn resume_all(&mut self, role: Role) {
        let works: Vec<WorkKey> = self.known.in_role(role).map(|(key, _)| work_key(key)).collect();
        for work in works {
            self.reconciles.resume(&work);
        }
    }

    /// Removes bundles that nobody needs. One that was just fetched is needed, so it waits until all is registered.
    ///
    /// `are_asked` says whether hooks of one answer the API server still that are not in force any more.
    pub(super) fn drop_unused(&mut self, lower: &mut Lower<'_>, are_asked: bool) {
        let commits = &mut self.commits;
        if !commits.has_unused || commits.is_dropping() || commits.wanted != commits.in_force() {
            return;
        }
        commits.forget_ended_runs(lower.queues);
        let is_busy = are_asked || commits.has_old_runs() || self.next.is_some();
        // Without a registry the objects alone say what is needed.
        let is_unknown = self.is_registry_lost && !self.watches.are_all_listed();
        if is_unknown || is_busy || self.known.has(Role::Storing) {
            return;
        }
        let (run, registry) = (lower.cx.ids.run(), self.registration.registry());
        (commits.has_unused, commits.dropping) = (false, Some(run));
        let others = commits.outdated.iter().cloned().collect();
        lower.cx.push(Effect::DropBundles { run, registry, others });
    }

    /// Handles that bundles were removed.
    pub(crate) fn dropped(&mut self, cx: &mut Context, run: RunId, outcome: Result<(), Failure>) {
        if self.commits.dropping != Some(run) {
            return;
        }
        self.commits.dropping = None;
        if let Err(failure) = outcome {
            let message =
                format!("bundles that nobody needs stay until the next change of a source: {failure}");
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        self.resume_all(Role::Starting);
    }
}

//! How what is registered becomes modules: a task at the head of `main`, between two attempts of whatever fails there.

use super::commits::Commit;
use super::known::work_key;
use super::pass::Pass;
use super::sources::Sources;
use crate::addon::SourceKey;
use crate::cause::Cause;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, QueueName, RunId, Scope};
use crate::notice::Notice;
use crate::queue::{End, Next};
use crate::task::{Answer, Task, TaskKind, Trigger};
use crate::time::Time;

impl Sources {
    /// Queues the task that puts what is registered into force, if that is due.
    pub(super) fn queue_commit(&mut self, lower: &mut Lower<'_>) {
        let commits = &mut self.commits;
        let is_due = commits.retry_at.is_none_or(|at| at <= lower.cx.now);
        if commits.wanted == commits.in_force || commits.is_queued || !is_due {
            return;
        }
        (commits.is_queued, commits.retry_at) = (true, None);
        let (main, cause) = (QueueName::main(), Cause::outside("addons registered"));
        let task = Task::new(lower.cx, &main, TaskKind::AddonsCommit, Trigger::AddonsChanged, cause, None);
        lower.queues.put(lower.cx, &main, End::Front, vec![task]);
    }

    /// Begins to load the modules as they are registered.
    pub(crate) fn advance_commit(&mut self, cx: &mut Context) -> Next {
        let registry = self.registration.registry();
        let (run, mut links) = (cx.ids.run(), registry.links());
        // What is lost holds up nobody else.
        links.retain(|link| !self.lost.contains(&link.digest));
        self.commits.loading = Some((self.commits.wanted, registry));
        Next::Run(run, Answer::Task, Box::new(Effect::LoadModules { run, links }))
    }

    /// Returns what was loaded.
    pub(crate) fn loaded(&mut self, modules: &Modules) -> Option<Commit> {
        self.commits.is_queued = false;
        let (version, registry) = self.commits.loading.take()?;
        Some(Commit { version, registry, before: modules.bundles() })
    }

    /// Has it tried again: modules could not be loaded.
    pub(crate) fn not_loaded(&mut self, now: Time) {
        (self.commits.is_queued, self.commits.loading) = (false, None);
        self.commits.retry_at = Some(now + self.config.retry_delay);
    }

    /// Records that what was loaded is in force, and lets those go on that wait for that.
    pub(crate) fn committed(&mut self, modules: &Modules, lower: &Lower<'_>, commit: &Commit) {
        let now = modules.bundles();
        self.unloaded.retain(|digest| !now.values().any(|loaded| loaded == digest));
        let is_other = |name: &ModuleName| commit.before.get(name) != now.get(name);
        let runs = lower.queues.in_flight();
        let old =
            runs.filter(|running| running.task.module().is_some_and(is_other)).map(|running| running.run);
        self.commits.old_runs.extend(old);
        self.commits.in_force = commit.version;
        self.sweep.want();
        self.removals.want();
        self.resume_where(|pass| matches!(pass, Pass::Committing { .. }));
    }

    fn resume_where(&mut self, is: impl Fn(&Pass) -> bool) {
        let keys: Vec<SourceKey> =
            self.known.iter().filter(|(_, source)| is(&source.pass)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.reconciles.resume(&work_key(&key));
        }
    }

    /// Removes bundles that nobody needs. One that was just fetched is needed, so it waits until all is registered.
    pub(super) fn drop_unused(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        let commits = &mut self.commits;
        if !commits.has_unused || commits.is_dropping() || commits.wanted != commits.in_force {
            return;
        }
        let is_storing =
            |pass: &Pass| matches!(pass, Pass::Fetching { .. } | Pass::Registering(_) | Pass::Keeping(_));
        commits.forget_ended_runs(lower.queues);
        let is_busy = commits.has_old_runs() || self.next.is_some();
        if is_busy || self.known.values().any(|source| is_storing(&source.pass)) {
            return;
        }
        let mut keep = self.registration.digests();
        keep.extend(modules.bundles().into_values());
        let run = lower.cx.ids.run();
        (commits.has_unused, commits.dropping) = (false, Some(run));
        lower.cx.push(Effect::DropBundles { run, keep: keep.into_iter().collect() });
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
        self.resume_where(|pass| matches!(pass, Pass::Starting));
    }
}

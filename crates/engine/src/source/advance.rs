//! The work on a configuration that is there. What is wrong is in its status; only the API server and we fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::assessment::Assessment;
use super::guest::in_namespace;
use super::known::{Decided, work_key};
use super::known_sources::Role;
use super::object::FINALIZER;
use super::pass::{DeletePass, Go, Keeping, Pass, Registering, SourceAnswer, failed, store_failure};
use super::patches;
use super::registration::{Change, Fate};
use super::sources::Sources;
use super::status::{SourcePhase, Status};
use crate::addon::{Digest, FailurePolicy, Fetched, RegisteredAddon, SourceKey, SourceKind};
use crate::context::Context;
use crate::effect::Effect;
use crate::event::StoreError;
use crate::failure::{Failure, FailureKind};
use crate::module::Modules;
use crate::notice::Notice;
use crate::reconcile::Step;

/// How long to wait, at most, for the object as it is now when somebody else changed it.
const CONFLICT: Duration = Duration::from_millis(500);

/// Returns whether the status says that the registry could not be written. What passes by itself is only tried again.
fn is_told(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Forbidden | FailureKind::Values)
}

/// Returns what follows a step. When somebody was faster, often we ourselves, what the watch says next is what it is about.
fn again_on_conflict(step: Step) -> Step {
    let is_conflict = matches!(&step, Step::Failed(failure) if failure.kind == FailureKind::Conflict);
    if is_conflict { Step::Again(CONFLICT) } else { step }
}

impl Sources {
    /// Does what can be done for a configuration now.
    pub(super) fn advance_source(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Step {
        loop {
            let Some(source) = self.known.get_mut(key) else {
                self.release(&work_key(key));
                return Step::Done;
            };
            let (pass, answer) = (std::mem::take(&mut source.pass), source.answer.take());
            let Some(object) = &source.object else {
                // A registry that is being written may be the one in force.
                if let Some(SourceAnswer::Kept(Ok(()))) = answer {
                    self.registered(modules, cx);
                }
                self.release(&work_key(key));
                return Step::Done;
            };
            let is_deleting = object.is_deleting;
            let go = match pass {
                Pass::Deleting(stage) => self.advance_delete(modules, cx, key, stage, answer),
                Pass::Idle if is_deleting => Go::On(Pass::Deleting(DeletePass::default())),
                Pass::Idle => self.begin(modules, cx, key),
                Pass::Restoring(digests) => {
                    if let Some(SourceAnswer::Restored(lost)) = answer {
                        self.restored(&digests, &lost);
                    }
                    Go::On(Pass::Idle)
                }
                Pass::Finalizing => match failed(answer) {
                    Some(failure) => Go::Stop(Pass::Idle, Step::Failed(failure)),
                    None => self.finalized(cx, key),
                },
                Pass::Pending => match failed(answer) {
                    Some(failure) => Go::Stop(Pass::Idle, Step::Failed(failure)),
                    None => Go::On(Pass::Starting),
                },
                Pass::Starting => self.fetch(cx, key),
                Pass::Fetching { generation, spec } => match answer {
                    Some(SourceAnswer::Fetched(Ok(fetched))) if self.is_current(key, generation) => {
                        self.found(&fetched);
                        let fetched = match key.kind {
                            SourceKind::Cluster => Ok(fetched),
                            SourceKind::Namespaced => Ok(in_namespace(key, fetched)),
                        };
                        Go::On(Pass::Registering(Box::new(Registering { generation, spec, fetched })))
                    }
                    Some(SourceAnswer::Fetched(Err(failure))) if !failure.is_cancelled() => {
                        Go::Stop(Pass::Idle, Step::Failed(failure))
                    }
                    _ => Go::On(Pass::Idle),
                },
                Pass::Registering(registering) => self.register(modules, cx, key, registering),
                Pass::Keeping(keeping) => self.kept_or_not(modules, cx, key, keeping, answer),
                Pass::Committing { version, keeping } if self.commits.in_force() < version => {
                    self.commits.wait_for(version, key);
                    let step =
                        Step::Wait("its modules are put into force by a task in queue main".to_owned());
                    Go::Stop(Pass::Committing { version, keeping }, step)
                }
                Pass::Committing { keeping, .. } => self.decide(cx, key, *keeping),
                Pass::Writing => match failed(answer) {
                    Some(failure) => Go::Stop(Pass::Idle, Step::Failed(failure)),
                    None => self.written(cx, key),
                },
                Pass::Bumping => self.bump_next(cx, key, answer),
            };
            match go {
                Go::On(pass) => self.set_pass(key, pass),
                Go::Stop(pass, step) => {
                    self.set_pass(key, pass);
                    return again_on_conflict(step);
                }
            }
        }
    }

    fn set_pass(&mut self, key: &SourceKey, pass: Pass) {
        if let Some(source) = self.known.get_mut(key) {
            source.pass = pass;
        }
    }

    /// Returns whether the object is as it was when a pass began.
    fn is_current(&self, key: &SourceKey, generation: i64) -> bool {
        let source = self.known.get(key).filter(|source| source.is_there());
        source.and_then(|source| source.object.as_ref()).is_some_and(|object| object.generation == generation)
    }

    /// Begins a pass, if there is something to do. Ready at equal generation: nothing, unless modules changed.
    fn begin(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Go {
        if let Some(go) = self.restore_bundles(cx, key) {
            return go;
        }
        let Some(source) = self.known.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let Some(object) = &source.object else { return Go::Stop(Pass::Idle, Step::Done) };
        if source.is_suspended() {
            (source.process_at, source.waits_for) = (None, None);
            return self.write_status(modules, cx, key);
        }
        let is_left_alone = source.is_left_alone();
        if !(object.has_finalizer() || source.is_decided() && is_left_alone) {
            if let Some(at) = source.finalizer_at(cx.now) {
                return Go::Stop(Pass::Idle, Step::Again(at.since(cx.now)));
            }
            let step = patches::set_finalizer(cx, key, object, true);
            return Go::Stop(Pass::Finalizing, step);
        }
        if source.is_settled(cx.now) {
            return self.write_status(modules, cx, key);
        }
        if self.waits_for_others(key) {
            return self.write_status(modules, cx, key);
        }
        self.say_pending(cx, key)
    }

    /// Goes on after the finalizer was written: it is there, whatever the watch says for a moment.
    fn finalized(&mut self, cx: &mut Context, key: &SourceKey) -> Go {
        let Some(source) = self.known.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        if let Some(object) = source.object.as_mut().filter(|object| !object.has_finalizer()) {
            object.finalizers.push(FINALIZER.to_owned());
        }
        source.finalized_at = source.decided.is_some().then_some(cx.now);
        if source.is_settled(cx.now) {
            // Somebody else had removed it.
            return Go::On(Pass::Idle);
        }
        if self.waits_for_others(key) {
            return Go::On(Pass::Idle);
        }
        self.say_pending(cx, key)
    }

    /// Writes `Pending` before the first pass.
    fn say_pending(&mut self, cx: &mut Context, key: &SourceKey) -> Go {
        let now = self.config.time_of_day(cx.now);
        let Some(source) = self.known.get_mut(key) else { return Go::On(Pass::Starting) };
        let Some(object) = source.object.as_mut() else { return Go::On(Pass::Starting) };
        if source.decided.is_some() {
            return Go::On(Pass::Starting);
        }
        let lost = self.registration.lost_of(key, &self.lost);
        let status = match object.status.phase {
            SourcePhase::None => Status {
                phase: SourcePhase::Pending,
                message: "its repositories are fetched for the first time".to_owned(),
                ..Status::default()
            },
            SourcePhase::Ready if !lost.is_empty() => object.status.without_bundles(&lost),
            SourcePhase::Failed | SourcePhase::Pending | SourcePhase::Ready => {
                return Go::On(Pass::Starting);
            }
        };
        let step = patches::set_status(cx, key, object, &status, (&now, &now));
        source.desired = Some(status);
        source.is_written = false;
        Go::Stop(Pass::Pending, step)
    }

    fn fetch(&mut self, cx: &mut Context, key: &SourceKey) -> Go {
        if self.commits.is_dropping() {
            return Go::Stop(
                Pass::Starting,
                Step::Wait("bundles that nobody needs are being removed".to_owned()),
            );
        }
        let Some(source) = self.known.get_mut(key) else { return Go::On(Pass::Idle) };
        let is_refresh = source.is_refresh();
        (source.process_at, source.is_doubted) = (None, false);
        let Some(object) = source.object.as_ref().filter(|object| !object.is_deleting) else {
            return Go::On(Pass::Idle);
        };
        let (generation, spec) = (object.generation, Arc::clone(&object.spec));
        let fetched = match &object.problem {
            Some(why) => Err(why.clone()),
            None if spec.repositories.is_empty() => Ok(Fetched::default()),
            None => {
                let run = cx.ids.run();
                let spec_of_run = Arc::clone(&spec);
                let approvals = Arc::new(self.approvals(key, &spec));
                let source = key.clone();
                let effect = Effect::FetchSource { run, source, spec: spec_of_run, is_refresh, approvals };
                return Go::Stop(Pass::Fetching { generation, spec }, Step::Fetch(run, Box::new(effect)));
            }
        };
        Go::On(Pass::Registering(Box::new(Registering { generation, spec, fetched })))
    }

    /// Looks for conflicts, and begins to write the registry if it changes.
    fn register(
        &mut self,
        modules: &Modules,
        cx: &mut Context,
        key: &SourceKey,
        its: Box<Registering>,
    ) -> Go {
        if let Err(step) = self.hold(&work_key(key)) {
            return Go::Stop(Pass::Registering(its), step);
        }
        if !self.is_current(key, its.generation) {
            self.release(&work_key(key));
            return Go::On(Pass::Idle);
        }
        let bundles = its.fetched.iter().flat_map(Fetched::bundles);
        if let Some(module) = self.being_removed(key, bundles) {
            let step = Step::Wait(format!("the removal of the release {module} of another configuration"));
            self.release(&work_key(key));
            return Go::Stop(Pass::Registering(its), step);
        }
        let Registering { generation, spec, fetched } = *its;
        let mut assessment = match &fetched {
            Err(why) => Assessment::unreadable(why.clone()),
            Ok(fetched) => self.assess(modules, key, &spec, fetched),
        };
        let approvals = self.approvals(key, &spec);
        self.choose_versions(modules, cx.now, (key, &approvals), &spec, &mut assessment.addons);
        let ids = self.registration.ids_of(key).into_iter().map(str::to_owned).collect();
        self.write_registry(modules, cx, key, Box::new(Keeping { generation, spec, assessment, ids }))
    }

    pub(super) fn is_deleting(&self, key: &SourceKey) -> bool {
        let object = self.known.get(key).and_then(|source| source.object.as_ref());
        object.is_some_and(|object| object.is_deleting)
    }

    fn write_registry(
        &mut self,
        modules: &Modules,
        cx: &mut Context,
        key: &SourceKey,
        keeping: Box<Keeping>,
    ) -> Go {
        let change = self.change_of(modules, key, &keeping);
        if change.is_empty() && !self.commits.has_restored() {
            return self.when_in_force(cx, key, keeping);
        }
        let step = self.keep(cx, change);
        Go::Stop(Pass::Keeping(keeping), step)
    }

    /// Returns what an assessment changes in what is registered: all of it is, or nothing of it.
    fn change_of(&self, modules: &Modules, key: &SourceKey, keeping: &Keeping) -> Change {
        let assessment = &keeping.assessment;
        let mut change = Change::default();
        self.registration.replace(&mut change, key, assessment.addons.clone(), |addon| {
            let stays = if assessment.is_failed {
                // Nothing is removed because something could not be fetched or stored.
                assessment.is_unknown() || keeping.spec.failure_policy == FailurePolicy::Retain
            } else {
                self.known.is_wanted_elsewhere(key, addon)
            };
            let wanted = match stays {
                true if assessment.may_offer(addon) => Fate::Hold,
                true => Fate::Retain,
                false => Fate::Withdraw,
            };
            self.fate(modules, addon, wanted)
        });
        change
    }

    fn kept_or_not(
        &mut self,
        modules: &Modules,
        cx: &mut Context,
        key: &SourceKey,
        mut keeping: Box<Keeping>,
        answer: Option<SourceAnswer>,
    ) -> Go {
        let outcome = if let Some(SourceAnswer::Kept(outcome)) = answer { outcome } else { Ok(()) };
        let is_first = !keeping.assessment.is_failed;
        match outcome {
            Ok(()) => {
                self.registered(modules, cx);
                self.when_in_force(cx, key, keeping)
            }
            Err(StoreError::Bundles(problems)) if is_first && self.loses_previous(&keeping, &problems) => {
                // A bundle that nobody could go back to is no reason to stay without the new one.
                self.lost.extend(problems.into_iter().map(|(digest, _)| digest));
                for addon in &mut keeping.assessment.addons {
                    addon.previous.take_if(|previous| self.lost.contains(&previous.digest));
                }
                self.write_registry(modules, cx, key, keeping)
            }
            Err(StoreError::Bundles(problems)) if is_first => {
                let is_of_disk = |(_, failure): &(_, Failure)| failure.kind == FailureKind::Storage;
                keeping.assessment.is_unstored |= problems.iter().any(is_of_disk);
                let told = |(digest, failure): (_, Failure)| (digest, failure.to_string());
                keeping.assessment.not_kept(&problems.into_iter().map(told).collect(), None);
                self.write_registry(modules, cx, key, keeping)
            }
            Err(StoreError::Registry(failure)) if is_told(failure.kind) => {
                keeping.assessment.not_kept(&BTreeMap::new(), Some(&failure.to_string()));
                self.next = None;
                self.when_in_force(cx, key, keeping)
            }
            Err(error) => {
                self.release(&work_key(key));
                self.process_again(cx, key);
                Go::Stop(Pass::Idle, Step::Failed(store_failure(error)))
            }
        }
    }

    /// Returns whether all bundles that could not be kept are such that were to be gone back to.
    fn loses_previous(&self, keeping: &Keeping, problems: &[(Digest, Failure)]) -> bool {
        let addons = &keeping.assessment.addons;
        let is_previous = |digest: &Digest| {
            let needs = |addon: &RegisteredAddon| addon.bundle.digest == *digest;
            !addons.iter().any(needs) && addons.iter().any(|addon| addon.digests().any(|its| its == digest))
        };
        problems.iter().all(|(digest, _)| is_previous(digest) && !self.lost.contains(digest))
    }

    /// Has the next attempt begin at the beginning.
    fn process_again(&mut self, cx: &Context, key: &SourceKey) {
        if let Some(source) = self.known.get_mut(key) {
            source.process_at = Some(cx.now);
        }
    }

    /// Waits until the modules are there, if they are to be there.
    fn when_in_force(&mut self, cx: &mut Context, key: &SourceKey, keeping: Box<Keeping>) -> Go {
        self.release(&work_key(key));
        if keeping.assessment.is_failed {
            return self.decide(cx, key, *keeping);
        }
        Go::On(Pass::Committing { version: self.commits.wanted(), keeping })
    }

    /// Records what the pass found.
    fn decide(&mut self, cx: &mut Context, key: &SourceKey, keeping: Keeping) -> Go {
        let processed_at = self.config.time_of_day(cx.now);
        let Keeping { generation, spec, assessment, ids } = keeping;
        let now_ids = self.registration.ids_of(key);
        let is_freed = ids.iter().any(|id| !now_ids.contains(&**id));
        let bumps: BTreeSet<SourceKey> = if is_freed {
            self.known.blocked_by(key).map(|(other, _)| other.clone()).collect()
        } else {
            BTreeSet::new()
        };
        let (relist, message) = (self.config.source_relist, assessment.message());
        let unread = assessment.unread();
        let until_window = self.until_window(cx.now, key).filter(|_| !assessment.is_failed);
        let Some(source) = self.known.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        source.unfetched = if assessment.is_unfetched { source.unfetched.saturating_add(1) } else { 0 };
        let delay = if assessment.is_unfetched {
            Some(self.config.refetch_after(source.unfetched))
        } else if assessment.is_failed {
            Some(spec.update_interval.map_or(relist, |interval| interval.min(relist)))
        } else {
            spec.update_interval
        };
        source.process_at = delay.into_iter().chain(until_window).min().map(|delay| cx.now + delay);
        let phase = if assessment.is_failed { SourcePhase::Failed } else { SourcePhase::Ready };
        let mut status = Status {
            phase,
            observed_generation: generation,
            repositories: assessment.lines,
            message: message.clone(),
            ..Status::default()
        };
        status.shorten();
        source.is_adopted = false;
        let was_decided = source.is_decided();
        let offered = assessment.offered;
        let blocked_by = assessment.blocked_by;
        let decided = Decided { generation, processed_at, status, blocked_by, offered, unread };
        let before = source.decided.replace(Arc::new(decided));
        source.bumps.extend(bumps);
        self.unsettled.remove(key);
        if source.announced.replace(phase) != Some(phase) {
            self.announce_phase(cx, key, phase, &message);
        }
        self.sweep_after(key, before.as_deref(), was_decided);
        self.wake_dependents(cx, key);
        Go::On(Pass::Idle)
    }

    /// Has the modules looked at whose fate may be another one after a configuration was decided: its own, those that it
    /// offers or offered as one that failed, and all, if it was the last one of its scope that might have offered them, or
    /// knows more of its repositories than before.
    fn sweep_after(&mut self, key: &SourceKey, before: Option<&Decided>, was_decided: bool) {
        let now = self.known.get(key).and_then(|source| source.decided.as_deref());
        let knows_more =
            before.is_some_and(|before| now.is_none_or(|now| !before.unread.is_subset(&now.unread)));
        if knows_more || (!was_decided && self.known.in_scope(Role::Undecided, key).next().is_none()) {
            return self.sweep.want();
        }
        self.sweep.want_of(key);
        // Only who failed keeps modules of others from being orphans by what it offers.
        let offered = |decided: Option<&Decided>| {
            let failed = decided.filter(|decided| decided.status.phase == SourcePhase::Failed);
            failed.map(|decided| decided.offered.clone()).unwrap_or_default()
        };
        let (before, now) = (offered(before), offered(now));
        let ids = before.symmetric_difference(&now);
        self.registration.with_ids(ids).for_each(|other| self.sweep.want_of(other));
    }

    /// Raises the counter of the next configuration that failed because of this one.
    fn bump_next(&mut self, cx: &mut Context, key: &SourceKey, answer: Option<SourceAnswer>) -> Go {
        match self.bump(cx, key, answer) {
            Some(Ok(step)) => Go::Stop(Pass::Bumping, step),
            Some(Err(failure)) => Go::Stop(Pass::Idle, Step::Failed(failure)),
            None => {
                let at = self.known.get(key).and_then(|source| source.process_at);
                let step = at.map_or(Step::Done, |at| Step::Again(at.since(cx.now)));
                Go::Stop(Pass::Idle, step)
            }
        }
    }

    /// Begins to raise the next counter; `None` when all are raised. `answer` is that of the one before.
    pub(super) fn bump(
        &mut self,
        cx: &mut Context,
        key: &SourceKey,
        answer: Option<SourceAnswer>,
    ) -> Option<Result<Step, Failure>> {
        let bumps = self.known.get(key).map(|source| source.bumps.clone()).unwrap_or_default();
        let is_answered = answer.is_some();
        if let Some(failure) = failed(answer) {
            return Some(Err(failure));
        }
        let mut bumps = bumps.into_iter();
        // The first one is that which the answer is about.
        let mut rest: BTreeSet<SourceKey> = bumps.by_ref().skip(usize::from(is_answered)).collect();
        let step = loop {
            let Some(next) = rest.first().cloned() else { break None };
            let other = self.known.get(&next).filter(|other| other.is_there());
            let object = other
                .filter(|other| other.phase() == SourcePhase::Failed)
                .and_then(|other| other.object.as_ref());
            let is_failed = object.is_some();
            if let Some(step) = object.and_then(|object| patches::bump(cx, key, &next, object)) {
                let message = format!(
                    "{next} may try again, since {key} lets addons go: its spec.reprocessRequest is raised"
                );
                cx.notify(Notice::SourceReleases { message });
                break Some(Ok(step));
            }
            if is_failed {
                self.look_again(cx, &next);
            }
            rest.remove(&next);
        };
        if let Some(source) = self.known.get_mut(key) {
            source.bumps = rest;
        }
        step
    }
}

//! The end of a configuration: its modules are removed, then those that failed may try again, then its object goes.

use std::collections::BTreeSet;

use super::known::work_key;
use super::pass::{DeletePass, Go, Pass, SourceAnswer, failed, store_failure};
use super::patches;
use super::registration::Fate;
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{DeletionPolicy, SourceKey};
use crate::context::Context;
use crate::module::Modules;
use crate::reconcile::Step;

impl Sources {
    pub(super) fn advance_delete(
        &mut self,
        modules: &Modules,
        cx: &mut Context,
        key: &SourceKey,
        pass: DeletePass,
        answer: Option<SourceAnswer>,
    ) -> Go {
        let leave = |step| Go::Stop(Pass::Idle, step);
        let on = |next| Go::On(Pass::Deleting(next));
        match pass {
            DeletePass::Begin => self.withdraw(modules, cx, key),
            DeletePass::Keeping => {
                let outcome = match answer {
                    Some(SourceAnswer::Kept(Err(error))) => Err(store_failure(error)),
                    _ => Ok(()),
                };
                if outcome.is_ok() {
                    self.registered(cx);
                }
                self.release(&work_key(key));
                match outcome {
                    Ok(()) => on(DeletePass::Removing),
                    Err(failure) => leave(Step::Failed(failure)),
                }
            }
            DeletePass::Removing => {
                let left = self.registration.of(key).iter().filter(|addon| addon.is_withdrawn);
                let names: Vec<&str> = left.map(|addon| addon.bundle.name.as_str()).collect();
                if !names.is_empty() {
                    let step = Step::Wait(format!("the removal of modules {}", names.join(", ")));
                    return Go::Stop(Pass::Deleting(DeletePass::Removing), step);
                }
                self.choose_bumps(key);
                on(DeletePass::Bumping)
            }
            DeletePass::Bumping => match self.bump(cx, key, answer) {
                Some(Ok(step)) => Go::Stop(Pass::Deleting(DeletePass::Bumping), step),
                Some(Err(failure)) => leave(Step::Failed(failure)),
                None => {
                    let object = self.known.get(key).and_then(|source| source.object.as_ref());
                    match object.filter(|object| object.has_finalizer()) {
                        None => leave(Step::Done),
                        Some(object) => {
                            let step = patches::set_finalizer(cx, key, object, false);
                            self.announce_end(cx, key);
                            Go::Stop(Pass::Deleting(DeletePass::Unfinalizing), step)
                        }
                    }
                }
            },
            DeletePass::Unfinalizing => {
                if let Some(failure) = failed(answer) {
                    return leave(Step::Failed(failure));
                }
                // What the watch says may be older for a moment.
                let object = self.known.get_mut(key).and_then(|source| source.object.as_mut());
                if let Some(object) = object {
                    object.finalizers.clear();
                }
                leave(Step::Done)
            }
        }
    }

    /// Takes what the configuration registered out of the registry, or has it removed first.
    fn withdraw(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Go {
        let policy = self.known.get(key).and_then(|source| {
            let object = source.object.as_ref().filter(|object| object.has_finalizer())?;
            Some(object.spec.deletion_policy)
        });
        let Some(policy) = policy else { return Go::Stop(Pass::Idle, Step::Done) };
        if let Err(step) = self.hold(&work_key(key)) {
            return Go::Stop(Pass::Deleting(DeletePass::Begin), step);
        }
        let mut next = self.registration.clone();
        next.replace(key, Vec::new(), &BTreeSet::new(), |addon| match policy {
            _ if modules.is_gone(&addon.bundle.name) => Fate::Forget,
            DeletionPolicy::Delete => Fate::Withdraw,
            DeletionPolicy::Retain => Fate::Retain,
        });
        if next == self.registration {
            self.release(&work_key(key));
            return Go::On(Pass::Deleting(DeletePass::Removing));
        }
        let step = self.keep(cx, next);
        Go::Stop(Pass::Deleting(DeletePass::Keeping), step)
    }

    /// Chooses all that failed in the scope, if the configuration was ready: what it had is free now.
    fn choose_bumps(&mut self, key: &SourceKey) {
        let Some(source) = self.known.get(key).filter(|source| !source.is_bumped) else { return };
        // The phase in the object stays until the end, also over a restart between the removal and this.
        let was_ready =
            source.object.as_ref().is_some_and(|object| object.status.phase == SourcePhase::Ready);
        let others = self.known.iter().filter(|(other, _)| *other != key && other.shares_scope_with(key));
        let failed = others.filter(|(_, other)| other.is_there() && other.phase() == SourcePhase::Failed);
        let bumps = failed.map(|(other, _)| other.clone()).filter(|_| was_ready).collect();
        if let Some(source) = self.known.get_mut(key) {
            (source.bumps, source.is_bumped) = (bumps, true);
        }
    }
}

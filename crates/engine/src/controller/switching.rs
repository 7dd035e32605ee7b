//! Which controllers there are: they come and go as their hooks are switched on and off.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::controllers::{Controllers, wake};
use super::finalizer_record::Peers;
use super::identity::{ControllerId, ReconcileKey};
use super::single::{Controller, Makers, Role};
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::context::Context;
use crate::effect::Effect;
use crate::module::{Lower, Modules};
use crate::name::{HookId, MonitorId};
use crate::notice::Notice;
use crate::reconcile::{Reconciles, Terms};

impl Controllers {
    /// Starts and stops controllers as their hooks were switched on and off.
    pub(super) fn switch(&mut self, lower: &mut Lower<'_>) {
        let switched = lower.bindings.take_switched();
        let is_any = !switched.is_empty();
        // Who begins may look after the objects of one that ends.
        for (id, hook) in &switched {
            let wanted = hook.as_ref().map(|hook| hook.spec.reconciles.as_slice()).unwrap_or_default();
            let known: Vec<Arc<ControllerId>> =
                self.all.keys().filter(|known| known.hook == *id).cloned().collect();
            for known in known {
                let stays = |controller: &Controller| {
                    if controller.is_retired {
                        !wanted.iter().any(|binding| known.is_of(binding))
                    } else {
                        wanted.contains(&controller.binding)
                    }
                };
                if !self.all.get(&known).is_some_and(stays) {
                    self.stop(lower.cx, &known);
                }
            }
        }
        for (id, hook) in &switched {
            if let Some(hook) = hook {
                self.start(lower, id, hook);
            }
        }
        if is_any {
            self.share(lower.cx);
        }
    }

    /// Tells controllers which of them make the same kinds of children for the same kinds of objects, and which finalizers there are.
    fn share(&mut self, cx: &mut Context) {
        let mut makers = Makers::new();
        let mut peers: BTreeMap<String, Peers> = BTreeMap::new();
        for controller in self.all.values() {
            let mark: Arc<str> = controller.id.mark().into();
            let of = peers.entry(controller.kind.to_string()).or_default();
            if controller.is_retired {
                of.retired.insert(mark);
                continue;
            }
            of.marks.insert(Arc::clone(&mark));
            of.finalizers.extend(controller.binding.finalizer.clone());
            for kinds in controller.makes() {
                makers.entry(kinds).or_default().insert(Arc::clone(&mark));
            }
        }
        let peers: BTreeMap<String, Arc<Peers>> =
            peers.into_iter().map(|(kind, peers)| (kind, Arc::new(peers))).collect();
        for controller in self.all.values_mut() {
            let peers = peers.get(&controller.kind.to_string());
            let mut wakes = peers.map(|peers| controller.meet(peers)).unwrap_or_default();
            wakes.extend(controller.share(&makers));
            if let Some(work) = self.queues.get_mut(&controller.queue) {
                wake(cx, controller, work, wakes);
            }
        }
    }

    fn start(&mut self, lower: &mut Lower<'_>, id: &HookId, hook: &Arc<Hook>) {
        for binding in &hook.spec.reconciles {
            let is_known = |known: &&mut Controller| known.id.hook == *id && known.binding == *binding;
            let known = self.all.values_mut().filter(|known| !known.is_retired).find(is_known);
            if let Some(known) = known {
                let is_other = known.hook.content != hook.content;
                known.hook = Arc::clone(hook);
                if let Some(work) = self.queues.get_mut(&known.queue).filter(|_| is_other) {
                    let cause = Cause::outside(format!("hook {id} changed"));
                    for (object, state) in &mut known.keys {
                        state.turns.clear();
                        let key = ReconcileKey { controller: Arc::clone(&known.id), object: object.clone() };
                        work.request(lower.cx, &key, &cause);
                    }
                }
                continue;
            }
            let Lower { cx, bindings, .. } = lower;
            self.add(Controller::start(cx, (hook, binding), || bindings.own_monitor()));
        }
    }

    fn add(&mut self, (mut controller, roles): (Controller, Vec<(MonitorId, Role)>)) {
        if !controller.is_retired {
            self.inheritance.hand_over(&mut controller);
        }
        let (id, workers) = (Arc::clone(&controller.id), controller.binding.concurrency);
        self.monitors.extend(roles.into_iter().map(|(monitor, role)| (monitor, (Arc::clone(&id), role))));
        let terms = Terms { queue: controller.queue.clone(), workers, grows: true, ..Terms::default() };
        let config = &self.config;
        self.queues
            .entry(controller.queue.clone())
            .or_insert_with(|| Reconciles::new(Arc::clone(config), terms))
            .allow(workers);
        if !controller.is_retired {
            self.retirement.began(&id);
        }
        self.all.insert(id, controller);
    }

    /// Looks for objects that left selections, as far as that is needed.
    pub(super) fn settle_strays(&mut self, lower: &mut Lower<'_>) {
        let Lower { cx, bindings, .. } = lower;
        for (id, controller) in &mut self.all {
            let (old, new) = controller.settle_strays(cx, || bindings.own_monitor());
            if let Some(old) = old {
                self.monitors.remove(&old);
            }
            self.monitors.extend(new.map(|new| (new, (Arc::clone(id), Role::Strays))));
        }
    }

    /// Has bindings looked after that are not on and may have left their finalizer on objects, as long as it is on any.
    pub(super) fn retire(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        let over: Vec<_> =
            self.all.values().filter(|one| one.has_left_nothing()).map(|one| Arc::clone(&one.id)).collect();
        let mut is_other = !over.is_empty();
        for id in over {
            self.stop(lower.cx, &id);
            self.retirement.is_through(id);
        }
        for (hook, binding) in self.retirement.due(modules, |id| self.all.contains_key(id)) {
            let Lower { cx, bindings, .. } = &mut *lower;
            self.add(Controller::retire(cx, (&hook, &binding), || bindings.own_monitor()));
            is_other = true;
        }
        if is_other {
            self.share(lower.cx);
        }
    }

    fn stop(&mut self, cx: &mut Context, id: &Arc<ControllerId>) {
        let Some(controller) = self.all.remove(id) else { return };
        for monitor in controller.monitors() {
            self.monitors.remove(&monitor);
            cx.push(Effect::StopMonitor { monitor });
        }
        self.held_up.remove(id);
        if let Some(work) = self.queues.get_mut(&controller.queue) {
            work.forget(|key| key.controller == *id);
            let own = work.in_flight().filter(|(_, key)| key.controller == *id);
            self.ending.extend(own.map(|(run, key)| (run, key.clone())));
        }
        if controller.is_retired {
            if controller.parents.has_nothing() {
                self.inheritance.forget(&controller);
            }
            return;
        }
        self.inheritance.keep(&controller);
        self.retirement.ended(&controller);
        let (hook, binding) = (id.hook.clone(), Arc::clone(&id.binding));
        cx.notify(Notice::ReconcileKeysChanged { hook, binding, keys: 0 });
    }
}

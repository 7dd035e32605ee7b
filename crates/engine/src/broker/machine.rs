//! The broker: answers platforms, keeps their instances, and carries on what they asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::answer::{Refusal, json_answer};
use super::call::{Action, BindingAction, Call, InstanceAction};
use super::instances::{Instance, InstanceKey, Instances, State};
use super::offers::catalog;
use super::operation::{Operation, Progress};
use super::registration::Registrar;
use crate::config::Config;
use crate::config_object::ConfigText;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::{BrokerAnswer, Effect};
use crate::event::BrokerRequest;
use crate::failure::Failure;
use crate::module::{Lower, Modules};
use crate::name::{BrokerCallId, ModuleName, RunId, Scope};
use crate::notice::{InstanceStage, Notice};
use crate::source::Sources;
use crate::time::Time;

/// How many calls wait while others are recorded.
const MAX_WAITING: usize = 100;

/// How many instances are remembered that were removed, for those who ask what became of them.
const MAX_REMOVED: usize = 100;

/// Whether this operator answers platforms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// It does.
    Leading,
    /// Another one does.
    Standby,
    /// It begins or ends.
    Away,
}

/// The broker.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    pub(super) config: Arc<Config>,
    /// `None` until they are read.
    instances: Option<Instances>,
    pub(super) operations: BTreeMap<InstanceKey, Operation>,
    reading: Reading,
    /// The record that is being written.
    recording: Option<Recording>,
    /// When what could not be recorded is tried again.
    record_again: Option<Time>,
    waiting: VecDeque<(BrokerCallId, Call)>,
    /// Instances that were removed, the last one at the end.
    removed: VecDeque<InstanceKey>,
    registrar: Registrar,
}

#[derive(Clone, Copy, Debug, Default)]
enum Reading {
    #[default]
    Due,
    InFlight(RunId),
    Again(Time),
    Done,
}

/// A record that is being written.
#[derive(Debug)]
struct Recording {
    run: RunId,
    next: Instances,
    /// What it is about.
    keys: BTreeSet<InstanceKey>,
    /// Who is answered when it is written, and how.
    answer: Option<(BrokerCallId, BrokerAnswer)>,
}

/// What becomes of a call.
pub(super) enum Step {
    Answer(BrokerAnswer),
    /// The instances are to be these before it is answered.
    Record(Box<Instances>, BrokerAnswer),
}

impl From<Refusal> for Step {
    fn from(refusal: Refusal) -> Self {
        Self::Answer(refusal.answer())
    }
}

// What is answered, and parameters, can be secrets.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Broker {
    /// Returns a broker that nobody has asked.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Takes a call of a platform.
    pub(crate) fn asked(
        &mut self,
        (sources, modules): (&Sources, &Modules),
        lower: &mut Lower<'_>,
        (id, request): (BrokerCallId, &BrokerRequest),
        standing: Standing,
    ) {
        let call = Call::read(request).and_then(|call| match self.away(standing, &call) {
            Some(refusal) => Err(refusal),
            None => Ok(call),
        });
        match call {
            Ok(call) => self.take(sources, modules, lower, id, call),
            Err(refusal) => lower.cx.push(Effect::AnswerBroker { id, answer: refusal.answer() }),
        }
    }

    /// Answers a call, has it recorded first, or lets it wait until something else is.
    fn take(
        &mut self,
        sources: &Sources,
        modules: &Modules,
        lower: &mut Lower<'_>,
        id: BrokerCallId,
        call: Call,
    ) {
        let key = key_of(&call);
        if let Some(recording) = self.recording.as_ref().filter(|_| call.is_change()) {
            let is_same = key.as_ref().is_some_and(|key| recording.keys.contains(key));
            if !is_same && self.waiting.len() < MAX_WAITING {
                return self.waiting.push_back((id, call));
            }
            let refusal = Refusal::concurrency("another call is being carried out: ask again");
            return lower.cx.push(Effect::AnswerBroker { id, answer: refusal.answer() });
        }
        match self.step(sources, modules, lower.configuration, call) {
            Step::Answer(answer) => lower.cx.push(Effect::AnswerBroker { id, answer }),
            Step::Record(next, answer) => {
                self.record(lower.cx, *next, key.into_iter().collect(), Some((id, answer)));
            }
        }
    }

    fn step(
        &mut self,
        sources: &Sources,
        modules: &Modules,
        configuration: &Configuration,
        call: Call,
    ) -> Step {
        let Call { namespace, action } = call;
        let outcome = match action {
            Action::Catalog => Ok(Step::Answer(json_answer(200, catalog(&namespace, sources, modules)))),
            Action::Instance(id, action) => {
                let key = (namespace, id);
                match action {
                    InstanceAction::Provision(wanted) => {
                        self.provision(sources, modules, configuration, &key, &wanted)
                    }
                    InstanceAction::Deprovision(ids, accepts) => self.deprovision(&key, &ids, accepts),
                    InstanceAction::Fetch => self.fetch(&key),
                    InstanceAction::LastOperation(is_removal) => {
                        self.last_operation(modules, &key, is_removal)
                    }
                }
            }
            Action::Binding(id, binding, action) => {
                let key = (namespace, id);
                match action {
                    BindingAction::Bind(ids) => self.bind(modules, configuration, &key, &binding, &ids),
                    BindingAction::Unbind(ids) => self.unbind(&key, &binding, &ids),
                    BindingAction::Fetch => self.fetch_binding(modules, configuration, &key, &binding),
                    BindingAction::LastOperation => self.last_operation_of_binding(&key, &binding),
                }
            }
        };
        outcome.unwrap_or_else(Step::from)
    }

    pub(super) fn known(&self) -> Result<&Instances, Refusal> {
        self.instances.as_ref().ok_or_else(|| Refusal::unavailable("the broker is starting: ask again"))
    }

    /// Returns whether there was an instance that was removed since this operator began.
    pub(super) fn was_removed(&self, key: &InstanceKey) -> bool {
        self.removed.contains(key)
    }

    /// Has other instances recorded. What they are is in force when that is done.
    fn record(
        &mut self,
        cx: &mut Context,
        next: Instances,
        keys: BTreeSet<InstanceKey>,
        answer: Option<(BrokerCallId, BrokerAnswer)>,
    ) {
        let Some(text) = next.text() else {
            if let Some((id, _)) = answer {
                let what = "all instances together are larger than what is kept of them: remove some";
                let answer = Refusal::bad_request(what).answer();
                cx.push(Effect::AnswerBroker { id, answer });
            }
            return;
        };
        let run = cx.ids.run();
        self.recording = Some(Recording { run, next, keys, answer });
        cx.push(Effect::KeepInstances { run, text });
    }

    /// Goes on when instances were recorded, or were not.
    pub(crate) fn kept(
        &mut self,
        sources: &Sources,
        cx: &mut Context,
        run: RunId,
        outcome: Result<(), Failure>,
    ) {
        let Some(Recording { next, keys, answer, .. }) = self.recording.take_if(|its| its.run == run) else {
            return;
        };
        let answer = match outcome {
            Ok(()) => {
                let before = self.instances.replace(next).unwrap_or_default();
                for key in keys {
                    self.passed(sources, cx, key, &before);
                }
                answer
            }
            Err(failure) => {
                self.record_again = Some(cx.now + self.config.retry_delay);
                let message =
                    format!("the broker's instances can't be recorded: {}", failure.for_everybody().message);
                if answer.is_none() {
                    cx.notify(Notice::Warned { scope: Scope::Global, message: message.clone() });
                }
                answer.map(|(id, _)| (id, Refusal::failed(format!("{message}; nothing was done")).answer()))
            }
        };
        if let Some((id, answer)) = answer {
            cx.push(Effect::AnswerBroker { id, answer });
        }
    }

    /// Takes note that an instance is at another stage than before, if it is.
    fn passed(&mut self, sources: &Sources, cx: &mut Context, key: InstanceKey, before: &Instances) {
        let before = before.get(&key);
        let now = self.instances.as_ref().and_then(|instances| instances.get(&key));
        let Some(instance) = now.or(before) else { return };
        if now.map(|instance| instance.state) == before.map(|instance| instance.state) {
            return;
        }
        let stage = match now.map(|instance| instance.state) {
            Some(State::Provisioning) => InstanceStage::Provisioning,
            Some(State::Provisioned) => InstanceStage::Provisioned,
            Some(State::Deprovisioning) => InstanceStage::Deprovisioning,
            None => InstanceStage::Deprovisioned,
        };
        tell(sources, cx, instance, stage, None);
        // What was done for it was for another end.
        self.operations.remove(&key);
        self.removed.retain(|removed| *removed != key);
        if now.is_none() {
            self.removed.push_back(key);
            let surplus = self.removed.len().saturating_sub(MAX_REMOVED);
            self.removed.drain(..surplus);
        }
    }

    /// Takes the instances as they are kept.
    pub(crate) fn read(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<Option<ConfigText>, Failure>,
    ) {
        if !matches!(self.reading, Reading::InFlight(its) if its == run) {
            return;
        }
        match outcome.and_then(|text| Instances::read(text.as_ref())) {
            Ok(instances) => {
                self.instances = Some(instances);
                self.reading = Reading::Done;
            }
            Err(failure) => {
                self.reading = Reading::Again(cx.now + self.config.retry_delay);
                let message = format!("the broker answers nobody: {failure}; it is tried again");
                cx.notify(Notice::Warned { scope: Scope::Global, message });
            }
        }
    }

    /// Returns whether a write of the ConfigMap is ours.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.operations.values().any(|operation| operation.awaits(run))
    }

    /// Goes on when a key was written, or was not.
    pub(crate) fn saved(&mut self, cx: &Context, run: RunId, outcome: Result<(), Failure>) {
        if let Some(operation) = self.operations.values_mut().find(|operation| operation.awaits(run)) {
            operation.written(cx.now, outcome, self.config.retry_delay);
        }
    }

    /// Records that the run of a module failed.
    pub(crate) fn run_failed(&mut self, name: &ModuleName) {
        let instance = self.instances.as_ref().and_then(|instances| instances.of_module(name));
        if let Some(operation) = instance.and_then(|instance| self.operations.get_mut(&instance.key())) {
            operation.run_failed();
        }
    }

    /// Records what became of telling Service Catalog.
    pub(crate) fn registered(&mut self, cx: &mut Context, run: RunId, outcome: Result<bool, Failure>) {
        self.registrar.registered(cx, &self.config, run, outcome);
    }

    /// Does everything that can be done. `is_converged` says whether it is known which modules are off.
    pub(crate) fn advance(
        &mut self,
        (sources, modules): (&Sources, &Modules),
        lower: &mut Lower<'_>,
        is_converged: bool,
    ) {
        if !self.config.has_broker {
            return;
        }
        match self.reading {
            Reading::Due => self.begin_reading(lower.cx),
            Reading::Again(at) if at <= lower.cx.now => self.begin_reading(lower.cx),
            Reading::Again(_) | Reading::InFlight(_) | Reading::Done => {}
        }
        self.registrar.advance(lower.cx, sources, modules);
        while self.recording.is_none()
            && let Some((id, call)) = self.waiting.pop_front()
        {
            self.take(sources, modules, lower, id, call);
        }
        if self.record_again.is_some_and(|at| at <= lower.cx.now) {
            self.record_again = None;
        }
        self.advance_operations((sources, modules), lower, is_converged);
    }

    fn advance_operations(
        &mut self,
        (sources, modules): (&Sources, &Modules),
        lower: &mut Lower<'_>,
        is_converged: bool,
    ) {
        let Some(instances) = &self.instances else { return };
        let mut done = BTreeSet::new();
        for (key, instance) in instances.iter().filter(|(_, its)| its.state != State::Provisioned) {
            let new = || Operation::new(lower.cx.now);
            let operation = self.operations.entry(key.clone()).or_insert_with(new);
            if operation.advance(instance, modules, lower, is_converged) == Progress::Done {
                done.insert(key.clone());
            } else if let Some(failure) = operation.news() {
                let stage = match instance.state {
                    State::Provisioning | State::Provisioned => InstanceStage::ProvisionFailed,
                    State::Deprovisioning => InstanceStage::DeprovisionFailed,
                };
                tell(sources, lower.cx, instance, stage, Some(failure));
            }
        }
        if done.is_empty() || self.recording.is_some() || self.record_again.is_some() {
            return;
        }
        let mut next = instances.clone();
        for key in &done {
            match next.get_mut(key) {
                Some(instance) if instance.state == State::Provisioning => {
                    instance.state = State::Provisioned;
                }
                Some(_) | None => next.remove(key),
            }
        }
        self.record(lower.cx, next, done, None);
    }

    fn begin_reading(&mut self, cx: &mut Context) {
        let run = cx.ids.run();
        self.reading = Reading::InFlight(run);
        cx.push(Effect::ReadInstances { run });
    }

    /// Answers those who wait, as the operator ends.
    pub(crate) fn end(&mut self, cx: &mut Context) {
        for (id, call) in std::mem::take(&mut self.waiting) {
            if let Some(refusal) = self.away(Standing::Away, &call) {
                cx.push(Effect::AnswerBroker { id, answer: refusal.answer() });
            }
        }
    }

    /// Returns when there is something to do by itself.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let reading = if let Reading::Again(at) = self.reading { Some(at) } else { None };
        let operations = self.operations.values().filter_map(Operation::next_wakeup);
        operations.chain(reading).chain(self.record_again).chain(self.registrar.next_wakeup()).min()
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.recording.is_none()
            && !matches!(self.reading, Reading::InFlight(_))
            && self.registrar.is_at_rest()
            && self.operations.values().all(Operation::is_at_rest)
    }

    /// Returns why a call is not taken now, if so. Platforms ask again, and take a change for not begun.
    fn away(&self, standing: Standing, call: &Call) -> Option<Refusal> {
        let why = match standing {
            Standing::Leading if self.instances.is_some() || call.action == Action::Catalog => return None,
            Standing::Leading if matches!(self.reading, Reading::Again(_)) => {
                "what is kept of instances can't be read, and the operator's log says why: ask again"
            }
            Standing::Leading | Standing::Away => "the operator is starting or ending: ask again",
            Standing::Standby => "this replica is a standby, and another one leads: ask again",
        };
        Some(if call.is_change() { Refusal::concurrency(why) } else { Refusal::unavailable(why) })
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        self.waiting.len()
            + self.operations.len()
            + self.removed.len()
            + self.instances.as_ref().map_or(0, Instances::len)
    }
}

/// Tells that an instance has come to a stage, and announces it on the object whose addon it is, unless it only begins.
fn tell(sources: &Sources, cx: &mut Context, instance: &Instance, stage: InstanceStage, why: Option<&str>) {
    cx.notify(instance.notice(stage, why));
    if let Some(reason) = stage.reason() {
        let told = (stage.is_failure(), reason);
        sources.announce_of_module(cx, &instance.module, told, instance.message(stage, why));
    }
}

fn key_of(call: &Call) -> Option<InstanceKey> {
    match &call.action {
        Action::Catalog => None,
        Action::Instance(id, _) | Action::Binding(id, ..) => Some((Arc::clone(&call.namespace), id.clone())),
    }
}

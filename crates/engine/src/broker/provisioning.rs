//! What platforms ask about instances: to make one, to remove it, and how far it is.

use serde_json::json;

use super::answer::{Refusal, accepted, json_answer};
use super::call::{DEPROVISION, Ids, PROVISION, Wanted, no_instance};
use super::instances::{Instance, InstanceKey, MAX_INSTANCES, State};
use super::machine::{Broker, Step};
use super::offers::{ListedPlan, Listing, services};
use super::operation::Operation;
use crate::config_object::ConfigObject;
use crate::configuration::Configuration;
use crate::effect::BrokerAnswer;
use crate::extenders::Extender;
use crate::module::Modules;
use crate::source::Sources;

impl Broker {
    pub(super) fn provision(
        &mut self,
        sources: &Sources,
        modules: &Modules,
        configuration: &Configuration,
        key: &InstanceKey,
        wanted: &Wanted,
    ) -> Result<Step, Refusal> {
        let known = self.known()?;
        if let Some(instance) = known.get(key) {
            if instance.state == State::Deprovisioning {
                return Err(Refusal::concurrency("the instance is being removed: ask again when it is gone"));
            }
            if !instance.is_like(wanted) {
                return Err(Refusal::conflict(
                    "there is an instance with this id, and it has another service, plan or parameters",
                ));
            }
            let is_there = instance.state == State::Provisioned;
            if is_there && !instance.is_off(modules) {
                return Ok(Step::Answer(json_answer(200, json!({}))));
            }
            if !wanted.accepts_incomplete {
                return Err(Refusal::async_required());
            }
            if !is_there {
                return Ok(Step::Answer(self.go_on(key)));
            }
            // Somebody has switched it off, or its addon is not registered any more: it is made again.
            offered(&key.0, &wanted.ids, sources, modules)?;
            let mut next = known.clone();
            if let Some(instance) = next.get_mut(key) {
                instance.state = State::Provisioning;
            }
            return Ok(Step::Record(Box::new(next), accepted(PROVISION)));
        }
        if !wanted.accepts_incomplete {
            return Err(Refusal::async_required());
        }
        let (service, plan) = offered(&key.0, &wanted.ids, sources, modules)?;
        let name = &service.module.name;
        if known.of_module(name).is_some() {
            return Err(Refusal::conflict(format!(
                "another instance has module {name}, which is there once: remove that one first"
            )));
        }
        if known.len() >= MAX_INSTANCES {
            let what = format!("there are {MAX_INSTANCES} instances, and no more are kept: remove some");
            return Err(Refusal::bad_request(what));
        }
        let preset = plan.preset.map(|preset| &preset.name);
        let instance = Instance::new(key, &service, preset, wanted);
        self.check(modules, configuration, &instance, wanted)?;
        let mut next = known.clone();
        next.insert(instance);
        Ok(Step::Record(Box::new(next), accepted(PROVISION)))
    }

    /// Checks that an instance can be made as it is wanted.
    pub(super) fn check(
        &self,
        modules: &Modules,
        configuration: &Configuration,
        instance: &Instance,
        wanted: &Wanted,
    ) -> Result<(), Refusal> {
        let name = &instance.module;
        if !self.config.extenders.has(Extender::KubeConfig) {
            return Err(Refusal::unsupported(
                "KubeConfig is not among --applied-module-extenders: the broker can't switch anything on",
            ));
        }
        if wanted.parameters.get(values::preset::PLAN).is_some() {
            return Err(Refusal::bad_request("parameters name a plan: plan_id picks it"));
        }
        if let Some(problem) = modules.get(name).and_then(|module| module.spec().broken.as_ref()) {
            let problem = &problem.for_everybody().message;
            return Err(Refusal::bad_request(format!("module {name} can't be used: {problem}")));
        }
        if let Some((object, key)) = said_before(configuration, instance) {
            return Err(Refusal::conflict(format!(
                "module {name} is configured already, by key {key} of the {object}: remove that key, and what else is \
                 there of the module"
            )));
        }
        configuration.check_config(name, &instance.section()).map_err(|problem| {
            Refusal::bad_request(format!("parameters do not fit module {name}: {problem}"))
        })
    }

    /// Returns the answer that an instance is being made; one that failed is tried again.
    pub(super) fn go_on(&mut self, key: &InstanceKey) -> BrokerAnswer {
        if self.operations.get(key).is_some_and(|operation| !operation.is_going()) {
            self.operations.remove(key);
        }
        accepted(PROVISION)
    }

    pub(super) fn deprovision(
        &mut self,
        key: &InstanceKey,
        ids: &Ids,
        accepts_incomplete: bool,
    ) -> Result<Step, Refusal> {
        let known = self.known()?;
        let Some(instance) = known.get(key) else { return Err(no_instance(Refusal::gone)) };
        if !instance.is_of(ids) {
            return Err(other_plan());
        }
        if !accepts_incomplete {
            return Err(Refusal::async_required());
        }
        let operation = self.operations.get(key);
        let going = operation.filter(|operation| operation.is_going());
        match (instance.state, going) {
            (State::Deprovisioning, Some(_)) => Ok(Step::Answer(accepted(DEPROVISION))),
            (State::Deprovisioning, None) => {
                // What failed is tried again.
                self.operations.remove(key);
                Ok(Step::Answer(accepted(DEPROVISION)))
            }
            (State::Provisioning, going) if going.is_some() || operation.is_none() => {
                Err(Refusal::concurrency("the instance is being made: ask again when that has ended"))
            }
            _ => {
                let mut next = known.clone();
                if let Some(instance) = next.get_mut(key) {
                    instance.state = State::Deprovisioning;
                }
                Ok(Step::Record(Box::new(next), accepted(DEPROVISION)))
            }
        }
    }

    pub(super) fn fetch(&self, key: &InstanceKey) -> Result<Step, Refusal> {
        // One whose removal fails is there still.
        let instance = self.known()?.get(key).filter(|instance| instance.state != State::Provisioning);
        let instance = instance.ok_or_else(|| no_instance(Refusal::not_found))?;
        let body = json!({"service_id": instance.service_id(), "plan_id": instance.plan_id()});
        Ok(Step::Answer(json_answer(200, body)))
    }

    /// Returns how far an instance is. `is_removal` says that the platform waits for its end.
    pub(super) fn last_operation(
        &self,
        modules: &Modules,
        key: &InstanceKey,
        is_removal: bool,
    ) -> Result<Step, Refusal> {
        // Gone is what a platform waits for that removed it, and a failure for all others.
        let is_gone = is_removal || self.was_removed(key);
        let missing = if is_gone { Refusal::gone } else { Refusal::not_found };
        let instance = self.known()?.get(key).ok_or_else(|| no_instance(missing))?;
        let failure = self.operations.get(key).and_then(Operation::failure);
        let module = &instance.module;
        let (state, description) = match (instance.state, failure) {
            (State::Provisioned, _) if instance.is_off(modules) => {
                let what = format!("module {module} was on, and is off now: ask for the instance again");
                ("succeeded", what)
            }
            (State::Provisioned, _) => ("succeeded", format!("module {module} runs")),
            (_, Some(failure)) => ("failed", failure.to_owned()),
            (State::Provisioning, None) => ("in progress", format!("module {module} is switched on")),
            (State::Deprovisioning, None) => ("in progress", format!("module {module} is switched off")),
        };
        Ok(Step::Answer(json_answer(200, json!({"state": state, "description": description}))))
    }
}

/// Returns where people say something about the module of an instance that is to be made, if they do: that is not overwritten.
/// Who only says that it is off wants nothing of it.
fn said_before(configuration: &Configuration, instance: &Instance) -> Option<(ConfigObject, String)> {
    let wanted = instance.entries();
    let keys =
        [instance.flag(true).key].into_iter().chain(instance.leftovers().into_iter().map(|entry| entry.key));
    let places = keys.flat_map(|key| ConfigObject::ALL.map(|object| (object, key.clone())));
    let mut said = places.filter(|(object, key)| {
        let Some(text) = configuration.text_of(*object, key) else { return false };
        let its = wanted.iter().find(|entry| entry.object == *object && entry.key == *key);
        match its {
            Some(entry) if entry.is_ours => text.trim() != "false",
            Some(entry) => entry.text.as_deref() != Some(text),
            None => true,
        }
    });
    said.next()
}

/// Returns the service and the plan that a platform names.
fn offered<'m>(
    namespace: &'m str,
    ids: &Ids,
    sources: &'m Sources,
    modules: &'m Modules,
) -> Result<(Listing<'m>, ListedPlan<'m>), Refusal> {
    let service = services(namespace, sources, modules).find(|service| service.id() == ids.service);
    let service = service.ok_or_else(|| {
        Refusal::bad_request(
            "there is no service with this service_id: the catalog lists those that are there",
        )
    })?;
    let plan = service.plans().into_iter().find(|plan| plan.id == ids.plan);
    let plan = plan.ok_or_else(|| {
        Refusal::bad_request("the service has no plan with this plan_id: the catalog lists those that it has")
    })?;
    Ok((service, plan))
}

pub(super) fn other_plan() -> Refusal {
    Refusal::bad_request("the instance has another service or plan: name its own")
}

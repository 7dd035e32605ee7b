//! Bindings: names under which platforms are given the credentials of an instance.

use serde_json::json;

use super::answer::{Refusal, json_answer};
use super::call::{Ids, no_binding, no_instance};
use super::instances::{Instance, InstanceKey, MAX_BINDINGS, State};
use super::machine::{Broker, Step};
use super::provisioning::other_plan;
use crate::configuration::Configuration;
use crate::effect::{BrokerAnswer, BrokerBody};
use crate::module::Modules;

impl Broker {
    pub(super) fn bind(
        &self,
        modules: &Modules,
        configuration: &Configuration,
        key: &InstanceKey,
        binding: &str,
        ids: &Ids,
    ) -> Result<Step, Refusal> {
        let known = self.known()?;
        let instance = known.get(key).ok_or_else(|| no_instance(Refusal::bad_request))?;
        if !instance.is_of(ids) {
            return Err(other_plan());
        }
        let operation = self.operations.get(key);
        if instance.state == State::Provisioning && operation.is_some_and(|its| !its.is_going()) {
            return Err(Refusal::bad_request(
                "the instance could not be made, and last_operation says why: ask for it again, or remove it",
            ));
        }
        if instance.state != State::Provisioned {
            return Err(Refusal::concurrency(
                "the instance is being made or removed: ask again when that has ended",
            ));
        }
        if instance.is_off(modules) {
            return Err(Refusal::bad_request(format!(
                "module {} is off, so there are no credentials: ask for the instance again",
                instance.module
            )));
        }
        if !is_bindable(modules, configuration, instance) {
            return Err(Refusal::bad_request("the plan is not bindable: it has no credentials"));
        }
        if instance.bindings.contains(binding) {
            return Ok(Step::Answer(credentials(modules, configuration, instance, 200)));
        }
        if instance.bindings.len() >= MAX_BINDINGS {
            let what = format!("the instance has {MAX_BINDINGS} bindings, and no more are kept: remove some");
            return Err(Refusal::bad_request(what));
        }
        let answer = credentials(modules, configuration, instance, 201);
        let mut next = known.clone();
        if let Some(instance) = next.get_mut(key) {
            instance.bindings.insert(binding.to_owned());
        }
        Ok(Step::Record(Box::new(next), answer))
    }

    pub(super) fn unbind(&self, key: &InstanceKey, binding: &str, ids: &Ids) -> Result<Step, Refusal> {
        let known = self.known()?;
        let instance = known.get(key).filter(|instance| instance.bindings.contains(binding));
        let instance = instance.ok_or_else(|| no_binding(Refusal::gone))?;
        if !instance.is_of(ids) {
            return Err(other_plan());
        }
        let mut next = known.clone();
        if let Some(instance) = next.get_mut(key) {
            instance.bindings.remove(binding);
        }
        Ok(Step::Record(Box::new(next), json_answer(200, json!({}))))
    }

    pub(super) fn fetch_binding(
        &self,
        modules: &Modules,
        configuration: &Configuration,
        key: &InstanceKey,
        binding: &str,
    ) -> Result<Step, Refusal> {
        let instance = self.known()?.get(key).filter(|instance| instance.bindings.contains(binding));
        let has_credentials =
            |instance: &&Instance| !instance.is_off(modules) && is_bindable(modules, configuration, instance);
        let instance = instance.filter(has_credentials);
        let instance = instance.ok_or_else(|| no_binding(Refusal::not_found))?;
        Ok(Step::Answer(credentials(modules, configuration, instance, 200)))
    }

    pub(super) fn last_operation_of_binding(
        &self,
        key: &InstanceKey,
        binding: &str,
    ) -> Result<Step, Refusal> {
        let instance = self.known()?.get(key).filter(|instance| instance.bindings.contains(binding));
        // Its removal ends with the answer to that call, so nobody waits for it.
        instance.ok_or_else(|| no_binding(Refusal::not_found))?;
        Ok(Step::Answer(json_answer(200, json!({"state": "succeeded"}))))
    }
}

/// Returns whether the plan that the module of an instance has now brings credentials.
fn is_bindable(modules: &Modules, configuration: &Configuration, instance: &Instance) -> bool {
    let plan = configuration.plan_of(&instance.module);
    let credentials = modules.get(&instance.module).map(|module| &module.spec().plans.credentials);
    plan.zip(credentials).is_some_and(|(plan, credentials)| credentials.contains_key(&plan))
}

/// Returns the answer with the credentials of an instance: who answers reads them out of their Secret.
fn credentials(
    modules: &Modules,
    configuration: &Configuration,
    instance: &Instance,
    status: u16,
) -> BrokerAnswer {
    let place = modules.release_place(configuration, &instance.module);
    let body = BrokerBody::Credentials {
        namespace: place.namespace.to_string(),
        secret: format!("{}-binding", instance.module),
    };
    BrokerAnswer { status, body }
}

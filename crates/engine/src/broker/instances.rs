//! Instances that platforms have made, as they are kept. A restart goes on with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use values::yaml;

use super::call::{Ids, Wanted};
use super::offers::Listing;
use crate::config_object::{ConfigObject, ConfigText};
use crate::failure::{Failure, FailureKind};
use crate::module::Modules;
use crate::name::ModuleName;
use crate::notice::{InstanceStage, Notice};

/// The version of the format.
const VERSION: u32 = 1;

/// How many instances there may be, how many bindings each may have, and how many bytes all of them may have together:
/// they are kept in one Secret.
pub(super) const MAX_INSTANCES: usize = 1_000;
pub(super) const MAX_BINDINGS: usize = 100;
pub(super) const MAX_TEXT: usize = 900 << 10;

/// Which instance: the namespace whose addons it is of, empty for the cluster, and the id that the platform gave.
pub(super) type InstanceKey = (Arc<str>, String);

/// How far an instance is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It is being made.
    Provisioning,
    /// It was there once.
    Provisioned,
    /// It is being removed.
    Deprovisioning,
}

/// An instance of a service: a module that is on with a plan.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance {
    /// The namespace whose addon it is; empty for one of the cluster.
    namespace: Arc<str>,
    id: String,
    service_id: String,
    plan_id: String,
    /// The name of the plan that is written into the section; `None` if the module has none.
    plan: Option<Arc<str>>,
    pub(super) module: ModuleName,
    /// The key of the module's section.
    key: Arc<str>,
    /// What lies over the plan; an object. It can hold secrets.
    parameters: Arc<Value>,
    pub(super) state: State,
    /// The ids of its bindings.
    pub(super) bindings: BTreeSet<String>,
}

/// A key of the ConfigMap or of the Secret over it, as it is to be.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) object: ConfigObject,
    pub(super) key: String,
    /// `None` if it is to be gone.
    pub(super) text: Option<String>,
    /// Whether it is written whatever the key says.
    pub(super) is_ours: bool,
}

impl Instance {
    /// Returns an instance that is to be made.
    pub(super) fn new(
        key: &InstanceKey,
        service: &Listing<'_>,
        plan: Option<&Arc<str>>,
        wanted: &Wanted,
    ) -> Self {
        Self {
            namespace: Arc::clone(&key.0),
            id: key.1.clone(),
            service_id: wanted.ids.service.clone(),
            plan_id: wanted.ids.plan.clone(),
            plan: plan.cloned(),
            module: service.module.name.clone(),
            key: Arc::clone(&service.module.key),
            parameters: Arc::clone(&wanted.parameters),
            state: State::Provisioning,
            bindings: BTreeSet::new(),
        }
    }

    pub(super) fn key(&self) -> InstanceKey {
        (Arc::clone(&self.namespace), self.id.clone())
    }

    /// Returns whether it is of this service and plan.
    pub(super) fn is_of(&self, ids: &Ids) -> bool {
        self.service_id == ids.service && self.plan_id == ids.plan
    }

    /// Returns whether it is what somebody wants.
    pub(super) fn is_like(&self, wanted: &Wanted) -> bool {
        self.is_of(&wanted.ids) && values::json_schema::equal(&self.parameters, &wanted.parameters)
    }

    pub(super) fn service_id(&self) -> &str {
        &self.service_id
    }

    pub(super) fn plan_id(&self) -> &str {
        &self.plan_id
    }

    /// Returns whether its module is off or not there any more, as far as that was decided since the operator began.
    pub(super) fn is_off(&self, modules: &Modules) -> bool {
        modules.get(&self.module).is_none_or(|module| module.is_decided() && !module.is_on())
    }

    /// Returns the notice that it has come to a stage, and why that is a failure.
    pub(super) fn notice(&self, stage: InstanceStage, why: Option<&str>) -> Notice {
        Notice::InstanceChanged { module: self.module.clone(), stage, message: self.message(stage, why) }
    }

    /// Returns the same in one line.
    pub(super) fn message(&self, stage: InstanceStage, why: Option<&str>) -> String {
        let place = if self.namespace.is_empty() { "the cluster" } else { &*self.namespace };
        let id = &self.id;
        match why {
            Some(why) => format!("instance {id} of {place}, {stage}: {why}"),
            None => format!("instance {id} of {place}, which is module {}: {stage}", self.module),
        }
    }

    /// Returns the section of its module, as the user configures it.
    pub(super) fn section(&self) -> Value {
        let mut section = self.parameters.as_object().cloned().unwrap_or_default();
        if let Some(plan) = &self.plan {
            section.insert(values::preset::PLAN.to_owned(), Value::String(plan.to_string()));
        }
        Value::Object(section)
    }

    /// Returns the keys that switch it on, in the order in which they are written. Parameters go into the Secret.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let has_parameters = self.parameters.as_object().is_some_and(|given| !given.is_empty());
        let secret = has_parameters.then(|| yaml::emit_v3(&self.parameters));
        let plan = self.plan.as_ref().map(|plan| {
            let plan = Value::String(plan.to_string());
            yaml::emit_v3(&serde_json::json!({(values::preset::PLAN): plan}))
        });
        let section = |object, text: Option<String>| {
            let text = Some(text?);
            Some(Entry { object, key: self.key.to_string(), text, is_ours: false })
        };
        let mut entries: Vec<Entry> =
            [section(ConfigObject::Secret, secret), section(ConfigObject::ConfigMap, plan)]
                .into_iter()
                .flatten()
                .collect();
        entries.push(self.flag(true));
        entries
    }

    /// Returns the key that switches its module on or off.
    pub(super) fn flag(&self, on: bool) -> Entry {
        let key = format!("{}Enabled", self.key);
        Entry { object: ConfigObject::ConfigMap, key, text: Some(on.to_string()), is_ours: true }
    }

    /// Returns the keys that are to be gone with it.
    pub(super) fn leftovers(&self) -> Vec<Entry> {
        let gone = |object| Entry { object, key: self.key.to_string(), text: None, is_ours: true };
        vec![gone(ConfigObject::ConfigMap), gone(ConfigObject::Secret)]
    }
}

// Its parameters can be secrets.
impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, module, state, .. } = self;
        f.debug_struct("Instance")
            .field("id", id)
            .field("module", module)
            .field("state", state)
            .finish_non_exhaustive()
    }
}

/// All instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Instances(BTreeMap<InstanceKey, Instance>);

#[derive(Deserialize, Serialize)]
struct Document<I> {
    version: u32,
    instances: I,
}

impl Instances {
    /// Returns the instances that a text holds; none for no text.
    ///
    /// # Errors
    ///
    /// If it is something else, or too new. Nothing of the text is quoted.
    pub(super) fn read(text: Option<&ConfigText>) -> Result<Self, Failure> {
        let Some(ConfigText(text)) = text else { return Ok(Self::default()) };
        let wrong = |what: &str| {
            Failure::new(FailureKind::Files, format!("the Secret with the broker's instances {what}"))
                .advise("put back what was there, or remove the Secret: platforms then find no instance")
        };
        let document: Document<Vec<Instance>> =
            serde_json::from_str(text).map_err(|_| wrong("is not what the broker writes"))?;
        if document.version != VERSION {
            return Err(wrong("was written by a later version of the operator"));
        }
        if document.instances.len() > MAX_INSTANCES {
            return Err(wrong(&format!("has more than {MAX_INSTANCES} of them")));
        }
        Ok(Self(document.instances.into_iter().map(|instance| (instance.key(), instance)).collect()))
    }

    /// Returns them as a text that [`Instances::read`] understands; `None` if it would be too long.
    pub(super) fn text(&self) -> Option<ConfigText> {
        let instances: Vec<&Instance> = self.0.values().collect();
        let text = serde_json::to_string(&Document { version: VERSION, instances }).ok()?;
        (text.len() <= MAX_TEXT && self.0.len() <= MAX_INSTANCES).then_some(ConfigText(text))
    }

    pub(super) fn get(&self, key: &InstanceKey) -> Option<&Instance> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &InstanceKey) -> Option<&mut Instance> {
        self.0.get_mut(key)
    }

    pub(super) fn insert(&mut self, instance: Instance) {
        self.0.insert(instance.key(), instance);
    }

    pub(super) fn remove(&mut self, key: &InstanceKey) {
        self.0.remove(key);
    }

    /// Returns the instance that a module is.
    pub(super) fn of_module(&self, name: &ModuleName) -> Option<&Instance> {
        self.0.values().find(|instance| instance.module == *name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&InstanceKey, &Instance)> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

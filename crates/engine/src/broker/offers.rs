//! What platforms are offered: the addons that are registered, as services with plans.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use values::preset::Preset;

use crate::addon::{RegisteredAddon, SourceKey};
use crate::catalog::{Module, Offer, OfferedPlan};
use crate::module::Modules;
use crate::source::Sources;

/// How long a platform asks for the end of an operation at most, in seconds.
pub(super) const PATIENCE_SECONDS: u64 = 3_600;

/// The plan of a module that has none.
const DEFAULT_PLAN: &str = "default";

/// An addon that is registered, as a service.
pub(super) struct Listing<'m> {
    addon: &'m RegisteredAddon,
    pub(super) module: &'m Arc<Module>,
    offer: &'m Arc<Offer>,
}

/// A plan of a service.
pub(super) struct ListedPlan<'m> {
    pub(super) id: String,
    /// What its bundle says of it; `None` for the only plan of a module that has none.
    offered: Option<&'m OfferedPlan>,
    /// What is picked by its name; `None` for the same.
    pub(super) preset: Option<&'m Preset>,
    pub(super) is_bindable: bool,
}

/// Returns the services of a namespace, of the cluster if that is empty. The version of an addon that is a module is one.
pub(super) fn services<'m>(
    namespace: &'m str,
    sources: &'m Sources,
    modules: &'m Modules,
) -> impl Iterator<Item = Listing<'m>> {
    let is_in = move |source: &SourceKey| *source.namespace == *namespace;
    sources.offered().filter(move |addon| is_in(&addon.source)).filter_map(|addon| {
        let module = modules.get(&addon.bundle.name)?.spec();
        Some(Listing { addon, module, offer: module.plans.offer.as_ref()? })
    })
}

/// Returns the catalog of a namespace, of the cluster if that is empty.
pub(super) fn catalog(namespace: &str, sources: &Sources, modules: &Modules) -> Value {
    let services: Vec<Value> = services(namespace, sources, modules).map(|service| service.json()).collect();
    json!({ "services": services })
}

impl<'m> Listing<'m> {
    pub(super) fn id(&self) -> &str {
        &self.addon.bundle.id
    }

    /// Returns its plans.
    pub(super) fn plans(&self) -> Vec<ListedPlan<'m>> {
        let plans = &self.module.plans;
        let found = self.offer.plans.iter().filter_map(|offered| {
            let preset = plans.presets.iter().find(|preset| preset.name == offered.name)?;
            let is_bindable = plans.credentials.contains_key(&preset.name);
            let id = offered.id.to_string();
            Some(ListedPlan { id, offered: Some(offered), preset: Some(preset), is_bindable })
        });
        let mut found: Vec<ListedPlan<'m>> = found.collect();
        if plans.presets.is_empty() {
            let id = format!("{}-{DEFAULT_PLAN}", self.id());
            found.push(ListedPlan { id, offered: None, preset: None, is_bindable: false });
        }
        found
    }

    fn json(&self) -> Value {
        let plans = self.plans();
        let is_bindable = plans.iter().any(|plan| plan.is_bindable);
        let mut metadata = self.offer.metadata.as_object().cloned().unwrap_or_default();
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            // Whose the service is, and that there is one instance at most: names of helm-broker.
            labels.insert("local".to_owned(), json!("true"));
            labels.insert("provisionOnlyOnce".to_owned(), json!("true"));
        }
        let mut service = Map::new();
        let fields = [
            ("id", json!(self.id())),
            ("name", json!(self.addon.name())),
            ("description", json!(self.offer.description)),
            ("tags", json!(self.offer.tags)),
            ("requires", json!(self.offer.requires)),
            ("bindable", json!(is_bindable)),
            ("instances_retrievable", json!(true)),
            ("bindings_retrievable", json!(true)),
            ("plan_updateable", json!(false)),
            ("metadata", Value::Object(metadata)),
            ("plans", plans.iter().map(ListedPlan::json).collect()),
        ];
        service.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(service)
    }
}

impl ListedPlan<'_> {
    fn json(&self) -> Value {
        let Self { id, offered, preset, is_bindable } = self;
        let mut plan = json!({
            "id": id,
            "name": offered.map_or(DEFAULT_PLAN, |offered| &*offered.name),
            "description": offered.map_or("the module as its files configure it", |offered| &*offered.description),
            "free": offered.and_then(|offered| offered.free).unwrap_or(true),
            "bindable": is_bindable,
            "maximum_polling_duration": PATIENCE_SECONDS,
        });
        let Some(fields) = plan.as_object_mut() else { return plan };
        if let Some(offered) = offered {
            fields.insert("metadata".to_owned(), json!({"displayName": offered.display_name}));
        }
        let schema = preset.and_then(|preset| preset.schema.as_deref());
        if let Some(schema) = schema.and_then(|text| serde_json::from_slice::<Value>(text).ok()) {
            let schemas = json!({"service_instance": {"create": {"parameters": schema}}});
            fields.insert("schemas".to_owned(), schemas);
        }
        plan
    }
}

//! Creates, deletes and reads the objects of a test's cluster.

use std::sync::Arc;

use engine::snapshot::Key;
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::{Discovery, Resource, is_conflict, is_not_found};

/// The namespace of objects without one.
const NAMESPACE: &str = "default";

/// The field manager of the test's writes.
const MANAGER: &str = "addon-operator-test";

/// The cluster of a test.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) client: Client,
    pub(super) discovery: Discovery,
    /// The namespace of charts' objects without one.
    pub(super) operator_namespace: Arc<str>,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Objects {
    /// Creates or changes objects: definitions and namespaces first.
    pub(super) async fn apply(&self, objects: &[Value]) -> Result<(), String> {
        let rank = |object: &&Value| match text(object, "/kind") {
            "CustomResourceDefinition" => 0,
            "Namespace" => 1,
            _ => 2,
        };
        let mut ordered: Vec<&Value> = objects.iter().collect();
        ordered.sort_by_key(rank);
        for object in ordered {
            self.apply_one(object).await.map_err(|error| {
                format!(
                    "{} {} can't be applied: {error}",
                    text(object, "/kind"),
                    text(object, "/metadata/name")
                )
            })?;
        }
        Ok(())
    }

    /// Creates or changes objects as a client does. Returns why some were refused.
    pub(super) async fn admit(&self, objects: &[Value]) -> Result<Vec<String>, String> {
        let mut refused = Vec::new();
        for object in objects {
            // A kind that is unknown is a mistake of the test, and no refusal.
            self.resource(object).await?;
            refused.extend(self.apply_one(object).await.err());
        }
        Ok(refused)
    }

    async fn apply_one(&self, object: &Value) -> Result<(), String> {
        let resource = self.resource(object).await?;
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), resource.api_version().into());
            fields.insert("kind".to_owned(), resource.kind.clone().into());
        }
        let namespace = namespace(&object, "/metadata/namespace", &resource).map(str::to_owned);
        if let Some(namespace) = &namespace {
            self.ensure_namespace(namespace).await?;
        }
        let api = self.api(&resource, namespace.as_deref());
        let name = text(&object, "/metadata/name").to_owned();
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(&object)).await.map_err(message_of)?;
        let Some(status) = object.get("status") else { return Ok(()) };
        // A status that is a subresource has to be written separately.
        let status = Patch::Merge(json!({ "status": status }));
        match api.patch_status(&name, &PatchParams::default(), &status).await {
            Ok(_) => Ok(()),
            Err(error) if is_not_found(&error) => Ok(()),
            Err(error) => Err(message_of(error)),
        }
    }

    async fn ensure_namespace(&self, name: &str) -> Result<(), String> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        if api.get_metadata_opt(name).await.map_err(message_of)?.is_some() {
            return Ok(());
        }
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        match api.create(&PostParams::default(), &namespace).await {
            Err(error) if !is_conflict(&error) => Err(message_of(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Deletes objects by their references. Returns why webhooks refused some.
    pub(super) async fn delete(&self, references: &[Value]) -> Result<Vec<String>, String> {
        let mut refused = Vec::new();
        for reference in references {
            let resource = self.resource(reference).await?;
            let api = self.api(&resource, namespace(reference, "/namespace", &resource));
            let name = text(reference, "/name");
            match api.delete(name, &DeleteParams::background()).await {
                Ok(_) => {}
                Err(error) if is_not_found(&error) => {
                    let kind = text(reference, "/kind");
                    return Err(format!("{kind} {name} can't be deleted: {}", message_of(error)));
                }
                Err(error) => refused.push(message_of(error)),
            }
        }
        Ok(refused)
    }

    /// Returns where an object is that is to be applied, and its version; nothing if there is none.
    pub(super) async fn state(&self, object: &Value) -> Result<Option<(Key, String)>, String> {
        let (name, resource) = (text(object, "/metadata/name"), self.resource(object).await?);
        let namespace = namespace(object, "/metadata/namespace", &resource).unwrap_or_default();
        let found = self.find(object, name, namespace).await?;
        let version = |found: Value| text(&found, "/metadata/resourceVersion").to_owned();
        Ok(found.map(|found| (Key::new(namespace, name), version(found))))
    }

    /// Returns the object of a reference. Without a namespace it may also be where
    /// charts put their objects.
    pub(super) async fn find(&self, kind: &Value, name: &str, given: &str) -> Result<Option<Value>, String> {
        let resource = self.resource(kind).await?;
        let namespaces: Vec<Option<&str>> = match (resource.namespaced, given) {
            (false, _) => vec![None],
            (true, "") => vec![Some(NAMESPACE), Some(&self.operator_namespace)],
            (true, given) => vec![Some(given)],
        };
        for namespace in namespaces {
            let path = format!("{}/{name}", resource.path(namespace));
            let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
            match self.client.request::<Value>(request).await {
                Ok(found) => return Ok(Some(found)),
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(message_of(error)),
            }
        }
        Ok(None)
    }

    async fn resource(&self, object: &Value) -> Result<Resource, String> {
        let found = self.discovery.resolve(text(object, "/apiVersion"), text(object, "/kind")).await;
        found.map_err(|error| error.to_string())
    }

    fn api(&self, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = resource.api_resource();
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        }
    }
}

fn namespace<'a>(object: &'a Value, pointer: &str, resource: &Resource) -> Option<&'a str> {
    let given = text(object, pointer);
    resource.namespaced.then_some(if given.is_empty() { NAMESPACE } else { given })
}

fn message_of(error: kube::Error) -> String {
    if let kube::Error::Api(status) = error { status.message } else { error.to_string() }
}

//! One resource as it is served: a kind in one version.

use std::sync::Arc;

use objects::selector::FieldPath;
use objects::types::{self, Shape};
use serde_json::Value;

use super::definition::{Definition, Version};
use crate::kind::{Kind, join_group_version};
use crate::store::{TableName, table_name};

/// A kind as it is served.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: Arc<Kind>,
    pub(crate) table: TableName,
    pub(crate) api_version: String,
    /// `apiVersion` of the objects in the table.
    pub(crate) stored_version: String,
    pub(crate) shape: Shape,
    /// What objects can be selected by, besides name and namespace.
    pub(crate) fields: Vec<FieldPath>,
    /// The definition and the index of the version, for custom kinds.
    pub(crate) custom: Option<(Arc<Definition>, usize)>,
}

impl Resource {
    pub(super) fn builtin(kind: &Arc<Kind>) -> Resource {
        let (group, version) = match &kind.stored_as {
            Some((group, version)) => (group.clone(), version.clone()),
            None => (kind.group.clone(), kind.version.clone()),
        };
        Resource {
            kind: Arc::clone(kind),
            table: table_name(&group, &kind.plural),
            api_version: kind.api_version(),
            stored_version: join_group_version(&group, &version),
            shape: types::name_of_kind(&kind.group, &kind.version, &kind.kind)
                .map_or(Shape::Any, Shape::Named),
            fields: fields_of(&group, &kind.plural),
            custom: None,
        }
    }

    pub(super) fn custom(definition: &Arc<Definition>, index: usize) -> Option<Resource> {
        let version = definition.versions.get(index)?;
        Some(Resource {
            kind: Arc::clone(&version.kind),
            table: table_name(&definition.group, &version.kind.plural),
            api_version: version.kind.api_version(),
            stored_version: join_group_version(&definition.group, &definition.storage),
            shape: version.shape.clone(),
            fields: version.selectable.iter().map(|path| FieldPath::new(path)).collect(),
            custom: Some((Arc::clone(definition), index)),
        })
    }

    /// Writes kind and version into an object.
    pub(crate) fn put_type(&self, object: &mut Value) {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("kind".into(), (&*self.kind.kind).into());
            fields.insert("apiVersion".into(), self.api_version.as_str().into());
        }
    }

    /// Returns what a part of the objects is written with, if it is of another kind: a scale, an eviction.
    pub(crate) fn spoken(&self, part: &str) -> Option<Resource> {
        let part = self.kind.subresource(part).filter(|part| *part.kind != *self.kind.kind)?;
        let (group, version) = (part.group.clone(), part.version.clone());
        let kind = Kind { group, version, kind: part.kind.clone(), ..(*self.kind).clone() };
        let shape = types::name_of_kind(&kind.group, &kind.version, &kind.kind);
        Some(Resource {
            table: Arc::clone(&self.table),
            api_version: kind.api_version(),
            stored_version: kind.api_version(),
            shape: shape.map_or(Shape::Any, Shape::Named),
            kind: Arc::new(kind),
            fields: Vec::new(),
            custom: None,
        })
    }

    /// Returns the version of the definition that made the kind, nothing for built-in kinds.
    pub(crate) fn version(&self) -> Option<&Version> {
        let (definition, index) = self.custom.as_ref()?;
        definition.versions.get(*index)
    }

    /// Returns where the webhook is that converts the objects, if there is one.
    pub(crate) fn converter(&self) -> Option<&Value> {
        self.custom.as_ref()?.0.converter.as_ref()
    }

    /// Returns the key of an object in the database of a real server, which some texts show.
    pub(crate) fn database_key(&self, namespace: Option<&str>, name: &str) -> String {
        let (group, plural) = (&*self.kind.group, &*self.kind.plural);
        let has_group =
            self.custom.is_some() || matches!(group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
        let prefix = match (group, plural) {
            _ if has_group => format!("{group}/{plural}"),
            ("", "replicationcontrollers") => "controllers".to_owned(),
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("", "nodes") => "minions".to_owned(),
            ("", "services") => "services/specs".to_owned(),
            ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
            _ => plural.to_owned(),
        };
        let place = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("/registry/{prefix}/{place}{name}")
    }

    /// Returns whether the kind is this built-in one.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.custom.is_none() && self.kind.group == group && self.kind.plural == plural
    }
}

/// Returns what the objects of a built-in kind can be selected by.
fn fields_of(group: &str, plural: &str) -> Vec<FieldPath> {
    let names: &[&str] = match (group, plural) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        _ => &[],
    };
    let absent = |name: &str| match name {
        "spec.hostNetwork" | "spec.unschedulable" => "false",
        "status.replicas" | "status.successful" => "0",
        _ => "",
    };
    // The source of an event is its component, or the component that reports it.
    let paths = |name: &str| match name {
        "source" => &["source.component", "reportingComponent"] as &[_],
        _ => &[],
    };
    let path = |name: &&str| FieldPath { name: (*name).to_owned(), absent: absent(name), paths: paths(name) };
    names.iter().map(path).collect()
}

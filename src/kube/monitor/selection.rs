//! What a selection means in the cluster: its kind, the collections that hold its objects, and its name for people.

use std::fmt::Write as _;

use engine::hook::selection::{Namespaces, Selection};

use super::object_filter::TypeMeta;
use crate::cluster::Resource;
use crate::cluster::list::Collection;

/// What an informer lists and watches.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) resource: Resource,
    pub(super) collections: Vec<Collection>,
    pub(super) type_meta: TypeMeta,
}

impl Target {
    /// Returns the objects of a selection whose kind is `resource`.
    pub(super) fn new(resource: Resource, selection: &Selection) -> Self {
        let collections = match &selection.namespaces {
            Namespaces::Named(names) => {
                names.iter().map(|name| collection(&resource, selection, Some(name))).collect()
            }
            Namespaces::All | Namespaces::Labelled(_) => vec![collection(&resource, selection, None)],
        };
        let type_meta =
            TypeMeta { api_version: resource.api_version().into(), kind: resource.kind.as_str().into() };
        Self { resource, collections, type_meta }
    }
}

/// Returns the objects of a selection that are in one namespace, or in all.
pub(super) fn collection(resource: &Resource, selection: &Selection, namespace: Option<&str>) -> Collection {
    let mut fields = selection.fields.to_string();
    if let (Some(name), 1) = (selection.names.first(), selection.names.len()) {
        let by_name = format!("metadata.name={name}");
        fields = if fields.is_empty() { by_name } else { format!("{fields},{by_name}") };
    }
    let collection = Collection::new(&resource.path(namespace));
    let collection = collection.with_labels(&selection.labels.to_string()).with_fields(&fields);
    if selection.only_metadata { collection.metadata_only() } else { collection }
}

/// Returns the kind of a selection as people name it: `v1/Pod`, or `Pod` without a version.
pub(super) fn kind_name(selection: &Selection) -> String {
    match (selection.api_version.as_str(), selection.kind.as_str()) {
        ("", kind) => kind.to_owned(),
        (version, kind) => format!("{version}/{kind}"),
    }
}

/// Returns a selection as people name it.
pub(super) fn selection_name(selection: &Selection) -> String {
    let mut name = kind_name(selection);
    match &selection.namespaces {
        Namespaces::All => {}
        Namespaces::Named(names) => {
            name.push_str(" in ");
            name.push_str(&names.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
        }
        Namespaces::Labelled(labels) => drop(write!(name, " in namespaces with {labels}")),
    }
    for (what, text) in [("labels", selection.labels.to_string()), ("fields", selection.fields.to_string())] {
        if !text.is_empty() {
            let _ = write!(name, ", {what} {text}");
        }
    }
    if selection.only_metadata {
        name.push_str(", metadata");
    }
    if !selection.names.is_empty() {
        let names: Vec<&str> = selection.names.iter().map(String::as_str).collect();
        let _ = write!(name, ", names {}", names.join(", "));
    }
    name
}

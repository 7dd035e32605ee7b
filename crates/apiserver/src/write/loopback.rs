//! Writes that the server makes itself, through the same pipeline as those of clients.

use std::sync::Arc;

use objects::decode::Node;
use serde_json::Value;

use super::create::create_object;
use super::delete::{DeleteOptions, Propagation, delete_object};
use crate::cluster::Cluster;
use crate::object_meta;
use crate::request::{RequestContext, WriteOptions};
use crate::store::{ObjectRef, split_key};

/// Creates an object in the name of the server, unless it is there. A failure is logged.
pub(crate) fn create(
    cluster: &Arc<Cluster>,
    group_version: &str,
    plural: &str,
    namespace: Option<&str>,
    object: Value,
) {
    let Some(resource) = cluster.registry.resources().find(group_version, plural).cloned() else {
        return;
    };
    let request = RequestContext::internal(cluster, &resource, namespace);
    // Another would be refused for its address before its name is looked at.
    if request.find(object_meta::text(&object, "name")).is_some() {
        return;
    }
    let options = WriteOptions::internal("kube-apiserver");
    if let Err(error) = create_object(&request, Node::from(object), None, &options, &mut Vec::new())
        && error.code() != 409
    {
        tracing::warn!(resource = plural, %error, "an object of the server could not be created");
    }
}

/// Deletes an object in the name of the server. A failure is logged, unless the object is gone.
pub(crate) fn remove(cluster: &Arc<Cluster>, object_ref: &ObjectRef, propagation: Option<Propagation>) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let (namespace, name) = split_key(&object_ref.key);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let request = RequestContext::internal(cluster, &resource, namespace);
    let options = DeleteOptions { propagation, ..DeleteOptions::default() };
    if let Err(error) = delete_object(&request, name, &options)
        && error.code() != 404
    {
        tracing::warn!(table = %object_ref.table, key = %object_ref.key, %error, "an object could not be deleted");
    }
}

/// Deletes an object without grace. It is no failure if another deletes it first.
pub(crate) fn remove_now(cluster: &Arc<Cluster>, object_ref: &ObjectRef, propagation: Option<Propagation>) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let (namespace, name) = split_key(&object_ref.key);
    let options = DeleteOptions { grace: Some(0), propagation, ..DeleteOptions::default() };
    let _ = delete_object(&RequestContext::internal(cluster, &resource, Some(namespace)), name, &options);
}

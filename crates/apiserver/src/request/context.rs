//! The context of a request for objects of one resource.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use super::accept::Representation;
use super::query::Query;
use crate::authentication::User;
use crate::cluster::Cluster;
use crate::registry::Resource;
use crate::status::{ApiError, Outcome};
use crate::store::{ObjectRef, Stored, key_of};
use crate::strategy::conversion;
use crate::webhooks::{conversion as conversion_webhook, wait};

/// What a request is about, who makes it, and in which form it is answered.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) representation: Representation,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: User,
    pub(crate) now: Timestamp,
    /// Whether the server makes it to itself. Webhooks are not asked about it.
    pub(crate) is_internal: bool,
}

impl RequestContext {
    /// Returns a request that the server makes to itself.
    pub(crate) fn internal(
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
    ) -> RequestContext {
        RequestContext {
            cluster: Arc::clone(cluster),
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            subresource: None,
            query: Query::default(),
            representation: Representation::plain(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            user: User::admin(),
            now: cluster.now(),
            is_internal: true,
        }
    }

    /// Returns the same request for one object of this namespace.
    pub(crate) fn within(&self, namespace: Option<&str>) -> RequestContext {
        let user = self.user.clone();
        RequestContext {
            user,
            now: self.now,
            is_internal: self.is_internal,
            ..RequestContext::internal(&self.cluster, &self.resource, namespace)
        }
    }

    pub(crate) fn object_ref(&self, name: &str) -> ObjectRef {
        let key = key_of(self.namespace.as_deref(), name);
        ObjectRef { table: Arc::clone(&self.resource.table), key }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Stored>> {
        self.cluster.storage.find(&self.resource.table, self.namespace.as_deref(), name)
    }

    /// Returns the refusal of a request for an object that is not there, or whose name cannot be one.
    pub(crate) fn absent(&self, name: &str) -> ApiError {
        let wrong = objects::names::path_segment(name);
        if wrong.is_empty() || self.resource.custom.is_some() {
            return ApiError::not_found(&self.resource.kind, name);
        }
        let why = wrong.join(";");
        ApiError::bad_request(format!("Name parameter invalid: {name:?}: {why}"))
    }

    /// Returns an object in the version of the request.
    pub(crate) fn in_version(&self, object: &Arc<Stored>) -> Outcome<Value> {
        if self.resource.converter().is_none() {
            return Ok(conversion::from_stored(object.value(), &self.resource));
        }
        let shown = conversion_webhook::shown(&self.cluster, &self.resource, vec![Arc::clone(object)]);
        let shown = wait(shown)?;
        Ok(shown.first().unwrap_or(object).value())
    }

    /// Turns an object of the version of the request into the one in which objects are stored.
    pub(crate) fn convert_to_stored(&self, object: &mut Value) -> Outcome<()> {
        let resource = &self.resource;
        if resource.converter().is_some() && resource.api_version != resource.stored_version {
            let converting = conversion_webhook::convert(
                &self.cluster,
                resource,
                vec![object.clone()],
                &resource.stored_version,
            );
            if let Some(converted) = wait(converting)?.into_iter().next() {
                *object = converted;
            }
            return Ok(());
        }
        conversion::to_stored(object, resource);
        Ok(())
    }

    /// Returns the text of a header, empty if it is absent.
    pub(crate) fn header(&self, name: http::header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the media type of the body, without parameters.
    pub(crate) fn media_type(&self) -> &str {
        media_type_of(self.header(http::header::CONTENT_TYPE))
    }
}

/// Returns a media type without its parameters.
pub(crate) fn media_type_of(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

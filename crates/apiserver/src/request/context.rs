//! The context of a request for objects of one resource.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;

use super::accept::Representation;
use super::query::Query;
use crate::authentication::User;
use crate::cluster::Cluster;
use crate::registry::Resource;
use crate::store::{ObjectRef, Stored, key_of};

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
        }
    }

    /// Returns the same request for one object of this namespace.
    pub(crate) fn within(&self, namespace: Option<&str>) -> RequestContext {
        let user = self.user.clone();
        RequestContext {
            user,
            now: self.now,
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

    /// Returns the text of a header, empty if it is absent.
    pub(crate) fn header(&self, name: http::header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the media type of the body, without parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.header(http::header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
    }
}

//! One request for objects of one resource.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;

use crate::authentication::User;
use crate::cluster::Cluster;
use crate::read::Presenter;
use crate::registry::Resource;
use crate::request::{Query, Representation};

/// What a request is about, and how its answer must look.
#[derive(Debug)]
pub(crate) struct Call {
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

impl Call {
    /// Returns a request that the server makes to itself.
    pub(crate) fn own(cluster: &Arc<Cluster>, resource: &Arc<Resource>, namespace: Option<&str>) -> Call {
        Call {
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
    pub(crate) fn within(&self, namespace: Option<&str>) -> Call {
        Call { user: self.user.clone(), now: self.now, ..Call::own(&self.cluster, &self.resource, namespace) }
    }

    /// Returns what writes objects in the form that the client wants.
    pub(crate) fn presenter(&self) -> Presenter {
        Presenter::new(Arc::clone(&self.resource), self.representation.clone(), &self.query, self.now)
    }

    /// Returns the text of a header, empty if it is absent.
    pub(crate) fn header(&self, name: http::header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

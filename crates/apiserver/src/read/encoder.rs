//! Objects in the form that a client asked for.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Response;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::registry::Resource;
use crate::request::{Encoding, Representation, RequestContext, Shape};
use crate::status::{ApiError, Outcome};
use crate::store::Stored;
use crate::strategy::conversion;
use crate::webhooks::{conversion as conversion_webhook, wait};

/// Writes objects of one resource in one form.
#[derive(Clone, Debug)]
pub(crate) struct ObjectEncoder {
    pub(crate) resource: Arc<Resource>,
    pub(crate) representation: Representation,
    include: Include,
    /// Where services are looked up, if a webhook converts objects.
    cluster: Option<Arc<Cluster>>,
    /// How the bytes of an object in the client's version begin, if they may be stored in another one.
    head: Option<Vec<u8>>,
    pub(crate) now: Timestamp,
}

/// What rows of a table carry besides their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Metadata,
    Nothing,
    Object,
}

impl ObjectEncoder {
    /// Returns what writes the objects of a request in the form that its client asked for.
    pub(crate) fn of(request: &RequestContext) -> ObjectEncoder {
        let include = match request.query.get("includeObject") {
            Some("None") => Include::Nothing,
            Some("Object") => Include::Object,
            Some(_) | None => Include::Metadata,
        };
        ObjectEncoder {
            resource: Arc::clone(&request.resource),
            representation: request.representation.clone(),
            include,
            cluster: request.resource.converter().map(|_| Arc::clone(&request.cluster)),
            head: request.resource.custom.is_some().then(|| {
                let resource = &request.resource;
                conversion::head(&resource.kind.kind, &resource.api_version)
            }),
            now: request.now,
        }
    }

    /// Returns whether these bytes of an object are sent as they are stored.
    ///
    /// The version of custom objects is that in which they were written last.
    pub(crate) fn passes(&self, body: &[u8]) -> bool {
        self.is_identity() && self.head.as_ref().is_none_or(|head| body.starts_with(head))
    }

    /// Returns whether objects of the stored version are sent as they are.
    pub(crate) fn is_identity(&self) -> bool {
        self.representation.shape == Shape::Whole
            && self.representation.encoding == Encoding::Json
            && !self.representation.pretty
            && self.resource.api_version == self.resource.stored_version
    }

    /// Returns the object with this body, in the client's version and form.
    pub(crate) fn value(&self, body: &[u8], first: bool) -> Value {
        let object = self.whole(body);
        match &self.representation.shape {
            Shape::Whole => object,
            Shape::Metadata(version) => metadata_only(object, version),
            Shape::Table(version) => self.table(std::slice::from_ref(&object), version, None, first),
        }
    }

    /// Returns the object of a watch event as JSON.
    pub(crate) fn watched(&self, body: &Bytes, first: bool) -> Bytes {
        if self.passes(body) {
            return body.clone();
        }
        serde_json::to_vec(&self.value(body, first)).unwrap_or_default().into()
    }

    fn whole(&self, body: &[u8]) -> Value {
        let object = objects::decode::read(body).unwrap_or(Value::Null);
        conversion::from_stored(object, &self.resource)
    }

    /// Returns objects in the client's version, if a webhook converts them.
    pub(crate) fn converted(&self, objects: Vec<Arc<Stored>>) -> Outcome<Vec<Arc<Stored>>> {
        match &self.cluster {
            Some(cluster) => wait(conversion_webhook::shown(cluster, &self.resource, objects)),
            None => Ok(objects),
        }
    }

    /// Returns the bytes of an object in the client's version, if they are to be converted by a webhook.
    pub(crate) fn conversion_of(&self, body: &Bytes) -> Option<BoxFuture<'static, Outcome<Bytes>>> {
        let cluster = self.cluster.clone()?;
        if self.head.as_ref().is_none_or(|head| body.starts_with(head)) {
            return None;
        }
        let (resource, body) = (Arc::clone(&self.resource), body.clone());
        Some(Box::pin(async move { conversion_webhook::shown_bytes(&cluster, &resource, &body).await }))
    }

    pub(crate) fn answer(&self, status: u16, object: &Arc<Stored>) -> Outcome<Response<Body>> {
        if self.cluster.is_some() {
            let converted = self.converted(vec![Arc::clone(object)])?;
            let object = converted.first().unwrap_or(object);
            return self.answer_value(status, &self.value(&object.body, true));
        }
        if self.passes(&object.body) {
            return respond(status, self.representation.content_type(), Body::from(object.body.clone()));
        }
        self.answer_value(status, &self.value(&object.body, true))
    }

    /// Returns the answer that shows `value` as it is.
    pub(crate) fn answer_value(&self, status: u16, value: &Value) -> Outcome<Response<Body>> {
        let body = encode(value, &self.representation)?;
        respond(status, self.representation.content_type(), Body::from(body))
    }

    pub(crate) fn list(&self, items: &[Arc<Stored>], metadata: &Map<String, Value>) -> Value {
        let objects: Vec<Value> = items.iter().map(|item| self.whole(&item.body)).collect();
        match &self.representation.shape {
            Shape::Whole => {
                let custom = self.resource.custom.is_some();
                let items = objects.into_iter().map(|object| if custom { object } else { untyped(object) });
                json!({
                    "kind": self.resource.kind.list_kind,
                    "apiVersion": self.resource.api_version,
                    "metadata": metadata,
                    "items": items.collect::<Vec<_>>(),
                })
            }
            Shape::Metadata(version) => {
                let items = objects.into_iter().map(|object| metadata_only(object, version));
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": metadata,
                    "items": items.collect::<Vec<_>>(),
                })
            }
            Shape::Table(version) => self.table(&objects, version, Some(metadata), true),
        }
    }

    fn table(
        &self,
        objects: &[Value],
        version: &str,
        metadata: Option<&Map<String, Value>>,
        with_columns: bool,
    ) -> Value {
        let printed = super::table::print(&self.resource, objects, self.now);
        let rows = objects.iter().zip(printed.rows).map(|(object, row)| {
            let mut row = row;
            match self.include {
                Include::Metadata => row.insert("object".into(), metadata_only(object.clone(), version)),
                Include::Object => row.insert("object".into(), object.clone()),
                Include::Nothing => row.insert("object".into(), Value::Null),
            };
            Value::Object(row)
        });
        let rows: Vec<Value> = rows.collect();
        let metadata = metadata.cloned().unwrap_or_else(|| {
            let revision = objects.first().and_then(|object| object.pointer("/metadata/resourceVersion"));
            Map::from_iter([("resourceVersion".to_owned(), revision.cloned().unwrap_or(json!("")))])
        });
        let columns = if with_columns { printed.columns } else { Value::Null };
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }
}

fn untyped(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object
}

fn metadata_only(mut object: Value, version: &str) -> Value {
    let mut metadata = object.get_mut("metadata").map(Value::take).unwrap_or_default();
    // This annotation stands for a field that metadata alone does not know.
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations
        && annotations.remove("deprecated.daemonset.template.generation").is_some()
        && annotations.is_empty()
        && let Some(fields) = metadata.as_object_mut()
    {
        fields.remove("annotations");
    }
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}

/// Writes `value` as JSON or YAML.
pub(crate) fn encode(value: &Value, representation: &Representation) -> Outcome<Vec<u8>> {
    let written = match representation.encoding {
        Encoding::Yaml => return Ok(crate::yaml::write(value).into_bytes()),
        Encoding::Json if representation.pretty => serde_json::to_vec_pretty(value),
        Encoding::Json => serde_json::to_vec(value),
    };
    written.map_err(|error| ApiError::internal(error.to_string()))
}

pub(crate) fn respond(status: u16, content_type: &str, body: Body) -> Outcome<Response<Body>> {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, content_type)
        .body(body)
        .map_err(|error| ApiError::internal(error.to_string()))
}

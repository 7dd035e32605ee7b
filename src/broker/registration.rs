//! Tells Service Catalog of the broker: a `ClusterServiceBroker`, and a `ServiceBroker` for each namespace.

use engine::{BrokerRegistration, Failure, FailureKind};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cluster::RequestError;
use crate::cluster::request::{PatchKind, Requests, encode_query, encode_segment};

const GROUP: &str = "/apis/servicecatalog.k8s.io/v1beta1";
const API_VERSION: &str = "servicecatalog.k8s.io/v1beta1";

/// The label that says whose a broker is.
const OWNER: &str = "addon-operator.io/broker-owner";

/// The annotation with a number for what was offered when it was told to look.
const OFFER: &str = "addon-operator.io/offer";

/// How often a write is tried when somebody else changes the object at the same moment.
const ATTEMPTS: usize = 5;

/// The brokers of one operator.
pub(super) struct Brokers<'b> {
    pub(super) requests: &'b Requests,
    /// What each of them is called.
    pub(super) name: String,
    pub(super) owner: String,
    /// The operator's namespace.
    pub(super) namespace: &'b str,
    /// The Secret with the user name and the password.
    pub(super) secret: &'b str,
    /// The address under which platforms reach the broker.
    pub(super) url: &'b str,
}

/// Returns what tells the brokers of one operator from those of others.
pub(super) fn owner(namespace: &str, config_map: &str) -> String {
    let digest = Sha256::digest(format!("{namespace}/{config_map}"));
    let (first, _) = digest.split_at(8);
    first.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

impl Brokers<'_> {
    /// Makes the brokers be those that are wanted. Returns whether there is a Service Catalog.
    pub(super) async fn register(&self, wanted: &BrokerRegistration) -> Result<bool, Failure> {
        let failed = |error: RequestError| {
            let kind = if error.code() == 403 { FailureKind::Forbidden } else { FailureKind::Cluster };
            Failure::of(kind, &error)
        };
        let label = encode_query(&format!("{OWNER}={}", self.owner));
        let of_owner = format!("{GROUP}/servicebrokers?labelSelector={label}");
        let Some(list) = self.requests.get(&of_owner).await.map_err(failed)? else { return Ok(false) };
        let items = list.get("items").and_then(Value::as_array);
        for broker in items.into_iter().flatten() {
            let text = |field: &str| broker.pointer(field).and_then(Value::as_str).unwrap_or_default();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if name != self.name || !wanted.namespaces.contains_key(namespace) {
                let path = format!("{}/{}", in_namespace(namespace), encode_segment(name));
                self.requests.delete(&path).await.map_err(failed)?;
            }
        }
        let of_cluster = format!("{GROUP}/clusterservicebrokers");
        match &wanted.cluster {
            Some(offer) => self.tell(&of_cluster, "", offer).await?,
            None => self.remove(&of_cluster).await.map_err(failed)?,
        }
        for (namespace, offer) in &wanted.namespaces {
            self.tell(&in_namespace(namespace), namespace, offer).await?;
        }
        Ok(true)
    }

    async fn remove(&self, collection: &str) -> Result<(), RequestError> {
        let path = format!("{collection}/{}", encode_segment(&self.name));
        match self.requests.get(&path).await? {
            Some(found) if self.is_ours(&found) => self.requests.delete(&path).await.map(drop),
            Some(_) | None => Ok(()),
        }
    }

    fn is_ours(&self, broker: &Value) -> bool {
        let labels = broker.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(OWNER)?.as_str()) == Some(&self.owner)
    }

    /// Makes a broker of the cluster, or of a namespace, and has it look when something else is offered than before.
    async fn tell(&self, collection: &str, namespace: &str, offer: &str) -> Result<(), Failure> {
        let failed = |error: &RequestError| Failure::of(FailureKind::Cluster, error);
        let path = format!("{collection}/{}", encode_segment(&self.name));
        let mut attempts = 0;
        loop {
            attempts += 1;
            let written = match self.requests.get(&path).await.map_err(|error| failed(&error))? {
                None => self.requests.make(collection, &self.broker(namespace, offer)).await,
                Some(found) if !self.is_ours(&found) => {
                    let kind = if namespace.is_empty() { "ClusterServiceBroker" } else { "ServiceBroker" };
                    let message = format!("{kind} {} is there, and is not ours", self.name);
                    return Err(Failure::new(FailureKind::Conflict, message).advise("remove it"));
                }
                Some(found) => match self.change(&found, namespace, offer) {
                    Some(change) => self.requests.edit(&path, PatchKind::Merge, &change).await,
                    None => return Ok(()),
                },
            };
            match written {
                Ok(_) => return Ok(()),
                Err(error) if matches!(error.code(), 404 | 409) && attempts < ATTEMPTS => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// Returns where platforms ask for a namespace.
    fn place(&self, namespace: &str) -> String {
        let place = if namespace.is_empty() { "cluster".to_owned() } else { format!("ns/{namespace}") };
        format!("{}/{place}", self.url)
    }

    /// Returns how they prove who they are.
    fn auth(&self, namespace: &str) -> Value {
        let secret = if namespace.is_empty() {
            json!({"namespace": self.namespace, "name": self.secret})
        } else {
            json!({"name": self.secret})
        };
        json!({"basic": {"secretRef": secret}})
    }

    fn broker(&self, namespace: &str, offer: &str) -> Value {
        let (labels, annotations) = (json!({OWNER: self.owner}), json!({OFFER: offer}));
        let (kind, metadata) = if namespace.is_empty() {
            let metadata = json!({"name": self.name, "labels": labels, "annotations": annotations});
            ("ClusterServiceBroker", metadata)
        } else {
            let metadata = json!({
                "name": self.name, "namespace": namespace, "labels": labels, "annotations": annotations,
            });
            ("ServiceBroker", metadata)
        };
        let spec =
            json!({"url": self.place(namespace), "authInfo": self.auth(namespace), "relistRequests": 1});
        json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
    }

    /// Returns what has to be changed of a broker that is there; `None` if it says all.
    fn change(&self, found: &Value, namespace: &str, offer: &str) -> Option<Value> {
        let (url, auth) = (self.place(namespace), self.auth(namespace));
        let annotations = found.pointer("/metadata/annotations");
        let is_offered = annotations.and_then(|all| all.get(OFFER)?.as_str()) == Some(offer);
        let is_same = found.pointer("/spec/url").and_then(Value::as_str) == Some(&url)
            && found.pointer("/spec/authInfo") == Some(&auth);
        if is_offered && is_same {
            return None;
        }
        let requests = found.pointer("/spec/relistRequests").and_then(Value::as_i64).unwrap_or_default();
        let spec = json!({"url": url, "authInfo": auth, "relistRequests": requests.saturating_add(1)});
        let version = found.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let metadata = json!({"resourceVersion": version, "annotations": {OFFER: offer}});
        Some(json!({"metadata": metadata, "spec": spec}))
    }
}

fn in_namespace(namespace: &str) -> String {
    format!("{GROUP}/namespaces/{}/servicebrokers", encode_segment(namespace))
}

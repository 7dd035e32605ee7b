//! What is kept of the broker's instances: one Secret, since parameters can be secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{ConfigText, Failure, FailureKind};
use serde_json::json;

use crate::cluster::RequestError;
use crate::cluster::request::{PatchKind, Requests, encode_segment};

/// The key with all of it.
const KEY: &str = "instances.json";

/// The Secret of one operator.
pub(super) struct Records {
    requests: Requests,
    namespace: String,
    name: String,
}

impl Records {
    /// Returns the Secret of the operator whose ConfigMap this is.
    pub(super) fn new(requests: Requests, namespace: &str, config_map: &str) -> Self {
        let name = format!("{config_map}-broker-instances");
        Self { requests, namespace: namespace.to_owned(), name }
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", encode_segment(&self.namespace))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), encode_segment(&self.name))
    }

    fn failed(&self, what: &str, error: &RequestError) -> Failure {
        let kind = if error.code() == 403 { FailureKind::Forbidden } else { FailureKind::Cluster };
        let failure =
            Failure::of(kind, error).advise("give the operator the rights that examples/install has");
        let message = format!("Secret {}/{} can't be {what}: {}", self.namespace, self.name, failure.message);
        Failure { message, ..failure }
    }

    /// Returns what is kept; nothing if there is no such Secret.
    pub(super) async fn read(&self) -> Result<Option<ConfigText>, Failure> {
        let found = self.requests.get(&self.path()).await;
        let found = found.map_err(|error| self.failed("read", &error))?;
        let Some(text) = found.as_ref().and_then(|found| found.pointer("/data")?.get(KEY)?.as_str()) else {
            return Ok(None);
        };
        // What is no text is no record either, which is said when it is read.
        let bytes = STANDARD.decode(text).unwrap_or_default();
        Ok(Some(ConfigText(String::from_utf8_lossy(&bytes).into_owned())))
    }

    /// Writes what is to be kept.
    pub(super) async fn write(&self, ConfigText(text): &ConfigText) -> Result<(), Failure> {
        let data = json!({ KEY: STANDARD.encode(text) });
        let change = json!({ "data": data });
        let outcome = match self.requests.edit(&self.path(), PatchKind::Merge, &change).await {
            Err(error) if error.code() == 404 => {
                let labels = json!({"app.kubernetes.io/managed-by": "addon-operator"});
                let metadata = json!({"name": self.name, "namespace": self.namespace, "labels": labels});
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data,
                });
                self.requests.create(&self.collection(), &secret).await.map(drop)
            }
            edited => edited.map(drop),
        };
        outcome.map_err(|error| self.failed("written", &error))
    }
}

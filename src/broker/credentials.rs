//! The credentials of an instance, as the Secret of its release has them now.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{BrokerAnswer, BrokerBody};
use serde_json::{Map, Value, json};

use crate::cluster::request::{Requests, encode_segment};

/// Returns the status and the body of an answer. Credentials are read out of their Secret, as it is now.
pub(super) async fn body_of(requests: &Requests, answer: BrokerAnswer) -> (u16, Arc<Value>) {
    let (namespace, secret) = match answer.body {
        BrokerBody::Json(body) => return (answer.status, body),
        BrokerBody::Credentials { namespace, secret } => (namespace, secret),
    };
    let path =
        format!("/api/v1/namespaces/{}/secrets/{}", encode_segment(&namespace), encode_segment(&secret));
    let missing = |what: &str| {
        let description = format!("the credentials in Secret {namespace}/{secret} {what}: ask again");
        (500, Arc::new(json!({"error": "InternalError", "description": description})))
    };
    let found = match requests.get(&path).await {
        Ok(Some(found)) => found,
        Ok(None) => return missing("are not there"),
        Err(_) => return missing("can't be read"),
    };
    let text = |(name, value): (&String, &Value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        Some((name.clone(), Value::String(String::from_utf8_lossy(&bytes).into_owned())))
    };
    let data = found.get("data").and_then(Value::as_object);
    let credentials: Map<String, Value> = data.into_iter().flatten().filter_map(text).collect();
    (answer.status, Arc::new(json!({ "credentials": credentials })))
}

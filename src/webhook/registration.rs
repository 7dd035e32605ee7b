//! Tells the API server which webhooks there are.

use std::collections::BTreeSet;

use engine::hook::AdmissionKind;
use engine::{Failure, FailureKind, WebhookClient, WebhookRegistration};
use serde_json::{Value, json};

use crate::cluster::RequestError;
use crate::cluster::request::{PatchKind, Requests, encode_segment};

/// Where configurations of webhooks are.
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Whose the fields are that are written here.
const MANAGER: &str = "addon-operator-webhooks";

/// Writes everything of `registration`. What comes after something that fails is written all the same.
pub(super) async fn register(
    requests: &Requests,
    (name, client): (&str, &WebhookClient),
    registration: &WebhookRegistration,
    namespace: &str,
) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for (kind, plural, wanted) in [
        (AdmissionKind::Validating, VALIDATING, &registration.validating),
        (AdmissionKind::Mutating, MUTATING, &registration.mutating),
    ] {
        let path = format!("{CONFIGURATIONS}/{plural}/{}", encode_segment(name));
        let kept = registration.kept.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str());
        problems.extend(configure(requests, &path, wanted.as_ref(), &kept.collect()).await.err());
    }
    for (crd, conversion) in &registration.conversions {
        let outcome = match conversion {
            Some(conversion) => convert(requests, crd, conversion).await,
            None => give_back(requests, crd).await,
        };
        problems.extend(outcome.err());
    }
    if let Some(wanted) = &registration.sweep {
        problems.extend(sweep(requests, (client, namespace), wanted).await.err());
    }
    match problems.into_iter().next() {
        None => Ok(()),
        Some(error) if error.code() == 403 => Err(Failure::of(FailureKind::Forbidden, &error)
            .advise("give the operator the rights that examples/install/webhooks has")),
        Some(error) => Err(Failure::of(FailureKind::Cluster, &error)),
    }
}

/// Writes a configuration, or removes it. Of its webhooks those that are `kept` are written only if the API server knows them.
async fn configure(
    requests: &Requests,
    path: &str,
    wanted: Option<&Value>,
    kept: &BTreeSet<&str>,
) -> Result<(), RequestError> {
    let mut wanted = wanted.cloned();
    if let Some(webhooks) = wanted.as_mut().and_then(|object| object.get_mut("webhooks")?.as_array_mut())
        && !kept.is_empty()
    {
        let known = requests.get(path).await?.unwrap_or_default();
        let known = known.get("webhooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_known = |name: &str| known.iter().any(|webhook| name_of(webhook) == name);
        webhooks.retain(|webhook| !kept.contains(name_of(webhook)) || is_known(name_of(webhook)));
        if webhooks.is_empty() {
            wanted = None;
        }
    }
    match wanted {
        Some(object) => requests.apply(path, MANAGER, &object).await.map(drop),
        None => requests.delete(path).await.map(drop),
    }
}

fn name_of(webhook: &Value) -> &str {
    webhook.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Has the objects of a definition converted by hooks.
async fn convert(requests: &Requests, crd: &str, conversion: &Value) -> Result<(), RequestError> {
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd},
        "spec": {"conversion": conversion},
    });
    requests.apply(&definition(crd), MANAGER, &object).await.map(drop)
}

/// Has the objects of a definition converted by nobody. One that is gone needs nothing.
async fn give_back(requests: &Requests, crd: &str) -> Result<(), RequestError> {
    let change = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    match requests.edit(&definition(crd), PatchKind::Merge, &change).await {
        Err(error) if error.code() == 404 => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Gives the definitions back that lead to this operator and that no hook wants.
async fn sweep(
    requests: &Requests,
    own: (&WebhookClient, &str),
    wanted: &BTreeSet<String>,
) -> Result<(), RequestError> {
    let list = requests.get(DEFINITIONS).await?.unwrap_or_default();
    for definition in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let client = definition.pointer("/spec/conversion/webhook/clientConfig");
        if !wanted.contains(name) && client.is_some_and(|client| is_ours(client, own)) {
            give_back(requests, name).await?;
        }
    }
    Ok(())
}

/// Returns whether a webhook leads to this operator.
fn is_ours(given: &Value, (client, namespace): (&WebhookClient, &str)) -> bool {
    let text = |pointer: &str| given.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match client {
        WebhookClient::Service(name) => {
            text("/service/name") == name && text("/service/namespace") == namespace
        }
        WebhookClient::Url(url) => text("/url")
            .strip_prefix(url.trim_end_matches('/'))
            .is_some_and(|path| path.starts_with("/convert/")),
    }
}

fn definition(name: &str) -> String {
    format!("{DEFINITIONS}/{}", encode_segment(name))
}

//! Tells the API server which webhooks there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use engine::hook::AdmissionKind;
use engine::{
    Failure, FailureKind, Narrowing, WebhookClient, WebhookRefusal, WebhookRegistration, WrittenVersions,
};
use serde_json::{Value, json};

use crate::cluster::RequestError;
use crate::cluster::request::{PatchKind, Requests, encode_segment};

/// Where configurations of webhooks are.
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The codes with which an API server refuses a configuration, not the one who writes it.
const REFUSALS: [u16; 4] = [400, 413, 422, 500];

/// Whose the fields are that are written here.
const MANAGER: &str = "addon-operator-webhooks";

/// What came of a registration: why not everything was written, which configurations the API server refused, and how new what was
/// written is.
pub(super) type Registered = (Result<(), Failure>, Vec<WebhookRefusal>, WrittenVersions);

/// Writes everything of `registration`. What comes after something that fails is written all the same.
pub(super) async fn register(
    requests: &Requests,
    (name, client): (&str, &WebhookClient),
    registration: &WebhookRegistration,
    namespace: &str,
) -> Registered {
    let (mut problems, mut refusals) = (Vec::new(), Vec::new());
    let mut versions = WrittenVersions::default();
    let own = (client, namespace);
    for (kind, plural, wanted) in [
        (AdmissionKind::Validating, VALIDATING, &registration.validating),
        (AdmissionKind::Mutating, MUTATING, &registration.mutating),
    ] {
        let path = format!("{CONFIGURATIONS}/{plural}/{}", encode_segment(name));
        if let Some(narrowing) = registration.narrowed.get(&kind) {
            problems.extend(narrow(requests, &path, narrowing, own).await.err());
            continue;
        }
        let kept = registration.kept.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str());
        let mut sent = Vec::new();
        let others = registration.keeps_others.then_some(own);
        match configure(requests, &path, wanted.as_ref(), (&kept.collect(), others), &mut sent).await {
            Ok(version) => versions.configurations.extend(version.map(|version| (kind, version))),
            Err(error) if REFUSALS.contains(&error.code()) => refusals.push(refusal(kind, &error, &sent)),
            Err(error) => problems.push(error),
        }
    }
    for (crd, conversion) in &registration.conversions {
        let outcome = match conversion {
            Some(conversion) => convert(requests, crd, conversion).await,
            None => give_back(requests, crd).await.map(|()| None),
        };
        match outcome {
            Ok(version) => versions.definitions.extend(version.map(|version| (crd.clone(), version))),
            Err(error) => problems.push(error),
        }
    }
    if let Some(wanted) = &registration.sweep {
        problems.extend(sweep(requests, own, wanted).await.err());
    }
    (problems.first().map_or(Ok(()), |error| Err(failure(error))), refusals, versions)
}

/// Returns whether the API server knows webhooks of this name. One that can't be asked counts as one that knows none.
pub(super) async fn is_registered(requests: &Requests, name: &str) -> bool {
    for plural in [VALIDATING, MUTATING] {
        let path = format!("{CONFIGURATIONS}/{plural}/{}", encode_segment(name));
        if matches!(requests.get(&path).await, Ok(Some(_))) {
            return true;
        }
    }
    false
}

fn failure(error: &RequestError) -> Failure {
    if error.code() == 403 {
        return Failure::of(FailureKind::Forbidden, error)
            .advise("give the operator the rights that examples/install/webhooks has");
    }
    Failure::of(FailureKind::Cluster, error)
}

/// Returns what the API server refused of the webhooks that were sent.
fn refusal(kind: AdmissionKind, error: &RequestError, sent: &[Value]) -> WebhookRefusal {
    let mut webhooks = BTreeMap::new();
    for (field, said) in error.fields() {
        let place = field.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
        let Some((index, field)) = place else { continue };
        let Some(webhook) = index.parse::<usize>().ok().and_then(|index| sent.get(index)) else { continue };
        // The lines that follow show the place in the text.
        let said = said.lines().next().unwrap_or_default();
        let why = webhooks.entry(name_of(webhook).to_owned()).or_insert_with(String::new);
        let (field, before) = (field.trim_start_matches('.'), if why.is_empty() { "" } else { "; " });
        let _ = write!(why, "{before}{field}: {said}");
    }
    WebhookRefusal { kind, failure: failure(error), webhooks }
}

/// Writes a configuration, or removes it. Of its webhooks those that are `kept` are written only if the API server knows them. Others
/// that it knows and that lead to `others` stay, and let requests go on. Those that are written are added to `sent`. Returns the version
/// of what was written.
async fn configure(
    requests: &Requests,
    path: &str,
    wanted: Option<&Value>,
    (kept, others): (&BTreeSet<&str>, Option<(&WebhookClient, &str)>),
    sent: &mut Vec<Value>,
) -> Result<Option<u64>, RequestError> {
    let Some(wanted) = wanted else { return requests.delete(path).await.map(|_| None) };
    sent.extend_from_slice(webhooks_of(wanted));
    if !kept.is_empty() || others.is_some() {
        let known = requests.get(path).await?.unwrap_or_default();
        let is_known = |name: &str| webhooks_of(&known).iter().any(|webhook| name_of(webhook) == name);
        sent.retain(|webhook| !kept.contains(name_of(webhook)) || is_known(name_of(webhook)));
        let is_wanted = |name: &str| webhooks_of(wanted).iter().any(|webhook| name_of(webhook) == name);
        let stay = others.map(|own| harmless(&known, own)).unwrap_or_default();
        sent.extend(stay.into_iter().filter(|webhook| !is_wanted(name_of(webhook))));
    }
    write(requests, path, wanted, sent).await
}

/// Has what is registered stay as it is as far as it is to, and let requests go on if nobody answers.
async fn narrow(
    requests: &Requests,
    path: &str,
    Narrowing { head, stay }: &Narrowing,
    own: (&WebhookClient, &str),
) -> Result<(), RequestError> {
    let Some(known) = requests.get(path).await? else { return Ok(()) };
    let mut webhooks = harmless(&known, own);
    webhooks.retain(|webhook| stay.as_ref().is_none_or(|stay| stay.contains(name_of(webhook))));
    write(requests, path, head, &webhooks).await.map(drop)
}

/// Returns the webhooks of a configuration that lead to this operator, as they let requests go on.
fn harmless(configuration: &Value, own: (&WebhookClient, &str)) -> Vec<Value> {
    let is_own = |webhook: &&Value| webhook.get("clientConfig").is_some_and(|client| is_ours(client, own));
    let mut webhooks: Vec<Value> = webhooks_of(configuration).iter().filter(is_own).cloned().collect();
    for webhook in webhooks.iter_mut().filter_map(Value::as_object_mut) {
        webhook.insert("failurePolicy".to_owned(), json!("Ignore"));
    }
    webhooks
}

/// Writes a configuration with these webhooks, or removes it if there are none. Returns the version of what was written.
async fn write(
    requests: &Requests,
    path: &str,
    object: &Value,
    webhooks: &[Value],
) -> Result<Option<u64>, RequestError> {
    if webhooks.is_empty() {
        return requests.delete(path).await.map(|_| None);
    }
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("webhooks".to_owned(), Value::Array(webhooks.to_vec()));
    }
    requests.apply(path, MANAGER, &object).await.map(|written| version_of(&written))
}

fn version_of(object: &Value) -> Option<u64> {
    object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

fn webhooks_of(configuration: &Value) -> &[Value] {
    configuration.get("webhooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn name_of(webhook: &Value) -> &str {
    webhook.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Has the objects of a definition converted by hooks. Returns its version.
async fn convert(requests: &Requests, crd: &str, conversion: &Value) -> Result<Option<u64>, RequestError> {
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd},
        "spec": {"conversion": conversion},
    });
    requests.apply(&definition(crd), MANAGER, &object).await.map(|written| version_of(&written))
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
        WebhookClient::Url(url) => text("/url").strip_prefix(url.trim_end_matches('/')).is_some_and(|path| {
            ["/convert/", "/mutate/", "/validate/"].iter().any(|of| path.starts_with(of))
        }),
    }
}

fn definition(name: &str) -> String {
    format!("{DEFINITIONS}/{}", encode_segment(name))
}

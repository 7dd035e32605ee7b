//! The review that a webhook gets, and what its answer says.

use serde_json::{Map, Value, json};

use super::asked::{Asked, Operation};
use crate::fields::{get, text, texts};
use crate::kind::Kind;
use crate::object_meta;

/// What a webhook says.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The code and the message of a refusal.
    pub(super) refusal: Option<(u16, String)>,
    pub(super) warnings: Vec<String>,
    /// A JSON patch in base64.
    pub(super) patch: Option<String>,
}

/// Returns the review of a write, with the object before and after it in the version `shown`.
pub(super) fn request(
    asked: Asked<'_>,
    uid: &str,
    shown: &Kind,
    (old, object): (Option<&Value>, Option<&Value>),
) -> Value {
    let mut fields = about(asked, shown, asked.name().unwrap_or_default());
    if asked.name().is_none() {
        // It is made of generateName later.
        fields.remove("name");
    }
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("uid", json!(uid));
    put("object", object.cloned().unwrap_or_default());
    put("oldObject", old.cloned().unwrap_or_default());
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": fields})
}

/// Returns what a review says of a write, beside the objects.
pub(crate) fn about(asked: Asked<'_>, shown: &Kind, name: &str) -> Map<String, Value> {
    let (request, kind) = (asked.request, &asked.request.resource.kind);
    let part = asked.part();
    // What a part is written with may be of another kind.
    let of_kind = |kind: &Kind| {
        let spoken = kind.subresource(part).map(|part| (&part.group, &part.version, &part.kind));
        let (group, version, kind) = spoken.unwrap_or((&kind.group, &kind.version, &kind.kind));
        json!({"group": **group, "version": **version, "kind": **kind})
    };
    let resource =
        |kind: &Kind| json!({"group": *kind.group, "version": *kind.version, "resource": *kind.plural});
    let options = match asked.operation {
        Operation::Connect => None,
        Operation::Create => Some("CreateOptions"),
        Operation::Delete => Some("DeleteOptions"),
        Operation::Update => Some("UpdateOptions"),
    };
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("kind", of_kind(shown));
    put("resource", resource(shown));
    put("requestKind", of_kind(kind));
    put("requestResource", resource(kind));
    if !part.is_empty() {
        put("subResource", json!(part));
        put("requestSubResource", json!(part));
    }
    put("name", json!(name));
    // A namespace is in itself, if the client knows its name.
    let is_generated = asked.operation == Operation::Create
        && asked.object.is_some_and(|object| !object_meta::text(object, "generateName").is_empty());
    let is_in_itself = request.resource.is("", "namespaces") && !name.is_empty() && !is_generated;
    if let Some(namespace) = request.namespace.as_deref().or(is_in_itself.then_some(name)) {
        put("namespace", json!(namespace));
    }
    put("operation", json!(asked.operation.as_str()));
    let user = &request.user;
    put("userInfo", json!({"username": user.name, "uid": user.uid, "groups": user.groups}));
    put("dryRun", json!(asked.is_dry_run));
    put("options", options.map_or(Value::Null, |kind| said(asked, kind)));
    fields
}

/// Returns what a client said of how it is done.
fn said(asked: Asked<'_>, kind: &str) -> Value {
    let mut said = asked.options.as_object().cloned().unwrap_or_default();
    said.insert("kind".to_owned(), json!(kind));
    said.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
    Value::Object(said)
}

/// Reads the answer to a review.
pub(super) fn verdict(answer: &Value) -> Result<Verdict, String> {
    let response = get(answer, "response");
    if text(answer, "kind") != "AdmissionReview" || !response.is_object() {
        return Err(
            "expected response.uid and webhook response of type admission.k8s.io/v1, AdmissionReview"
                .to_owned(),
        );
    }
    let status = get(response, "status");
    let allowed = get(response, "allowed").as_bool().unwrap_or_default();
    let refusal = (!allowed).then(|| {
        let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let why = [text(status, "message"), text(status, "reason")].into_iter().find(|text| !text.is_empty());
        (code.filter(|code| (400..600).contains(code)).unwrap_or(400), why.unwrap_or_default().to_owned())
    });
    let patch = response.get("patch").and_then(Value::as_str).filter(|patch| !patch.is_empty());
    if patch.is_some() && text(response, "patchType") != "JSONPatch" {
        return Err("webhook returned response.patch but not response.patchType".to_owned());
    }
    let warnings = texts(response, "warnings").map(str::to_owned).collect();
    Ok(Verdict { refusal, warnings, patch: patch.map(str::to_owned) })
}

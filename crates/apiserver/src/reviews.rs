//! Questions that are asked by creating an object: who am I, may I.

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::request::Call;
use crate::request::WriteOptions;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, Owner};
use crate::write::{seconds, untyped};

/// Answers a review; nothing for kinds that are stored.
pub(crate) fn answer(call: &Call) -> Outcome<Option<Response<Body>>> {
    let kind = &call.resource.kind;
    if call.resource.custom.is_some() || kind.allows(crate::kind::Verb::Get) {
        return Ok(None);
    }
    if kind.plural == "bindings" {
        let body = untyped(&call.body, call.header(CONTENT_TYPE), ("v1", "Binding"))?;
        let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let pods =
            call.cluster.registry().find("v1", "pods").cloned().ok_or_else(ApiError::unknown_resource)?;
        let inner = Call {
            body: call.body.clone(),
            headers: call.headers.clone(),
            ..Call::own(&call.cluster, &pods, call.namespace.as_deref())
        };
        return crate::subresources::answer(&inner, &name, "binding").map(Some);
    }
    let types = (call.resource.api_version.as_str(), &*kind.kind);
    let mut review = untyped(&call.body, call.header(CONTENT_TYPE), types)?;
    let Some(fields) = review.as_object_mut() else {
        return Err(ApiError::bad_request("an object is expected"));
    };
    let status = match &*kind.kind {
        "SelfSubjectReview" => json!({"userInfo": call.user.to_value()}),
        "SelfSubjectRulesReview" => rules(),
        "TokenReview" => {
            let token = fields.get("spec").and_then(|spec| spec.get("token")).and_then(Value::as_str);
            match token.and_then(|token| crate::server::endpoint::user_of(&call.cluster, token)) {
                Some(user) => json!({"authenticated": true, "user": user.to_value()}),
                None => json!({"user": {}, "error": "the token is not known"}),
            }
        }
        _ => json!({"allowed": true}),
    };
    fields.insert("kind".into(), json!(kind.kind));
    fields.insert("apiVersion".into(), json!(call.resource.api_version));
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        if kind.kind == "SelfSubjectReview" {
            metadata.insert("creationTimestamp".into(), json!(seconds(call.now)));
        } else {
            metadata.retain(|_, value| !value.is_null());
        }
    }
    if kind.kind != "SelfSubjectReview" {
        fields.entry("spec").or_insert_with(|| json!({}));
    }
    if kind.group == "authorization.k8s.io" {
        let options = WriteOptions::of(&call.query, &call.headers, "CreateOptions")?;
        let owner = Owner { manager: &options.field_manager, subresource: "", now: call.now };
        strategy::own(&call.resource, None, &mut review, &owner);
    }
    if let Some(fields) = review.as_object_mut() {
        fields.insert("status".into(), status);
    }
    call.presenter().answer_value(201, &review).map(Some)
}

/// Returns what everybody who is known may do, and what administrators may do besides: everything.
fn rules() -> Value {
    let reviews = [
        ("authorization.k8s.io", vec!["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        ("authentication.k8s.io", vec!["selfsubjectreviews"]),
    ];
    let reviews = reviews
        .into_iter()
        .map(|(group, resources)| json!({"verbs": ["create"], "apiGroups": [group], "resources": resources}));
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let mut resources = vec![everything];
    resources.extend(reviews);
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let documents = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*"];
    let documents = [&documents[..], &["/readyz", "/version", "/version/"]].concat();
    json!({
        "resourceRules": resources,
        "nonResourceRules": [
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
            {"verbs": ["get"], "nonResourceURLs": documents},
            {"verbs": ["get"], "nonResourceURLs": health},
        ],
        "incomplete": false,
    })
}

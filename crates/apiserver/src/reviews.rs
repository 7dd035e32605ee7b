//! Reviews: questions about users and permissions that are asked by creating an object.

use axum::body::Body;
use http::Response;
use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::authorization::{self, Attributes};
use crate::kind::Kind;
use crate::read::ObjectEncoder;
use crate::request::RequestContext;
use crate::request::WriteOptions;
use crate::response;
use crate::status::{ApiError, Cause, Outcome};
use crate::strategy;
use crate::subresources::asked::{self, Posted};
use crate::subresources::bind_named;
use crate::validation;

/// Answers a review; nothing for kinds that are stored.
pub(crate) fn answer(request: &RequestContext) -> Outcome<Option<Response<Body>>> {
    let kind = &request.resource.kind;
    if request.resource.custom.is_some() || kind.allows(crate::kind::Verb::Get) {
        return Ok(None);
    }
    if kind.plural == "bindings" {
        let pods = request
            .cluster
            .registry
            .resources()
            .find("v1", "pods")
            .cloned()
            .ok_or_else(ApiError::unknown_resource)?;
        let inner = RequestContext {
            resource: pods,
            query: request.query.clone(),
            representation: request.representation.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            ..request.within(request.namespace.as_deref())
        };
        return bind_named(request, &inner).map(Some);
    }
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let types = (&*kind.group, &*kind.version, &*kind.kind);
    let answer = asked::read(request, types, &options, &mut warnings).and_then(|review| {
        let posted = Posted { request, resource: &request.resource, name: None, options: &options };
        let review = posted.mutated(review, &mut warnings)?;
        check(request, &review)?;
        posted.validate(&review, &mut warnings)?;
        reviewed(request, review)
    });
    Ok(Some(response::warned(answer, &warnings)))
}

/// Refuses a review that asks for nothing, or about nobody.
fn check(request: &RequestContext, review: &Value) -> Outcome<()> {
    let kind = &request.resource.kind;
    let spec = |name: &str| review.pointer("/spec").and_then(|spec| spec.get(name)).and_then(Value::as_str);
    match &*kind.kind {
        "SelfSubjectRulesReview" if spec("namespace").unwrap_or_default().is_empty() => {
            Err(ApiError::bad_request("no namespace on request"))
        }
        "TokenReview" if spec("token").unwrap_or_default().is_empty() => {
            Err(ApiError::bad_request("token is required for TokenReview in authentication"))
        }
        "SubjectAccessReview" | "LocalSubjectAccessReview" | "SelfSubjectAccessReview" => {
            let report = validation::access_review(&kind.kind, review, request.namespace.as_deref());
            let causes: Vec<Cause> = report.errors.into_iter().map(strategy::cause).collect();
            if causes.is_empty() {
                return Ok(());
            }
            // Here the kind has no name.
            let nameless = Kind { kind: String::new().into(), ..(**kind).clone() };
            Err(ApiError::invalid(&nameless, "", causes))
        }
        _ => Ok(()),
    }
}

fn reviewed(request: &RequestContext, mut review: Value) -> Outcome<Response<Body>> {
    let kind = &request.resource.kind;
    let Some(fields) = review.as_object_mut() else {
        return Err(ApiError::bad_request("an object is expected"));
    };
    let status = match &*kind.kind {
        "SelfSubjectReview" => json!({"userInfo": request.user.to_value()}),
        "SelfSubjectAccessReview" | "SelfSubjectRulesReview" if request.user.is_impersonated => {
            of_impersonated(request, &kind.kind, fields.get("spec").unwrap_or(&Value::Null))
        }
        "SelfSubjectRulesReview" => rules(),
        "TokenReview" => {
            let token = fields.get("spec").and_then(|spec| spec.get("token")).and_then(Value::as_str);
            match token.and_then(|token| request.cluster.authenticator.user(token)) {
                Some(user) => json!({"authenticated": true, "user": user.to_value()}),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            }
        }
        "SelfSubjectAccessReview" => json!({"allowed": true}),
        _ => {
            let spec = fields.get("spec").unwrap_or(&Value::Null);
            json!({"allowed": authorization::reviewed(&request.cluster, spec)})
        }
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        if kind.kind == "SelfSubjectReview" {
            metadata.insert("creationTimestamp".into(), json!(format_seconds(request.now)));
        } else {
            metadata.retain(|_, value| !value.is_null());
        }
    }
    if kind.kind != "SelfSubjectReview" {
        fields.entry("spec").or_insert_with(|| json!({}));
    }
    if let Some(fields) = review.as_object_mut() {
        if kind.kind == "SelfSubjectRulesReview" {
            // The answer does not say what was asked.
            fields.insert("metadata".into(), json!({}));
            fields.insert("spec".into(), json!({}));
        }
        fields.insert("status".into(), status);
    }
    ObjectEncoder::of(request).answer_value(201, &review)
}

/// Returns what a user may do in whose name somebody else asks.
fn of_impersonated(request: &RequestContext, kind: &str, spec: &Value) -> Value {
    let (cluster, user) = (&request.cluster, &request.user);
    if kind == "SelfSubjectAccessReview" {
        return json!({"allowed": authorization::is_allowed(cluster, user, &Attributes::of_review(spec))});
    }
    let namespace = spec.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let rules = authorization::rules(cluster, user, namespace);
    let (others, resources): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({"resourceRules": resources, "nonResourceRules": others, "incomplete": false})
}

/// Returns the rules of authenticated users and, as everything is allowed, of administrators.
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

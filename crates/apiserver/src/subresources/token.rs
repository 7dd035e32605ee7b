//! Tokens of service accounts, which may be bound to an object.

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Response;
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::asked::{self, Posted};
use crate::authentication::User;
use crate::fields::{get, int, text};
use crate::kind::Kind;
use crate::object_meta;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Cause, Outcome};
use crate::store::Stored;

/// Who issues the tokens of service accounts.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Issues a token to a service account. It is good for the socket of this server until it ends.
pub(super) fn issue(request: &RequestContext, account: &str) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let kind = ("authentication.k8s.io", "v1", "TokenRequest");
    let answer = asked::read(request, kind, &options, &mut warnings).and_then(|body| {
        asked::check_namespace(request, &body)?;
        let body = with_lifetime(body);
        let resource = request.resource.spoken("token").ok_or_else(ApiError::unknown_resource)?;
        let posted = Posted { request, resource: &resource, name: Some(account), options: &options };
        let body = posted.mutated(body, &mut warnings)?;
        issue_as(&posted, account, body, &mut warnings)
    });
    Ok(response::warned(answer, &warnings))
}

fn issue_as(
    posted: &Posted<'_>,
    account: &str,
    mut body: Value,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    let request = posted.request;
    let given = object_meta::text(&body, "name");
    if !given.is_empty() && given != account {
        let message = format!("Invalid value: {given:?}: must match the service account name if specified");
        let cause = Cause { reason: "FieldValueInvalid".into(), message, field: "metadata.name".into() };
        return Err(ApiError::invalid(&posted.resource.kind, account, vec![cause]));
    }
    let account = request.find(account).ok_or_else(|| request.absent(account))?;
    complete(request, &account, &mut body)?;
    let seconds = lifetime(&posted.resource.kind, &body)?;
    posted.validate(&body, warnings)?;
    let bound = bound_object(request, account.name(), get(&body, "spec.boundObjectRef"))?;
    let expires = request.now + jiff::SignedDuration::from_secs(seconds.min(1 << 32));
    let token = token(request, &account, (&body, expires), bound)?;
    if !posted.options.dry_run {
        let (namespace, name) = (account.namespace(), account.name());
        let user = User::service_account(namespace, name, &account.uid);
        request.cluster.authenticator.issue(token.clone(), user);
    }
    if let Some(fields) = body.as_object_mut() {
        let status = json!({"token": token, "expirationTimestamp": format_seconds(expires)});
        fields.insert("status".into(), status);
    }
    ObjectEncoder::of(request).answer_value(201, &body)
}

/// Returns a request for a token with the time for which it asks.
fn with_lifetime(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        let spec = fields.entry("spec").or_insert_with(|| json!({}));
        if int(spec, "expirationSeconds").is_none()
            && let Some(spec) = spec.as_object_mut()
        {
            spec.insert("expirationSeconds".into(), json!(3_600));
        }
    }
    body
}

/// Fills in what a request for a token does not say.
fn complete(request: &RequestContext, account: &Stored, body: &mut Value) -> Outcome<()> {
    let metadata = object_meta::of_mut(body)?;
    metadata.insert("name".into(), json!(account.name()));
    metadata.insert("namespace".into(), json!(account.namespace()));
    metadata.insert("uid".into(), json!(request.cluster.random.uid()));
    metadata.insert("creationTimestamp".into(), json!(format_seconds(request.now)));
    let Some(fields) = body.as_object_mut() else {
        return Err(ApiError::bad_request("a TokenRequest is expected"));
    };
    fields.insert("status".into(), json!({"token": "", "expirationTimestamp": null}));
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        let has_audiences =
            spec.get("audiences").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !has_audiences {
            spec.insert("audiences".into(), json!([ISSUER]));
        }
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }
    Ok(())
}

/// Returns how many seconds a token is asked for.
fn lifetime(kind: &Kind, body: &Value) -> Outcome<i64> {
    let asked = int(body, "spec.expirationSeconds").unwrap_or(3_600);
    if asked >= 600 {
        return Ok(asked);
    }
    let message = format!("Invalid value: {asked}: may not specify a duration less than 10 minutes");
    let cause = Cause { reason: "FieldValueInvalid".into(), message, field: "spec.expirationSeconds".into() };
    Err(ApiError::invalid(kind, "", vec![cause]))
}

/// Returns what a token says of the object that it is bound to.
///
/// # Errors
///
/// When there is no such object, it is another one, or it runs as another account.
fn bound_object(request: &RequestContext, account: &str, bound: &Value) -> Outcome<Option<(String, Value)>> {
    if !bound.is_object() {
        return Ok(None);
    }
    let (kind, name) = (text(bound, "kind"), text(bound, "name"));
    let version = text(bound, "apiVersion");
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let plural = match (group, kind) {
        ("", "Pod") => "pods",
        ("", "Secret") => "secrets",
        ("", "Node") => "nodes",
        _ => {
            let why = format!("cannot bind token to object of type {group}/{number}, Kind={kind}");
            return Err(ApiError::bad_request(why));
        }
    };
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let resources = request.cluster.registry.resources();
    let resource = resources.find("v1", plural).ok_or_else(ApiError::unknown_resource)?;
    let namespace = request.namespace.as_deref().filter(|_| resource.kind.namespaced);
    let found = request.cluster.storage.find(&resource.table, namespace, name);
    let found = found.ok_or_else(|| ApiError::not_found(&resource.kind, name))?;
    if kind == "Pod" && text(&found.value(), "spec.serviceAccountName") != account {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        )));
    }
    let uid = text(bound, "uid");
    if !uid.is_empty() && uid != &*found.uid {
        let kind = Kind { plural: resource.kind.kind.clone(), ..(*resource.kind).clone() };
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(&kind, name, &why));
    }
    Ok(Some((kind.to_lowercase(), json!({"name": name, "uid": found.uid}))))
}

/// Returns a token that nobody signed.
fn token(
    request: &RequestContext,
    account: &Stored,
    (body, expires): (&Value, jiff::Timestamp),
    bound: Option<(String, Value)>,
) -> Outcome<String> {
    let (namespace, name) = (account.namespace(), account.name());
    let secret =
        crate::random::secret().map_err(|_| ApiError::internal("the system gave no random numbers"))?;
    let mut about = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": account.uid}});
    if let (Some(about), Some((kind, object))) = (about.as_object_mut(), bound) {
        about.insert(kind, object);
    }
    let claims = json!({
        "iss": ISSUER,
        "aud": get(body, "spec.audiences"),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "iat": request.now.as_second(),
        "nbf": request.now.as_second(),
        "exp": expires.as_second(),
        "kubernetes.io": about,
    });
    let head = URL_SAFE_NO_PAD.encode(br#"{"alg":"none","typ":"JWT"}"#);
    let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
    Ok(format!("{head}.{claims}.{}", URL_SAFE_NO_PAD.encode(secret)))
}

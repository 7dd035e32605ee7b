//! Subresources that are not stored: bindings, evictions, tokens, and those that need a node, as `log` and `exec`.

pub(crate) mod asked;
mod binding;
mod eviction;
mod outcome;
mod scale;
pub(crate) mod scale_requests;

use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Response;
use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::authentication::User;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::store::Stored;

pub(crate) use binding::bind_named;

/// Who issues the tokens of service accounts.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

pub(crate) fn answer(request: &RequestContext, name: &str, part: &str) -> Outcome<Response<Body>> {
    // What these ask for is looked at before the pod is.
    match part {
        "binding" => return binding::bind(request, name),
        "eviction" => return eviction::evict(request, name),
        _ => {}
    }
    let kind = &request.resource.kind;
    let found = || request.find(name).ok_or_else(|| request.absent(name));
    if part == "token" {
        return issue(request, name, found);
    }
    let object = found()?;
    match part {
        "log" | "exec" | "attach" | "portforward" if request.resource.is("", "pods") => {
            reach(request, &object.value(), part)
        }
        _ => {
            let message =
                format!("{part} of {kind:?} needs a node, and this server has none", kind = kind.kind);
            Err(ApiError::new(501, "NotImplemented", message))
        }
    }
}

/// Answers a request that needs a running container. None runs, but mistakes in the request are reported first.
fn reach(request: &RequestContext, pod: &Value, part: &str) -> Outcome<Response<Body>> {
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/metadata/name");
    let names = |field: &str| -> Vec<&str> {
        let list = pod.pointer(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|container| container.get("name")?.as_str()).collect()
    };
    let main = names("/spec/containers");
    let init = names("/spec/initContainers");
    let asked = request.query.get("container").unwrap_or_default();
    if part != "portforward" {
        let known = [main.clone(), init.clone(), names("/spec/ephemeralContainers")].concat();
        if asked.is_empty() && main.len() > 1 {
            let init = if init.is_empty() {
                String::new()
            } else {
                format!(" or one of the init containers: [{}]", init.join(" "))
            };
            let message = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]{init}",
                main.join(" ")
            );
            return Err(ApiError::bad_request(message));
        }
        if !asked.is_empty() && !known.contains(&asked) {
            return Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}")));
        }
    }
    match (text("/spec/nodeName").is_empty(), part) {
        // The log of what did not start is empty.
        (true, "log") => crate::read::respond(200, "text/plain", Body::empty()),
        (true, _) => Err(ApiError::bad_request(format!("pod {name} does not have a host assigned"))),
        (false, _) => {
            let message = format!("{part} of \"Pod\" needs a kubelet, and this server has none");
            Err(ApiError::new(501, "NotImplemented", message))
        }
    }
}

/// Returns the kind of what asks for tokens.
fn token_kind(request: &RequestContext) -> crate::kind::Kind {
    crate::kind::Kind {
        group: "authentication.k8s.io".into(),
        kind: "TokenRequest".into(),
        ..(*request.resource.kind).clone()
    }
}

/// Issues a token to a service account. It is good for the socket of this server until it ends.
fn issue(
    request: &RequestContext,
    account: &str,
    found: impl Fn() -> Outcome<Arc<Stored>>,
) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let kind = ("authentication.k8s.io", "v1", "TokenRequest");
    let answer = asked::read(request, kind, &options, &mut warnings)
        .and_then(|token_request| issue_as(request, account, token_request, options.dry_run, found));
    Ok(response::warned(answer, &warnings))
}

fn issue_as(
    request: &RequestContext,
    account: &str,
    mut token_request: Value,
    is_dry_run: bool,
    found: impl Fn() -> Outcome<Arc<Stored>>,
) -> Outcome<Response<Body>> {
    let given = token_request.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != account {
        let cause = crate::status::Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {given:?}: must match the service account name if specified"),
            field: "metadata.name".into(),
        };
        return Err(ApiError::invalid(&token_kind(request), account, vec![cause]));
    }
    let account = found()?;
    let asked = token_request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(3_600);
    if asked < 600 {
        let cause = crate::status::Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {asked}: may not specify a duration less than 10 minutes"),
            field: "spec.expirationSeconds".into(),
        };
        let message = format!(
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: {}",
            cause.message
        );
        return Err(ApiError::new(422, "Invalid", message).with_causes(vec![cause]));
    }
    let expires = request.now + jiff::SignedDuration::from_secs(asked.min(1 << 32));
    let (namespace, name) = (account.namespace(), account.name());
    let secret =
        crate::random::secret().map_err(|_| ApiError::internal("the system gave no random numbers"))?;
    let audience = ISSUER;
    let claims = json!({
        "iss": audience,
        "aud": token_request.pointer("/spec/audiences").cloned().unwrap_or(json!([audience])),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "iat": request.now.as_second(),
        "nbf": request.now.as_second(),
        "exp": expires.as_second(),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": account.uid}},
    });
    let head = URL_SAFE_NO_PAD.encode(br#"{"alg":"none","typ":"JWT"}"#);
    let token =
        format!("{head}.{}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()), URL_SAFE_NO_PAD.encode(secret));
    if !is_dry_run {
        request
            .cluster
            .authenticator
            .issue(token.clone(), User::service_account(namespace, name, &account.uid));
    }
    let Some(fields) = token_request.as_object_mut() else {
        return Err(ApiError::bad_request("a TokenRequest is expected"));
    };
    fields.insert("kind".into(), json!("TokenRequest"));
    fields.insert("apiVersion".into(), json!("authentication.k8s.io/v1"));
    fields.insert(
        "metadata".into(),
        json!({"name": name, "namespace": namespace, "creationTimestamp": format_seconds(request.now)}),
    );
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("audiences").or_insert_with(|| json!([audience]));
        spec.insert("expirationSeconds".into(), json!(asked));
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }
    fields.insert("status".into(), json!({"token": token, "expirationTimestamp": format_seconds(expires)}));
    ObjectEncoder::of(request).answer_value(201, &token_request)
}

//! Subresources that are not stored: bindings, evictions, tokens, and those that need a node, as `log` and `exec`.

pub(crate) mod asked;
mod binding;
mod connect;
mod eviction;
mod outcome;
pub(crate) mod scale;
pub(crate) mod scale_requests;
mod token;

use axum::body::Body;
use http::Response;
use serde_json::Value;

use crate::fields;
use crate::request::RequestContext;
use crate::response;
use crate::status::{ApiError, Outcome};

pub(crate) use binding::bind_named;
pub(crate) use token::ISSUER;

pub(crate) fn answer(request: &RequestContext, name: &str, part: &str) -> Outcome<Response<Body>> {
    // What these ask for is looked at before the pod is.
    match part {
        "binding" => return binding::bind(request, name),
        "eviction" => return eviction::evict(request, name),
        _ => {}
    }
    if part == "token" {
        return token::issue(request, name);
    }
    let mut warnings = Vec::new();
    let answer = connect::admitted(request, name, &mut warnings).and_then(|asked| {
        let object = request.find(name).ok_or_else(|| request.absent(name))?;
        reached(request, &object.value(), part, asked.as_ref())
    });
    Ok(response::warned(answer, &warnings))
}

/// Answers a request for what a node would answer.
fn reached(
    request: &RequestContext,
    object: &Value,
    part: &str,
    asked: Option<&Value>,
) -> Outcome<Response<Body>> {
    match part {
        "log" | "exec" | "attach" | "portforward" if request.resource.is("", "pods") => {
            let container = asked.map(|asked| fields::text(asked, "container"));
            let container = container.or_else(|| request.query.get("container")).unwrap_or_default();
            reach(object, part, container)
        }
        _ => {
            let message =
                format!("{part} of {:?} needs a node, and this server has none", request.resource.kind.kind);
            Err(ApiError::new(501, "NotImplemented", message))
        }
    }
}

/// Answers a request that needs a running container. None runs, but mistakes in the request are reported first.
fn reach(pod: &Value, part: &str, asked: &str) -> Outcome<Response<Body>> {
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/metadata/name");
    let names = |field: &str| -> Vec<&str> {
        let list = pod.pointer(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|container| container.get("name")?.as_str()).collect()
    };
    let main = names("/spec/containers");
    let init = names("/spec/initContainers");
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
        (true, "log") => crate::read::respond(204, "text/plain", Body::empty()),
        (true, _) => Err(ApiError::bad_request(format!("pod {name} does not have a host assigned"))),
        (false, _) => {
            let message = format!("{part} of \"Pod\" needs a kubelet, and this server has none");
            Err(ApiError::new(501, "NotImplemented", message))
        }
    }
}

//! Policies of admission: `ValidatingAdmissionPolicy` and its bindings.
//!
//! ```text
//! write ─▶ policy (rules, selectors) ─▶ binding ─▶ parameters ─▶ conditions ─▶ validations ─▶ refusal, warning, audit
//! ```

pub(crate) mod compiled;
mod params;
mod verdict;

use std::sync::Arc;

use serde_json::Value;

use self::compiled::Policy;
use self::verdict::{Decision, decisions};
use super::configured::{BINDINGS, POLICIES, items};
use super::given::Given;
use super::webhook::matching::{selects_namespace, selects_object, version};
use super::webhook::{Asked, in_version, is_converted};
use crate::fields::{get, has, list, text, texts};
use crate::object_meta;
use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};

/// A refusal: by which policy and binding, and why.
struct Denial {
    policy: String,
    binding: Option<String>,
    reason: Option<String>,
    message: String,
}

/// Refuses a write that a policy does not allow.
pub(crate) fn check(asked: Asked<'_>, warnings: &mut Vec<String>) -> Outcome<()> {
    let bindings = items(asked, BINDINGS);
    // Questions about users and their rights are answered whatever policies say.
    let group = &*asked.request.resource.kind.group;
    if bindings.is_empty() || ["authentication.k8s.io", "authorization.k8s.io"].contains(&group) {
        return Ok(());
    }
    let mut denials = Vec::new();
    for policy in items(asked, POLICIES) {
        let name = object_meta::text(&policy, "name");
        let bound: Vec<&Value> =
            bindings.iter().filter(|binding| text(binding, "spec.policyName") == name).collect();
        let spec = get(&policy, "spec");
        let Some(version) = matched(get(spec, "matchConstraints"), asked) else { continue };
        if bound.is_empty() {
            continue;
        }
        let policy = compiled::policy(spec);
        for binding in bound {
            if has(binding, "spec.matchResources")
                && matched_by_binding(get(binding, "spec.matchResources"), asked).is_none()
            {
                continue;
            }
            check_binding(asked, (name, &policy), binding, &version, warnings, &mut denials)?;
        }
    }
    match denials.into_iter().next() {
        Some(denial) => Err(refusal(asked, denial)),
        None => Ok(()),
    }
}

/// Returns in which version of the kind a policy looks at a write; `None` if it does not.
fn matched(constraints: &Value, asked: Asked<'_>) -> Option<Arc<Resource>> {
    if !selects_namespace(get(constraints, "namespaceSelector"), asked, asked.object)
        || !selects_object(get(constraints, "objectSelector"), asked, asked.object)
    {
        return None;
    }
    let is_exact = text(constraints, "matchPolicy") == "Exact";
    if version(list(constraints, "excludeResourceRules"), is_exact, asked).is_some() {
        return None;
    }
    version(list(constraints, "resourceRules"), is_exact, asked)
}

/// Like [`matched`]; a binding without rules takes everything that its policy takes.
fn matched_by_binding(constraints: &Value, asked: Asked<'_>) -> Option<Arc<Resource>> {
    if !list(constraints, "resourceRules").is_empty() {
        return matched(constraints, asked);
    }
    let all = serde_json::json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]});
    let mut wider = constraints.clone();
    if let Some(fields) = wider.as_object_mut() {
        fields.insert("resourceRules".to_owned(), Value::Array(vec![all]));
    }
    matched(&wider, asked)
}

fn check_binding(
    asked: Asked<'_>,
    (name, policy): (&str, &Policy),
    binding: &Value,
    version: &Arc<Resource>,
    warnings: &mut Vec<String>,
    denials: &mut Vec<Denial>,
) -> Outcome<()> {
    let of_binding = object_meta::text(binding, "name").to_owned();
    let denial = |reason: Option<String>, message: String| Denial {
        policy: name.to_owned(),
        binding: Some(of_binding.clone()),
        reason,
        message,
    };
    let params = match params::of(asked, policy.param_kind.as_ref(), get(binding, "spec.paramRef")) {
        Ok(params) => params,
        Err(problem) => {
            if !policy.is_ignored {
                denials.push(denial(None, format!("failed to configure binding: {problem}")));
            }
            return Ok(());
        }
    };
    let shown = |object: Option<&Value>| match object {
        Some(object) if is_converted(asked, version, object) => {
            in_version(asked, version, object.clone()).map(Some)
        }
        object => Ok(object.cloned()),
    };
    let (old, object) = (shown(asked.old)?, shown(asked.object)?);
    let mut given = Given::with(asked, &version.kind, (old.as_ref(), object.as_ref()), &policy.variables);
    for param in params {
        given.set_params(param.as_ref());
        for decision in decisions(policy, &given) {
            let Decision { reason, message, is_of_audit } = decision;
            if is_of_audit {
                denials.push(denial(None, message));
                continue;
            }
            for action in texts(binding, "spec.validationActions") {
                match action {
                    "Deny" => denials.push(denial(reason.clone(), message.clone())),
                    "Warn" => {
                        let warning = format!(
                            "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{of_binding}': {message}"
                        );
                        if !warnings.contains(&warning) {
                            warnings.push(warning);
                        }
                    }
                    _ => tracing::info!(policy = name, binding = of_binding, "a policy is broken"),
                }
            }
        }
    }
    Ok(())
}

fn refusal(asked: Asked<'_>, denial: Denial) -> ApiError {
    let Denial { policy, binding, reason, message } = denial;
    let of = binding.map_or_else(String::new, |binding| format!(" with binding '{binding}'"));
    let message = format!("ValidatingAdmissionPolicy '{policy}'{of} denied request: {message}");
    let (code, reason) = match reason.as_deref() {
        Some("Unauthorized") => (401, "Unauthorized"),
        Some("Forbidden") => (403, "Forbidden"),
        Some("RequestEntityTooLarge") => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let name = asked.name().unwrap_or("Unknown");
    let cause = Cause { reason: String::new(), message: message.clone(), field: String::new() };
    ApiError::forbidden(&asked.request.resource.kind, name, &message)
        .with_causes(vec![cause])
        .with_reason(code, reason)
}

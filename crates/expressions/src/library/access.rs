//! Questions to the authorizer: may somebody do something?

use std::sync::Arc;

use super::called::Called;
use crate::access_check::AccessCheck;
use crate::activation::Activation;
use crate::value::{Opaque, Value};

pub(super) fn call(function: &str, values: &[Value], activation: &dyn Activation) -> Called {
    let (Value::Opaque(own), rest) = values.split_first()? else { return None };
    match own {
        Opaque::Check(check) => question(function, check, rest, activation),
        Opaque::Decision(is_allowed, reason) => Some(Ok(match function {
            "allowed" => Value::Bool(*is_allowed),
            "reason" => Value::String(Arc::clone(reason)),
            "errored" => Value::Bool(false),
            "error" => Value::text(""),
            _ => return None,
        })),
        _ => None,
    }
}

fn question(function: &str, check: &AccessCheck, rest: &[Value], activation: &dyn Activation) -> Called {
    let mut check = check.clone();
    match (function, rest) {
        ("check", [Value::String(verb)]) => {
            check.verb = verb.to_string();
            let (is_allowed, reason) = activation.allows(&check);
            return Some(Ok(Value::Opaque(Opaque::Decision(is_allowed, reason.into()))));
        }
        ("serviceAccount", [Value::String(namespace), Value::String(name)]) => {
            check.account = Some((namespace.to_string(), name.to_string()));
        }
        ("path", [Value::String(path)]) => check.path = Some(path.to_string()),
        ("group", [Value::String(group)]) => check.group = group.to_string(),
        ("resource", [Value::String(resource)]) => check.resource = resource.to_string(),
        ("subresource", [Value::String(part)]) => check.subresource = part.to_string(),
        ("namespace", [Value::String(namespace)]) => check.namespace = namespace.to_string(),
        ("name", [Value::String(name)]) => check.name = name.to_string(),
        // Roles do not look at selectors.
        ("fieldSelector" | "labelSelector", [Value::String(_)]) => {}
        _ => return None,
    }
    Some(Ok(Value::Opaque(Opaque::Check(Arc::new(check)))))
}

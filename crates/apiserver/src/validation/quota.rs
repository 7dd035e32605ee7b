//! Validation of quotas: amounts, and which objects they are about.

use serde_json::{Value, json};

use super::errors::{Report, at};
use super::status::{is_quota_of_pages, quota_amounts};
use crate::fields::{get, has, list, map, text, texts};

/// What a quota can count of pods.
const PODS: [&str; 7] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "pods", "requests.cpu", "requests.memory"];

/// What a quota can count of claims.
const CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// What quotas know beside these; everything else is counted whatever the scope is.
const OTHERS: [&str; 10] = [
    "configmaps",
    "ephemeral-storage",
    "limits.ephemeral-storage",
    "replicationcontrollers",
    "requests.ephemeral-storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Scopes, and what can be counted in them. Pods of the class "best effort" request nothing.
const SCOPES: [(&str, &[&str]); 7] = [
    ("BestEffort", &["pods"]),
    ("CrossNamespacePodAffinity", &PODS),
    ("NotBestEffort", &PODS),
    ("NotTerminating", &PODS),
    ("PriorityClass", &PODS),
    ("Terminating", &PODS),
    ("VolumeAttributesClass", &CLAIMS),
];

/// Scopes that exclude each other.
const PAIRS: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

pub(super) fn quota(object: &Value, report: &mut Report) {
    quota_amounts(get(object, "spec.hard"), "spec.hard", report);
    let spec = get(object, "spec");
    let scopes: Vec<&str> = texts(spec, "scopes").collect();
    let mut invalid = |detail: &str| report.invalid("spec.scopes", get(spec, "scopes").clone(), detail);
    for scope in &scopes {
        if !SCOPES.iter().any(|(known, _)| known == scope) {
            invalid("unsupported scope");
        }
        for _ in 0..misfits(spec, scope) {
            invalid("unsupported scope applied to resource");
        }
    }
    if conflict(&scopes) {
        invalid("conflicting scopes");
    }
    if has(spec, "scopeSelector") {
        selector(spec, report);
    }
}

/// Returns how many of the amounts are of what can not be counted in a scope.
fn misfits(spec: &Value, scope: &str) -> usize {
    let Some((_, counted)) = SCOPES.iter().find(|(known, _)| *known == scope) else { return 0 };
    let is_known = |name: &str| {
        PODS.contains(&name) || CLAIMS.contains(&name) || OTHERS.contains(&name) || is_quota_of_pages(name)
    };
    map(spec, "hard").keys().filter(|name| is_known(name) && !counted.contains(&name.as_str())).count()
}

fn conflict(scopes: &[&str]) -> bool {
    PAIRS.iter().any(|(one, other)| scopes.contains(one) && scopes.contains(other))
}

fn selector(spec: &Value, report: &mut Report) {
    const PATH: &str = "spec.scopeSelector.matchExpressions";
    let expressions = list(spec, "scopeSelector.matchExpressions");
    for expression in expressions {
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !SCOPES.iter().any(|(known, _)| *known == scope) {
            report.invalid(&at(PATH, "scopeName"), scope, "unsupported scope");
        }
        for _ in 0..misfits(spec, scope) {
            report.invalid_shown(PATH, &shown(expressions), "unsupported scope applied to resource");
        }
        let takes_values = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if !takes_values && SCOPES.iter().any(|(known, _)| *known == scope) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            report.invalid(&at(PATH, "operator"), operator, detail);
        }
        let values = list(expression, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                report.required(&at(PATH, "values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                report.invalid(&at(PATH, "values"), json!(values), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => report.invalid(&at(PATH, "operator"), operator, "not a valid selector operator"),
        }
    }
    let scopes: Vec<&str> = expressions.iter().map(|expression| text(expression, "scopeName")).collect();
    if conflict(&scopes) {
        report.invalid(PATH, get(spec, "scopes").clone(), "conflicting scopes");
    }
}

/// Returns a selector as the real server shows it: with the names of its own fields.
fn shown(expressions: &[Value]) -> String {
    let shown = |expression: &Value| {
        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
            get(expression, "scopeName"),
            get(expression, "operator"),
            get(expression, "values")
        )
    };
    let expressions: Vec<String> = expressions.iter().map(shown).collect();
    format!("{{\"MatchExpressions\":[{}]}}", expressions.join(","))
}

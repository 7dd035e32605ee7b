//! Validation of what queues requests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use crate::fields::{flag, get, has, int, list, map, text, texts};

/// What a rule may be about, beside `*`.
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Subjects: the kind, the field that names one, and how the texts call it.
const SUBJECTS: [(&str, &str); 3] =
    [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];

/// The annotation with which an older version kept a zero.
const KEPT_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// The specifications of objects that every server needs, by kind and name.
static MANDATORY: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let objects = include_str!("../../data/bootstrap.jsonl").lines();
    let objects = objects.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects
        .filter(|object| {
            matches!(text(object, "kind"), "FlowSchema" | "PriorityLevelConfiguration")
                && matches!(text(object, "metadata.name"), "catch-all" | "exempt")
        })
        .collect()
});

/// Returns what the specification of an object must be, if it is one that every server needs.
fn mandatory(kind: &str, object: &Value) -> Option<&'static Value> {
    let name = text(object, "metadata.name");
    let mut all = MANDATORY.iter();
    all.find(|known| text(known, "kind") == kind && text(known, "metadata.name") == name)
        .map(|known| get(known, "spec"))
}

pub(super) fn schema(object: &Value, report: &mut Report) {
    const PRECEDENCE: &str = "spec.matchingPrecedence";
    const LARGEST: i64 = 10_000;
    let (spec, name) = (get(object, "spec"), text(object, "metadata.name"));
    let precedence = int(spec, "matchingPrecedence").unwrap_or_default();
    let wrong = [
        (precedence <= 0, "must be a positive value"),
        (precedence > LARGEST, "must not be greater than 10000"),
        (precedence == 1 && name != "exempt", "only the schema named 'exempt' may have matchingPrecedence 1"),
    ];
    for (_, detail) in wrong.iter().filter(|(wrong, _)| *wrong) {
        report.invalid(PRECEDENCE, precedence, detail);
    }
    let method = text(spec, "distinguisherMethod.type");
    let methods = ["ByNamespace", "ByUser"];
    if has(spec, "distinguisherMethod") && !methods.contains(&method) {
        let shown = format!("{{\"Type\":{method:?}}}");
        report.unsupported_shown("spec.distinguisherMethod.type", &shown, &methods);
    }
    let level = text(spec, "priorityLevelConfiguration.name");
    let place = "spec.priorityLevelConfiguration.name";
    if level.is_empty() {
        report.required(place, "must reference a priority level");
    } else {
        report.invalid_all(place, level, names::subdomain(level));
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        self::rule(rule, &item("spec.rules", index), report);
    }
    if mandatory("FlowSchema", object).is_some_and(|expected| expected != spec) {
        let detail = format!("spec of '{name}' must equal the fixed value");
        report.invalid("spec", spec.clone(), &detail);
    }
}

fn rule(rule: &Value, path: &str, report: &mut Report) {
    let subjects = at(path, "subjects");
    if list(rule, "subjects").is_empty() {
        report.required(&subjects, "subjects must contain at least one value");
    }
    for (index, subject) in list(rule, "subjects").iter().enumerate() {
        self::subject(subject, &item(&subjects, index), report);
    }
    let (resources, others) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        report.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(rule, &item(&at(path, "resourceRules"), index), report);
    }
    for (index, rule) in others.iter().enumerate() {
        path_rule(rule, &item(&at(path, "nonResourceRules"), index), report);
    }
}

fn subject(subject: &Value, path: &str, report: &mut Report) {
    let kind = text(subject, "kind");
    if !SUBJECTS.iter().any(|(known, _)| *known == kind) {
        return report.unsupported(&at(path, "kind"), kind, &["Group", "ServiceAccount", "User"]);
    }
    for (known, field) in SUBJECTS {
        let (named, place) = (get(subject, field), at(path, field));
        if known != kind {
            if !named.is_null() {
                report.forbidden(&place, &format!("{field} is forbidden when subject kind is not '{known}'"));
            }
            continue;
        }
        if named.is_null() {
            report.required(&place, &format!("{field} is required when subject kind is '{known}'"));
            continue;
        }
        let name = text(named, "name");
        if name.is_empty() {
            report.required(&at(&place, "name"), "");
        }
        if known == "ServiceAccount" {
            account(named, &place, report);
        }
    }
}

fn account(account: &Value, path: &str, report: &mut Report) {
    let (name, namespace) = (text(account, "name"), text(account, "namespace"));
    if !name.is_empty() && name != "*" {
        report.invalid_all(&at(path, "name"), name, names::subdomain(name));
    }
    if namespace.is_empty() {
        report.required(&at(path, "namespace"), "must specify namespace for service account");
    } else {
        report.invalid_all(&at(path, "namespace"), namespace, names::label(namespace));
    }
}

/// Reports a star beside others in a list of a rule.
fn star(rule: &Value, field: &str, others: &str, path: &str, report: &mut Report) {
    let given = list(rule, field);
    if given.len() > 1 && given.iter().any(|value| value == "*") {
        let detail = format!("if '*' is present, must not specify other {others}");
        report.invalid(&at(path, field), Value::Array(given.to_vec()), &detail);
    }
}

fn verbs(rule: &Value, path: &str, report: &mut Report) {
    let given = list(rule, "verbs");
    if given.is_empty() {
        report.required(&at(path, "verbs"), "verbs must contain at least one value");
    }
    star(rule, "verbs", "verbs", path, report);
    let is_known = |verb: &str| VERBS.contains(&verb);
    if !texts(rule, "verbs").any(|verb| verb == "*") && !texts(rule, "verbs").all(is_known) {
        report.unsupported(&at(path, "verbs"), Value::Array(given.to_vec()), &VERBS);
    }
}

fn resource_rule(rule: &Value, path: &str, report: &mut Report) {
    verbs(rule, path, report);
    for (field, one, others) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        if list(rule, field).is_empty() {
            report.required(&at(path, field), &format!("resource rules must supply at least one {one}"));
        }
        star(rule, field, others, path, report);
    }
    let place = at(path, "namespaces");
    if list(rule, "namespaces").is_empty() && !flag(rule, "clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        report.required(&place, detail);
    }
    star(rule, "namespaces", "namespaces", path, report);
    if texts(rule, "namespaces").any(|name| name == "*") {
        return;
    }
    for (index, name) in texts(rule, "namespaces").enumerate() {
        for wrong in names::label(name) {
            let detail = format!("each member of this list must be '*' or a DNS-1123 label; {wrong}");
            report.invalid(&item(&place, index), name, &detail);
        }
    }
}

fn path_rule(rule: &Value, path: &str, report: &mut Report) {
    const FIELD: &str = "nonResourceURLs";
    verbs(rule, path, report);
    if list(rule, FIELD).is_empty() {
        report.required(&at(path, FIELD), "nonResourceURLs must contain at least one value");
    }
    star(rule, FIELD, "non-resource URLs", path, report);
    if texts(rule, FIELD).any(|url| url == "*") {
        return;
    }
    for (index, url) in texts(rule, FIELD).enumerate() {
        if let Some(wrong) = url_error(url) {
            report.invalid(&item(&at(path, FIELD), index), url, wrong);
        }
    }
}

/// Returns what is wrong with the path of a rule: a star may only be its last step.
fn url_error(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    let rules = [
        (url.is_empty(), "must not be empty"),
        (!url.starts_with('/'), "must start with slash"),
        (url.contains(' '), "must not contain white-space"),
        (url.contains("//"), "must not contain double slash"),
        (stars > 1 || (stars == 1 && !url.ends_with("/*")), "wildcard can only do suffix matching"),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map(|(_, text)| text)
}

pub(super) fn level(object: &Value, report: &mut Report) {
    let (spec, name) = (get(object, "spec"), text(object, "metadata.name"));
    if map(object, "metadata.annotations").contains_key(KEPT_ZERO) {
        report.forbidden("metadata.annotations", &format!("annotation '{KEPT_ZERO}' is forbidden"));
    }
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        report.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (limited, exempt) = (get(spec, "limited"), get(spec, "exempt"));
    match kind {
        "Exempt" => {
            if !limited.is_null() {
                report.forbidden("spec.limited", "must be nil if the type is not Limited");
            }
            shares(exempt, "spec.exempt", report);
        }
        "Limited" => {
            if !exempt.is_null() {
                report.forbidden("spec.exempt", "must be nil if the type is Limited");
            }
            if limited.is_null() {
                report.required("spec.limited", "must not be empty when type is Limited");
            } else {
                self::limited(limited, "spec.limited", report);
            }
        }
        other => report.unsupported("spec.type", other, &["Exempt", "Limited"]),
    }
    if let Some(expected) = mandatory("PriorityLevelConfiguration", object) {
        fixed(spec, expected, name, report);
    }
}

/// Checks that a level that every server needs is as it must be; how much is left to those who are exempt may change.
fn fixed(spec: &Value, expected: &Value, name: &str, report: &mut Report) {
    let but = if name == "exempt" { " except the 'spec.exempt' field" } else { "" };
    let part = |spec: &Value| {
        let mut spec = spec.clone();
        if name == "exempt"
            && let Some(fields) = spec.as_object_mut()
        {
            fields.remove("exempt");
        }
        spec
    };
    if part(spec) != part(expected) {
        report.invalid("spec", spec.clone(), &format!("spec of '{name}'{but} must equal the fixed value"));
    }
}

/// Checks how much of the server a level has, and what it lends.
fn shares(level: &Value, path: &str, report: &mut Report) {
    if let Some(shares) = int(level, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        report.invalid(&at(path, "nominalConcurrencyShares"), shares, "must be a non-negative integer");
    }
    if let Some(percent) = int(level, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        report.invalid(&at(path, "lendablePercent"), percent, "must be between 0 and 100, inclusive");
    }
}

fn limited(level: &Value, path: &str, report: &mut Report) {
    shares(level, path, report);
    if let Some(limit) = int(level, "borrowingLimitPercent").filter(|limit| *limit < 0) {
        let detail = "if specified, must be a non-negative integer";
        report.invalid(&at(path, "borrowingLimitPercent"), limit, detail);
    }
    let (response, place) = (get(level, "limitResponse"), at(path, "limitResponse"));
    let (queuing, queues) = (get(response, "queuing"), at(&place, "queuing"));
    match (text(response, "type"), queuing.is_null()) {
        ("Reject", true) => {}
        ("Reject", false) => {
            report.forbidden(&queues, "must be nil if limited.limitResponse.type is not Limited");
        }
        ("Queue", true) => {
            report.required(&queues, "must not be empty if limited.limitResponse.type is Limited");
        }
        ("Queue", false) => self::queuing(queuing, &queues, report),
        (other, _) => report.unsupported(&at(&place, "type"), other, &["Queue", "Reject"]),
    }
}

fn queuing(queuing: &Value, path: &str, report: &mut Report) {
    const MOST_QUEUES: i64 = 10_000_000;
    const MOST_BITS: f64 = 60.0;
    let number = |field: &str| int(queuing, field).unwrap_or_default();
    let (queues, hand) = (number("queues"), number("handSize"));
    for field in ["queueLengthLimit", "queues", "handSize"] {
        if number(field) <= 0 {
            report.invalid(&at(path, field), number(field), "must be positive");
        }
    }
    if queues > MOST_QUEUES {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        report.invalid(&at(path, "queues"), queues, &detail);
    }
    let place = at(path, "handSize");
    if hand > queues && hand > 0 {
        report.invalid(&place, hand, &format!("should not be greater than queues ({queues})"));
    } else if hand > 0 && bits(queues, hand) > MOST_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MOST_BITS}"
        );
        report.invalid(&place, hand, &detail);
    }
}

/// Returns how many bits it takes to say which queues are in a hand.
#[expect(clippy::cast_precision_loss, reason = "numbers of 32 bits are exact")]
fn bits(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

/// Checks what a controller says of a schema or a level.
pub(super) fn status(status: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = at(&item("status.conditions", index), "type");
        let kind = text(condition, "type");
        if !seen.insert(kind) {
            report.duplicate(&path, kind);
        }
        if kind.is_empty() {
            report.required(&path, "");
        }
    }
}

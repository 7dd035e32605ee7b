//! Validation of limit ranges: what containers, pods and claims may ask for.

use std::collections::{BTreeMap, BTreeSet};

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::container;
use super::errors::{Report, at, item, key};
use crate::fields::{list, map, text};

pub(super) fn limit_range(object: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, limit) in list(object, "spec.limits").iter().enumerate() {
        let path = item("spec.limits", index);
        let kind = text(limit, "type");
        kind_name(kind, &at(&path, "type"), report);
        if !seen.insert(kind) {
            report.duplicate(&at(&path, "type"), kind);
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !map(limit, field).is_empty() {
                    report.forbidden(&at(&path, field), "may not be specified when `type` is 'Pod'");
                }
            }
        }
        if kind == "PersistentVolumeClaim"
            && ["min", "max"].iter().all(|field| !map(limit, field).contains_key("storage"))
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            report.required(&at(&path, "limits"), detail);
        }
        amounts(limit, kind, &path, report);
    }
}

fn kind_name(kind: &str, path: &str, report: &mut Report) {
    let wrong = names::qualified(kind);
    if !wrong.is_empty() {
        report.invalid_all(path, kind, wrong);
    } else if !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim") {
        report.invalid(path, kind, "must be a standard limit type or fully qualified");
    }
}

const FIELDS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// Checks that the amounts of each resource fit each other.
fn amounts(limit: &Value, kind: &str, path: &str, report: &mut Report) {
    let mut by_resource: BTreeMap<&str, BTreeMap<&str, Quantity>> = BTreeMap::new();
    for field in FIELDS {
        if kind == "Pod" && matches!(field, "default" | "defaultRequest") {
            continue;
        }
        for (name, amount) in map(limit, field) {
            let place = key(&at(path, field), name);
            if matches!(kind, "Pod" | "Container") {
                container::resource_name(name, &place, report);
            } else {
                report.invalid_all(&place, name, names::qualified(name));
            }
            if let Some(amount) = amount.as_str().and_then(|text| text.parse().ok()) {
                by_resource.entry(name).or_default().insert(field, amount);
            }
        }
    }
    for (name, given) in by_resource {
        compare(name, &given, path, report);
    }
}

fn compare(name: &str, given: &BTreeMap<&str, Quantity>, path: &str, report: &mut Report) {
    let place = |field: &str| key(&at(path, field), name);
    // What must not be greater than what, whose field tells it, whether it shows the greater one, and their names.
    let rules = [
        ("min", "max", "min", true, ("min", "max")),
        ("min", "defaultRequest", "defaultRequest", false, ("min", "default request")),
        ("defaultRequest", "max", "defaultRequest", true, ("default request", "max")),
        ("defaultRequest", "default", "defaultRequest", true, ("default request", "default limit")),
        ("min", "default", "default", true, ("min", "default")),
        ("default", "max", "default", false, ("default", "max")),
    ];
    for (small, large, field, shows_small, (one, other)) in rules {
        let (Some(small), Some(large)) = (given.get(small), given.get(large)) else { continue };
        if small.compare(*large).is_gt() {
            let shown = if shows_small { small } else { large };
            let detail = format!("{one} value {small} is greater than {other} value {large}");
            report.invalid(&place(field), shown.to_string(), &detail);
        }
    }
    let Some(ratio) = given.get("maxLimitRequestRatio") else { return };
    let path = place("maxLimitRequestRatio");
    if ratio.nanos() < 1_000_000_000 {
        report.invalid(&path, ratio.to_string(), &format!("ratio {ratio} is less than 1"));
    }
    if let (Some(least), Some(most)) = (given.get("min"), given.get("max")) {
        let wanted = ratio.nanos().saturating_mul(least.nanos());
        if wanted > most.nanos().saturating_mul(1_000_000_000) {
            let millionths = most.nanos().saturating_mul(1_000_000).checked_div(least.nanos()).unwrap_or(0);
            let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
            let detail = format!("ratio {ratio} is greater than max/min = {whole}.{rest:06}");
            report.invalid(&path, ratio.to_string(), &detail);
        }
    }
}

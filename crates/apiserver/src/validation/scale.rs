//! Validation of autoscalers and disruption budgets.

use objects::names::{amount_or_percent, path_segment};
use serde_json::Value;

use super::errors::{Report, at, item};
use super::metadata;
use super::workload::over_all;
use crate::fields::{get, has, int, list, text};

pub(super) fn autoscaler(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let (least, most) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or_default());
    if let Some(least) = least.filter(|least| *least < 1) {
        report.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    if most < 1 {
        report.invalid("spec.maxReplicas", most, "must be greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        report.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    target(get(spec, "scaleTargetRef"), report);
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(metric, &item("spec.metrics", index), report);
    }
    let external = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !list(spec, "metrics").iter().any(external) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        report.forbidden("spec.metrics", detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = get(get(spec, "behavior"), direction);
        if !rules.is_null() {
            scaling(rules, &format!("spec.behavior.{direction}"), report);
        }
    }
}

fn target(target: &Value, report: &mut Report) {
    const PATH: &str = "spec.scaleTargetRef";
    for field in ["kind", "name"] {
        match text(target, field) {
            "" => report.required(&at(PATH, field), ""),
            name => report.invalid_all(&at(PATH, field), name, path_segment(name)),
        }
    }
    let version = text(target, "apiVersion");
    let core = text(target, "kind") == "ReplicationController" && version == "v1";
    if !version.contains('/') && !core {
        report.invalid(&at(PATH, "apiVersion"), version, "apiVersion must specify API group");
    }
}

const KINDS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn metric(metric: &Value, path: &str, report: &mut Report) {
    let kind = text(metric, "type");
    let place = at(path, "type");
    if kind.is_empty() {
        report.required(&place, "must specify a metric source type");
    }
    let Some((_, field)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let kinds = KINDS.map(|(name, _)| name);
        report.unsupported(&place, kind, &kinds);
        report.unsupported(&place, kind, &kinds);
        return;
    };
    let source = get(metric, field);
    let path = at(path, field);
    if source.is_null() {
        let detail = "must populate information for the given metric source";
        return report.required(&path, detail);
    }
    if matches!(kind, "Resource" | "ContainerResource") {
        if text(source, "name").is_empty() {
            report.required(&at(&path, "name"), "must specify a resource name");
        }
        metric_target(source, &path, report);
        resource_target(source, &path, report);
        return;
    }
    if text(source, "metric.name").is_empty() {
        report.required(&at(&path, "metric.name"), "must specify a metric name");
    }
    metric_target(source, &path, report);
    if kind == "Pods" && !has(source, "target.averageValue") {
        report.required(&at(&path, "target.averageValue"), "must specify a positive target averageValue");
    }
}

fn metric_target(source: &Value, path: &str, report: &mut Report) {
    let kind = text(source, "target.type");
    let place = at(path, "target.type");
    if kind.is_empty() {
        report.required(&place, "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        report.invalid(&place, kind, detail);
    }
    if let Some(amount) = int(source, "target.averageUtilization").filter(|n| *n < 1) {
        report.invalid(&at(path, "target.averageUtilization"), amount, "must be greater than 0");
    }
}

fn resource_target(source: &Value, path: &str, report: &mut Report) {
    let (share, value) = (has(source, "target.averageUtilization"), has(source, "target.averageValue"));
    let place = at(path, "target.averageUtilization");
    if !share && !value {
        report.required(&place, "must set either a target raw value or a target utilization");
    } else if share && value {
        let place = at(path, "target.averageValue");
        report.forbidden(&place, "may not set both a target raw value and a target utilization");
    }
}

fn scaling(rules: &Value, path: &str, report: &mut Report) {
    if let Some(window) = int(rules, "stabilizationWindowSeconds") {
        let place = at(path, "stabilizationWindowSeconds");
        if window < 0 {
            report.invalid(&place, window, "must be greater than or equal to zero");
        } else if window > 3600 {
            report.invalid(&place, window, "must be less than or equal to 3600");
        }
    }
    let policy = text(rules, "selectPolicy");
    report.one_of_or_empty(&at(path, "selectPolicy"), policy, &["Disabled", "Max", "Min"]);
    if list(rules, "policies").is_empty() {
        report.required(&at(path, "policies"), "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let path = item(&at(path, "policies"), index);
        let kind = text(policy, "type");
        report.one_of(&at(&path, "type"), kind, &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let number = int(policy, field).unwrap_or_default();
            if number <= 0 {
                report.invalid(&at(&path, field), number, "must be greater than zero");
            }
        }
        if let Some(period) = int(policy, "periodSeconds").filter(|period| *period > 1800) {
            report.invalid(&at(&path, "periodSeconds"), period, "must be less than or equal to 1800");
        }
    }
}

pub(super) fn budget(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            get(spec, "minAvailable"),
            get(spec, "selector"),
            get(spec, "maxUnavailable"),
            get(spec, "unhealthyPodEvictionPolicy"),
        );
        report.invalid_shown("spec", &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let value = get(spec, field);
        if value.is_null() {
            continue;
        }
        for detail in amount_or_percent(value) {
            report.invalid(&at("spec", field), value.clone(), &detail);
        }
        over_all(value, &at("spec", field), report);
    }
    metadata::selector(get(spec, "selector"), "spec.selector", report);
    let policy = text(spec, "unhealthyPodEvictionPolicy");
    if !policy.is_empty() && !matches!(policy, "AlwaysAllow" | "IfHealthyBudget") {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        report.unsupported("spec.unhealthyPodEvictionPolicy", policy, &policies);
    }
}

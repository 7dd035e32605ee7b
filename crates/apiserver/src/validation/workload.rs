//! Validation of what runs pods.

use objects::names::{self, amount_or_percent, percent};
use serde_json::{Map, Value};

use super::container::not_negative;
use super::errors::{Report, at};
use super::{metadata, pod, storage};
use crate::fields::{get, has, int, list, map, text};

/// What is particular about a kind of workload.
pub(super) struct Rules {
    /// How the text about an empty selector calls the kind.
    empty_selector: &'static str,
    /// How the text about deadlines calls the kind.
    deadline: &'static str,
    /// What is added to a selector that is broken.
    broken_selector: Option<&'static str>,
    needs_selector: bool,
}

pub(super) const DEPLOYMENT: Rules = Rules {
    empty_selector: "deployment",
    deadline: "ReplicaSet",
    broken_selector: Some("invalid label selector"),
    needs_selector: true,
};
pub(super) const DAEMON_SET: Rules = Rules {
    empty_selector: "daemonset",
    deadline: "DaemonSet",
    broken_selector: None,
    needs_selector: false,
};
pub(super) const STATEFUL_SET: Rules = Rules {
    empty_selector: "statefulset",
    deadline: "StatefulSet",
    broken_selector: Some(""),
    needs_selector: true,
};

/// Checks selector, template and the numbers that all workloads have.
pub(super) fn workload(object: &Value, rules: &Rules, report: &mut Report) {
    let spec = get(object, "spec");
    let selector = get(spec, "selector");
    if rules.broken_selector != Some("") {
        numbers(spec, report);
        not_negative(spec, "revisionHistoryLimit", "spec", report);
    }
    let before = report.errors.len();
    if selector.is_null() {
        if rules.needs_selector {
            report.required("spec.selector", "");
        }
    } else {
        metadata::selector(selector, "spec.selector", report);
        if selector.as_object().is_some_and(Map::is_empty) {
            let detail = format!("empty selector is invalid for {}", rules.empty_selector);
            report.invalid("spec.selector", selector.clone(), &detail);
        }
    }
    let broken = report.errors.len() > before && !is_empty(selector);
    if broken && !selector.is_null() {
        if let Some(detail) = rules.broken_selector {
            report.invalid("spec.selector", selector.clone(), detail);
        }
    } else if !is_empty(selector) {
        matching_labels(object, selector, report);
    }
    template(spec, rules, report);
    if rules.broken_selector == Some("") {
        numbers(spec, report);
        if int(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
            let detail = "a negative value retains all historical revisions; a value >= 0 is recommended";
            report.warn("spec.revisionHistoryLimit", Some(detail.to_owned()));
        }
    }
}

fn is_empty(selector: &Value) -> bool {
    selector.as_object().is_some_and(Map::is_empty)
}

fn numbers(spec: &Value, report: &mut Report) {
    for field in ["replicas", "minReadySeconds"] {
        not_negative(spec, field, "spec", report);
    }
}

pub(super) fn matching_labels(object: &Value, selector: &Value, report: &mut Report) {
    let labels = get(object, "spec.template.metadata.labels");
    if !metadata::matches(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        report.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
}

fn template(spec: &Value, rules: &Rules, report: &mut Report) {
    const PATH: &str = "spec.template";
    let inner = get(spec, "template");
    let labels = at(PATH, "metadata.labels");
    metadata::labels(get(inner, "metadata.labels"), &labels, report);
    pod::spec_with(get(inner, "spec"), &at(PATH, "spec"), claimed(spec), report);
    let policy = text(spec, "template.spec.restartPolicy");
    if policy != "Always" {
        report.unsupported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
    if has(spec, "template.spec.activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {} is not Supported", rules.deadline);
        report.forbidden("spec.template.spec.activeDeadlineSeconds", &detail);
    }
}

pub(super) fn pod_template(template: &Value, path: &str, report: &mut Report) {
    let labels = at(path, "metadata.labels");
    metadata::labels(get(template, "metadata.labels"), &labels, report);
    pod::spec(get(template, "spec"), &at(path, "spec"), report);
}

pub(super) fn replication_controller(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    not_negative(spec, "minReadySeconds", "spec", report);
    if map(spec, "selector").is_empty() {
        report.required("spec.selector", "");
    }
    not_negative(spec, "replicas", "spec", report);
    if !has(spec, "template") {
        return report.required("spec.template", "");
    }
    let labels = get(spec, "template.metadata.labels");
    if map(spec, "selector").iter().any(|(key, value)| labels.get(key) != Some(value)) {
        let detail = "`selector` does not match template `labels`";
        report.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
    pod_template(get(spec, "template"), "spec.template", report);
    let policy = text(spec, "template.spec.restartPolicy");
    if policy != "Always" {
        report.unsupported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

/// Checks a template that stands alone.
pub(super) fn template_object(object: &Value, report: &mut Report) {
    let template = get(object, "template");
    metadata::labels(get(template, "metadata.labels"), "template.labels", report);
    pod::spec(get(template, "spec"), "template.spec", report);
}

/// Returns the names of the volumes that a stateful set makes for each pod.
fn claimed(spec: &Value) -> impl Iterator<Item = &str> {
    list(spec, "volumeClaimTemplates").iter().map(|claim| text(claim, "metadata.name"))
}

pub(super) fn deployment(object: &Value, report: &mut Report) {
    const UPDATE: &str = "spec.strategy.rollingUpdate";
    workload(object, &DEPLOYMENT, report);
    let strategy = get(object, "spec.strategy");
    match text(strategy, "type") {
        "Recreate" if has(strategy, "rollingUpdate") => {
            report.forbidden(UPDATE, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let update = get(strategy, "rollingUpdate");
            let (unavailable, surge) = rolling_amounts(update, UPDATE, report);
            if is_zero(unavailable) && is_zero(surge) {
                let detail = "may not be 0 when `maxSurge` is 0";
                report.invalid(&at(UPDATE, "maxUnavailable"), unavailable.clone(), detail);
            }
            over_all(unavailable, &at(UPDATE, "maxUnavailable"), report);
        }
        other => {
            let shown =
                format!("{{\"Type\":{other:?},\"RollingUpdate\":{}}}", get(strategy, "rollingUpdate"));
            report.unsupported_shown("spec.strategy", &shown, &["Recreate", "RollingUpdate"]);
        }
    }
    let deadline = int(object, "spec.progressDeadlineSeconds");
    if let Some(deadline) = deadline {
        if deadline < 0 {
            report.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than or equal to 0");
        }
        if deadline <= int(object, "spec.minReadySeconds").unwrap_or_default() {
            let detail = "must be greater than minReadySeconds";
            report.invalid("spec.progressDeadlineSeconds", deadline, detail);
        }
    }
}

/// Checks how many pods an update may leave out or add, and returns both amounts.
fn rolling_amounts<'a>(update: &'a Value, path: &str, report: &mut Report) -> (&'a Value, &'a Value) {
    let amount = |field| (field, get(update, field));
    let (unavailable, surge) = (amount("maxUnavailable"), amount("maxSurge"));
    for (field, value) in [unavailable, surge] {
        for detail in amount_or_percent(value) {
            report.invalid(&at(path, field), value.clone(), &detail);
        }
    }
    (unavailable.1, surge.1)
}

fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || value.as_str().and_then(percent) == Some(0)
}

/// Reports a percentage above 100.
pub(super) fn over_all(value: &Value, path: &str, report: &mut Report) {
    if value.as_str().and_then(percent).is_some_and(|percent| percent > 100) {
        report.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

pub(super) fn daemon_set(object: &Value, report: &mut Report) {
    const UPDATE: &str = "spec.updateStrategy.rollingUpdate";
    workload(object, &DAEMON_SET, report);
    let strategy = get(object, "spec.updateStrategy");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let update = get(strategy, "rollingUpdate");
            let (unavailable, surge) = rolling_amounts(update, UPDATE, report);
            match (is_zero(unavailable), is_zero(surge)) {
                (true, true) => {
                    report.required(&at(UPDATE, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
                }
                (false, false) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    report.invalid(&at(UPDATE, "maxSurge"), surge.clone(), detail);
                }
                (_, _) => {}
            }
        }
        other => {
            let shown =
                format!("{{\"Type\":{other:?},\"RollingUpdate\":{}}}", get(strategy, "rollingUpdate"));
            report.unsupported_shown("spec.updateStrategy", &shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

pub(super) fn stateful_set(object: &Value, report: &mut Report) {
    const UPDATE: &str = "spec.updateStrategy.rollingUpdate";
    let spec = get(object, "spec");
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        report.invalid("spec.podManagementPolicy", policy, detail);
    }
    let strategy = get(spec, "updateStrategy");
    let update = get(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "RollingUpdate" => not_negative(update, "partition", UPDATE, report),
        "OnDelete" if !update.is_null() => {
            let (partition, unavailable) = (get(update, "partition"), get(update, "maxUnavailable"));
            let shown = format!("{{\"Partition\":{partition},\"MaxUnavailable\":{unavailable}}}");
            report.invalid_shown(UPDATE, &shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        other => {
            let shown = format!("{{\"Type\":{other:?},\"RollingUpdate\":{update}}}");
            report.invalid_shown("spec.updateStrategy", &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
    for field in ["whenDeleted", "whenScaled"] {
        let place = format!("persistentVolumeClaimRetentionPolicy.{field}");
        let policy = text(spec, &place);
        report.one_of(&at("spec", &place), policy, &["Retain", "Delete"]);
    }
    not_negative(get(spec, "ordinals"), "start", "spec.ordinals", report);
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        report.invalid_all("spec.serviceName", service, names::label(service));
    }
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        storage::claim_spec(get(claim, "spec"), &format!("spec.volumeClaimTemplates[{index}].spec"), report);
    }
    workload(object, &STATEFUL_SET, report);
    let name = text(object, "metadata.name");
    if report.errors.iter().all(|error| error.field != "metadata.name") {
        report.invalid_all("metadata.name", name, names::label(name));
    }
}

/// Checks a revision of what a controller makes.
pub(super) fn revision(object: &Value, report: &mut Report) {
    match get(object, "data") {
        Value::Null => report.required("data", "data is mandatory"),
        Value::Object(_) => {}
        _ => report.required("data", "data must be a valid JSON object"),
    }
    revision_number(object, report);
}

pub(super) fn revision_number(object: &Value, report: &mut Report) {
    if let Some(number) = int(object, "revision").filter(|number| *number < 0) {
        report.invalid("revision", number, "must be greater than or equal to 0");
    }
}

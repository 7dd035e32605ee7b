//! The cells of what runs pods.

use jiff::Timestamp;
use objects::time;
use serde_json::Value;

use super::age::{human_duration, since};
use super::text::{Cell, has_condition, joined, labels_at, number, selector};
use crate::fields::{get, list, text};

pub(super) fn find(name: &str) -> Option<Cell> {
    Some(match name {
        "containers" => |o, _| of_containers(o, "spec.template.spec.containers", "name"),
        "images" => |o, _| of_containers(o, "spec.template.spec.containers", "image"),
        "cron_containers" => {
            |o, _| of_containers(o, "spec.jobTemplate.spec.template.spec.containers", "name")
        }
        "cron_images" => |o, _| of_containers(o, "spec.jobTemplate.spec.template.spec.containers", "image"),
        "cron_selector" => |o, _| selector_at(o, "spec.jobTemplate.spec.selector"),
        "job_completions" => job_completions,
        "job_duration" => job_duration,
        "job_status" => job_status,
        "label_selector" => |o, _| selector_at(o, "spec.selector"),
        "last_schedule" => last_schedule,
        "map_selector" => |o, _| labels_at(o, "spec.selector"),
        "node_selector" => |o, _| labels_at(o, "spec.template.spec.nodeSelector"),
        "policy_selector" => |o, _| selector_at(o, "spec.podSelector"),
        "ready_replicas" => |o, _| {
            Value::from(format!("{}/{}", number(o, "status.readyReplicas"), number(o, "spec.replicas")))
        },
        "revision_controller" => revision_controller,
        "scale_metrics" => scale_metrics,
        "scale_target" => |o, _| {
            let target = get(o, "spec.scaleTargetRef");
            Value::from(format!("{}/{}", text(target, "kind"), text(target, "name")))
        },
        "suspend" => suspend,
        "template_containers" => |o, _| of_containers(o, "template.spec.containers", "name"),
        "template_images" => |o, _| of_containers(o, "template.spec.containers", "image"),
        "template_labels" => |o, _| labels_at(o, "template.metadata.labels"),
        _ => return None,
    })
}

fn of_containers(object: &Value, path: &str, field: &str) -> Value {
    let containers = list(object, path).iter();
    Value::from(joined(containers.map(|container| text(container, field)), ",", ""))
}

fn selector_at(object: &Value, path: &str) -> Value {
    let line = selector(get(object, path));
    Value::from(if line.is_empty() { "<none>".to_owned() } else { line })
}

fn job_completions(job: &Value, _: Timestamp) -> Value {
    let done = number(job, "status.succeeded");
    let parallelism = number(job, "spec.parallelism");
    Value::from(match get(job, "spec.completions").as_i64() {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        None => format!("{done}/1"),
    })
}

fn job_duration(job: &Value, now: Timestamp) -> Value {
    let Some(start) = time::parse(text(job, "status.startTime")) else {
        return Value::from("");
    };
    let end = time::parse(text(job, "status.completionTime")).unwrap_or(now);
    Value::from(human_duration(end.as_second() - start.as_second()))
}

fn job_status(job: &Value, _: Timestamp) -> Value {
    let deleted = !get(job, "metadata.deletionTimestamp").is_null();
    let has = |kind| has_condition(job, kind);
    Value::from(match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if deleted => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    })
}

fn last_schedule(job: &Value, now: Timestamp) -> Value {
    match get(job, "status.lastScheduleTime").as_str() {
        Some(last) => Value::from(since(Some(last), now)),
        None => Value::from("<none>"),
    }
}

fn suspend(job: &Value, _: Timestamp) -> Value {
    Value::from(match get(job, "spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    })
}

fn revision_controller(revision: &Value, _: Timestamp) -> Value {
    let owners = list(revision, "metadata.ownerReferences");
    let owner = owners.iter().find(|owner| get(owner, "controller") == &Value::Bool(true));
    Value::from(owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, "apiVersion").split_once('/').map_or("", |(group, _)| group);
            let kind = text(owner, "kind").to_lowercase();
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(owner, "name"))
        },
    ))
}

fn scale_metrics(scaler: &Value, _: Timestamp) -> Value {
    let specs = list(scaler, "spec.metrics");
    if let Some(target) = get(scaler, "spec.targetCPUUtilizationPercentage").as_i64() {
        let current = get(scaler, "status.currentCPUUtilizationPercentage").as_i64();
        let current = current.map_or_else(|| "<unknown>".to_owned(), |current| format!("{current}%"));
        return Value::from(format!("cpu: {current}/{target}%"));
    }
    if specs.is_empty() {
        return Value::from("<none>");
    }
    let statuses = list(scaler, "status.currentMetrics");
    let texts: Vec<String> =
        specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index))).collect();
    let shown: Vec<&str> = texts.iter().take(2).map(String::as_str).collect();
    Value::from(match texts.len() {
        0..=2 => shown.join(", "),
        many => format!("{} + {} more...", shown.join(", "), many - 2),
    })
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (field, named) = match text(spec, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let spec = get(spec, field);
    let current = status.map_or(&Value::Null, |status| get(status, field));
    let current = |path: &str| match get(current, path) {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("{number}%"),
        _ => "<unknown>".to_owned(),
    };
    let average = text(spec, "target.averageValue");
    if named {
        let name = text(spec, "name");
        if !average.is_empty() {
            return format!("{name}: {}/{average}", current("current.averageValue"));
        }
        let target = get(spec, "target.averageUtilization").as_i64();
        let target = target.map_or_else(|| "<auto>".to_owned(), |target| format!("{target}%"));
        return format!("{name}: {}/{target}", current("current.averageUtilization"));
    }
    match (average, field) {
        ("", _) => format!("{}/{}", current("current.value"), text(spec, "target.value")),
        (_, "pods") => format!("{}/{average}", current("current.averageValue")),
        (_, _) => format!("{}/{average} (avg)", current("current.averageValue")),
    }
}

//! Validation of what a pod asks for as a whole, beside what its containers ask for.

use std::cmp::Ordering;

use objects::names;
use serde_json::Value;

use super::container::{is_standard, requirements};
use super::errors::{Report, at, item, key};
use crate::fields::{get, has, list, text};
use crate::pod_resources::{amounts, is_of_pods, is_pages, of_containers};

pub(super) fn pod_resources(spec: &Value, path: &str, report: &mut Report) {
    let resources = get(spec, "resources");
    let path = at(path, "resources");
    if resources.is_null() {
        return;
    }
    if text(spec, "os.name") == "windows" {
        return report.forbidden(&path, "may not be set for a windows pod");
    }
    if has(resources, "claims") {
        let detail = "claims may not be set for Resources at pod-level";
        report.forbidden(&at(&path, "claims"), detail);
    }
    requirements(resources, &path, resource_name, report);
    let (requests, limits) = (amounts(resources, "requests"), amounts(resources, "limits"));
    for (name, sum) in of_containers(spec, "requests") {
        if let Some(request) =
            requests.get(&name).filter(|request| sum.compare(**request) == Ordering::Greater)
        {
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            report.invalid(&key(&at(&path, "requests"), &name), request.to_string(), &detail);
        }
    }
    for (name, sum) in of_containers(spec, "limits").into_iter().filter(|(name, _)| is_pages(name)) {
        if let Some(limit) = limits.get(&name).filter(|limit| sum.compare(**limit) == Ordering::Greater) {
            let detail = format!("must be greater than or equal to aggregate container limits of {sum}");
            report.invalid(&key(&at(&path, "limits"), &name), limit.to_string(), &detail);
        }
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, amount) in amounts(container, "resources.limits") {
            if let Some(limit) =
                limits.get(&name).filter(|limit| amount.compare(**limit) == Ordering::Greater)
            {
                let place = at(&key(&item(&at(&path, "containers"), index), &name), "limits");
                let detail = format!("must be less than or equal to pod limits of {limit}");
                report.invalid(&place, amount.to_string(), &detail);
            }
        }
    }
}

fn resource_name(name: &str, path: &str, report: &mut Report) {
    let wrong = names::qualified(name);
    if !wrong.is_empty() {
        report.invalid_all(path, name, wrong);
    } else if !name.contains('/') && !is_standard(name) {
        report.invalid(path, name, "must be a standard resource type or fully qualified");
    } else if !is_of_pods(name) {
        report.unsupported(path, name, &["cpu", "hugepages-", "memory"]);
    }
}

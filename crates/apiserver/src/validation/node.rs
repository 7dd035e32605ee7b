//! Validation of nodes, and of what runs pods and mounts volumes on them.

use std::collections::BTreeSet;

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::volume::driver_name;
use super::{metadata, pod};
use crate::fields::{get, int, list, map, text, texts};

/// Checks the specification of a node.
pub(super) fn node(object: &Value, report: &mut Report) {
    const PATH: &str = "spec.podCIDRs";
    taints(object, report);
    let mut families = Vec::new();
    for (index, network) in texts(object, PATH).enumerate() {
        match names::network(network) {
            None => report.invalid(&item(PATH, index), network, names::CIDR),
            Some((address, _)) => families.push(address.is_ipv4()),
        }
    }
    let distinct = families.len() < 2 || (families.len() == 2 && families.first() != families.last());
    if !distinct {
        let shown = Value::Array(list(object, PATH).to_vec());
        report.invalid(PATH, shown, "may specify no more than one CIDR for each IP family");
    }
}

fn taints(object: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, taint) in list(object, "spec.taints").iter().enumerate() {
        // The real server says that they are in the metadata.
        let path = item("metadata.taints", index);
        let (name, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        report.invalid_all(&at(&path, "key"), name, names::qualified(name));
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            report.invalid(&at(&path, "value"), value, &wrong.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if effect.is_empty() {
            report.required(&at(&path, "effect"), "");
        } else {
            report.one_of(&at(&path, "effect"), effect, &effects);
        }
        if !seen.insert((name, effect)) {
            let time = get(taint, "timeAdded");
            let shown = format!(
                "{{\"Key\":{name:?},\"Value\":{value:?},\"Effect\":{effect:?},\"TimeAdded\":{time}}}: taints must be unique by key and effect pair"
            );
            report.duplicate_shown(&path, &shown);
        }
    }
}

/// Checks that a node stays the same machine.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    const NETWORKS: &str = "spec.podCIDRs";
    // The real server looks at the taints once more.
    taints(new, report);
    if !list(old, NETWORKS).is_empty() && get(old, NETWORKS) != get(new, NETWORKS) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        report.forbidden(NETWORKS, detail);
    }
    let provider = text(old, "spec.providerID");
    if !provider.is_empty() && provider != text(new, "spec.providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        report.forbidden("spec.providerID", detail);
    }
    if text(old, "spec.externalID") != text(new, "spec.externalID") {
        report.forbidden("spec.externalID", "may not be updated");
    }
}

/// Checks the drivers of a node.
pub(super) fn drivers(object: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, driver) in list(object, "spec.drivers").iter().enumerate() {
        let path = item("spec.drivers", index);
        let name = text(driver, "name");
        driver_name(name, &at(&path, "name"), report);
        if !name.is_empty() && !seen.insert(name) {
            report.duplicate(&at(&path, "name"), name);
        }
        if text(driver, "nodeID").is_empty() {
            report.required(&at(&path, "nodeID"), "");
        }
        if let Some(count) = int(driver, "allocatable.count").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            report.invalid(&at(&path, "allocatable.count"), count, detail);
        }
        for topology in texts(driver, "topologyKeys") {
            if topology.is_empty() {
                report.required(&path, "");
            }
            report.invalid_all(&path, topology, names::qualified(topology));
        }
    }
}

/// Checks the class of the runtime of pods.
pub(super) fn runtime_class(object: &Value, report: &mut Report) {
    let handler = text(object, "handler");
    report.invalid_all("handler", handler, names::label(handler));
    for (name, amount) in map(object, "overhead.podFixed") {
        let shown = amount.as_str().unwrap_or_default();
        if shown.parse::<Quantity>().is_ok_and(Quantity::is_negative) {
            report.invalid(&key("overhead.limits", name), shown, "must be greater than or equal to 0");
        }
    }
    let scheduling = get(object, "scheduling");
    metadata::labels(get(scheduling, "nodeSelector"), "scheduling.nodeSelector", report);
    pod::tolerations(scheduling, "scheduling.tolerations", report);
}

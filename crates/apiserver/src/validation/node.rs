//! Validation of nodes, and of what runs pods and mounts volumes on them.

use std::collections::BTreeSet;

use objects::names;
use serde_json::{Value, json};

use super::errors::{Report, at, item};
use super::volume::driver_name;
use super::{container, metadata, pod};
use crate::fields::{get, has, int, list, map, text, texts};

/// How long the name may be by which a driver knows a node, in bytes.
const LONGEST_ID: usize = 256;

/// Checks the specification of a node.
pub(super) fn node(object: &Value, report: &mut Report) {
    const PATH: &str = "spec.podCIDRs";
    taints(object, report);
    if !text(object, "spec.externalID").is_empty() {
        let detail = "this field is deprecated, and is unused by Kubernetes";
        report.warn("spec.externalID", Some(detail.to_owned()));
    }
    let mut families = Vec::new();
    let mut broken = None;
    for (index, network) in texts(object, PATH).enumerate() {
        match names::network(network) {
            None => {
                report.invalid(&item(PATH, index), network, names::CIDR);
                broken = broken.or(Some((index, network)));
            }
            Some((address, _)) => families.push(address.is_ipv4()),
        }
        report.warn(&item(PATH, index), names::unusual_network(network));
    }
    let networks = list(object, PATH);
    if networks.len() < 2 {
        return;
    }
    if let Some((index, network)) = broken {
        let detail = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {network})"
        );
        report.internal(PATH, &detail);
    }
    if broken.is_some() || !matches!(families.as_slice(), [one, two] if one != two) {
        let shown = Value::Array(networks.to_vec());
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
    let (is, was) = (list(new, NETWORKS), list(old, NETWORKS));
    let changed = if is.len() == was.len() {
        is.iter().zip(was).filter(|(is, was)| is != was).count()
    } else {
        usize::from(!was.is_empty())
    };
    for _ in 0..changed {
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
        if !seen.insert(name) {
            report.duplicate(&at(&path, "name"), name);
        }
        let id = text(driver, "nodeID");
        if id.is_empty() {
            report.required(&at(&path, "nodeID"), "");
        } else if id.len() > LONGEST_ID {
            let detail = format!("must be {LONGEST_ID} characters or less");
            report.invalid(&at(&path, "nodeID"), id, &detail);
        }
        if let Some(count) = int(driver, "allocatable.count").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            report.invalid(&at(&path, "allocatable.count"), count, detail);
        }
        let mut keys = BTreeSet::new();
        for topology in texts(driver, "topologyKeys") {
            if topology.is_empty() {
                report.required(&path, "");
            }
            if !keys.insert(topology) {
                report.duplicate(&path, topology);
            }
            report.invalid_all(&path, topology, names::qualified(topology));
        }
    }
}

/// Checks that the drivers of a node stay as they are. Others may come and go.
pub(super) fn drivers_update(new: &Value, old: &Value, report: &mut Report) {
    for old in list(old, "spec.drivers") {
        let same = |new: &&Value| text(new, "name") == text(old, "name");
        for new in list(new, "spec.drivers").iter().filter(same).filter(|new| *new != old) {
            let (name, id, keys) = (get(new, "name"), get(new, "nodeID"), get(new, "topologyKeys"));
            let count = get(new, "allocatable.count");
            let allocatable =
                if has(new, "allocatable") { format!("{{\"Count\":{count}}}") } else { "null".to_owned() };
            let shown = format!(
                "{{\"Name\":{name},\"NodeID\":{id},\"TopologyKeys\":{keys},\"Allocatable\":{allocatable}}}"
            );
            report.invalid_shown("spec.drivers", &shown, "field is immutable");
        }
    }
}

/// Checks the class of the runtime of pods.
pub(super) fn runtime_class(object: &Value, report: &mut Report) {
    let handler = text(object, "handler");
    report.invalid_all("handler", handler, names::label(handler));
    let mut overhead = Report::default();
    let limits = json!({"limits": get(object, "overhead.podFixed")});
    container::resources(&limits, "overhead", &mut overhead);
    report.errors.extend(overhead.errors);
    let scheduling = get(object, "scheduling");
    metadata::labels(get(scheduling, "nodeSelector"), "scheduling.nodeSelector", report);
    for (key, _) in map(scheduling, "nodeSelector") {
        report.warn("scheduling.nodeSelector", names::deprecated_label(key).map(str::to_owned));
    }
    pod::tolerations(scheduling, "scheduling.tolerations", report);
    let mut seen: BTreeSet<[&str; 4]> = BTreeSet::new();
    for (index, toleration) in list(scheduling, "tolerations").iter().enumerate() {
        let told = ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
        if !seen.insert(told) {
            let ([key, operator, value, effect], seconds) = (told, get(toleration, "tolerationSeconds"));
            let shown = format!(
                "{{\"Key\":{key:?},\"Operator\":{operator:?},\"Value\":{value:?},\"Effect\":{effect:?},\"TolerationSeconds\":{seconds}}}"
            );
            report.duplicate_shown(&item("scheduling.tolerations", index), &shown);
        }
    }
}

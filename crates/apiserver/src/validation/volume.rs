//! Validation of volumes, and of the classes and drivers that make them.

use std::collections::BTreeSet;

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::{metadata, pod};
use crate::fields::{get, has, int, list, map, text, texts};

/// These fields of a volume do not name its source.
const ABOUT: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn volume(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    modes(spec, report);
    capacity(spec, report);
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    let place = "spec.persistentVolumeReclaimPolicy";
    report.one_of_or_empty(place, policy, &["Delete", "Recycle", "Retain"]);
    let nodes = get(spec, "nodeAffinity");
    if !nodes.is_null() {
        match get(nodes, "required") {
            Value::Null => {
                let detail = "must specify required node constraints";
                report.required("spec.nodeAffinity.required", detail);
            }
            required => {
                const PATH: &str = "spec.nodeAffinity.required";
                pod::node_selector(required, PATH, report);
                pod::warn_of_terms(required, PATH, report);
            }
        }
    }
    source(spec, report);
    if text(spec, "hostPath.path") == "/" && policy == "Recycle" {
        report.forbidden(place, "may not be 'recycle' for a hostPath mount of '/'");
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        report.invalid_all("spec.storageClassName", class, names::subdomain(class));
    }
    report.one_of_or_empty("spec.volumeMode", text(spec, "volumeMode"), &["Block", "Filesystem"]);
    if has(spec, "volumeAttributesClassName") && !has(spec, "csi") {
        report.required("spec.csi", "has to be specified when using volumeAttributesClassName");
    }
}

fn modes(spec: &Value, report: &mut Report) {
    const PATH: &str = "spec.accessModes";
    const KNOWN: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let modes: Vec<&str> = texts(spec, "accessModes").collect();
    if modes.is_empty() {
        report.required(PATH, "");
    }
    for mode in &modes {
        report.one_of(PATH, mode, &KNOWN);
    }
    let exclusive = modes.contains(&"ReadWriteOncePod");
    if exclusive && modes.iter().any(|mode| *mode != "ReadWriteOncePod" && KNOWN.contains(mode)) {
        report.forbidden(PATH, "may not use ReadWriteOncePod with other access modes");
    }
}

fn capacity(spec: &Value, report: &mut Report) {
    const PATH: &str = "spec.capacity";
    let capacity = map(spec, "capacity");
    if capacity.is_empty() {
        report.required(PATH, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        report.unsupported(PATH, get(spec, "capacity").clone(), &["storage"]);
    }
    for (name, amount) in capacity {
        let shown = amount.as_str().unwrap_or_default();
        let Ok(amount) = shown.parse::<Quantity>() else { continue };
        let place = key(PATH, name);
        if amount.is_negative() {
            report.invalid(&place, shown, "must be a valid resource quantity");
        }
        if amount.nanos() <= 0 {
            report.invalid(&place, shown, "must be greater than zero");
        }
    }
}

/// Checks that a volume has one source, and those sources that charts use.
fn source(spec: &Value, report: &mut Report) {
    let fields = spec.as_object().into_iter().flatten();
    let mut found: Vec<&str> = fields
        .filter(|(name, value)| !ABOUT.contains(&name.as_str()) && !value.is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    // The path of a host is looked at first, drivers last.
    found.sort_by_key(|name| match *name {
        "hostPath" => 0,
        "csi" => 2,
        _ => 1,
    });
    match found.split_first() {
        None => report.required("spec", "must specify a volume type"),
        Some((first, more)) => {
            for name in more {
                report.forbidden(&at("spec", name), "may not specify more than 1 volume type");
            }
            source_of(first, get(spec, first), report);
            if *first == "local" && !has(spec, "nodeAffinity") {
                report.required("spec.nodeAffinity", "Local volume requires node affinity");
            }
        }
    }
}

fn source_of(kind: &str, source: &Value, report: &mut Report) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = at("spec", kind);
    let (place, given) = (at(&path, "path"), text(source, "path"));
    match kind {
        "hostPath" | "local" if given.is_empty() => report.required(&place, ""),
        "hostPath" | "local" => {
            if given.split('/').any(|step| step == "..") {
                report.invalid(&place, given, "must not contain '..'");
            }
            if kind == "hostPath" {
                report.one_of(&at(&path, "type"), text(source, "type"), &TYPES);
            }
        }
        "nfs" => {
            if text(source, "server").is_empty() {
                report.required(&at(&path, "server"), "");
            }
            if given.is_empty() {
                report.required(&place, "");
            }
            if !given.starts_with('/') {
                report.invalid(&place, given, "must be an absolute path");
            }
        }
        "csi" => {
            driver_name(text(source, "driver"), &at(&path, "driver"), report);
            if text(source, "volumeHandle").is_empty() {
                report.required(&at(&path, "volumeHandle"), "");
            }
        }
        _ => {}
    }
}

pub(super) fn driver_name(name: &str, path: &str, report: &mut Report) {
    const LONGEST: usize = 63;
    if name.is_empty() {
        report.required(path, "");
    }
    if name.len() > LONGEST {
        report.too_long(path, LONGEST);
    }
    report.invalid_all(path, name, names::subdomain(&name.to_lowercase()));
}

/// Checks who makes the volumes of a class, and what they are told.
fn provisioner(object: &Value, field: &str, report: &mut Report) {
    const MOST: usize = 512;
    const LARGEST: usize = 256 * 1024;
    let provisioner = text(object, field);
    if provisioner.is_empty() {
        report.required(field, "");
    } else {
        let name = provisioner.to_lowercase();
        report.invalid_all(field, &name, names::qualified(&name));
    }
    let parameters = map(object, "parameters");
    if parameters.len() > MOST {
        return report.too_long("parameters", MOST);
    }
    if parameters.contains_key("") {
        report.invalid("parameters", "", "field can not be empty.");
    }
    let size: usize =
        parameters.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > LARGEST {
        report.too_long("parameters", LARGEST);
    }
}

/// Checks a class of what volumes can do.
pub(super) fn attributes(object: &Value, report: &mut Report) {
    provisioner(object, "driverName", report);
    if map(object, "parameters").is_empty() {
        report.required("parameters", "must contain at least one key/value pair");
    }
}

/// Checks how much room for volumes a part of the cluster has.
pub(super) fn room(object: &Value, report: &mut Report) {
    metadata::selector(get(object, "nodeTopology"), "nodeTopology", report);
    pod::warn_of_term(get(object, "nodeTopology"), false, "nodeTopology", report);
    for (key, _) in map(object, "nodeTopology.matchLabels") {
        let detail = names::deprecated_label(key).map(str::to_owned);
        report.warn(&at("nodeTopology.matchLabels", key), detail);
    }
    let class = text(object, "storageClassName");
    report.invalid_all("storageClassName", class, names::subdomain(class));
    let amount = text(object, "capacity");
    if amount.parse::<Quantity>().is_ok_and(Quantity::is_negative) {
        report.invalid("capacity", amount, "must be greater than or equal to 0");
    }
}

pub(super) fn class(object: &Value, report: &mut Report) {
    provisioner(object, "provisioner", report);
    report.one_of("reclaimPolicy", text(object, "reclaimPolicy"), &["Delete", "Retain"]);
    let mode = text(object, "volumeBindingMode");
    report.one_of("volumeBindingMode", mode, &["Immediate", "WaitForFirstConsumer"]);
    topologies(object, report);
}

fn topologies(object: &Value, report: &mut Report) {
    const EXPRESSIONS: &str = "matchLabelExpressions";
    let mut terms: Vec<&Value> = Vec::new();
    for (index, term) in list(object, "allowedTopologies").iter().enumerate() {
        let path = at(&item("allowedTopologies", index), EXPRESSIONS);
        let expressions = list(term, EXPRESSIONS);
        let mut seen = BTreeSet::new();
        for (index, expression) in expressions.iter().enumerate() {
            let path = item(&path, index);
            let name = text(expression, "key");
            report.invalid_all(&at(&path, "key"), name, names::qualified(name));
            report.warn(&at(&path, "key"), names::deprecated_label(name).map(str::to_owned));
            if !seen.insert(name) {
                report.duplicate(&at(&path, "key"), name);
            }
            if list(expression, "values").is_empty() {
                report.required(&at(&path, "values"), "");
            }
            let mut values = BTreeSet::new();
            for (index, value) in texts(expression, "values").enumerate() {
                if !values.insert(value) {
                    report.duplicate(&item(&at(&path, "values"), index), value);
                }
            }
        }
        // A term without expressions is like one that was there before.
        if expressions.is_empty() || terms.contains(&term) {
            report.duplicate(&path, "");
        }
        terms.push(term);
    }
}

pub(super) fn driver(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let policy = text(spec, "fsGroupPolicy");
    report.one_of("spec.fsGroupPolicy", policy, &["File", "None", "ReadWriteOnceWithFSType"]);
    for mode in texts(spec, "volumeLifecycleModes") {
        report.one_of("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
    }
    let mut seen = BTreeSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let path = item("spec.tokenRequests", index);
        let audience = text(request, "audience");
        if !seen.insert(audience) {
            report.duplicate(&at(&path, "audience"), audience);
        }
        let place = at(&path, "expirationSeconds");
        match int(request, "expirationSeconds") {
            Some(seconds) if seconds < 600 => {
                report.invalid(&place, seconds, "may not specify a duration less than 10 minutes");
            }
            Some(seconds) if seconds > 1 << 32 => {
                report.invalid(&place, seconds, "may not specify a duration larger than 2^32 seconds");
            }
            Some(_) | None => {}
        }
    }
}

pub(super) fn driver_update(new: &Value, old: &Value, report: &mut Report) {
    for (field, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let path = at("spec", field);
        if get(new, &path) != get(old, &path) {
            report.invalid(&at("spec", shown), get(new, &path).clone(), "field is immutable");
        }
    }
}

/// Checks that a volume stays where it is.
pub(super) fn volume_update(new: &Value, old: &Value, report: &mut Report) {
    let source = |object: &Value| {
        let mut spec = get(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !ABOUT.contains(&name.as_str()));
        }
        spec
    };
    if source(new) != source(old) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        report.forbidden("spec.persistentvolumesource", detail);
    }
    let (is, was) = (get(new, "spec"), get(old, "spec"));
    if get(is, "volumeMode") != get(was, "volumeMode") {
        report.invalid("volumeMode", get(is, "volumeMode").clone(), "field is immutable");
    }
    // A volume may be bound to nodes later, and stays there.
    let nodes = get(is, "nodeAffinity");
    if has(was, "nodeAffinity") && nodes != get(was, "nodeAffinity") {
        let detail = "field is immutable, except for updating from beta label to GA";
        report.invalid("nodeAffinity", nodes.clone(), detail);
    }
}

/// Checks that these fields of a class stay as they are.
pub(super) fn fixed(fields: &[&str], new: &Value, old: &Value, report: &mut Report) {
    for field in fields {
        if get(new, field) != get(old, field) {
            report.forbidden(field, &format!("updates to {field} are forbidden."));
        }
    }
}

pub(super) fn class_update(new: &Value, old: &Value, report: &mut Report) {
    fixed(&["parameters", "provisioner", "reclaimPolicy"], new, old, report);
    let mode = get(new, "volumeBindingMode");
    if mode != get(old, "volumeBindingMode") {
        report.invalid("volumeBindingMode", mode.clone(), "field is immutable");
    }
}

//! Validation of slices: which devices a driver offers.

use objects::names;
use serde_json::Value;

use super::devices::{MOST, attribute_name, distinct, limited};
use super::errors::{Report, at, item};
use super::immutable_field::immutable;
use super::pod;
use super::volume::driver_name;
use crate::fields::{get, has, int, list, map, text};

/// Checks what is in the slice of a pool of devices.
pub(super) fn slice(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    driver_name(text(spec, "driver"), "spec.driver", report);
    pool(text(spec, "pool.name"), "spec.pool.name", report);
    let number = |field: &str| int(spec, field).unwrap_or_default();
    if number("pool.resourceSliceCount") <= 0 {
        let count = number("pool.resourceSliceCount");
        report.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero");
    }
    if number("pool.generation") < 0 {
        let detail = "must be greater than or equal to zero";
        report.invalid("spec.pool.generation", number("pool.generation"), detail);
    }
    nodes(spec, report);
    for (index, device) in limited(spec, "devices", MOST_DEVICES, "spec", report) {
        self::device(device, &item("spec.devices", index), report);
    }
    distinct(list(spec, "devices").iter().map(|one| text(one, "name")), "spec.devices", ".name", report);
}

/// How many devices a slice may have.
const MOST_DEVICES: usize = 128;

/// Checks the name of a pool of devices.
pub(super) fn pool(name: &str, path: &str, report: &mut Report) {
    const LONGEST: usize = 253;
    if name.is_empty() {
        return report.required(path, "");
    }
    if name.len() > LONGEST {
        report.too_long(path, LONGEST);
    }
    for part in name.split('/') {
        report.invalid_all(path, part, names::subdomain(part));
    }
}

/// Checks which nodes reach the devices of a slice.
fn nodes(spec: &Value, report: &mut Report) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut found = Vec::new();
    match get(spec, "nodeName").as_str() {
        None => {}
        Some("") => {
            report.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string");
        }
        Some(name) => {
            found.push("`nodeName`");
            report.invalid_all("spec.nodeName", name, names::subdomain(name));
        }
    }
    if has(spec, "nodeSelector") {
        const TERMS: &str = "spec.nodeSelector.nodeSelectorTerms";
        found.push("`nodeSelector`");
        pod::node_selector(get(spec, "nodeSelector"), "spec.nodeSelector", report);
        let terms = list(spec, "nodeSelector.nodeSelectorTerms");
        if terms.len() != 1 {
            let shown: Vec<String> = terms.iter().map(shown_term).collect();
            let shown = format!("[{}]", shown.join(","));
            report.invalid_shown(TERMS, &shown, "must have exactly one node selector term");
        }
    }
    match get(spec, "allNodes").as_bool() {
        None => {}
        Some(true) => found.push("`allNodes`"),
        Some(false) => report.invalid("spec.allNodes", false, "must be either unset or set to true"),
    }
    if found.is_empty() {
        report.required("spec", ONE);
    } else if found.len() > 1 {
        let shown = format!("{{{}}}", found.join(", "));
        report.invalid("spec", shown, &format!("{ONE}, but multiple fields are set"));
    }
}

/// Returns a term of a selector of nodes with its keys in the order of the type.
fn shown_term(term: &Value) -> String {
    let shown = |field: &str| match list(term, field) {
        [] => "null".to_owned(),
        expressions => {
            let expressions = expressions.iter().map(|expression| {
                let part = |field: &str| get(expression, field).to_string();
                let (key, operator, values) = (part("key"), part("operator"), part("values"));
                format!("{{\"Key\":{key},\"Operator\":{operator},\"Values\":{values}}}")
            });
            format!("[{}]", expressions.collect::<Vec<_>>().join(","))
        }
    };
    format!("{{\"MatchExpressions\":{},\"MatchFields\":{}}}", shown("matchExpressions"), shown("matchFields"))
}

fn device(device: &Value, path: &str, report: &mut Report) {
    let name = text(device, "name");
    report.invalid_all(&at(path, "name"), name, names::label(name));
    let (attributes, capacities) = (map(device, "attributes"), map(device, "capacity"));
    let count = attributes.len() + capacities.len();
    if count > MOST {
        let detail = format!("the total number of attributes and capacities must not exceed {MOST}");
        report.invalid(path, count, &detail);
    }
    for (name, value) in attributes {
        let path = entry(&at(path, "attributes"), name);
        attribute_name(name, &path, report);
        attribute(value, &path, report);
    }
    for name in capacities.keys() {
        attribute_name(name, &entry(&at(path, "capacity"), name), report);
    }
}

/// Returns the path of an entry, whose name is cut in the middle when it is longer than any may be.
fn entry(path: &str, name: &str) -> String {
    const LONGEST: usize = 63 + 1 + 32;
    let kept = LONGEST - "...".len();
    match (name.get(..kept.div_ceil(2)), name.get(name.len().saturating_sub(kept / 2)..)) {
        (Some(start), Some(end)) if name.len() > LONGEST => format!("{path}[{start}...{end}]"),
        _ => format!("{path}[{name}]"),
    }
}

fn attribute(value: &Value, path: &str, report: &mut Report) {
    const LONGEST: usize = 64;
    const ONE: &str = "exactly one value must be specified";
    let given = ["int", "bool", "string", "version"].map(|field| get(value, field));
    match given.iter().filter(|value| !value.is_null()).count() {
        0 => report.required(path, ONE),
        1 => {}
        _ => {
            let [int, bool, string, version] = given;
            let shown = format!(
                "{{\"IntValue\":{int},\"BoolValue\":{bool},\"StringValue\":{string},\"VersionValue\":{version}}}"
            );
            report.invalid_shown(path, &shown, ONE);
        }
    }
    for field in ["string", "version"] {
        let (given, path) = (text(value, field), at(path, field));
        if given.len() > LONGEST {
            report.too_long(&path, LONGEST);
        }
        if field == "version" && has(value, field) && !expressions::is_version(given) {
            report.invalid(&path, given, "must be a string compatible with semver.org spec 2.0.0");
        }
    }
}

/// Checks that a slice stays that of its driver, pool and node.
pub(super) fn slice_update(new: &Value, old: &Value, report: &mut Report) {
    for field in ["spec.pool.name", "spec.driver", "spec.nodeName"] {
        immutable(field, new, old, report);
    }
}

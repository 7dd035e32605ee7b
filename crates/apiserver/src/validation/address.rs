//! Validation of the addresses that services get, and of the networks that these come from.

use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use super::immutable_field::immutable_shown;
use crate::fields::{get, list, text, texts};

const NETWORKS: &str = "spec.cidrs";

/// Checks the networks of services: one, or one of each family.
pub(super) fn networks(object: &Value, report: &mut Report) {
    let given = list(object, NETWORKS);
    let shown = Value::Array(given.to_vec());
    if given.is_empty() {
        return report.required(NETWORKS, "at least one CIDR required");
    }
    if given.len() > 2 {
        let shown = format!("{{\"CIDRs\":{shown}}}");
        return report.invalid_shown(NETWORKS, &shown, "may only hold up to 2 values");
    }
    for (index, network) in texts(object, NETWORKS).enumerate() {
        report.invalid_all(&item(NETWORKS, index), network, names::strict_network(network));
    }
    let families: Vec<bool> =
        texts(object, NETWORKS).filter_map(names::network).map(|(address, _)| address.is_ipv4()).collect();
    if matches!(families.as_slice(), [one, two] if one == two) {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        report.invalid(NETWORKS, shown, detail);
    }
}

/// Checks that the networks of services stay; one of the other family may come.
pub(super) fn networks_update(new: &Value, old: &Value, report: &mut Report) {
    let (is, was) = (list(new, NETWORKS), list(old, NETWORKS));
    let grows = was.len() == 1 && is.len() == 2;
    if is.len() != was.len() && !grows {
        return report.invalid(NETWORKS, Value::Array(is.to_vec()), "field is immutable");
    }
    for (index, (is, _)) in is.iter().zip(was).enumerate().filter(|(_, (is, was))| is != was) {
        report.invalid(&item(NETWORKS, index), is.clone(), "field is immutable");
    }
    if grows {
        networks(new, report);
    }
}

/// Checks whom an address belongs to.
pub(super) fn address(object: &Value, report: &mut Report) {
    const PATH: &str = "spec.parentRef";
    let parent = get(object, PATH);
    if parent.is_null() {
        return report.required(PATH, "");
    }
    let group = text(parent, "group");
    if !group.is_empty() {
        report.invalid_all(&at(PATH, "group"), group, names::subdomain(group));
    }
    for field in ["resource", "name", "namespace"] {
        let (given, place) = (text(parent, field), at(PATH, field));
        if given.is_empty() && field != "namespace" {
            report.required(&place, "");
        }
        report.invalid_all(&place, given, names::path_segment(given));
    }
}

/// Checks that an address stays with whom it belongs to.
pub(super) fn address_update(new: &Value, old: &Value, report: &mut Report) {
    const PATH: &str = "spec.parentRef";
    let parts = [("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")];
    let parts = parts.map(|(shown, field)| format!("{shown:?}:{:?}", text(get(new, PATH), field)));
    immutable_shown(PATH, &format!("{{{}}}", parts.join(",")), new, old, report);
}

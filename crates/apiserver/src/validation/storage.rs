//! Validation of claims for volumes.

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, key};
use super::metadata;
use crate::fields::{get, has, list, map, text, texts};

pub(super) fn claim(object: &Value, report: &mut Report) {
    claim_spec(get(object, "spec"), "spec", report);
}

pub(super) fn claim_spec(spec: &Value, path: &str, report: &mut Report) {
    let modes_path = at(path, "accessModes");
    if list(spec, "accessModes").is_empty() {
        report.required(&modes_path, "at least 1 access mode is required");
    }
    metadata::selector(get(spec, "selector"), &at(path, "selector"), report);
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in texts(spec, "accessModes").filter(|mode| !known.contains(mode)) {
        report.unsupported(&modes_path, mode, &known);
    }
    let exclusive = texts(spec, "accessModes").any(|mode| mode == "ReadWriteOncePod");
    if exclusive && list(spec, "accessModes").len() > 1 {
        let detail = "may not use ReadWriteOncePod with other access modes";
        report.forbidden(&modes_path, detail);
    }
    let storage = text(spec, "resources.requests.storage");
    let place = key(&at(path, "resources"), "storage");
    match storage.parse::<Quantity>() {
        Ok(amount) if amount.nanos() <= 0 => report.invalid(&place, storage, "must be greater than zero"),
        Ok(_) => {}
        Err(_) => report.required(&place, ""),
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        report.invalid_all(&at(path, "storageClassName"), class, names::subdomain(class));
    }
    let mode = text(spec, "volumeMode");
    report.one_of_or_empty(&at(path, "volumeMode"), mode, &["Block", "Filesystem"]);
}

pub(super) fn claim_update(new: &Value, old: &Value, report: &mut Report) {
    const OLDER_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    let bound = text(old, "status.phase") == "Bound";
    let annotated = |claim| map(claim, "metadata.annotations").get(OLDER_CLASS).and_then(Value::as_str);
    let (was, is) = (annotated(old), annotated(new));
    // A claim without a class gets one when there is a default. The class of an annotation may move into the field.
    let class = get(new, "spec.storageClassName").as_str().filter(|_| !has(old, "spec.storageClassName"));
    let gets_class = class.is_some_and(|class| was.is_none_or(|was| was == class));
    let moves = gets_class && was.is_some() && (is.is_none() || is == was);
    if !moves && was.unwrap_or_default() != is.unwrap_or_default() {
        let path = at("metadata.annotations", OLDER_CLASS);
        report.invalid(&path, is.unwrap_or_default(), "field is immutable");
    }
    let keep = |object: &Value| {
        let mut spec = get(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            if bound {
                fields.remove("volumeAttributesClassName");
            }
            if gets_class {
                fields.remove("storageClassName");
            }
            if !has(old, "spec.volumeName") {
                fields.remove("volumeName");
            }
            if let Some(requests) =
                fields.get_mut("resources").and_then(|r| r.get_mut("requests")).and_then(Value::as_object_mut)
            {
                requests.remove("storage");
            }
        }
        spec
    };
    if keep(new) != keep(old) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        report.forbidden("spec", detail);
    }
    let mode = |object: &Value| get(object, "spec.volumeMode").clone();
    if mode(new) != mode(old) {
        report.invalid("volumeMode", mode(new), "field is immutable");
    }
    let size = |object: &Value| text(object, "spec.resources.requests.storage").parse::<Quantity>();
    let (Ok(is), Ok(was)) = (size(new), size(old)) else {
        return;
    };
    if is.compare(was).is_ne() && !bound {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        report.forbidden("spec", detail);
    } else if is.compare(was).is_lt() {
        report.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
}

pub(super) fn attachment(object: &Value, report: &mut Report) {
    let (attacher, node) = (text(object, "spec.attacher"), text(object, "spec.nodeName"));
    if attacher.is_empty() {
        report.required("spec.attacher", "");
    } else {
        report.invalid_all("spec.attacher", attacher, names::subdomain(attacher));
    }
    if node.is_empty() {
        report.required("spec.nodeName", "");
    }
    let named = has(object, "spec.source.persistentVolumeName");
    if !named && !has(object, "spec.source.inlineVolumeSpec") {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        report.required("spec.source", detail);
    }
}

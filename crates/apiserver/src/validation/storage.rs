//! Validation of claims for volumes.

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, key};
use super::immutable_field::immutable_shown;
use super::metadata;
use super::volume::driver_name;
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
    for part in ["requests", "limits"] {
        let amount = text(get(spec, &at("resources", part)), "storage");
        if amount.parse::<Quantity>().is_ok_and(|amount| !amount.is_integer()) {
            let detail = format!("fractional byte value {amount:?} is invalid, must be an integer");
            report.warn(&key(&at(&at(path, "resources"), part), "storage"), Some(detail));
        }
    }
    sources(spec, path, report);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        report.invalid_all(&at(path, "storageClassName"), class, names::subdomain(class));
    }
    let mode = text(spec, "volumeMode");
    report.one_of_or_empty(&at(path, "volumeMode"), mode, &["Block", "Filesystem"]);
}

/// Checks what a volume begins with: the older field says what the newer one does.
fn sources(spec: &Value, path: &str, report: &mut Report) {
    let (older, newer) = (get(spec, "dataSource"), get(spec, "dataSourceRef"));
    for (source, place) in [(older, at(path, "dataSource")), (newer, at(path, "dataSourceRef"))] {
        if source.is_null() {
            continue;
        }
        for field in ["name", "kind"] {
            if text(source, field).is_empty() {
                report.required(&at(&place, field), "");
            }
        }
        let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
        if !group.is_empty() {
            report.invalid_all(&at(&place, "apiGroup"), group, names::subdomain(group));
        } else if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            report.invalid(&place, kind, detail);
        }
    }
    let differs = |field: &str| get(older, field) != get(newer, field);
    if !older.is_null() && !newer.is_null() && ["apiGroup", "kind", "name"].into_iter().any(differs) {
        report.invalid_shown(path, "{}", "must match dataSourceRef");
    }
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
    }
    report.invalid_all("spec.nodeName", node, names::subdomain(node));
    let (volume, inline) =
        (get(object, "spec.source.persistentVolumeName"), has(object, "spec.source.inlineVolumeSpec"));
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (volume.as_str(), inline) {
        (None, false) => report.required("spec.source", one),
        (Some(_), true) => report.forbidden("spec.source", one),
        (Some(""), false) => {
            let detail = "must specify non empty persistentVolumeName";
            report.required("spec.source.persistentVolumeName", detail);
        }
        (Some(_), false) | (None, true) => {}
    }
}

/// Checks what is asked of new attachments only: that the names in it are such.
pub(super) fn attachment_names(object: &Value, report: &mut Report) {
    driver_name(text(object, "spec.attacher"), "spec.attacher", report);
    if let Some(name) = get(object, "spec.source.persistentVolumeName").as_str() {
        report.invalid_all("spec.source.persistentVolumeName", name, names::subdomain(name));
    }
}

pub(super) fn attachment_update(new: &Value, old: &Value, report: &mut Report) {
    let (attacher, node) = (text(new, "spec.attacher"), text(new, "spec.nodeName"));
    let volume = get(new, "spec.source.persistentVolumeName");
    let inline = get(new, "spec.source.inlineVolumeSpec");
    let shown = format!(
        "{{\"Attacher\":{attacher:?},\"Source\":{{\"PersistentVolumeName\":{volume},\"InlineVolumeSpec\":{inline}}},\"NodeName\":{node:?}}}"
    );
    immutable_shown("spec", &shown, new, old, report);
}

/// Checks what a driver says of an attachment.
pub(super) fn attachment_status(status: &Value, report: &mut Report) {
    const LARGEST: usize = 256 * 1024;
    const LONGEST: usize = 1024;
    let metadata = map(status, "attachmentMetadata");
    let size: usize =
        metadata.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > LARGEST {
        report.too_long("status.attachmentMetadata", LARGEST);
    }
    for field in ["attachError", "detachError"] {
        // The text names another limit than the one that counts.
        if text(get(status, field), "message").len() > LONGEST {
            report.too_long(&format!("status.{field}.message"), LARGEST);
        }
    }
}

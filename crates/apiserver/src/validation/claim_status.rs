//! Validation of what is said of a claim for devices: which it got, who uses them, and how they are.

use std::collections::BTreeSet;

use objects::names;
use serde_json::Value;

use super::device_slice::pool;
use super::devices::{self, Age, MOST, Requests, distinct, limited};
use super::errors::{Report, at, item};
use super::volume::driver_name;
use super::{pod, status};
use crate::fields::{get, has, list, text, texts};

/// How many may use a claim.
const MOST_USERS: usize = 256;

/// Driver, pool and name of a device.
type Device<'a> = [&'a str; 3];

pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    let known = devices::requests(new);
    let (status, was) = (get(new, "status"), get(old, "status"));
    users(new, old, report);
    let allocation = get(status, "allocation");
    let allocated: BTreeSet<Device<'_>> = list(allocation, "devices.results").iter().map(device).collect();
    let mut seen = BTreeSet::new();
    for (index, told) in list(status, "devices").iter().enumerate() {
        let path = item("status.devices", index);
        told_of(told, &allocated, &path, report);
        if !seen.insert(device(told)) {
            report.duplicate_shown(&at(&path, "deviceID"), SHOWN);
        }
    }
    if has(was, "allocation") && !allocation.is_null() {
        if allocation != get(was, "allocation") {
            report.invalid("status.allocation", allocation.clone(), "field is immutable");
        }
    } else if !allocation.is_null() {
        self::allocation(allocation, &known, report);
    }
}

fn device(object: &Value) -> Device<'_> {
    ["driver", "pool", "device"].map(|field| text(object, field))
}

/// How the texts show a device, whichever it is.
const SHOWN: &str = "{\"Driver\":{},\"Pool\":{},\"Device\":{},\"ShareID\":{}}";

fn users(new: &Value, old: &Value, report: &mut Report) {
    const PATH: &str = "status.reservedFor";
    let users = list(new, PATH);
    for (index, user) in limited(get(new, "status"), "reservedFor", MOST_USERS, "status", report) {
        for field in ["resource", "name", "uid"] {
            if text(user, field).is_empty() {
                report.required(&at(&item(PATH, index), field), "");
            }
        }
    }
    distinct(users.iter().map(|user| text(user, "uid")), PATH, ".uid", report);
    if users.is_empty() {
        return;
    }
    if !has(new, "status.allocation") {
        report.forbidden(PATH, "may not be specified when `allocated` is not set");
    } else if has(new, "metadata.deletionTimestamp")
        && users.iter().any(|user| !list(old, PATH).contains(user))
    {
        let detail =
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        report.forbidden(PATH, detail);
    }
}

/// Checks what is told of a device that was allocated.
fn told_of(told: &Value, allocated: &BTreeSet<Device<'_>>, path: &str, report: &mut Report) {
    const MOST_CONDITIONS: usize = 8;
    place(told, path, report);
    if !allocated.contains(&device(told)) {
        report.invalid_shown(path, SHOWN, "must be an allocated device in the claim");
    }
    let conditions = at(path, "conditions");
    if list(told, "conditions").len() > MOST_CONDITIONS {
        report.too_many(&conditions, list(told, "conditions").len(), MOST_CONDITIONS);
    }
    status::conditions(told, &conditions, report);
    if has(told, "data") {
        devices::data(get(told, "data"), &at(path, "data"), Age::New, report);
    }
    network(get(told, "networkData"), &at(path, "networkData"), report);
}

/// Checks where a device is.
fn place(object: &Value, path: &str, report: &mut Report) {
    let [driver, pool, device] = self::device(object);
    driver_name(driver, &at(path, "driver"), report);
    self::pool(pool, &at(path, "pool"), report);
    report.invalid_all(&at(path, "device"), device, names::label(device));
}

fn network(data: &Value, path: &str, report: &mut Report) {
    const MOST_ADDRESSES: usize = 16;
    for (field, most) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        if text(data, field).len() > most {
            report.too_long(&at(path, field), most);
        }
    }
    let ips = at(path, "ips");
    for (index, address) in limited(data, "ips", MOST_ADDRESSES, path, report) {
        let address = address.as_str().unwrap_or_default();
        report.invalid_all(&item(&ips, index), address, names::strict_interface(address));
    }
    distinct(texts(data, "ips"), &ips, "", report);
}

fn allocation(allocation: &Value, known: &Requests<'_>, report: &mut Report) {
    const PATH: &str = "status.allocation.devices";
    const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];
    let devices = get(allocation, "devices");
    for (index, result) in limited(devices, "results", MOST, PATH, report) {
        let path = item(&at(PATH, "results"), index);
        devices::reference(text(result, "request"), known, &at(&path, "request"), report);
        place(result, &path, report);
    }
    // What the class says comes beside what the claim says.
    for (index, config) in limited(devices, "config", 2 * MOST, PATH, report) {
        let path = item(&at(PATH, "config"), index);
        match text(config, "source") {
            "" => report.required(&at(&path, "source"), ""),
            source => report.one_of(&at(&path, "source"), source, &SOURCES),
        }
        devices::references(config, known, &path, report);
        devices::configuration(config, &path, Age::New, report);
    }
    if has(allocation, "nodeSelector") {
        pod::node_selector(get(allocation, "nodeSelector"), "status.allocation.nodeSelector", report);
    }
}

/// Returns where a result gives what only administrators may have; nothing if that was so before.
pub(super) fn gives_as_administrator(new: &Value, old: &Value) -> Option<String> {
    const RESULTS: &str = "status.allocation.devices.results";
    let first = |claim: &Value| {
        list(claim, RESULTS).iter().position(|result| get(result, "adminAccess") == &Value::Bool(true))
    };
    let index = first(new).filter(|_| first(old).is_none())?;
    Some(format!("{RESULTS}[{index}].adminAccess"))
}

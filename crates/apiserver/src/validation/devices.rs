//! Validation of claims for devices, and of the classes that these name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use expressions::{Declared, Environment, Program, Type};
use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use super::metadata;
use super::volume::driver_name;
use crate::fields::{get, has, int, list, text, texts};

/// How many requests, constraints, configurations and selectors there may be.
pub(super) const MOST: usize = 32;

/// How many alternatives a request may have.
const MOST_ALTERNATIVES: usize = 8;

/// How large parameters of a driver may be, in bytes; and the text of an expression.
pub(super) const LARGEST: usize = 10 * 1024;

/// What an expression may cost.
const MOST_COST: u64 = 1_000_000;

/// The names of requests, with those of their alternatives.
pub(super) type Requests<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Whether what is checked was stored before: then it may be larger than new ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Stored,
}

/// Returns the requests of a claim by name.
pub(super) fn requests(claim: &Value) -> Requests<'_> {
    let requests = list(claim, "spec.devices.requests").iter();
    requests
        .map(|request| {
            let names = list(request, "firstAvailable").iter().map(|one| text(one, "name"));
            (text(request, "name"), names.collect())
        })
        .collect()
}

/// Checks a claim. A template has one, at `path`.
pub(super) fn claim(claim: &Value, path: &str, age: Age, report: &mut Report) {
    let (devices, path) = (get(claim, "spec.devices"), at(path, "devices"));
    let known = requests(claim);
    let place = at(&path, "requests");
    for (index, request) in limited(devices, "requests", MOST, &path, report) {
        self::request(request, &item(&place, index), report);
    }
    distinct(list(devices, "requests").iter().map(|one| text(one, "name")), &place, ".name", report);
    for (index, constraint) in limited(devices, "constraints", MOST, &path, report) {
        self::constraint(constraint, &known, &item(&at(&path, "constraints"), index), report);
    }
    for (index, config) in limited(devices, "config", MOST, &path, report) {
        let path = item(&at(&path, "config"), index);
        references(config, &known, &path, report);
        configuration(config, &path, age, report);
    }
}

/// Checks what claims are made from: of its metadata it has labels and annotations alone.
pub(super) fn template(object: &Value, age: Age, report: &mut Report) {
    metadata::template(get(object, "spec.metadata"), "spec.metadata", report);
    claim(get(object, "spec"), "spec.spec", age, report);
}

pub(super) fn class(object: &Value, old: Option<&Value>, report: &mut Report) {
    let spec = get(object, "spec");
    selectors(spec, "spec", report);
    let is_stored = old.is_some_and(|old| get(old, "spec.config") == get(spec, "config"));
    let age = if is_stored { Age::Stored } else { Age::New };
    for (index, config) in limited(spec, "config", MOST, "spec", report) {
        configuration(config, &item("spec.config", index), age, report);
    }
}

/// Returns the items of a list with their places, and reports if there are too many.
pub(super) fn limited<'a>(
    object: &'a Value,
    field: &str,
    most: usize,
    path: &str,
    report: &mut Report,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let items = list(object, field);
    if items.len() > most {
        report.too_many(&at(path, field), items.len(), most);
    }
    items.iter().enumerate()
}

/// Reports keys of items that came before; `field` is where an item has its key.
pub(super) fn distinct<'a>(
    keys: impl Iterator<Item = &'a str>,
    path: &str,
    field: &str,
    report: &mut Report,
) {
    let mut seen = BTreeSet::new();
    for (index, key) in keys.enumerate() {
        if !seen.insert(key) {
            report.duplicate(&format!("{path}[{index}]{field}"), key);
        }
    }
}

/// Reports what is no name of a request.
fn request_name(name: &str, path: &str, report: &mut Report) {
    report.invalid_all(path, name, names::label(name));
}

fn request(request: &Value, path: &str, report: &mut Report) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    request_name(text(request, "name"), &at(path, "name"), report);
    let alternatives = list(request, "firstAvailable");
    let place = at(path, "firstAvailable");
    for (index, one) in limited(request, "firstAvailable", MOST_ALTERNATIVES, path, report) {
        let path = item(&place, index);
        request_name(text(one, "name"), &at(&path, "name"), report);
        wanted(one, &path, report);
    }
    distinct(alternatives.iter().map(|one| text(one, "name")), &place, ".name", report);
    if has(request, "exactly") {
        wanted(get(request, "exactly"), &at(path, "exactly"), report);
    }
    match (has(request, "exactly"), alternatives.is_empty()) {
        (false, true) => report.required(path, ONE),
        (true, false) => {
            report.invalid_shown(path, "null", &format!("{ONE}, but multiple fields are set"));
        }
        (true, true) | (false, false) => {}
    }
}

/// Checks which devices are wanted, and how many.
fn wanted(wanted: &Value, path: &str, report: &mut Report) {
    let (class, place) = (text(wanted, "deviceClassName"), at(path, "deviceClassName"));
    if class.is_empty() {
        report.required(&place, "");
    } else {
        report.invalid_all(&place, class, names::subdomain(class));
    }
    selectors(wanted, path, report);
    let (count, place) = (int(wanted, "count").unwrap_or_default(), at(path, "count"));
    match text(wanted, "allocationMode") {
        "All" if count != 0 => {
            report.invalid(&place, count, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count <= 0 => report.invalid(&place, count, "must be greater than zero"),
        "All" | "ExactCount" => {}
        other => report.unsupported(&at(path, "allocationMode"), other, &["All", "ExactCount"]),
    }
    for (index, toleration) in list(wanted, "tolerations").iter().enumerate() {
        self::toleration(toleration, &item(&at(path, "tolerations"), index), report);
    }
}

fn toleration(toleration: &Value, path: &str, report: &mut Report) {
    let part = |field: &'static str| (text(toleration, field), at(path, field));
    let ((key, at_key), (value, at_value)) = (part("key"), part("value"));
    if !key.is_empty() {
        report.invalid_all(&at_key, key, names::qualified(key));
    }
    match part("operator") {
        ("Exists", _) if !value.is_empty() => {
            report.invalid(&at_value, value, "must be empty for operator `Exists`");
        }
        ("Exists", _) => {}
        ("Equal", _) => report.invalid_all(&at_value, value, names::label_value(value)),
        ("", path) => report.required(&path, ""),
        (other, path) => report.unsupported(&path, other, &["Equal", "Exists"]),
    }
    let (effect, place) = part("effect");
    report.one_of_or_empty(&place, effect, &["NoExecute", "NoSchedule"]);
}

fn selectors(object: &Value, path: &str, report: &mut Report) {
    for (index, selector) in limited(object, "selectors", MOST, path, report) {
        let path = at(&item(&at(path, "selectors"), index), "cel");
        if has(selector, "cel") {
            expression(text(selector, "cel.expression"), &at(&path, "expression"), report);
        } else {
            report.required(&path, "");
        }
    }
}

static DEVICES: LazyLock<(Environment, Declared)> = LazyLock::new(expressions::devices);

fn expression(expression: &str, path: &str, report: &mut Report) {
    if expression.len() > LARGEST {
        return report.too_long(path, LARGEST);
    }
    let (environment, declared) = &*DEVICES;
    let program = match Program::compile(expression, environment) {
        Ok(program) => program,
        Err(problems) => {
            return report.invalid(path, expression, &format!("compilation failed: {problems}"));
        }
    };
    match program.output() {
        Type::Bool | Type::Dyn => {}
        other => {
            let detail = format!("must evaluate to bool or the unknown type, not {other}");
            return report.invalid(path, expression, &detail);
        }
    }
    if let Some(problem) = program.unusable() {
        report.internal(path, &format!("program instantiation failed: {problem}"));
    } else if program.most_cost(Some(declared)) > MOST_COST {
        report.forbidden(path, "too complex, exceeds cost limit");
    }
}

fn constraint(constraint: &Value, known: &Requests<'_>, path: &str, report: &mut Report) {
    references(constraint, known, path, report);
    let attributes = ["matchAttribute", "distinctAttribute"];
    match attributes.into_iter().find_map(|field| Some((field, get(constraint, field).as_str()?))) {
        None => report.required(&at(path, "matchAttribute"), ""),
        Some((field, name)) => {
            let path = at(path, field);
            attribute_name(name, &path, report);
            if !name.is_empty() && !name.contains('/') {
                report.invalid(&path, name, "must include a domain");
            }
        }
    }
}

/// Checks the name of an attribute or a capacity, which may begin with a domain.
pub(super) fn attribute_name(name: &str, path: &str, report: &mut Report) {
    if name.is_empty() {
        return report.required(path, "name required");
    }
    let parts: Vec<&str> = name.split('/').collect();
    let local = match parts.as_slice() {
        [local] => *local,
        [domain, local] => {
            if domain.is_empty() {
                report.required(path, "the domain must not be empty");
            } else {
                driver_name(domain, path, report);
            }
            if local.is_empty() {
                return report.required(path, "the name must not be empty");
            }
            *local
        }
        // That there are too many parts is told nowhere.
        _ => return,
    };
    if local.len() > MOST {
        report.too_long(path, MOST);
    }
    report.invalid_all(path, local, names::c_identifier(local));
}

/// Checks that the requests that something is about are there.
pub(super) fn references(object: &Value, known: &Requests<'_>, path: &str, report: &mut Report) {
    let place = at(path, "requests");
    for (index, _) in limited(object, "requests", MOST, path, report) {
        let name = list(object, "requests").get(index).and_then(Value::as_str).unwrap_or_default();
        reference(name, known, &item(&place, index), report);
    }
    distinct(texts(object, "requests"), &place, "", report);
}

/// Checks the name of a request, or that of a request and one of its alternatives.
pub(super) fn reference(name: &str, known: &Requests<'_>, path: &str, report: &mut Report) {
    const DETAIL: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 {
        return report.invalid(path, name, DETAIL);
    }
    for part in &parts {
        request_name(part, path, report);
    }
    let is_known = match parts.as_slice() {
        [request] => known.contains_key(request),
        [request, one] => known.get(request).is_some_and(|names| names.contains(one)),
        _ => false,
    };
    if !is_known {
        report.invalid(path, name, DETAIL);
    }
}

/// Checks what a driver is told.
pub(super) fn configuration(config: &Value, path: &str, age: Age, report: &mut Report) {
    let path = at(path, "opaque");
    if !has(config, "opaque") {
        return report.required(&path, "");
    }
    driver_name(text(config, "opaque.driver"), &at(&path, "driver"), report);
    let parameters = get(config, "opaque.parameters");
    data(parameters, &at(&path, "parameters"), age, report);
}

/// Checks data of a driver: an object.
pub(super) fn data(data: &Value, path: &str, age: Age, report: &mut Report) {
    if data.is_null() {
        report.required(path, "");
    } else if age == Age::New && data.to_string().len() > LARGEST {
        report.too_long(path, LARGEST);
    } else if !data.is_object() {
        report.invalid(path, "<value omitted>", "must be a valid JSON object");
    }
}

/// Returns where a request of a claim asks for what only administrators may have.
pub(super) fn asks_as_administrator(claim: &Value) -> Option<String> {
    let requests = list(claim, "spec.devices.requests").iter();
    let index = requests.map(|one| get(one, "exactly.adminAccess")).position(|value| value == true)?;
    Some(format!("spec.devices.requests[{index}].adminAccess"))
}

//! Validation of what all objects have.

use std::collections::BTreeSet;

use objects::names::{self, NameRule};
use serde_json::{Map, Value, json};

use super::errors::{FieldError, Report, at, item};
use crate::fields::{flag, get, has, int, list, map, text};
use crate::kind::Kind;

/// All annotations together may have this many bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const FINALIZERS: &str = "metadata.finalizers";

/// The finalizers without a path that every object may have.
const STANDARD_FINALIZERS: &[&str] = &["orphan", "foregroundDeletion", "kubernetes"];

/// Returns how the objects of a built-in kind may be called.
pub(super) fn name_rule(kind: &Kind) -> NameRule {
    match (&*kind.group, &*kind.plural) {
        ("", "namespaces") | ("apps", "statefulsets") => NameRule::Label,
        ("", "services") => NameRule::Dns1035,
        ("rbac.authorization.k8s.io" | "apiregistration.k8s.io" | "certificates.k8s.io" | "policy", _)
        | ("", "events") => NameRule::PathSegment,
        ("networking.k8s.io", "ipaddresses") => NameRule::Address,
        _ => NameRule::Subdomain,
    }
}

/// Validates what an object of a built-in kind has in common with all others.
pub(super) fn validate_built_in(object: &Value, kind: &Kind, report: &mut Report) {
    validate(object, name_rule(kind), report);
    finalizer_paths(object, kind, report);
}

/// Reports finalizers that lack a path, if those of the kind need one.
fn finalizer_paths(object: &Value, kind: &Kind, report: &mut Report) {
    if takes_any_finalizer(kind) {
        return;
    }
    for (index, finalizer) in list(object, FINALIZERS).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if lacks_path(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            report.invalid(&item(FINALIZERS, index), name, detail);
        }
    }
}

/// Returns whether the finalizers of a built-in kind need no path, as those of custom objects.
fn takes_any_finalizer(kind: &Kind) -> bool {
    matches!(
        (&*kind.group, &*kind.plural),
        ("admissionregistration.k8s.io" | "apiextensions.k8s.io" | "apiregistration.k8s.io", _)
            | ("", "events")
            | ("coordination.k8s.io", "leases")
            | ("node.k8s.io", "runtimeclasses")
            | ("policy", "poddisruptionbudgets")
    )
}

fn lacks_path(finalizer: &str) -> bool {
    !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer)
}

/// Warns of finalizers of a custom object that it did not have before and that others may choose, too.
pub(super) fn warn_of_finalizers(new: &Value, old: &Value, report: &mut Report) {
    let was = list(old, FINALIZERS);
    let added: BTreeSet<&str> =
        list(new, FINALIZERS).iter().filter(|name| !was.contains(name)).filter_map(Value::as_str).collect();
    for name in added {
        let shown = golang::strconv::quote(name.as_bytes());
        if lacks_path(name) {
            let what = if name.contains('.') { " including a path (/)" } else { "" };
            report.warnings.push(format!(
                "{FINALIZERS}: {shown}: prefer a domain-qualified finalizer name{what} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
}

/// Validates what all objects have, custom ones too: the finalizers of those need no path.
pub(super) fn validate(object: &Value, rule: NameRule, report: &mut Report) {
    let (name, prefix) = (text(object, "metadata.name"), text(object, "metadata.generateName"));
    if !prefix.is_empty() {
        // The generated name ends with letters, so the prefix may end with a dash.
        let shown = prefix.trim_end_matches('-');
        report.invalid_all("metadata.generateName", prefix, rule.check(&format!("{shown}-x")));
    }
    if name.is_empty() {
        if prefix.is_empty() {
            report.required("metadata.name", "name or generateName is required");
        }
    } else {
        report.invalid_all("metadata.name", name, rule.check(name));
    }
    if let Some(generation) = int(object, "metadata.generation").filter(|g| *g < 0) {
        report.invalid("metadata.generation", generation, "must be greater than or equal to 0");
    }
    labels(get(object, "metadata.labels"), "metadata.labels", report);
    annotations(get(object, "metadata.annotations"), "metadata.annotations", report);
    owners(object, report);
    finalizers(object, report);
}

/// Validates an object at `path` inside of another one. It need not have a name.
pub(super) fn embedded(object: &Map<String, Value>, path: &str, report: &mut Report) {
    let field = |name: &str| object.get(name).and_then(Value::as_str);
    let empty = "must not be empty";
    match field("apiVersion") {
        Some("") => report.invalid(&at(path, "apiVersion"), "", empty),
        Some(version) if version.matches('/').count() > 1 => {
            let detail = format!("unexpected GroupVersion string: {version}");
            report.invalid(&at(path, "apiVersion"), version, &detail);
        }
        Some(_) | None => {}
    }
    match field("kind") {
        Some("") => report.invalid(&at(path, "kind"), "", empty),
        Some(kind) => mixed_case(&at(path, "kind"), kind, report),
        None => {}
    }
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return };
    let mut metadata = metadata.clone();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, namespace) = (text("name"), text("namespace").to_owned());
    if name.is_empty() {
        metadata.insert("name".to_owned(), "unnamed".into());
    }
    let mut found = Report::default();
    validate(&json!({"metadata": metadata}), NameRule::PathSegment, &mut found);
    if !namespace.is_empty() {
        found.invalid_all("metadata.namespace", &namespace, names::label(&namespace));
    }
    report
        .errors
        .extend(found.errors.into_iter().map(|error| FieldError { field: at(path, &error.field), ..error }));
}

/// Reports a kind that is no label when its letters are small.
pub(super) fn mixed_case(path: &str, kind: &str, report: &mut Report) {
    for detail in names::dns_1035(&kind.to_lowercase()) {
        let detail = format!("may have mixed case, but should otherwise match: {detail}");
        report.invalid(path, kind, &detail);
    }
}

pub(super) fn labels(labels: &Value, path: &str, report: &mut Report) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        report.invalid_all(path, key, names::qualified(key));
        let value = value.as_str().unwrap_or_default();
        report.invalid_all(path, value, names::label_value(value));
    }
}

fn annotations(annotations: &Value, path: &str, report: &mut Report) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        report.invalid_all(path, key, names::qualified(&key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        report.too_long(path, MAX_ANNOTATIONS);
    }
}

/// Validates the metadata of what others are made from: labels and annotations alone.
pub(super) fn template(metadata: &Value, path: &str, report: &mut Report) {
    annotations(get(metadata, "annotations"), &at(path, "annotations"), report);
    labels(get(metadata, "labels"), &at(path, "labels"), report);
    for (field, _) in metadata.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "annotations" | "labels") {
            report.forbidden(&at(path, field), "cannot be set");
        }
    }
}

/// Returns a reference with its keys in the order of the type.
fn shown_owner(owner: &Value) -> String {
    let keys = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let parts = keys.iter().filter_map(|key| owner.get(key).map(|value| format!("{key:?}:{value}")));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

fn owners(object: &Value, report: &mut Report) {
    const PATH: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in list(object, PATH) {
        let (version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
        if version.is_empty() || version.ends_with('/') || version.split('/').count() > 2 {
            report.invalid(&at(PATH, "apiVersion"), version, "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                report.invalid(&at(PATH, field), "", "must not be empty");
            }
        }
        if (version, kind) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            report.invalid_shown(PATH, &shown_owner(owner), detail);
        }
        if flag(owner, "controller") {
            let named = format!("{kind}/{}", text(owner, "name"));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {named}"
                );
                let shown: Vec<String> = list(object, PATH).iter().map(shown_owner).collect();
                report.invalid_shown(PATH, &format!("[{}]", shown.join(",")), &detail);
            } else {
                controller = Some(named);
            }
        }
    }
}

fn finalizers(object: &Value, report: &mut Report) {
    let (mut orphan, mut foreground) = (false, false);
    for finalizer in list(object, FINALIZERS) {
        let name = finalizer.as_str().unwrap_or_default();
        report.invalid_all(FINALIZERS, name, names::qualified(name));
        orphan |= name == "orphan";
        foreground |= name == "foregroundDeletion";
    }
    if orphan && foreground {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        report.invalid(FINALIZERS, get(object, FINALIZERS).clone(), detail);
    }
}

/// How often the rules of a kind look at the metadata of a new version, beside what is done with all writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// As that of a new object.
    pub(super) whole: usize,
    /// As a change.
    pub(super) changes: usize,
}

impl Checks {
    pub(super) fn of(kind: &Kind) -> Checks {
        let (whole, changes) = match (&*kind.group, &*kind.plural) {
            ("", "events") | ("policy", _) => (0, 0),
            ("" | "apps" | "batch", "services" | "podtemplates" | "resourcequotas" | "cronjobs")
            | ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets")
            | ("storage.k8s.io", "csidrivers")
            | (
                "apiextensions.k8s.io"
                | "autoscaling"
                | "coordination.k8s.io"
                | "events.k8s.io"
                | "scheduling.k8s.io",
                _,
            ) => (0, 1),
            ("", "limitranges")
            | ("admissionregistration.k8s.io" | "discovery.k8s.io" | "flowcontrol.apiserver.k8s.io", _) => {
                (1, 0)
            }
            ("", "persistentvolumes") | ("storage.k8s.io", "csinodes" | "volumeattachments") => (2, 0),
            ("", "persistentvolumeclaims") | ("rbac.authorization.k8s.io", _) => (2, 1),
            _ => (1, 1),
        };
        Checks { whole, changes }
    }

    /// Returns how often they look at it when the status is written.
    pub(super) fn of_status(kind: &Kind) -> Checks {
        let is_left = matches!(
            (&*kind.group, &*kind.plural),
            ("batch", "cronjobs") | ("policy" | "flowcontrol.apiserver.k8s.io", _)
        );
        Checks { whole: 0, changes: usize::from(!is_left) }
    }
}

/// Validates the metadata of a new version as often as a real server does; without a kind it is that of a custom object.
pub(super) fn validate_changed(
    new: &Value,
    old: &Value,
    kind: Option<&Kind>,
    checks: Checks,
    report: &mut Report,
) {
    let rule = kind.map_or(NameRule::Subdomain, name_rule);
    // All writes are held to the loosest rule of names.
    validate(new, NameRule::PathSegment, report);
    for _ in 0..checks.whole {
        validate(new, rule, report);
    }
    for _ in 0..=checks.changes {
        validate_update(new, old, report);
        labels(get(new, "metadata.labels"), "metadata.labels", report);
        annotations(get(new, "metadata.annotations"), "metadata.annotations", report);
        owners(new, report);
    }
    let Some(kind) = kind else { return };
    for _ in 0..checks.whole + checks.changes {
        finalizer_paths(new, kind, report);
    }
}

pub(super) fn validate_update(new: &Value, old: &Value, report: &mut Report) {
    const DELETION: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in ["name", "namespace", "uid", "creationTimestamp"].into_iter().chain(DELETION) {
        let path = at("metadata", field);
        let (is, was) = (get(new, &path), get(old, &path));
        // Only deletions set these.
        let is_new = DELETION.contains(&field) && has(new, &path);
        if is != was && (is_new || has(old, &path)) {
            report.invalid(&path, is.clone(), "field is immutable");
        }
    }
    if let (Some(is), Some(was)) = (int(new, "metadata.generation"), int(old, "metadata.generation"))
        && is < was
    {
        report.invalid("metadata.generation", is, "must not be decremented");
    }
    if has(old, "metadata.deletionTimestamp") {
        let known = list(old, "metadata.finalizers");
        let added: Vec<&Value> =
            list(new, "metadata.finalizers").iter().filter(|f| !known.contains(f)).collect();
        if !added.is_empty() {
            let added: Vec<String> =
                added.iter().filter_map(|f| f.as_str()).map(|f| format!("{f:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            report.forbidden("metadata.finalizers", &detail);
        }
    }
}

pub(super) fn selector(selector: &Value, path: &str, report: &mut Report) {
    labels(get(selector, "matchLabels"), &at(path, "matchLabels"), report);
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = item(&at(path, "matchExpressions"), index);
        let (operator, values) = (text(expression, "operator"), list(expression, "values"));
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                report.required(&at(&path, "values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.forbidden(&at(&path, "values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => report.invalid(&at(&path, "operator"), operator, "not a valid selector operator"),
        }
        let key = text(expression, "key");
        report.invalid_all(&at(&path, "key"), key, names::qualified(key));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            report.invalid_all(&item(&at(&path, "values"), index), value, names::label_value(value));
        }
    }
}

/// Returns whether labels match a selector; an empty selector matches everything, none matches nothing.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let label = |key: &str| labels.get(key);
    let equal = map(selector, "matchLabels").iter().all(|(key, value)| label(key) == Some(value));
    equal
        && list(selector, "matchExpressions").iter().all(|expression| {
            let found = label(text(expression, "key"));
            let inside = found.is_some_and(|value| list(expression, "values").contains(value));
            match text(expression, "operator") {
                "In" => inside,
                "NotIn" => !inside,
                "Exists" => found.is_some(),
                _ => found.is_none(),
            }
        })
}

//! Which webhooks are asked about a write: by rules, namespaces and labels.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::asked::Asked;
use crate::admission::condition;
use crate::admission::given::Given;
use crate::fields::{get, list, text, texts};
use crate::kind::{Kind, join_group_version};
use crate::object_meta;
use crate::registry::Resource;
use crate::status::{ApiError, Outcome};

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Webhook {
    pub(super) spec: Value,
}

impl Webhook {
    /// Returns the webhooks of a configuration.
    pub(super) fn all_of(configuration: &Value) -> Vec<Webhook> {
        list(configuration, "webhooks").iter().map(|spec| Webhook { spec: spec.clone() }).collect()
    }

    pub(super) fn name(&self) -> &str {
        text(&self.spec, "name")
    }
}

/// Returns in which version of the kind a webhook is asked about a write; `None` if it is not asked.
///
/// # Errors
///
/// When its conditions can't be evaluated and that is a reason to refuse, or when it can't be asked in a dry run.
pub(super) fn matching(
    asked: Asked<'_>,
    webhook: &Webhook,
    object: Option<&Value>,
) -> Outcome<Option<Arc<Resource>>> {
    let spec = &webhook.spec;
    let Some(version) = version(list(spec, "rules"), text(spec, "matchPolicy") == "Exact", asked) else {
        return Ok(None);
    };
    if !selects_namespace(get(spec, "namespaceSelector"), asked, object)
        || !selects_object(get(spec, "objectSelector"), asked, object)
    {
        return Ok(None);
    }
    if asked.is_dry_run && !["None", "NoneOnDryRun"].contains(&text(spec, "sideEffects")) {
        let message = format!("admission webhook {:?} does not support dry run", webhook.name());
        return Err(ApiError::bad_request(message));
    }
    let conditions = list(spec, "matchConditions");
    if conditions.is_empty() {
        return Ok(Some(version));
    }
    let given = Given::new(asked, &version.kind, object);
    match condition::hold(conditions, &given, false) {
        Ok(hold) => Ok(hold.then_some(version)),
        Err(_) if text(spec, "failurePolicy") == "Ignore" => Ok(None),
        Err(problem) => {
            let kind = &asked.request.resource.kind;
            let name =
                [object, asked.old].into_iter().flatten().map(|object| object_meta::text(object, "name"));
            let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            Err(ApiError::forbidden(kind, name, &problem))
        }
    }
}

/// Returns the version of the kind that a rule names: that of the request, or else another one if versions count as equal.
///
/// Versions count as equal that show the same stored objects.
pub(crate) fn version(rules: &[Value], is_exact: bool, asked: Asked<'_>) -> Option<Arc<Resource>> {
    let own = &asked.request.resource;
    let is_named = |kind: &Kind| rules.iter().any(|rule| follows(rule, asked, kind));
    if is_named(&own.kind) {
        return Some(Arc::clone(own));
    }
    if is_exact {
        return None;
    }
    let resources = asked.request.cluster.registry.resources();
    let shows_the_same = |other: &&Arc<Resource>| {
        other.table == own.table && other.api_version != own.api_version && is_named(&other.kind)
    };
    // The order is that of discovery: newer versions come first.
    let versions = resources.groups().iter().flat_map(|(group, versions)| {
        versions
            .iter()
            .filter_map(|version| resources.find(&join_group_version(group, version), &own.kind.plural))
    });
    versions.into_iter().find(shows_the_same).cloned()
}

fn follows(rule: &Value, asked: Asked<'_>, kind: &Kind) -> bool {
    let names = |field: &str, wanted: &str| texts(rule, field).any(|name| name == "*" || name == wanted);
    let scope = match text(rule, "scope") {
        "Cluster" => !kind.namespaced,
        "Namespaced" => kind.namespaced,
        _ => true,
    };
    let part = asked.part();
    let mut allowed = texts(rule, "resourceNames").peekable();
    let is_name = allowed.peek().is_none() || asked.name().is_some_and(|name| allowed.any(|one| one == name));
    scope
        && is_name
        && names("operations", asked.operation.as_str())
        && names("apiGroups", &kind.group)
        && names("apiVersions", &kind.version)
        && texts(rule, "resources").any(|resource| is_resource(resource, &kind.plural, part))
}

/// Returns whether a rule's resource means this resource and part of it: `pods`, `pods/status`, `*/scale`, `*/*`.
fn is_resource(rule: &str, plural: &str, part: &str) -> bool {
    let (resource, rule_part) = rule.split_once('/').unwrap_or((rule, ""));
    let is_part = if rule_part == "*" { true } else { rule_part == part };
    (resource == "*" || resource == plural) && is_part
}

pub(crate) fn selects_namespace(selector: &Value, asked: Asked<'_>, object: Option<&Value>) -> bool {
    if is_everything(selector) {
        return true;
    }
    if asked.request.resource.is("", "namespaces") {
        return selects(selector, labels(object.or(asked.old)));
    }
    let Some(namespace) = asked.request.namespace.as_deref() else { return true };
    let found = asked.request.cluster.storage.find("/namespaces", None, namespace);
    let found = found.map(|namespace| namespace.value());
    selects(selector, labels(found.as_ref()))
}

pub(crate) fn selects_object(selector: &Value, asked: Asked<'_>, object: Option<&Value>) -> bool {
    // What has no metadata has no labels, not even absent ones.
    let has_labels = |object: &Value| object.get("metadata").is_some();
    let selects =
        |object: Option<&Value>| object.is_some_and(has_labels) && selects(selector, labels(object));
    is_everything(selector) || selects(object) || selects(asked.old)
}

fn is_everything(selector: &Value) -> bool {
    get(selector, "matchLabels").as_object().is_none_or(Map::is_empty)
        && list(selector, "matchExpressions").is_empty()
}

fn labels(object: Option<&Value>) -> Option<&Map<String, Value>> {
    object?.pointer("/metadata/labels")?.as_object()
}

/// Returns whether labels fit a selector.
pub(crate) fn selects(selector: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = get(selector, "matchLabels").as_object().into_iter().flatten();
    let fits = |expression: &Value| {
        let value = label(text(expression, "key"));
        let is_one = value.is_some_and(|value| texts(expression, "values").any(|wanted| wanted == value));
        match text(expression, "operator") {
            "In" => is_one,
            "NotIn" => !is_one,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    wanted.into_iter().all(|(key, value)| label(key) == value.as_str())
        && list(selector, "matchExpressions").iter().all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_mean_parts_only_where_they_say_so() {
        let cases = [
            ("pods", "", true),
            ("pods", "status", false),
            ("pods/status", "status", true),
            ("pods/status", "", false),
            ("pods/*", "", true),
            ("pods/*", "exec", true),
            ("*/status", "status", true),
            ("*", "", true),
            ("*", "status", false),
            ("*/*", "scale", true),
            ("secrets", "", false),
        ];
        for (rule, part, expected) in cases {
            assert_eq!(is_resource(rule, "pods", part), expected, "{rule} {part:?}");
        }
    }

    #[test]
    fn selectors_fit_as_in_kubernetes() {
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        let is = |selector: Value| selects(&selector, labels(Some(&object)));
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(is(json!({"matchLabels": {"app": "web"}})) && !is(json!({"matchLabels": {"app": "db"}})));
        assert!(is(expression("In", "app", &["web"])) && !is(expression("In", "tier", &["web"])));
        assert!(!is(expression("NotIn", "app", &["web"])) && is(expression("NotIn", "tier", &["web"])));
        assert!(is(expression("Exists", "app", &[])) && is(expression("DoesNotExist", "tier", &[])));
    }
}

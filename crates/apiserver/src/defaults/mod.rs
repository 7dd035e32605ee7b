//! What servers fill in for fields that were not given.
//!
//! Most of it is data: the defaults of the published schemas and of `data/defaults.tsv`, by type. The rest depends on other
//! fields and is in `special.rs`.

mod fields;
mod special;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use objects::types::{Object, Shape};
use serde_json::Value;

use fields::{Fields, is_absent};

static TABLE: LazyLock<BTreeMap<&'static str, Vec<(&'static str, Value)>>> = LazyLock::new(|| {
    let mut table: BTreeMap<&str, Vec<(&str, Value)>> = BTreeMap::new();
    for line in include_str!("../../data/defaults.tsv").lines() {
        let mut parts = line.splitn(3, '\t');
        let (Some(kind), Some(field), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if let Ok(value) = serde_json::from_str(json) {
            table.entry(kind).or_default().push((field, value));
        }
    }
    table
});

/// Fills in what `value`, an object of `shape`, lacks.
pub fn apply(value: &mut Value, shape: &Shape) {
    match (value, shape) {
        (Value::Object(fields), Shape::Named(name)) => {
            if let Some(object) = name.object() {
                apply_to_object(fields, object);
            }
        }
        (Value::Array(items), Shape::List(item, _)) => {
            for value in items {
                apply(value, item);
            }
        }
        (Value::Object(entries), Shape::Map(item, _)) => {
            for value in entries.values_mut() {
                apply(value, item);
            }
        }
        (_, _) => {}
    }
}

fn apply_to_object(fields: &mut Fields, object: &Object) {
    let key: &str = &object.short;
    special::before(key, fields);
    for (field, value) in TABLE.get(key).into_iter().flatten() {
        let known = object.field(field);
        let zero = fields.get(*field).is_some_and(|value| value.is_number() && is_zero(value));
        let unset = zero && known.is_some_and(|known| !known.pointer);
        if unset || is_absent(fields.get(*field)) {
            fields.insert((*field).to_owned(), value.clone());
        }
    }
    for field in &object.fields {
        let Some(default) = field.default.as_deref() else {
            continue;
        };
        let says_something = field.pointer || !is_zero(default);
        if says_something && is_absent(fields.get(&*field.name)) {
            fields.insert(field.name.to_string(), default.clone());
        }
    }
    for (key, value) in fields.iter_mut() {
        if (value.is_object() || value.is_array())
            && let Some(field) = object.field(key)
        {
            apply(value, &field.shape);
        }
    }
    special::after(key, fields);
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "tests read better so")]
    use super::*;
    use objects::{decode, types};
    use serde_json::json;

    fn completed(group: &str, version: &str, object: Value) -> Value {
        let kind = object["kind"].as_str().unwrap();
        let shape = Shape::Named(types::name_of_kind(group, version, kind).unwrap());
        let mut value = decode::typed(decode::Node::from(object.clone()), &shape).unwrap().value;
        apply(&mut value, &shape);
        value
    }

    #[test]
    fn every_line_of_the_table_names_a_field() {
        for (key, fields) in TABLE.iter().filter(|(key, _)| !key.starts_with('#')) {
            let candidates = [
                "io.k8s.api.",
                "io.k8s.apiextensions-apiserver.pkg.apis.",
                "io.k8s.kube-aggregator.pkg.apis.",
            ];
            let object = candidates.iter().find_map(|prefix| types::named(&format!("{prefix}{key}")));
            for (field, _) in fields {
                assert!(object.unwrap_or_else(|| panic!("{key}")).field(field).is_some(), "{key} {field}");
            }
        }
    }

    #[test]
    fn a_pod_is_completed() {
        let pod = completed(
            "",
            "v1",
            json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {
                "containers": [{"name": "a", "image": "x:1", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}, "resources": {"limits": {"cpu": "1"}}}],
                "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}],
            }}),
        );
        let expected = json!({
            "kind": "Pod", "metadata": {"name": "a"}, "status": {},
            "spec": {
                "containers": [{
                    "name": "a", "image": "x:1", "imagePullPolicy": "IfNotPresent", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                }],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}],
                "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30,
            },
        });
        assert_eq!(pod, expected);
    }

    #[test]
    fn a_deployment_and_a_job_are_completed() {
        let deployment =
            completed("apps", "v1", json!({"kind": "Deployment", "spec": {"template": {"spec": {}}}}));
        assert_eq!(
            deployment["spec"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
        );
        assert_eq!(deployment["spec"]["replicas"], json!(1));
        let recreate = completed(
            "apps",
            "v1",
            json!({"kind": "Deployment", "spec": {"strategy": {"type": "Recreate"}}}),
        );
        assert_eq!(recreate["spec"]["strategy"], json!({"type": "Recreate"}));
        let job = completed(
            "batch",
            "v1",
            json!({"kind": "Job", "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
        );
        assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!((&job["spec"]["completions"], &job["spec"]["backoffLimit"]), (&json!(1), &json!(6)));
    }

    #[test]
    fn a_service_and_a_secret_are_completed() {
        let service = completed("", "v1", json!({"kind": "Service", "spec": {"ports": [{"port": 80}]}}));
        let expected = json!({"internalTrafficPolicy": "Cluster", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "sessionAffinity": "None", "type": "ClusterIP"});
        assert_eq!(service["spec"], expected);
        let secret = completed("", "v1", json!({"kind": "Secret", "stringData": {"a": "x"}}));
        assert_eq!(
            (&secret["data"], &secret["type"], secret.get("stringData")),
            (&json!({"a": "eA=="}), &json!("Opaque"), None)
        );
    }
}

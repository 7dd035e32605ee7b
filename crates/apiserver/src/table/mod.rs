//! Objects as rows of a table, as `kubectl get` shows them.

mod age;
mod cells;
mod column;
mod jsonpath;
mod network;
mod pod;
mod storage;
mod text;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use age::human_duration;
pub(crate) use age::since;
pub use column::{Column, columns, custom_columns};
pub use jsonpath::JsonPath;

use crate::kind::Kind;

/// Returns the definitions of columns as a `Table` carries them.
pub fn definitions(columns: &[Column]) -> Value {
    let definition = |column: &Column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    };
    Value::Array(columns.iter().map(definition).collect())
}

/// Returns the cells of one object, one for each column.
pub fn cells(columns: &[Column], object: &Value, now: Timestamp) -> Vec<Value> {
    columns.iter().map(|column| column.cell(object, now)).collect()
}

/// Returns the conditions of a row: pods that have ended are marked.
pub fn conditions(kind: &Kind, object: &Value) -> Option<Value> {
    if !(kind.plural == "pods" && kind.group.is_empty()) {
        return None;
    }
    let (reason, message) = match object.pointer("/status/phase").and_then(Value::as_str) {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    fn row(group: &str, version: &str, plural: &str, object: &Value) -> String {
        let kind = kind::find(group, version, plural).unwrap();
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let cells = cells(&columns(kind), object, now);
        Value::Array(cells).to_string()
    }

    #[test]
    fn every_listed_kind_has_columns_whose_values_are_known() {
        let now = Timestamp::UNIX_EPOCH;
        for kind in kind::builtin().iter().filter(|kind| kind.allows(kind::Verb::List)) {
            let columns = columns(kind);
            assert!(columns.len() > 1, "{kind:?}");
            assert!(columns.iter().all(Column::is_known), "{kind:?}");
            assert_eq!(cells(&columns, &json!({}), now).len(), columns.len());
        }
    }

    #[test]
    fn rows_look_as_people_know_them() {
        let meta = json!({"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let pod = json!({"metadata": meta, "spec": {"nodeName": "n", "containers": [{"name": "x"}, {"name": "y"}]}, "status": {
            "phase": "Running", "podIPs": [{"ip": "10.0.0.1"}],
            "containerStatuses": [{"name": "x", "ready": true, "restartCount": 2, "state": {"running": {}}}, {"name": "y", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        }});
        assert_eq!(
            row("", "v1", "pods", &pod),
            r#"["a","1/2","CrashLoopBackOff","2","60m","10.0.0.1","n","<none>","<none>"]"#
        );
        let template = json!({"spec": {"containers": [{"name": "x", "image": "i"}]}});
        let deployment = json!({"metadata": meta, "spec": {"replicas": 3, "template": template, "selector": {"matchLabels": {"b": "2", "a": "1"}}}, "status": {"readyReplicas": 1}});
        assert_eq!(
            row("apps", "v1", "deployments", &deployment),
            r#"["a","1/3",0,0,"60m","x","i","a=1,b=2"]"#
        );
        let service = json!({"metadata": meta, "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.9"], "ports": [{"port": 80, "protocol": "TCP", "nodePort": 3000}]}});
        assert_eq!(
            row("", "v1", "services", &service),
            r#"["a","LoadBalancer","10.0.0.9","<pending>","80:3000/TCP","60m","<none>"]"#
        );
        let map = json!({"metadata": meta, "data": {"a": "1"}, "binaryData": {"b": ""}});
        assert_eq!(row("", "v1", "configmaps", &map), r#"["a",2,"60m"]"#);
    }

    #[test]
    fn printer_columns_of_definitions_are_shown() {
        let columns = custom_columns(&json!([
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 1},
            {"name": "Since", "type": "date", "jsonPath": ".status.since"},
            {"name": "Gone", "type": "string", "jsonPath": ".spec.gone"},
        ]));
        let object = json!({"metadata": {"name": "a"}, "spec": {"size": 3}, "status": {"since": "2026-01-01T00:59:00Z", "conditions": [{"type": "X", "status": "1"}, {"type": "Ready", "status": "True"}]}});
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(Value::Array(cells(&columns, &object, now)).to_string(), r#"["a",3,"True","60s",null]"#);
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["Name", "Size", "Ready", "Since", "Gone"]);
        assert_eq!(custom_columns(&Value::Null).len(), 2);
    }
}

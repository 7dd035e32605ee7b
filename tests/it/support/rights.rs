//! The rights that the installation gives to the operator, and whether they allow a request.

use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::files::{root, tracked_below};

/// Returns the manifests of the installation in the order in which `kubectl apply -f` takes them.
pub(crate) fn manifests() -> Vec<Value> {
    let files: Vec<&Path> = tracked_below(&root().join("examples/install")).collect();
    let yaml = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    yaml.flat_map(|path| values::yaml::parse_all(&fs::read_to_string(path).unwrap()).unwrap())
        .filter(|object| !object.is_null())
        .collect()
}

/// A request to the API server, as its audit log has it.
pub(crate) struct Request(Value);

impl Request {
    /// Reads a line of the audit log.
    pub(crate) fn of_audit(line: &str) -> Self {
        Self(serde_json::from_str(line).unwrap())
    }

    /// Returns what a client sends, as the audit log would have it; nothing for what is about no resource. The namespace of the
    /// operator has the name that it has in the manifests.
    pub(crate) fn of_client<B>(request: &http::Request<B>, namespace: &str) -> Option<Self> {
        let path = request.uri().path();
        let core = path.strip_prefix("/api/").map(|rest| ("", rest));
        let (group, rest) = core.or_else(|| path.strip_prefix("/apis/")?.split_once('/'))?;
        let (_version, rest) = rest.split_once('/')?;
        let mut parts: Vec<&str> = rest.split('/').collect();
        let mut place = Value::Null;
        if parts[0] == "namespaces" && parts.len() > 2 {
            place = if parts[1] == namespace { "addon-operator".into() } else { parts[1].into() };
            parts.drain(..2);
        }
        let part = |number: usize| parts.get(number).copied().unwrap_or_default();
        let query = request.uri().query().unwrap_or_default();
        let verb = match (request.method().as_str(), part(1)) {
            ("GET", _) if query.contains("watch=") => "watch",
            ("GET", "") => "list",
            ("GET", _) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            (other, _) => other,
        };
        Some(Self(json!({
            "group": group, "resource": part(0), "name": part(1), "subresource": part(2), "verb": verb, "namespace": place,
            "query": query,
        })))
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// Returns whether one of the rules lets the operator do it.
    pub(crate) fn is_allowed(&self, manifests: &[Value]) -> bool {
        let roles = manifests.iter().filter(|object| match object["kind"].as_str() {
            Some("ClusterRole") => true,
            Some("Role") => object["metadata"]["namespace"] == self.0["namespace"],
            _ => false,
        });
        let granted = roles.flat_map(|role| role["rules"].as_array().unwrap());
        let resource = match self.text("subresource") {
            "" => self.text("resource").to_owned(),
            part => format!("{}/{part}", self.text("resource")),
        };
        let has = |list: &Value, word: &str| list.as_array().unwrap().iter().any(|item| item == word);
        granted.into_iter().any(|rule| {
            has(&rule["apiGroups"], self.text("group"))
                && has(&rule["resources"], &resource)
                && has(&rule["verbs"], self.text("verb"))
                && (rule["resourceNames"].is_null() || self.is_named(&rule["resourceNames"]))
        })
    }

    /// Returns whether it is about one of the names; a list or watch may select the name by its field.
    fn is_named(&self, names: &Value) -> bool {
        let query = self.text("query").replace("%3D", "=");
        let selected = query.split('&').find_map(|pair| pair.strip_prefix("fieldSelector=metadata.name="));
        let name = selected.unwrap_or(self.text("name"));
        names.as_array().unwrap().iter().any(|known| known == name)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

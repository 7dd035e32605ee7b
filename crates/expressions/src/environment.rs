//! The variables that expressions of one kind have.

use std::collections::BTreeMap;

use crate::types::Type;

/// The variables that expressions of one kind have, and their types.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Type>,
    binds: bool,
}

impl Environment {
    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// Lets expressions give values names: `cel.bind(name, value, expression)`.
    #[must_use]
    pub(crate) fn binding(self) -> Self {
        Self { binds: true, ..self }
    }

    pub(crate) fn binds(&self) -> bool {
        self.binds
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }
}

/// What expressions about a write are given: `object`, `oldObject`, `request`, `namespaceObject`, and what is asked for.
pub fn admission(has_params: bool, has_authorizer: bool) -> Environment {
    let mut environment = Environment::default()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("namespaceObject", namespace())
        .with("request", request());
    if has_params {
        environment = environment.with("params", Type::Dyn);
    }
    if has_authorizer {
        environment = environment
            .with("authorizer", Type::Opaque("kubernetes.authorization.Authorizer"))
            .with("authorizer.requestResource", Type::Opaque("kubernetes.authorization.ResourceCheck"));
    }
    environment
}

fn texts(names: &[&str]) -> Vec<(String, Type)> {
    names.iter().map(|name| ((*name).to_owned(), Type::String)).collect()
}

fn request() -> Type {
    let kind = Type::object("kubernetes.GroupVersionKind", texts(&["group", "version", "kind"]));
    let resource = Type::object("kubernetes.GroupVersionResource", texts(&["group", "version", "resource"]));
    let mut user = texts(&["username", "uid"]);
    user.push(("groups".to_owned(), Type::list(Type::String)));
    user.push(("extra".to_owned(), Type::map(Type::String, Type::list(Type::String))));
    let mut fields = texts(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    for (name, of) in [
        ("kind", kind.clone()),
        ("requestKind", kind),
        ("resource", resource.clone()),
        ("requestResource", resource),
        ("userInfo", Type::object("kubernetes.UserInfo", user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ] {
        fields.push((name.to_owned(), of));
    }
    Type::object("kubernetes.AdmissionRequest", fields)
}

fn namespace() -> Type {
    let mut metadata = texts(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    for (name, of) in [
        ("labels", Type::map(Type::String, Type::String)),
        ("annotations", Type::map(Type::String, Type::String)),
        ("creationTimestamp", Type::Timestamp),
        ("deletionTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("generation", Type::Int),
        ("finalizers", Type::list(Type::String)),
    ] {
        metadata.push((name.to_owned(), of));
    }
    let mut condition = texts(&["status", "type", "message", "reason"]);
    condition.push(("lastTransitionTime".to_owned(), Type::Timestamp));
    let condition = Type::object("kubernetes.NamespaceCondition", condition);
    let mut status = texts(&["phase"]);
    status.push(("conditions".to_owned(), Type::list(condition)));
    let spec = [("finalizers".to_owned(), Type::list(Type::String))];
    Type::object(
        "kubernetes.Namespace",
        [
            ("metadata".to_owned(), Type::object("kubernetes.NamespaceMetadata", metadata)),
            ("spec".to_owned(), Type::object("kubernetes.NamespaceSpec", spec)),
            ("status".to_owned(), Type::object("kubernetes.NamespaceStatus", status)),
        ],
    )
}

//! What expressions about a write are given: objects, the request, its namespace, parameters, and who may do what.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use expressions::{AccessCheck, Activation, Failure, Key, Opaque, PER_CALL_LIMIT, Program, Value as Cel};
use serde_json::Value;

use crate::admission::webhook::{Asked, review};
use crate::authentication::User;
use crate::authorization::{self, Attributes};
use crate::kind::Kind;

/// What expressions about a write are given.
pub(crate) struct Given<'a> {
    asked: Asked<'a>,
    values: BTreeMap<&'static str, Cel>,
    /// Expressions with names, which others can use. They are evaluated when they are used, once.
    variables: &'a [(String, Program)],
    computed: RefCell<BTreeMap<String, Result<Cel, Failure>>>,
    /// What variables have cost since somebody asked.
    cost: Cell<u64>,
}

impl<'a> Given<'a> {
    /// Returns what conditions of a webhook are given, with the kind in the version that it is asked in.
    pub(crate) fn new(asked: Asked<'a>, shown: &Kind, object: Option<&Value>) -> Self {
        Self::with(asked, shown, (asked.old, object), &[])
    }

    /// Returns what expressions of a policy are given.
    pub(crate) fn with(
        asked: Asked<'a>,
        shown: &Kind,
        (old, object): (Option<&Value>, Option<&Value>),
        variables: &'a [(String, Program)],
    ) -> Self {
        let of = |object: Option<&Value>| object.map_or(Cel::Null, Cel::of);
        let (request, kind) = (asked.request, &asked.request.resource.kind);
        let name = asked.name().unwrap_or_default();
        let about = Value::Object(review::about(asked, shown, name));
        let own = AccessCheck {
            group: kind.group.to_string(),
            resource: kind.plural.to_string(),
            subresource: asked.part().to_owned(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: name.to_owned(),
            ..AccessCheck::default()
        };
        let check = |check: AccessCheck| Cel::Opaque(Opaque::Check(Arc::new(check)));
        let values = BTreeMap::from([
            ("object", of(object)),
            ("oldObject", of(old)),
            ("request", Cel::of(&about)),
            ("namespaceObject", namespace(asked)),
            ("params", Cel::Null),
            ("authorizer", check(AccessCheck::default())),
            ("authorizer.requestResource", check(own)),
        ]);
        Self { asked, values, variables, computed: RefCell::default(), cost: Cell::new(0) }
    }

    /// Sets the parameters of a policy.
    pub(crate) fn set_params(&mut self, params: Option<&Value>) {
        self.values.insert("params", params.map_or(Cel::Null, Cel::of));
        self.computed.borrow_mut().clear();
    }

    /// Returns what variables have cost since this was asked before.
    pub(crate) fn take_cost(&self) -> u64 {
        self.cost.take()
    }
}

/// Returns the namespace of a write as expressions see it.
fn namespace(asked: Asked<'_>) -> Cel {
    const METADATA: [&str; 9] = [
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "finalizers",
    ];
    let Some(name) = asked.request.namespace.as_deref() else { return Cel::Null };
    let found = asked.request.cluster.storage.find("/namespaces", None, name);
    let Some(found) = found.map(|found| found.value()) else { return Cel::Null };
    let metadata = found.get("metadata").and_then(Value::as_object);
    let mut shown: BTreeMap<Key, Cel> = metadata
        .into_iter()
        .flatten()
        .filter(|(field, _)| METADATA.contains(&field.as_str()))
        .map(|(field, value)| (Key::text(field), Cel::of(value)))
        .collect();
    for (field, name) in [
        ("uid", "UID"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
    ] {
        let Some(Value::String(text)) = metadata.and_then(|metadata| metadata.get(field)) else { continue };
        let value = if name == "UID" { Cel::text(text.as_str()) } else { Cel::timestamp(text) };
        shown.insert(Key::text(name), value);
    }
    let part = |field: &str| (Key::text(field), found.get(field).map_or(Cel::Null, Cel::of));
    Cel::map([(Key::text("metadata"), Cel::map(shown)), part("spec"), part("status")])
}

impl Activation for Given<'_> {
    fn variable(&self, name: &str) -> Option<Cel> {
        self.values.get(name).cloned()
    }

    fn composed(&self, name: &str) -> Option<Result<Cel, Failure>> {
        if let Some(known) = self.computed.borrow().get(name) {
            return Some(known.clone());
        }
        let (_, program) = self.variables.iter().find(|(variable, _)| variable == name)?;
        let outcome = program.run(self, PER_CALL_LIMIT);
        self.cost.set(self.cost.get().saturating_add(outcome.cost));
        let value = outcome.value.map_err(|failure| Failure {
            text: format!("composited variable {name:?} fails to evaluate: {failure}"),
            kind: failure.kind,
        });
        self.computed.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    }

    fn allows(&self, check: &AccessCheck) -> (bool, String) {
        let user = match &check.account {
            Some((namespace, name)) => {
                User { is_impersonated: true, ..User::service_account(namespace, name, "") }
            }
            None => self.asked.request.user.clone(),
        };
        let attributes = Attributes {
            verb: check.verb.clone(),
            group: check.group.clone(),
            resource: check.resource.clone(),
            subresource: check.subresource.clone(),
            namespace: check.namespace.clone(),
            name: check.name.clone(),
            path: check.path.clone(),
        };
        (authorization::is_allowed(&self.asked.request.cluster, &user, &attributes), String::new())
    }
}

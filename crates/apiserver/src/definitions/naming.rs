//! Names of custom kinds: whether they are free, and the conditions in the status that say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use golang::strconv::quote;
use serde_json::{Map, Value, json};

use crate::fields::{get, text, texts};
use crate::sync::lock;

/// The names that definitions have, by the name of the definition.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<String, Given>>);

/// The names that a definition has in its group.
#[derive(Debug)]
struct Given {
    group: String,
    accepted: Value,
    /// Whether it wants others, too.
    wants_more: bool,
}

/// Which names a definition gets.
pub(crate) struct Verdict {
    accepted: Value,
    /// Why a name is not free: reason and text.
    conflict: Option<(&'static str, String)>,
}

impl Names {
    /// Keeps the names that a definition has.
    pub(crate) fn keep(&self, object: &Value) {
        let given = Given {
            group: text(object, "spec.group").to_owned(),
            accepted: get(object, "status.acceptedNames").clone(),
            wants_more: get(object, "spec.names") != get(object, "status.acceptedNames"),
        };
        lock(&self.0).insert(text(object, "metadata.name").to_owned(), given);
    }

    /// Gives a definition the names that it wants, as far as the others of its group do not have them.
    ///
    /// Returns the verdict, and the definitions that may get names now.
    pub(crate) fn give(&self, object: &Value) -> (Verdict, Vec<String>) {
        let (name, group) = (text(object, "metadata.name"), text(object, "spec.group"));
        let had = get(object, "status.acceptedNames");
        let mut all = lock(&self.0);
        let others = all.iter().filter(|(other, given)| *other != name && given.group == group);
        let verdict = verdict(get(object, "spec.names"), had, others.map(|(_, given)| &given.accepted));
        let freed = if verdict.accepted == *had { Vec::new() } else { waiting(&all, group, name) };
        let (accepted, wants_more) = (verdict.accepted.clone(), verdict.conflict.is_some());
        all.insert(name.to_owned(), Given { group: group.to_owned(), accepted, wants_more });
        (verdict, freed)
    }

    /// Takes away the names of a definition that is gone; returns the definitions that may get them now.
    pub(crate) fn take(&self, name: &str) -> Vec<String> {
        let mut all = lock(&self.0);
        all.remove(name).map(|gone| waiting(&all, &gone.group, name)).unwrap_or_default()
    }
}

/// Returns the definitions of a group that want other names than they have, but for one.
fn waiting(all: &BTreeMap<String, Given>, group: &str, but: &str) -> Vec<String> {
    let waiting = all.iter().filter(|(name, given)| given.group == group && given.wants_more && *name != but);
    waiting.map(|(name, _)| name.clone()).collect()
}

/// Returns which of the names that are asked for a definition gets that `had` some. The last conflict is told.
fn verdict<'a>(asked: &Value, had: &Value, others: impl Iterator<Item = &'a Value>) -> Verdict {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        resources.extend([text(other, "plural"), text(other, "singular")]);
        resources.extend(texts(other, "shortNames"));
        kinds.extend([text(other, "kind"), text(other, "listKind")]);
    }
    let mut accepted = had.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (field, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let taken = if matches!(field, "kind" | "listKind") { &kinds } else { &resources };
        let errors = if field == "shortNames" {
            let known: Vec<&str> = texts(had, field).collect();
            let new = texts(asked, field).filter(|name| !known.contains(name));
            new.filter(|name| taken.contains(name)).map(in_use).collect()
        } else {
            let name = text(asked, field);
            let is_taken = name != text(had, field) && taken.contains(name);
            Vec::from_iter(is_taken.then(|| in_use(name)))
        };
        match errors.as_slice() {
            [] => put(&mut accepted, field, get(asked, field)),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    put(&mut accepted, "categories", get(asked, "categories"));
    Verdict { accepted: Value::Object(accepted), conflict }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", quote(name.as_bytes()))
}

fn put(names: &mut Map<String, Value>, field: &str, asked: &Value) {
    if asked.is_null() || asked.as_array().is_some_and(Vec::is_empty) {
        names.remove(field);
    } else {
        names.insert(field.to_owned(), asked.clone());
    }
}

/// Writes the verdict into the status; returns whether that changed anything.
pub(crate) fn write_status(object: &mut Value, verdict: &Verdict, now: &str) -> bool {
    let before = object.get("status").cloned();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    let was_established = is_established(object);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("acceptedNames".into(), verdict.accepted.clone());
    }
    match &verdict.conflict {
        None => {
            set_condition(object, condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"));
            if !was_established {
                let message = "the initial names have been accepted";
                set_condition(object, condition("Established", "True", "InitialNamesAccepted", message));
            }
        }
        Some((reason, message)) => {
            set_condition(object, condition("NamesAccepted", "False", reason, message));
            if !was_established {
                set_condition(
                    object,
                    condition("Established", "False", "NotAccepted", "not all names are accepted"),
                );
            }
        }
    }
    before.as_ref() != object.get("status")
}

/// Returns whether the kind is served.
pub(crate) fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

/// Sets a condition; one whose status is the same as before keeps its time.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    let Some(status) = status.as_object_mut() else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let kind = condition.get("type").cloned();
    let Some(known) = conditions.iter_mut().find(|known| known.get("type") == kind.as_ref()) else {
        conditions.push(condition);
        return;
    };
    if known.get("status") == condition.get("status")
        && let (Some(fields), Some(time)) = (condition.as_object_mut(), known.get("lastTransitionTime"))
    {
        fields.insert("lastTransitionTime".into(), time.clone());
    }
    *known = condition;
}

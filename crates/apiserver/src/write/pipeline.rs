//! The steps of a write that are about the kind: types, defaults, validation, status, generation, managed fields.

use objects::decode::{Decoded, Node};
use serde_json::{Value, json};

use super::body::OBJECT_LIMIT;
use super::metadata;
use crate::registry::Resource;
use crate::request::Call;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::status::{ApiError, Cause, Outcome};
use crate::store::{Encoded, Stored};
use crate::strategy;

/// What the steps of one write share.
pub(crate) struct Chain<'a> {
    pub(crate) call: &'a Call,
    pub(crate) options: &'a WriteOptions,
    pub(crate) warnings: &'a mut Vec<String>,
}

/// Checks kind and version of a body, or sets them where they are absent.
fn check_type(resource: &Resource, body: &mut Node) -> Outcome<()> {
    let kind = &resource.kind;
    let text = |name: &str| body.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let (given_kind, given_version) = (text("kind"), text("apiVersion"));
    if resource.custom.is_some() {
        check_custom_type(resource, body, &given_kind, &given_version)?;
    } else {
        check_builtin_type(resource, &given_kind, &given_version)?;
    }
    if let Node::Null = body {
        *body = Node::Object(Vec::new());
    }
    if let Node::Object(fields) = body {
        fields.retain(|(name, _)| name != "kind" && name != "apiVersion");
        fields.push(("kind".to_owned(), Node::String(kind.kind.to_string())));
        fields.push(("apiVersion".to_owned(), Node::String(resource.api_version.clone())));
    }
    Ok(())
}

fn check_builtin_type(resource: &Resource, given: &str, version: &str) -> Outcome<()> {
    let kind = &resource.kind;
    let given = if given.is_empty() { &*kind.kind } else { given };
    let version = if version.is_empty() { &*resource.api_version } else { version };
    if given == kind.kind && version == resource.api_version {
        return Ok(());
    }
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let why = if crate::kind::find_kind(group, number, given).is_some() {
        let package =
            if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
        format!("converting ({number}.{given}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        format!(
            "no kind {given:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:110\""
        )
    };
    let message = format!("{given} in version {number:?} cannot be handled as a {}: {why}", kind.kind);
    Err(ApiError::bad_request(message))
}

fn check_custom_type(resource: &Resource, body: &Node, kind: &str, version: &str) -> Outcome<()> {
    let message = if kind.is_empty() {
        "Object 'Kind' is missing in the body".to_owned()
    } else if version.is_empty() {
        format!(
            "the API version in the data () does not match the expected API version ({})",
            resource.api_version
        )
    } else if version != resource.api_version {
        format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            resource.api_version
        )
    } else if kind != resource.kind.kind {
        let cause = Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {kind:?}: must be {}", resource.kind.kind),
            field: "kind".into(),
        };
        let given = crate::kind::Kind { kind: kind.to_owned().into(), ..(*resource.kind).clone() };
        let name = body.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_str);
        return Err(ApiError::invalid(&given, name.unwrap_or_default(), vec![cause]));
    } else {
        return Ok(());
    };
    Err(ApiError::bad_request(message))
}

impl Chain<'_> {
    /// Checks types and drops what the kind does not have, as the client wants it; returns the object.
    ///
    /// `strict` is what was already found in the bytes.
    pub(crate) fn conform(&mut self, mut body: Node, strict: &[String]) -> Outcome<Value> {
        let resource = &self.call.resource;
        check_type(resource, &mut body)?;
        let decoded = strategy::conform(resource, body)?;
        let mut found = strict.to_vec();
        found.extend(decoded.strict.into_iter().filter(|text| !strict.contains(text)));
        self.tell(found)?;
        Ok(decoded.value)
    }

    /// Returns the new object that an apply makes of a body.
    pub(crate) fn conform_new_applied(&mut self, body: Node) -> Outcome<Value> {
        let applied = Decoded { value: body.into(), strict: Vec::new() };
        let wanted = self.conform_applied(&applied)?;
        let object = self.applied(None, &wanted)?;
        Ok(strategy::conform(&self.call.resource, object.into())?.value)
    }

    /// Checks what is applied: unlike an object it may lack anything, and stays as it was written.
    pub(crate) fn conform_applied(&mut self, applied: &Decoded) -> Outcome<Value> {
        let resource = &self.call.resource;
        let mut body = Node::from(applied.value.clone());
        check_type(resource, &mut body)?;
        let value = Value::from(body.clone());
        strategy::check_applied(resource, &value)?;
        let decoded = strategy::conform(resource, body)?;
        let mut found = applied.strict.clone();
        found.extend(decoded.strict);
        self.tell(found)?;
        Ok(value)
    }

    /// Warns of fields that are not kept, or refuses them.
    fn tell(&mut self, found: Vec<String>) -> Outcome<()> {
        let kind = &self.call.resource.kind;
        if found.is_empty() {
            return Ok(());
        }
        match self.options.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => {
                for text in found {
                    if !self.warnings.contains(&text) {
                        self.warnings.push(text);
                    }
                }
            }
            FieldValidation::Strict => {
                let message = format!(
                    "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                    kind.kind,
                    kind.version,
                    kind.kind,
                    found.join(", ")
                );
                return Err(ApiError::bad_request(message));
            }
        }
        Ok(())
    }

    /// Replaces the status that the client sent by the one that new objects have.
    pub(crate) fn first_status(&mut self, object: &mut Value) {
        let resource = &self.call.resource;
        if resource.kind.has_status()
            && let Some(fields) = object.as_object_mut()
        {
            match strategy::first_status(resource, fields, self.call.now) {
                Some(status) => fields.insert("status".into(), status),
                None => fields.remove("status"),
            };
        }
    }

    pub(crate) fn validate_create(&mut self, object: &Value) -> Outcome<()> {
        let mut warnings = Vec::new();
        let causes = strategy::validate_new(&self.call.resource, object, &mut warnings);
        self.judge(object, causes, warnings)
    }

    pub(crate) fn validate_update(&mut self, old: &Value, new: &Value) -> Outcome<()> {
        let part = self.call.subresource.as_deref();
        let mut warnings = Vec::new();
        let causes = strategy::validate_changed(&self.call.resource, part, old, new, &mut warnings);
        self.judge(new, causes, warnings)
    }

    /// Refuses an object for a cause; only what is accepted is warned of.
    fn judge(&mut self, object: &Value, causes: Vec<Cause>, warnings: Vec<String>) -> Outcome<()> {
        if causes.is_empty() {
            let new: Vec<String> =
                warnings.into_iter().filter(|text| !self.warnings.contains(text)).collect();
            self.warnings.extend(new);
            return Ok(());
        }
        Err(ApiError::invalid(&self.call.resource.kind, metadata::text(object, "name"), causes))
    }

    /// Records whose fields these are.
    pub(crate) fn own(&mut self, old: Option<&Value>, object: &mut Value) {
        strategy::own(&self.call.resource, old, object, &self.owner());
    }

    /// Returns who owns a new object, ready to be kept; without it, it is in the object.
    pub(crate) fn own_new(&mut self, object: &mut Value) -> Option<Vec<u8>> {
        let owned = strategy::first_owner(&self.call.resource, object, &self.owner());
        if owned.is_none() {
            self.own(None, object);
        }
        owned
    }

    /// Returns the object after this manager applied what it wants.
    pub(crate) fn applied(&self, old: Option<&Value>, wanted: &Value) -> Outcome<Value> {
        strategy::applied(&self.call.resource, old, wanted, &self.owner(), self.options.force)
    }

    fn owner(&self) -> strategy::Owner<'_> {
        strategy::Owner {
            manager: &self.options.field_manager,
            subresource: self.call.subresource.as_deref().unwrap_or_default(),
            now: self.call.now,
        }
    }
}

/// Returns an object in the version of the resource.
pub(crate) fn kept(stored: &Stored, resource: &Resource) -> Value {
    crate::read::convert(stored.value(), resource)
}

pub(crate) fn check_size(encoded: &Encoded) -> Outcome<()> {
    if encoded.len() > OBJECT_LIMIT {
        return Err(ApiError::new(413, "RequestEntityTooLarge", "etcdserver: request is too large"));
    }
    Ok(())
}

/// Tells whether a PUT makes an object that does not exist.
pub(crate) fn creates_on_update(resource: &Resource) -> bool {
    strategy::traits(resource).creates_on_update
}

/// Tells whether a deletion shows the object instead of a bare success.
pub(crate) fn shows_deleted(resource: &Resource) -> bool {
    strategy::traits(resource).shows_deleted
}

/// Tells whether objects count the changes of their specification.
pub(crate) fn has_generation(resource: &Resource) -> bool {
    resource.custom.is_some() || strategy::traits(resource).has_generation
}

/// Tells whether dependents stay when nobody says what is to happen to them.
pub(crate) fn orphans_by_default(resource: &Resource) -> bool {
    resource.is("batch", "jobs") || resource.is("", "replicationcontrollers")
}

/// Custom objects are changed only by clients that name the version they saw.
pub(crate) fn check_conditional(resource: &Resource, name: &str, conditional: bool) -> Outcome<()> {
    if conditional || (resource.custom.is_none() && !strategy::traits(resource).needs_revision) {
        return Ok(());
    }
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: "Invalid value: 0: must be specified for an update".into(),
        field: "metadata.resourceVersion".into(),
    };
    // Here the resource stands where otherwise the kind does.
    let resource = crate::kind::Kind { kind: resource.kind.plural.clone(), ..(*resource.kind).clone() };
    Err(ApiError::invalid(&resource, name, vec![cause]))
}

/// Takes the status from the kept version, or everything else if the status is what is written.
pub(crate) fn separate_status(call: &Call, old: &Value, new: &mut Value) {
    let kind = &call.resource.kind;
    if call.subresource.as_deref() == Some("status") {
        let status = new.get("status").cloned();
        let managed = new.pointer("/metadata/managedFields").cloned();
        let metadata = new.get("metadata").cloned();
        *new = old.clone();
        set(new, "status", status);
        if let Some(fields) = new.get_mut("metadata") {
            set(fields, "managedFields", managed);
            if call.resource.custom.is_none()
                && let Some(given) = metadata
            {
                for name in ["annotations", "labels", "finalizers"] {
                    set(fields, name, given.get(name).cloned());
                }
            }
        }
    } else if let Some(part @ ("ephemeralcontainers" | "resize")) = call.subresource.as_deref() {
        separate_containers(part, old, new);
    } else if kind.has_status() && matches!(call.subresource.as_deref(), None | Some("finalize")) {
        set(new, "status", old.get("status").cloned());
    }
}

/// Takes over nothing but the containers of a pod that are written through a part of their own.
fn separate_containers(part: &str, old: &Value, new: &mut Value) {
    let fields: &[&str] =
        if part == "resize" { &["containers", "initContainers"] } else { &["ephemeralContainers"] };
    let managed = new.pointer("/metadata/managedFields").cloned();
    let spec = new.get("spec").cloned().unwrap_or_default();
    *new = old.clone();
    if let Some(kept) = new.get_mut("spec") {
        for name in fields {
            set(kept, name, spec.get(*name).cloned());
        }
    }
    if let Some(kept) = new.get_mut("metadata") {
        set(kept, "managedFields", managed);
    }
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
}

/// Counts a change of anything but metadata and status.
pub(crate) fn count_generation(resource: &Resource, old: &Value, new: &mut Value) -> Outcome<()> {
    if !has_generation(resource) {
        return Ok(());
    }
    let counts_status = !resource.kind.has_status();
    let counted = |name: &str| match name {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => counts_status,
        _ => true,
    };
    let part = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| counted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let metadata_counts = |name: &str| {
        let path = format!("/metadata/{name}");
        old.pointer(&path) != new.pointer(&path)
    };
    let also = if resource.is("apps", "deployments") {
        metadata_counts("annotations")
    } else if resource.is("discovery.k8s.io", "endpointslices") {
        metadata_counts("labels")
    } else {
        false
    };
    if also || part(old) != part(new) {
        let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        metadata::of_mut(new)?.insert("generation".into(), json!(before + 1));
    }
    Ok(())
}

/// Tells whether a change changes nothing but the time of managed fields.
pub(crate) fn is_same(old: &Value, new: &Value) -> bool {
    let managed = |object: &Value| -> Vec<Value> {
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut list = list.cloned().unwrap_or_default();
        for entry in list.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        list
    };
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        object
    };
    managed(old) == managed(new) && rest(old) == rest(new)
}

/// Returns how many seconds an object waits before it goes.
pub(crate) fn grace(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !resource.is("", "pods") {
        return 0;
    }
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let over = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if text("/spec/nodeName").is_empty() || over {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// Tells whether something must happen before a deleted object may go.
pub(crate) fn holds_back(resource: &Resource, object: &Value) -> bool {
    let waits_for_grace = resource.is("", "pods")
        && object
            .pointer("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|g| g > 0);
    waits_for_grace || waits_for_others(resource, object)
}

/// Tells whether somebody must do something before a deleted object may go.
pub(crate) fn waits_for_others(resource: &Resource, object: &Value) -> bool {
    let namespace = resource.is("", "namespaces")
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    namespace || !metadata::finalizers(object).is_empty()
}

/// Shows in the status of an object that it waits for its deletion.
pub(crate) fn terminate(resource: &Resource, object: &mut Value, now: jiff::Timestamp) {
    if resource.is("", "namespaces")
        && let Some(fields) = object.as_object_mut()
    {
        let status = fields.entry("status").or_insert_with(|| json!({}));
        set(status, "phase", Some(json!("Terminating")));
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::definitions::terminate(object, now);
    }
}

//! The steps of a write that are about the kind: types, defaults, validation, status, generation, managed fields.

use objects::decode::{Decoded, MAX_DEPTH, MAX_OBJECT_DEPTH, Node};
use objects::extent::Extent;
use serde_json::Value;

use super::{check_kind, metadata, report_dropped};
use crate::admission;
use crate::admission::configured::is_reviewed;
use crate::admission::webhook::{self, Asked, Named, Operation};
use crate::kind::Kind;
use crate::object_meta;
use crate::registry::Resource;
use crate::request::RequestContext;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::status::{ApiError, Cause, Outcome};
use crate::strategy::{self, FieldOwner, PatchKind};
use crate::subresources::scale;

/// What the steps of one write share.
pub(crate) struct Pipeline<'a> {
    pub(crate) request: &'a RequestContext,
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
    check_kind(&resource.kind, given, version)
}

/// Refuses what is nested more deeply than it could be read again.
fn check_depth(object: &Value) -> Outcome<()> {
    let depth = |value: &Value| Extent::of(value).depth;
    let fields = || object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    let metadata = || object_meta::of(object).into_iter().flatten();
    let content = metadata().filter(|(name, _)| *name != "managedFields").map(|(_, value)| depth(value) + 1);
    let content = content.chain(fields().map(|(_, value)| depth(value))).max().unwrap_or(0);
    let owners = metadata().filter(|(name, _)| *name == "managedFields").map(|(_, value)| depth(value) + 2);
    if content < MAX_OBJECT_DEPTH && owners.max().unwrap_or(0) <= MAX_DEPTH {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("the object is nested more deeply than {MAX_OBJECT_DEPTH} levels")))
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

impl<'a> Pipeline<'a> {
    /// Checks types and drops what the kind does not have, as the client wants it; returns the object.
    ///
    /// `strict` is what was already found in the bytes.
    pub(crate) fn conform(&mut self, body: Node, strict: &[String]) -> Outcome<Value> {
        let decoded = self.decode(body, strict)?;
        report_dropped(&self.request.resource.kind, self.options, decoded.strict, self.warnings)?;
        self.check_form(decoded.value)
    }

    /// Does the same with what a patch made of an object.
    pub(crate) fn conform_patched(
        &mut self,
        kind: PatchKind,
        patch: &Decoded,
        patched: &Value,
    ) -> Outcome<Value> {
        let resource = &self.request.resource;
        let decoded = self.decode(patched.clone().into(), &patch.strict)?;
        if self.options.validation == FieldValidation::Strict && !decoded.strict.is_empty() {
            return Err(strategy::strict_error(resource, kind, &patch.value, patched, &decoded.strict));
        }
        report_dropped(&resource.kind, self.options, decoded.strict, self.warnings)?;
        self.check_form(decoded.value)
    }

    fn decode(&self, mut body: Node, strict: &[String]) -> Outcome<Decoded> {
        let resource = &self.request.resource;
        check_type(resource, &mut body)?;
        let decoded = strategy::conform(resource, body)?;
        let mut found = strict.to_vec();
        found.extend(decoded.strict.into_iter().filter(|text| !strict.contains(text)));
        Ok(Decoded { strict: found, ..decoded })
    }

    fn check_form(&self, object: Value) -> Outcome<Value> {
        strategy::check_embedded(&self.request.resource, &object)?;
        check_depth(&object)?;
        Ok(object)
    }

    /// Returns the new object that an apply makes of a body.
    pub(crate) fn conform_new_applied(&mut self, body: Node) -> Outcome<Value> {
        let applied = Decoded { value: body.into(), strict: Vec::new() };
        let wanted = self.conform_applied(&applied)?;
        let object = self.applied(None, &wanted)?;
        Ok(strategy::conform(&self.request.resource, object.into())?.value)
    }

    /// Checks what is applied: unlike an object it may lack anything, and stays as it was written.
    pub(crate) fn conform_applied(&mut self, applied: &Decoded) -> Outcome<Value> {
        let resource = &self.request.resource;
        let mut body = Node::from(applied.value.clone());
        check_type(resource, &mut body)?;
        let value = Value::from(body.clone());
        strategy::check_applied(resource, &value)?;
        check_depth(&value)?;
        let decoded = strategy::conform(resource, body)?;
        let mut found = applied.strict.clone();
        found.extend(decoded.strict);
        report_dropped(&resource.kind, self.options, found, self.warnings)?;
        Ok(value)
    }

    /// Returns an object as mutating webhooks change it; nothing if none of them did.
    pub(crate) fn mutate(
        &mut self,
        operation: Operation,
        old: Option<&Value>,
        object: &Value,
    ) -> Outcome<Option<Value>> {
        let asked = self.asked(operation, old);
        let Some(changed) = webhook::mutate(asked, object, self.warnings)? else { return Ok(None) };
        let resource = &self.request.resource;
        let mut changed = strategy::conform_mutated(resource, changed.into())?;
        check_depth(&changed)?;
        strategy::complete(resource, &mut changed)?;
        metadata::drop_repeated_owners(&mut changed, true, self.warnings);
        Ok(Some(changed))
    }

    /// Refuses what a policy or a validating webhook does not allow.
    pub(crate) fn ask_validating(
        &mut self,
        operation: Operation,
        old: Option<&Value>,
        object: &Value,
    ) -> Outcome<()> {
        let asked = self.asked(operation, old);
        if !self.is_reviewed() || asked.part() != "scale" {
            return admission::validate(Asked { object: Some(object), ..asked }, self.warnings);
        }
        let old = old.map(|old| scale::of(self.request, old)).transpose()?;
        let object = scale::of(self.request, object)?;
        let asked = Asked { old: old.as_ref(), object: Some(&object), ..asked };
        admission::validate(asked, self.warnings)
    }

    /// Returns whether somebody may be asked about the write.
    pub(crate) fn is_reviewed(&self) -> bool {
        is_reviewed(self.request)
    }

    fn asked<'o>(&self, operation: Operation, old: Option<&'o Value>) -> Asked<'o>
    where
        'a: 'o,
    {
        let (is_dry_run, options) = (self.options.dry_run, &self.options.shown);
        let request = self.request;
        Asked { request, operation, named: Named::Itself, object: None, old, is_dry_run, options }
    }

    /// Replaces the status that the client sent by the one that new objects have.
    pub(crate) fn first_status(&mut self, object: &mut Value) {
        let resource = &self.request.resource;
        if resource.kind.has_status()
            && let Some(fields) = object.as_object_mut()
        {
            match strategy::first_status(resource, fields, self.request.now) {
                Some(status) => fields.insert("status".into(), status),
                None => fields.remove("status"),
            };
        }
    }

    pub(crate) fn validate_create(&mut self, object: &Value) -> Outcome<()> {
        let mut warnings = Vec::new();
        let mut causes = admission::administrative(self.request, object, None);
        let told = (&mut warnings, &mut *self.warnings);
        causes.extend(strategy::validate_new(&self.request.resource, object, told));
        self.judge(object, causes, warnings)
    }

    pub(crate) fn validate_update(&mut self, old: &Value, new: &Value) -> Outcome<()> {
        let part = self.request.subresource.as_deref();
        let mut warnings = Vec::new();
        let mut causes = admission::administrative(self.request, new, Some(old));
        let told = (&mut warnings, &mut *self.warnings);
        causes.extend(strategy::validate_changed(&self.request.resource, part, (old, new), told));
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
        // Events are read as those of the core group, whatever group they came to.
        let kind = &self.request.resource.kind;
        let is_event = self.request.resource.is("events.k8s.io", "events");
        let group = if is_event { "".into() } else { kind.group.clone() };
        let told = Kind { group, ..(**kind).clone() };
        Err(ApiError::invalid(&told, object_meta::text(object, "name"), causes))
    }

    /// Records whose fields these are.
    pub(crate) fn own(&mut self, old: Option<&Value>, object: &mut Value) {
        strategy::own(&self.request.resource, old, object, self.owner(), self.request.now);
    }

    /// Returns the managed fields of a new object as JSON; nothing if they are in the object already.
    pub(crate) fn own_new(&mut self, object: &mut Value) -> Option<Vec<u8>> {
        if self.is_reviewed() {
            // Reviews show them.
            self.own(None, object);
            return None;
        }
        let owned = strategy::first_owner(&self.request.resource, object, self.owner(), self.request.now);
        if owned.is_none() {
            self.own(None, object);
        }
        owned
    }

    /// Returns the object after this manager applied what it wants.
    pub(crate) fn applied(&self, old: Option<&Value>, wanted: &Value) -> Outcome<Value> {
        let request = self.request;
        strategy::applied(&request.resource, old, wanted, self.owner(), request.now, self.options.force)
    }

    fn owner(&self) -> FieldOwner<'_> {
        FieldOwner {
            manager: &self.options.field_manager,
            subresource: self.request.subresource.as_deref().unwrap_or_default(),
        }
    }
}

//! Deletion: preconditions, grace, finalizers and what happens to dependents.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::time::{format_seconds, parse};
use serde_json::{Map, Value, json};

use super::body::delete_options;
use crate::admission;
use crate::admission::configured::is_reviewed;
use crate::admission::webhook::{self, Asked, Named, Operation};
use crate::cluster::ATTEMPTS;
use crate::object_meta;
use crate::read::ObjectEncoder;
use crate::registry::Resource;
use crate::request::options::{invalid_options, not_supported, quoted};
use crate::request::{Query, RequestContext};
use crate::status::{ApiError, Cause, Details, Outcome};
use crate::store::{Encoded, Refusal, Stored, Write};
use crate::strategy::{self, Strategy};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// The older way of naming the propagation.
    pub(crate) orphan: Option<bool>,
    /// What the client said, as webhooks are shown it.
    pub(crate) shown: Value,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

impl DeleteOptions {
    /// Reads the options of a request: its body, or its query if there is no body.
    fn of(request: &RequestContext) -> Outcome<DeleteOptions> {
        if request.body.is_empty() {
            return DeleteOptions::asked(&request.query);
        }
        DeleteOptions::read(&delete_options(&request.body, request.header(CONTENT_TYPE))?)
    }

    /// Reads the options of a query.
    fn asked(query: &Query) -> Outcome<DeleteOptions> {
        let dry: Vec<&str> = query.all("dryRun").collect();
        let precondition = |name: &str| query.text(name).map(str::to_owned);
        DeleteOptions {
            grace: query.number("gracePeriodSeconds")?,
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            orphan: query.switch("orphanDependents"),
            ..DeleteOptions::default()
        }
        .checked(&dry, query.get("propagationPolicy"))
    }

    /// Reads the options of a body, or those in an eviction.
    pub(crate) fn read(body: &Value) -> Outcome<DeleteOptions> {
        let precondition =
            |name: &str| body.pointer(&format!("/preconditions/{name}"))?.as_str().map(str::to_owned);
        let dry = body.get("dryRun").and_then(Value::as_array).into_iter().flatten();
        let dry: Vec<&str> = dry.filter_map(Value::as_str).collect();
        DeleteOptions {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            orphan: body.get("orphanDependents").and_then(Value::as_bool),
            ..DeleteOptions::default()
        }
        .checked(&dry, body.get("propagationPolicy").and_then(Value::as_str))
    }

    /// Returns what the client said.
    fn said(&self, dry: &[&str], policy: Option<&str>) -> Value {
        let mut said = Map::new();
        let mut put =
            |name: &str, value: Option<Value>| said.extend(value.map(|value| (name.to_owned(), value)));
        put("gracePeriodSeconds", self.grace.map(Value::from));
        put("orphanDependents", self.orphan.map(Value::from));
        put("propagationPolicy", policy.map(Value::from));
        put("dryRun", (!dry.is_empty()).then(|| json!(dry)));
        let mut preconditions = Map::new();
        for (name, value) in [("uid", &self.uid), ("resourceVersion", &self.revision)] {
            preconditions.extend(value.as_deref().map(|value| (name.to_owned(), value.into())));
        }
        put("preconditions", (!preconditions.is_empty()).then_some(Value::Object(preconditions)));
        Value::Object(said)
    }

    /// Returns these options with what depends on several of them, or a refusal.
    fn checked(mut self, dry: &[&str], policy: Option<&str>) -> Outcome<DeleteOptions> {
        self.shown = self.said(dry, policy);
        // Less than no time is as short as can be.
        self.grace = self.grace.map(|grace| if grace < 0 { 1 } else { grace });
        let mut causes = Vec::new();
        self.propagation = propagation(policy, self.orphan, &mut causes);
        if dry.iter().any(|value| *value != "All") {
            causes.push(not_supported("dryRun", &quoted(dry), &["All"]));
        }
        if !causes.is_empty() {
            return Err(invalid_options("DeleteOptions", causes));
        }
        self.dry_run = !dry.is_empty();
        Ok(self)
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>, causes: &mut Vec<Cause>) -> Option<Propagation> {
    if let (Some(policy), Some(_)) = (policy, orphan) {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: \"{policy}\": orphanDependents and deletionPropagation cannot be both set"
            ),
            field: "propagationPolicy".into(),
        });
    }
    match (policy, orphan) {
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some(other), _) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            causes.push(not_supported("propagationPolicy", &format!("{other:?}"), &supported));
            None
        }
        (None, None) => None,
    }
}

/// What a deletion made of an object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last version.
    Gone(Arc<Stored>),
    /// The object waits for grace or finalizers.
    Waiting(Arc<Stored>),
}

pub(crate) fn delete(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let options = DeleteOptions::of(request)?;
    admission::check_deletable(request, name)?;
    let mut warnings = Vec::new();
    if let Err(error) = ask_webhooks(request, name, Named::Path(name), &options, &mut warnings) {
        return Ok(crate::response::warned_refusal(&error, &warnings));
    }
    warnings.extend(kept_dependents(&request.resource, &options));
    let answer = delete_object(request, name, &options)
        .and_then(|deleted| shown(request, &deleted, options.orphan == Some(false)));
    Ok(crate::response::warned(answer, &warnings))
}

/// Returns what is to be said of a deletion that leaves pods alone because nobody said what becomes of them.
fn kept_dependents(resource: &Resource, options: &DeleteOptions) -> Option<String> {
    let text = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
    (resource.is("batch", "jobs") && options.propagation.is_none()).then(|| text.to_owned())
}

/// Returns the answer to a deletion.
fn shown(request: &RequestContext, deleted: &Deleted, accepted: bool) -> Outcome<Response<Body>> {
    match deleted {
        Deleted::Waiting(object) => {
            ObjectEncoder::of(request).answer(if accepted { 202 } else { 200 }, object)
        }
        Deleted::Gone(object) if request.resource.is("", "pods") => {
            // A pod that is removed at once is shown as one whose grace is over.
            let mut pod = object.value();
            set_deleting(request, &mut pod, 0);
            let bytes = serde_json::to_vec(&pod).unwrap_or_default();
            let encoder = ObjectEncoder::of(request);
            encoder.answer_value(200, &encoder.value(&bytes, true))
        }
        Deleted::Gone(object) if Strategy::of(&request.resource).shows_deleted => {
            ObjectEncoder::of(request).answer(200, object)
        }
        Deleted::Gone(object) => {
            let representation = &request.representation;
            let status = success(&request.resource, object);
            let body = crate::read::encode(&status, representation)?;
            crate::read::respond(200, representation.content_type(), Body::from(body))
        }
    }
}

fn success(resource: &Resource, object: &Stored) -> Value {
    let mut details = json!({"name": object.name(), "kind": resource.kind.plural, "uid": object.uid});
    if !resource.kind.group.is_empty()
        && let Some(fields) = details.as_object_mut()
    {
        fields.insert("group".into(), json!(resource.kind.group));
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Deletes an object, or marks it as waiting for its deletion.
pub(crate) fn delete_object(
    request: &RequestContext,
    name: &str,
    options: &DeleteOptions,
) -> Outcome<Deleted> {
    let resource = &request.resource;
    let object_ref = request.object_ref(name);
    for _ in 0..ATTEMPTS {
        let old = request.cluster.storage.get(&object_ref).ok_or_else(|| request.absent(name))?;
        let mut value = old.value();
        check_preconditions(resource, &value, options)?;
        let marked = mark(request, &mut value, options);
        let waits = marked.waits;
        if options.dry_run && waits && marked.changed {
            let waiting = Encoded::new(&value, &resource.fields);
            let waiting = waiting.into_stored(old.key.clone(), old.revision);
            return Ok(Deleted::Waiting(Arc::new(waiting)));
        }
        if options.dry_run || (waits && !marked.changed) {
            return Ok(if waits { Deleted::Waiting(old) } else { Deleted::Gone(old) });
        }
        let expected = old.revision;
        let write = if waits {
            Write::Update { expected, object: Encoded::new(&value, &resource.fields) }
        } else {
            Write::Delete { expected }
        };
        match request.cluster.commit(&object_ref, write) {
            Ok(committed) => {
                let object = Arc::clone(committed.object());
                return Ok(if waits { Deleted::Waiting(object) } else { Deleted::Gone(old) });
            }
            Err(Refusal::Missing) => return Err(ApiError::not_found(&resource.kind, name)),
            Err(Refusal::NotKept(why)) => return Err(ApiError::internal(why)),
            Err(Refusal::Changed | Refusal::Exists) => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}

/// Refuses a deletion that a webhook does not allow. An object that is not there is nobody's business, and neither is what changes nothing.
fn ask_webhooks(
    request: &RequestContext,
    name: &str,
    named: Named<'_>,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    if !is_reviewed(request) {
        return Ok(());
    }
    let Some(old) = request.find(name) else { return Ok(()) };
    let mut old = request.in_version(&old)?;
    check_preconditions(&request.resource, &old, options)?;
    let is_pod = request.resource.is("", "pods");
    if is_pod && pending_grace(&old).is_some_and(|left| options.grace.is_none_or(|grace| grace >= left)) {
        return Ok(());
    }
    let grace = strategy::grace(&request.resource, &old, options.grace);
    let shown = shown_options(&request.resource, &old, (options, grace));
    let mut ask = |old: &Value| {
        let asked = Asked {
            request,
            operation: Operation::Delete,
            named,
            object: None,
            old: Some(old),
            is_dry_run: options.dry_run,
            options: &shown,
        };
        webhook::mutate(asked, old, warnings)?;
        admission::validate(asked, warnings)
    };
    ask(&old)?;
    if !is_pod || grace > 0 || options.dry_run || strategy::waits_for_others(&request.resource, &old) {
        return Ok(());
    }
    // A pod without grace is marked and then removed, and both is asked about.
    set_deleting(request, &mut old, 0);
    ask(&old)
}

/// Returns the options of a deletion as webhooks see them: with what the server decides.
fn shown_options(resource: &Resource, old: &Value, (options, grace): (&DeleteOptions, i64)) -> Value {
    let mut shown = options.shown.clone();
    if resource.is("", "pods")
        && let Some(fields) = shown.as_object_mut()
    {
        fields.insert("gracePeriodSeconds".into(), json!(grace));
    }
    let keeps_identity =
        resource.is("", "namespaces") || resource.is("apiextensions.k8s.io", "customresourcedefinitions");
    if keeps_identity && let Some(fields) = shown.as_object_mut() {
        let preconditions = fields.entry("preconditions").or_insert_with(|| json!({}));
        if let Some(preconditions) = preconditions.as_object_mut() {
            preconditions.entry("uid").or_insert_with(|| json!(object_meta::text(old, "uid")));
        }
    }
    shown
}

/// Compares identity and revision of an object with those that the client asks for.
pub(crate) fn check_preconditions(resource: &Resource, old: &Value, options: &DeleteOptions) -> Outcome<()> {
    let refuse = |what: &str, asked: &str, kept: &str, guess: &str| {
        let (kind, name) = (&resource.kind, object_meta::text(old, "name"));
        if resource.is("", "namespaces") {
            let why = format!(
                "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {kept}"
            );
            return Err(ApiError::conflict(kind, name, &why));
        }
        let why = format!(
            "the {what} in the precondition ({asked}) does not match the {what} in record ({kept}). The object might have been {guess}"
        );
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified_kind());
        Err(ApiError::new(409, "Conflict", message).with_details(Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            ..Details::default()
        }))
    };
    let kept = object_meta::text(old, "uid");
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != kept) {
        return refuse("UID", uid, kept, "deleted and then recreated");
    }
    let kept = object_meta::text(old, "resourceVersion");
    match options.revision.as_deref() {
        Some(revision) if revision != kept => refuse("ResourceVersion", revision, kept, "modified"),
        Some(_) | None => Ok(()),
    }
}

struct Marked {
    waits: bool,
    /// The object had to be changed to wait.
    changed: bool,
}

/// Writes into the object what it waits for.
fn mark(request: &RequestContext, object: &mut Value, options: &DeleteOptions) -> Marked {
    let resource = &request.resource;
    let grace = match (pending_grace(object), options.grace) {
        (None, asked) => strategy::grace(resource, object, asked),
        (Some(left), Some(asked)) if asked < left => asked,
        // What is ending ends as it was told first: it gets no other finalizers either.
        (Some(_), _) => return Marked { waits: true, changed: false },
    };
    let before = object.clone();
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::definitions::hold_back(object);
    }
    set_propagation(resource, object, options.propagation);
    let waits = grace > 0 || strategy::waits_for_others(resource, object);
    if waits {
        set_deleting(request, object, grace);
        strategy::terminate(resource, object, request.now);
    }
    Marked { waits, changed: *object != before }
}

/// Returns the grace of an object that is ending and has some.
fn pending_grace(object: &Value) -> Option<i64> {
    let grace = object_meta::of(object)?.get("deletionGracePeriodSeconds")?.as_i64()?;
    (object_meta::is_deleting(object) && grace > 0).then_some(grace)
}

fn set_propagation(resource: &Resource, object: &mut Value, asked: Option<Propagation>) {
    let given = object_meta::finalizers(object);
    let (orphans, foreground) = (given.contains(&"orphan"), given.contains(&"foregroundDeletion"));
    let policy = match asked {
        Some(policy) => policy,
        None if orphans => Propagation::Orphan,
        None if foreground => Propagation::Foreground,
        None if strategy::orphans_by_default(resource) => Propagation::Orphan,
        None => Propagation::Background,
    };
    let wanted = match policy {
        Propagation::Background => None,
        Propagation::Foreground => Some("foregroundDeletion"),
        Propagation::Orphan => Some("orphan"),
    };
    let Some(fields) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let mut list: Vec<Value> = match fields.remove("finalizers") {
        Some(Value::Array(list)) => list,
        Some(_) | None => Vec::new(),
    };
    list.retain(|name| !matches!(name.as_str(), Some("orphan" | "foregroundDeletion")));
    list.extend(wanted.map(|name| json!(name)));
    if !list.is_empty() {
        fields.insert("finalizers".into(), Value::Array(list));
    }
}

fn set_deleting(request: &RequestContext, object: &mut Value, grace: i64) {
    let deleting = object_meta::is_deleting(object);
    let told = pending_grace(object);
    let Some(fields) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let before = fields.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    if deleting && before.is_none_or(|before| before <= grace) {
        return;
    }
    let seconds = |grace: i64| jiff::SignedDuration::from_secs(grace.clamp(0, 1 << 31));
    let ends = fields.get("deletionTimestamp").and_then(Value::as_str).and_then(parse);
    let (time, grace) = match ends.zip(told).map(|(ends, told)| ends - seconds(told) + seconds(grace)) {
        None => (request.now + seconds(grace), grace),
        Some(ends) if ends >= request.now => (ends, grace),
        // The time is over, and who waits for the end has to see that.
        Some(_) => (request.now, grace.min(1)),
    };
    fields.insert("deletionTimestamp".into(), json!(format_seconds(time)));
    let is_definition = request.resource.is("apiextensions.k8s.io", "customresourcedefinitions");
    if is_definition || request.resource.is("", "namespaces") {
        return;
    }
    fields.insert("deletionGracePeriodSeconds".into(), json!(grace));
    if !deleting && let Some(generation) = fields.get("generation").and_then(Value::as_i64) {
        fields.insert("generation".into(), json!(generation + 1));
    }
}

/// Deletes what a list with the same query shows: not more than its limit, and nothing where it is refused.
pub(crate) fn delete_collection(request: &RequestContext) -> Outcome<Response<Body>> {
    crate::read::check_list(request)?;
    let options = DeleteOptions::of(request)?;
    let (items, metadata) = crate::read::listed(request)?;
    for item in &items {
        let namespace = Some(item.namespace()).filter(|namespace| !namespace.is_empty());
        let request = request.within(namespace);
        ask_webhooks(&request, item.name(), Named::Many, &options, &mut Vec::new())?;
        match delete_object(&request, item.name(), &options) {
            Ok(_) => {}
            Err(error) if error.code() == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let encoder = ObjectEncoder::of(request);
    let warnings: Vec<String> = kept_dependents(&request.resource, &options).into_iter().collect();
    Ok(crate::response::warned(encoder.answer_value(200, &encoder.list(&items, &metadata)), &warnings))
}

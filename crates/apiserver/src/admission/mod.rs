//! Admission: what depends on other objects than the one that is written.

mod claim_source;
pub(crate) mod condition;
pub(crate) mod configured;
pub(crate) mod expression;
mod gates;
pub(crate) mod given;
mod pod;
pub(crate) mod policy;
mod runtime_class;
mod signing;
pub(crate) mod webhook;

use objects::quantity::Quantity;
use serde_json::{Value, json};

use self::webhook::Asked;
use crate::definitions;
use crate::fields::map;
use crate::object_meta;
use crate::request::RequestContext;
use crate::status::{ApiError, Cause, Details, Outcome};
use crate::validation;

/// Namespaces that are always there.
pub(crate) const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Kinds whose objects stay while they are in use: group, resource and the finalizer that keeps them.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

/// Refuses what a policy or a validating webhook does not allow.
pub(crate) fn validate(asked: Asked<'_>, warnings: &mut Vec<String>) -> Outcome<()> {
    policy::check(asked, warnings)?;
    webhook::validate(asked, asked.object, warnings)
}

/// Refuses new objects in a namespace that does not exist or is being deleted.
pub(crate) fn check_namespace(request: &RequestContext, name: &str) -> Outcome<()> {
    let Some(namespace) = request.namespace.as_deref() else {
        return Ok(());
    };
    let Some(found) = request.cluster.storage.find("/namespaces", None, namespace) else {
        let message = format!("namespaces {namespace:?} not found");
        return Err(ApiError::new(404, "NotFound", message).with_details(Details {
            name: namespace.to_owned(),
            kind: "namespaces".to_owned(),
            ..Details::default()
        }));
    };
    // The namespace's phase is its only selectable field.
    if found.fields.first().is_some_and(|phase| &**phase == "Terminating") {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        };
        return Err(ApiError::forbidden(&request.resource.kind, name, &why).with_causes(vec![cause]));
    }
    Ok(())
}

/// Returns why devices may not be asked for, or given, as only administrators may: the namespace does not say so.
pub(crate) fn administrative(request: &RequestContext, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    const LABEL: &str = "resource.kubernetes.io/admin-access";
    let Some(field) = validation::administrative(&request.resource.kind, new, old) else {
        return Vec::new();
    };
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let namespace = request.cluster.storage.find("/namespaces", None, namespace);
    let labels = namespace.map(|found| found.value()).unwrap_or_default();
    if map(&labels, "metadata.labels").get(LABEL).is_some_and(|value| value == "true") {
        return Vec::new();
    }
    let message = format!(
        "Forbidden: admin access to devices requires the `{LABEL}: true` label on the containing namespace"
    );
    vec![Cause { reason: "FieldValueForbidden".into(), message, field }]
}

/// Refuses the deletion of namespaces that must stay.
pub(crate) fn check_deletable(request: &RequestContext, name: &str) -> Outcome<()> {
    let protected = matches!(name, "default" | "kube-system" | "kube-public");
    if request.resource.is("", "namespaces") && protected {
        return Err(ApiError::forbidden(&request.resource.kind, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Fills in what the version of a kind writes into new objects in the client's name.
pub(crate) fn convert_new(request: &RequestContext, object: &mut Value) {
    if request.resource.is("apps", "daemonsets") {
        count_templates(object, 0);
    }
}

/// Fills in what the version of a kind writes into changed objects in the client's name.
pub(crate) fn convert_changed(request: &RequestContext, old: &Value, new: &mut Value) {
    if request.resource.is("apps", "daemonsets") && request.subresource.is_none() {
        let template = |set: &Value| set.pointer("/spec/template").cloned();
        let before = old.pointer("/metadata/annotations").and_then(|a| a.get(TEMPLATE_GENERATION));
        let before = before.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        count_templates(new, before + i64::from(template(old) != template(new)));
    }
}

/// Fills in what admission decides for a new object, before webhooks see it and after they changed it.
pub(crate) fn admit_new(request: &RequestContext, object: &mut Value) -> Outcome<()> {
    let resource = &request.resource;
    if resource.is("", "pods") {
        return pod::admit_new(request, object);
    }
    if resource.is("", "nodes") {
        taint_new_node(object);
    }
    for (group, plural, finalizer) in PROTECTED {
        if resource.is(group, plural) {
            object_meta::add_finalizer(object, finalizer)?;
        }
    }
    if resource.is("", "namespaces") {
        label_namespace(object)?;
    }
    Ok(())
}

/// Fills in what the cluster decides for a new object that was admitted.
pub(crate) fn prepare_new(request: &RequestContext, object: &mut Value) -> Outcome<()> {
    let resource = &request.resource;
    gates::close(resource, object);
    if resource.is("", "services") {
        return allocate_service(request, None, object);
    }
    if resource.is("", "namespaces") {
        label_namespace(object)?;
        activate_namespace(object);
    }
    if resource.is("batch", "jobs") {
        select_pods_of_job(object);
    }
    if resource.is("apps", "daemonsets") {
        count_templates(object, 1);
    }
    if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        signing::sign_for(&request.user, object);
    }
    if resource.is("", "persistentvolumeclaims") {
        claim_source::settle(None, object);
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("phase");
        }
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        definitions::prepare(object);
    }
    Ok(())
}

fn allocate_service(request: &RequestContext, old: Option<&Value>, service: &mut Value) -> Outcome<()> {
    let cluster = &request.cluster;
    let is_dry_run = request.query.get("dryRun").is_some();
    cluster.service_allocator.allocate(&cluster.storage, &cluster.random, old, service, is_dry_run)
}

/// Labels a namespace with its name, if it has one already.
fn label_namespace(object: &mut Value) -> Outcome<()> {
    let name = object_meta::text(object, "name").to_owned();
    if name.is_empty() {
        return Ok(());
    }
    let labels = object_meta::of_mut(object)?.entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
    Ok(())
}

/// Makes a new namespace active, and its deletion wait for its contents.
fn activate_namespace(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|name| name == "kubernetes")
        {
            list.push(json!("kubernetes"));
        }
    }
    fields.insert("status".into(), json!({"phase": "Active"}));
}

/// Restores what a new version of an object cannot remove.
pub(crate) fn keep_unsaid(request: &RequestContext, old: &Value, new: &mut Value) {
    if request.resource.is("certificates.k8s.io", "certificatesigningrequests") {
        signing::keep(request, old, new);
    }
    if request.resource.is("", "namespaces")
        && request.subresource.is_none()
        && let (Some(spec), Some(fields)) = (old.get("spec"), new.as_object_mut())
    {
        fields.insert("spec".into(), spec.clone());
    }
}

/// Fills in what the cluster decides for a new version.
pub(crate) fn admit_change(request: &RequestContext, old: &Value, new: &mut Value) -> Outcome<()> {
    gates::close(&request.resource, new);
    if request.resource.is("", "services") && request.subresource.as_deref() != Some("status") {
        return allocate_service(request, Some(old), new);
    }
    if request.resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        definitions::prepare(new);
    }
    if request.resource.is("", "persistentvolumeclaims") && request.subresource.is_none() {
        claim_source::settle(Some(old), new);
        return check_growth(request, old, new);
    }
    if request.resource.is("", "pods") && request.subresource.is_none() {
        pod::admit_change(old, new);
    }
    Ok(())
}

/// Refuses that a bound claim grows, unless its class says that its volumes can.
fn check_growth(request: &RequestContext, old: &Value, new: &Value) -> Outcome<()> {
    let text = |object: &Value, path: &str| -> String {
        object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let size = |claim: &Value| text(claim, "/spec/resources/requests/storage").parse::<Quantity>().ok();
    let grows = size(new).zip(size(old)).is_some_and(|(is, was)| is.compare(was).is_gt());
    if !grows || text(old, "/status/phase") != "Bound" {
        return Ok(());
    }
    let class = text(new, "/spec/storageClassName");
    let class = request.cluster.storage.find("storage.k8s.io/storageclasses", None, &class);
    let expands =
        class.is_some_and(|class| class.value().get("allowVolumeExpansion") == Some(&Value::Bool(true)));
    if expands {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(ApiError::forbidden(&request.resource.kind, object_meta::text(new, "name"), why))
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Writes down how often the template of a daemon set has changed.
fn count_templates(set: &mut Value, generation: i64) {
    if let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(TEMPLATE_GENERATION.into(), json!(generation.to_string()));
        }
    }
}

/// Makes the pods of a job selectable by the job's identity, unless the client chose the selector.
fn select_pods_of_job(job: &mut Value) {
    let (name, uid) = (object_meta::text(job, "name").to_owned(), object_meta::text(job, "uid").to_owned());
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    if let Some(selector) = selector.as_object_mut() {
        let labels = selector.entry("matchLabels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("batch.kubernetes.io/controller-uid".into(), json!(uid));
        }
    }
    let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) else {
        return;
    };
    let metadata = template.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            for (label, value) in [("controller-uid", &uid), ("job-name", &name)] {
                labels.insert(label.to_owned(), json!(value));
                labels.insert(format!("batch.kubernetes.io/{label}"), json!(value));
            }
        }
    }
}

/// Fills in what stored objects have and those do not yet that validating webhooks see.
pub(crate) fn complete_new(request: &RequestContext, object: &mut Value) {
    if request.resource.is("batch", "jobs") {
        // A job without labels takes those of its pods.
        let labels = object.pointer("/spec/template/metadata/labels").cloned();
        let own = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let (Some(own), Some(labels)) = (own, labels) {
            own.entry("labels").or_insert(labels);
        }
    }
    if request.resource.is("", "persistentvolumeclaims")
        && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("phase".into(), json!("Pending"));
    }
}

/// Taints a new node, which takes no pods until its controller reports that it is ready.
fn taint_new_node(node: &mut Value) {
    let Some(fields) = node.as_object_mut() else {
        return;
    };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut() {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            if !taints.contains(&taint) {
                taints.push(taint);
            }
        }
    }
}

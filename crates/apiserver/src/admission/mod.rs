//! Admission: what depends on other objects than the one that is written.

use serde_json::{Value, json};

use crate::authentication::User;
use crate::request::Call;
use crate::request::options::WriteOptions;
use crate::status::{ApiError, Cause, Details, Outcome};
use crate::write::metadata;

/// Namespaces that are always there.
pub(crate) const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Refuses new objects in a namespace that does not exist or goes away.
pub(crate) fn check_namespace(call: &Call, name: &str) -> Outcome<()> {
    let Some(namespace) = call.namespace.as_deref() else {
        return Ok(());
    };
    let Some(found) = call.cluster.get("/namespaces", None, namespace) else {
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
        return Err(ApiError::forbidden(&call.resource.kind, name, &why).with_causes(vec![cause]));
    }
    Ok(())
}

/// Refuses the deletion of namespaces that must stay.
pub(crate) fn check_deletable(call: &Call, name: &str) -> Outcome<()> {
    let protected = matches!(name, "default" | "kube-system" | "kube-public");
    if call.resource.is("", "namespaces") && protected {
        return Err(ApiError::forbidden(&call.resource.kind, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Fills in what the version of a kind writes into new objects in the client's name.
pub(crate) fn convert_new(call: &Call, object: &mut Value) {
    if call.resource.is("apps", "daemonsets") {
        count_templates(object, 1);
    }
}

/// Fills in what the version of a kind writes into changed objects in the client's name.
pub(crate) fn convert_changed(call: &Call, old: &Value, new: &mut Value) {
    if call.resource.is("apps", "daemonsets") && call.subresource.is_none() {
        let template = |set: &Value| set.pointer("/spec/template").cloned();
        let before = old.pointer("/metadata/annotations").and_then(|a| a.get(TEMPLATE_GENERATION));
        let before = before.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        count_templates(new, before + i64::from(template(old) != template(new)));
    }
}

/// Fills in what the cluster decides for a new object.
pub(crate) fn admit_new(call: &Call, object: &mut Value, options: &WriteOptions) -> Outcome<()> {
    let resource = &call.resource;
    if resource.is("", "services") {
        return call.cluster.addresses.allocate(call, None, object, options.dry_run);
    }
    if resource.is("", "pods") {
        return admit_pod(call, object);
    }
    if resource.is("", "namespaces") {
        return admit_namespace(object);
    }
    if resource.is("batch", "jobs") {
        select_pods_of_job(object);
    }
    if resource.is("", "nodes") {
        taint_new_node(object);
    }
    if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        sign_for(&call.user, object);
    }
    if resource.is("coordination.k8s.io", "leases") {
        // Elections by strategy are not offered.
        remove_from_spec(object, "strategy");
        remove_from_spec(object, "preferredHolder");
    }
    if resource.is("", "persistentvolumeclaims") {
        // A source without a name is none.
        if object.pointer("/spec/dataSource/name").is_none_or(|name| name == "") {
            remove_from_spec(object, "dataSource");
        }
        add_finalizer(object, "kubernetes.io/pvc-protection")?;
    }
    if resource.is("", "persistentvolumes") {
        add_finalizer(object, "kubernetes.io/pv-protection")?;
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::definitions::admit(object);
    }
    Ok(())
}

fn remove_from_spec(object: &mut Value, field: &str) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove(field);
    }
}

/// A new namespace is active, and goes only when its contents are gone.
fn admit_namespace(object: &mut Value) -> Outcome<()> {
    let name = metadata::text(object, "name").to_owned();
    let labels = metadata::of_mut(object)?.entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
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
    Ok(())
}

/// Keeps what a new version of an object cannot take away.
pub(crate) fn keep_unsaid(call: &Call, old: &Value, new: &mut Value) {
    if call.resource.is("", "namespaces")
        && call.subresource.is_none()
        && let (Some(spec), Some(fields)) = (old.get("spec"), new.as_object_mut())
    {
        fields.insert("spec".into(), spec.clone());
    }
}

/// Fills in what the cluster decides for a new version.
pub(crate) fn admit_change(call: &Call, old: &Value, new: &mut Value) -> Outcome<()> {
    if call.resource.is("", "services") {
        return call.cluster.addresses.allocate(call, Some(old), new, true);
    }
    if call.resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::definitions::admit(new);
    }
    if call.resource.is("", "pods") && call.subresource.is_none() {
        let before = |name: &str| old.pointer(&format!("/spec/{name}")).cloned();
        if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
            for name in ["priority", "preemptionPolicy"] {
                if let (Some(kept), false) = (before(name), spec.contains_key(name)) {
                    spec.insert(name.to_owned(), kept);
                }
            }
            let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
            if let Some(list) = tolerations.as_array_mut() {
                for key in NODE_FAILURES {
                    tolerate(list, key);
                }
            }
        }
    }
    Ok(())
}

/// Failures of nodes that pods tolerate for five minutes.
const NODE_FAILURES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

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
    let (name, uid) = (metadata::text(job, "name").to_owned(), metadata::text(job, "uid").to_owned());
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
    // A job without labels takes those of its pods.
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    let own = job.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(own), Some(labels)) = (own, labels) {
        own.entry("labels").or_insert(labels);
    }
}

/// A request for a certificate says who made it, whatever the client wrote.
fn sign_for(user: &User, request: &mut Value) {
    if let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("username".into(), json!(user.name));
        spec.insert("uid".into(), json!(user.uid));
        spec.insert("groups".into(), json!(user.groups));
    }
}

/// A new node takes no pods until its controller says that it is ready.
fn taint_new_node(node: &mut Value) {
    let Some(fields) = node.as_object_mut() else {
        return;
    };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut() {
            taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
        }
    }
}

fn add_finalizer(object: &mut Value, name: &str) -> Outcome<()> {
    if metadata::finalizers(object).contains(&name) {
        return Ok(());
    }
    let list = metadata::of_mut(object)?.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(json!(name));
    }
    Ok(())
}

/// Gives a pod its priority and the tolerations of short failures of nodes.
fn admit_pod(call: &Call, object: &mut Value) -> Outcome<()> {
    let kind = &call.resource.kind;
    let name = metadata::text(object, "name").to_owned();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (priority, policy) = if class.is_empty() {
        (0, "PreemptLowerPriority".to_owned())
    } else {
        let found = call.cluster.get("scheduling.k8s.io/priorityclasses", None, &class).ok_or_else(|| {
            ApiError::forbidden(kind, &name, &format!("no PriorityClass with name {class} was found"))
        })?;
        let class = found.value();
        let policy = class.get("preemptionPolicy").and_then(Value::as_str).unwrap_or("PreemptLowerPriority");
        (class.get("value").and_then(Value::as_i64).unwrap_or(0), policy.to_owned())
    };
    let refuse = |what: &str, given: &str, computed: &str| {
        let why = format!(
            "the {what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
        );
        Err(ApiError::forbidden(kind, &name, &why))
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return refuse("integer value of priority", &given.to_string(), &priority.to_string());
    }
    if let Some(given) =
        spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| **given != policy)
    {
        return refuse("string value of PreemptionPolicy", given, &policy);
    }
    if let Some(class) = spec.get("runtimeClassName").and_then(Value::as_str)
        && call.cluster.get("node.k8s.io/runtimeclasses", None, class).is_none()
    {
        return Err(ApiError::forbidden(
            kind,
            &name,
            &format!("pod rejected: RuntimeClass {class:?} not found"),
        ));
    }
    spec.insert("priority".into(), json!(priority));
    spec.entry("preemptionPolicy").or_insert_with(|| json!(policy));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(list) = tolerations.as_array_mut() {
        for key in NODE_FAILURES {
            tolerate(list, key);
        }
    }
    Ok(())
}

fn tolerate(tolerations: &mut Vec<Value>, key: &str) {
    let covers = |toleration: &Value| {
        let text = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
        let same_key = text("key") == key || text("key").is_empty();
        same_key && matches!(text("effect"), "NoExecute" | "")
    };
    if !tolerations.iter().any(covers) {
        tolerations
            .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
    }
}

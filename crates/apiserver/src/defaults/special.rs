//! Defaults that depend on other fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pod_resources;

use super::fields::{Fields, is_absent, list, object, object_or_new, put, text};

/// Fills in what the defaults of the parts of the object depend on.
pub(super) fn before(key: &str, fields: &mut Fields) {
    match key {
        "core.v1.Container" | "core.v1.EphemeralContainer" => container(fields),
        "core.v1.Volume" => volume(fields),
        "core.v1.Pod" => pod(fields),
        "core.v1.PodSpec" => pod_spec(fields),
        "core.v1.PodStatus" => pod_status(fields),
        "apps.v1.DaemonSet" => daemon_set(fields),
        "core.v1.Namespace" => namespace(fields),
        "core.v1.Node" => node(fields),
        "core.v1.LimitRangeItem" => limit(fields),
        "core.v1.Secret" => secret(fields),
        "core.v1.ReplicationController" => replication_controller(fields),
        "apps.v1.DeploymentStrategy" | "apps.v1.DaemonSetUpdateStrategy" => rolling_update(fields),
        "apps.v1.StatefulSetUpdateStrategy" => stateful_update(fields),
        "apps.v1.StatefulSetSpec" => claim_templates(fields),
        "batch.v1.Job" => job(fields),
        "networking.v1.NetworkPolicySpec" => network_policy(fields),
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => behavior(fields),
        "rbac.v1.Subject" => subject(fields),
        "apiextensions.v1.CustomResourceDefinitionSpec" => definition(fields),
        _ => {}
    }
}

/// Fills in what depends on defaults of the fields.
pub(super) fn after(key: &str, fields: &mut Fields) {
    match key {
        "core.v1.ServiceSpec" => service(fields),
        "core.v1.Service" => balancer_addresses(fields),
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest"
            if text(fields, "allocationMode") == "ExactCount" =>
        {
            put(fields, "count", json!(1));
        }
        "apiextensions.v1.CustomResourceDefinition" => stored_versions(fields),
        _ => {}
    }
}

fn container(fields: &mut Fields) {
    let policy = if has_latest_tag(text(fields, "image")) { "Always" } else { "IfNotPresent" };
    put(fields, "imagePullPolicy", json!(policy));
}

/// Returns whether an image is the newest of its name; images without tag and digest are.
fn has_latest_tag(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    // What is no name of an image has no tag that could be the latest.
    if image.is_empty() || name.contains('@') || image.contains(char::is_whitespace) {
        return false;
    }
    name.rsplit_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(fields: &mut Fields) {
    if fields.keys().all(|key| key == "name") {
        put(fields, "emptyDir", json!({}));
    }
    if let Some(image) = object(fields, "image") {
        let policy = if has_latest_tag(text(image, "reference")) { "Always" } else { "IfNotPresent" };
        put(image, "pullPolicy", json!(policy));
    }
}

fn pod(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else {
        return;
    };
    put(spec, "enableServiceLinks", json!(true));
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for key in ["containers", "initContainers"] {
        for container in list(spec, key) {
            if let Some(resources) = object(container, "resources") {
                let limits = resources.get("limits").and_then(Value::as_object).cloned();
                add_missing(resources, "requests", limits);
            }
            for port in list(container, "ports").filter(|_| host_network) {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                put(port, "hostPort", number);
            }
        }
    }
    pod_requests(spec);
}

/// Fills in what a pod as a whole asks for, where it says something of that: pages as its containers are limited, the
/// rest as they ask for it, or as the pod is limited.
fn pod_requests(spec: &mut Fields) {
    let whole = Value::Object(spec.clone());
    let given = |part: &str| pod_resources::amounts(&whole, &format!("resources.{part}"));
    let (mut requests, mut limits) = (given("requests"), given("limits"));
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    for (name, limit) in pod_resources::of_containers(&whole, "limits") {
        if pod_resources::is_pages(&name) && !requests.contains_key(&name) {
            limits.entry(name).or_insert(limit);
        }
    }
    for (name, request) in pod_resources::of_containers(&whole, "requests") {
        if pod_resources::is_of_pods(&name) && pod_resources::is_overcommitted(&name) {
            requests.entry(name).or_insert(request);
        }
    }
    for (name, limit) in limits.iter().filter(|(name, _)| pod_resources::is_of_pods(name)) {
        requests.entry(name.clone()).or_insert(*limit);
    }
    let Some(resources) = object(spec, "resources") else { return };
    for (part, amounts) in [("requests", requests), ("limits", limits)] {
        let amounts: Fields =
            amounts.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect();
        add_missing(resources, part, Some(amounts));
    }
}

/// A negative grace period is one second.
fn pod_spec(fields: &mut Fields) {
    let seconds = fields.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if seconds.is_some_and(|seconds| seconds < 0) {
        fields.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    // The account has an older name as well.
    let names = ["serviceAccountName", "serviceAccount"];
    let account = names.into_iter().map(|name| text(fields, name)).find(|account| !account.is_empty());
    if let Some(account) = account.map(str::to_owned) {
        for name in names {
            fields.insert(name.to_owned(), json!(account));
        }
    }
}

/// Adds to the map `key` what it lacks of `more`.
fn add_missing(fields: &mut Fields, key: &str, more: Option<Fields>) {
    let Some(more) = more.filter(|more| !more.is_empty()) else {
        return;
    };
    if let Some(map) = object_or_new(fields, key) {
        for (key, value) in more {
            map.entry(key).or_insert(value);
        }
    }
}

/// The address of a pod is the first of the list; where they differ, it is the only one.
fn pod_status(fields: &mut Fields) {
    let first = text(fields, "podIP").to_owned();
    let listed = fields.get("podIPs").and_then(|all| all.pointer("/0/ip")).and_then(Value::as_str);
    match listed.map(str::to_owned) {
        Some(listed) if first.is_empty() => {
            fields.insert("podIP".to_owned(), json!(listed));
        }
        listed if !first.is_empty() && listed.as_deref() != Some(&first) => {
            fields.insert("podIPs".to_owned(), json!([{"ip": first}]));
        }
        _ => {}
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn daemon_set(fields: &mut Fields) {
    if let Some(metadata) = object_or_new(fields, "metadata")
        && let Some(annotations) = object_or_new(metadata, "annotations")
    {
        put(annotations, TEMPLATE_GENERATION, json!("0"));
    }
}

fn namespace(fields: &mut Fields) {
    let Some(metadata) = object(fields, "metadata") else {
        return;
    };
    let name = text(metadata, "name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = object_or_new(metadata, "labels") {
        labels.insert("kubernetes.io/metadata.name".to_owned(), Value::String(name));
    }
}

fn node(fields: &mut Fields) {
    if let Some(spec) = object(fields, "spec") {
        // The first network has a field of its own, which counts where the two differ.
        let listed = spec.get("podCIDRs").and_then(|all| all.get(0)).and_then(Value::as_str);
        let (first, listed) = (text(spec, "podCIDR").to_owned(), listed.unwrap_or_default().to_owned());
        if !first.is_empty() && first != listed {
            spec.insert("podCIDRs".to_owned(), json!([first]));
        } else if !listed.is_empty() {
            spec.insert("podCIDR".to_owned(), json!(listed));
        }
    }
    if let Some(status) = object(fields, "status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        put(status, "allocatable", capacity);
    }
}

fn limit(fields: &mut Fields) {
    if text(fields, "type") != "Container" {
        return;
    }
    let map = |fields: &Fields, key: &str| fields.get(key).and_then(Value::as_object).cloned();
    let (most, least) = (map(fields, "max"), map(fields, "min"));
    add_missing(fields, "default", most);
    let default = map(fields, "default");
    add_missing(fields, "defaultRequest", default);
    add_missing(fields, "defaultRequest", least);
}

fn secret(fields: &mut Fields) {
    let Some(Value::Object(texts)) = fields.remove("stringData") else {
        return;
    };
    if let Some(data) = object_or_new(fields, "data") {
        for (key, value) in texts {
            let bytes = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(key, Value::String(bytes));
        }
    }
}

fn template_labels(spec: &Fields) -> Option<Value> {
    let labels = spec.get("template")?.get("metadata")?.get("labels")?;
    labels.as_object().filter(|labels| !labels.is_empty())?;
    Some(labels.clone())
}

fn put_labels(fields: &mut Fields, labels: Value) {
    if let Some(metadata) = object_or_new(fields, "metadata") {
        put(metadata, "labels", labels);
    }
}

fn replication_controller(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else {
        return;
    };
    if let Some(labels) = template_labels(spec) {
        put(spec, "selector", labels.clone());
        put_labels(fields, labels);
    }
}

fn rolling_update(fields: &mut Fields) {
    put(fields, "type", json!("RollingUpdate"));
    if text(fields, "type") == "RollingUpdate" {
        put(fields, "rollingUpdate", json!({}));
    }
}

fn claim_templates(fields: &mut Fields) {
    for template in list(fields, "volumeClaimTemplates") {
        put(template, "apiVersion", json!("v1"));
        put(template, "kind", json!("PersistentVolumeClaim"));
    }
}

fn stateful_update(fields: &mut Fields) {
    if text(fields, "type").is_empty() {
        put(fields, "type", json!("RollingUpdate"));
        put(fields, "rollingUpdate", json!({}));
    }
}

fn job(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else {
        return;
    };
    if !spec.contains_key("parallelism") {
        put(spec, "completions", json!(1));
    }
    put(spec, "parallelism", json!(1));
    let unlimited = spec.contains_key("backoffLimitPerIndex");
    put(spec, "backoffLimit", json!(if unlimited { i32::MAX } else { 6 }));
    put(spec, "completionMode", json!("NonIndexed"));
    put(spec, "suspend", json!(false));
    let policy = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    put(spec, "podReplacementPolicy", json!(policy));
    put(spec, "manualSelector", json!(false));
    if let Some(labels) = template_labels(spec) {
        put_labels(fields, labels);
    }
}

fn network_policy(fields: &mut Fields) {
    let egress = !is_absent(fields.get("egress"));
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    put(fields, "policyTypes", types);
}

fn behavior(fields: &mut Fields) {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = object_or_new(fields, "scaleUp") {
        put(up, "stabilizationWindowSeconds", json!(0));
        put_policies(up, json!([pods, percent]));
    }
    if let Some(down) = object_or_new(fields, "scaleDown") {
        put_policies(down, json!([percent]));
    }
}

/// An empty list of policies is not filled: it is refused.
fn put_policies(rules: &mut Fields, policies: Value) {
    if rules.get("policies").is_none_or(Value::is_null) {
        rules.insert("policies".to_owned(), policies);
    }
}

fn subject(fields: &mut Fields) {
    if matches!(text(fields, "kind"), "User" | "Group") {
        put(fields, "apiGroup", json!("rbac.authorization.k8s.io"));
    }
}

fn service(fields: &mut Fields) {
    let kind = text(fields, "type").to_owned();
    if text(fields, "sessionAffinity") == "ClientIP" {
        let timeout = fields.get("sessionAffinityConfig").and_then(|c| c.pointer("/clientIP/timeoutSeconds"));
        if timeout.is_none() {
            let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
            fields.insert("sessionAffinityConfig".to_owned(), config);
        }
    } else {
        fields.remove("sessionAffinityConfig");
    }
    for port in list(fields, "ports") {
        if is_absent(port.get("targetPort")) || port.get("targetPort") == Some(&json!(0)) {
            let number = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".to_owned(), number);
        }
    }
    let external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !is_absent(fields.get("externalIPs")));
    if external {
        put(fields, "externalTrafficPolicy", json!("Cluster"));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        put(fields, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        put(fields, "allocateLoadBalancerNodePorts", json!(true));
    }
}

/// The mode of an address of a load balancer is `VIP` unless it is given.
fn balancer_addresses(service: &mut Fields) {
    let kind = service.get("spec").and_then(|spec| spec.get("type")).and_then(Value::as_str);
    if kind != Some("LoadBalancer") {
        return;
    }
    if let Some(balancer) = object(service, "status").and_then(|status| object(status, "loadBalancer")) {
        for ingress in list(balancer, "ingress") {
            if !text(ingress, "ip").is_empty() {
                put(ingress, "ipMode", json!("VIP"));
            }
        }
    }
}

fn definition(fields: &mut Fields) {
    let Some(names) = object(fields, "names") else {
        return;
    };
    let kind = text(names, "kind").to_owned();
    if !kind.is_empty() {
        put(names, "singular", Value::String(kind.to_lowercase()));
        put(names, "listKind", Value::String(format!("{kind}List")));
    }
}

fn stored_versions(fields: &mut Fields) {
    let versions = fields.get("spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let stored = versions.into_iter().flatten().find(|v| v.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = stored.and_then(|version| version.get("name")).cloned() else {
        return;
    };
    if let Some(status) = object_or_new(fields, "status") {
        put(status, "storedVersions", json!([name]));
    }
}

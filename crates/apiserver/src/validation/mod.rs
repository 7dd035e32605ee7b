//! Validation of built-in objects: the mistakes that people make, in the words of the real server.
//!
//! Objects are validated as they are after a round trip through their type and with their defaults.

mod access;
mod address;
mod api_service;
mod claim_status;
mod config;
mod container;
mod definition;
mod device_slice;
mod devices;
mod endpoints;
mod errors;
mod flow;
mod immutable_field;
mod ingress;
mod job;
mod job_status;
mod keywords;
mod limits;
mod lists;
mod metadata;
mod nested;
mod network;
mod node;
mod pod;
mod pod_parts;
mod pod_resources;
mod pod_status;
mod pod_update;
mod policy;
mod quota;
mod review;
mod scale;
pub mod schema;
mod selectable_fields;
mod signing_request;
mod status;
mod storage;
mod structural;
mod volume;
mod webhook;
mod workload;
mod workload_update;

use objects::names::NameRule;
use serde_json::{Map, Value};

pub use errors::{FieldError, Report};
pub(crate) use pod_parts::{ephemeral, resize};
pub(crate) use review::access_review;

use self::devices::Age;
use self::immutable_field::{immutable, immutable_shown};
use crate::fields;
use crate::kind::Kind;

/// Returns what is wrong with a new object.
pub fn create(kind: &Kind, object: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_built_in(object, kind, &mut report);
    content(kind, object, &mut report);
    if (&*kind.group, &*kind.plural) == ("storage.k8s.io", "volumeattachments") {
        storage::attachment_names(object, &mut report);
    }
    if (&*kind.group, &*kind.plural) == ("", "replicationcontrollers") {
        pod::warn_of_name(object, "Pod names and hostnames", &mut report);
    }
    report
}

/// Returns what is wrong with the metadata of a new custom object.
pub fn create_custom(object: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate(object, NameRule::Subdomain, &mut report);
    metadata::warn_of_finalizers(object, &Value::Null, &mut report);
    report
}

/// Returns what is wrong with an object at `path` inside of another one.
pub fn embedded(object: &Map<String, Value>, path: &str) -> Report {
    let mut report = Report::default();
    metadata::embedded(object, path, &mut report);
    report
}

/// Returns what is wrong with a new version of an object.
pub fn update(kind: &Kind, new: &Value, old: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_changed(new, old, Some(kind), metadata::Checks::of(kind), &mut report);
    match (&*kind.group, &*kind.plural) {
        ("", "pods") => pod_update::update(new, old, &mut report),
        ("", "services") => {
            network::service_update(new, old, &mut report);
            content(kind, new, &mut report);
        }
        ("", "configmaps") => {
            config::update(new, old, &["data", "binaryData"], &mut report);
            content(kind, new, &mut report);
        }
        ("", "secrets") => {
            config::update(new, old, &["data"], &mut report);
            content(kind, new, &mut report);
        }
        ("", "persistentvolumeclaims") => {
            content(kind, new, &mut report);
            storage::claim_update(new, old, &mut report);
        }
        ("apps", "controllerrevisions") => {
            workload::revision_number(new, &mut report);
            immutable("data", new, old, &mut report);
        }
        ("apps" | "batch", plural) => {
            content(kind, new, &mut report);
            workload_update::update(plural, new, old, &mut report);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            content(kind, new, &mut report);
            access::binding_update(new, old, &mut report);
        }
        ("apiextensions.k8s.io", _) => {
            content(kind, new, &mut report);
            // Whether the name fits the kind is asked of new definitions only.
            report.errors.retain(|error| error.field != "metadata.name");
            definition::update(new, old, &mut report);
        }
        _ => update_of_rarer(kind, new, old, &mut report),
    }
    report
}

/// Checks new versions of kinds that are made once and seldom change.
fn update_of_rarer(kind: &Kind, new: &Value, old: &Value, report: &mut Report) {
    match (&*kind.group, &*kind.plural) {
        ("storage.k8s.io", plural) => update_of_storage((kind, plural), new, old, report),
        ("resource.k8s.io", plural) => update_of_devices((kind, plural), new, old, report),
        ("networking.k8s.io", "servicecidrs") => address::networks_update(new, old, report),
        ("networking.k8s.io", "ipaddresses") => {
            content(kind, new, report);
            address::address_update(new, old, report);
        }
        ("", "persistentvolumes") => {
            // The real server looks at it once more.
            content(kind, new, report);
            content(kind, new, report);
            volume::volume_update(new, old, report);
        }
        ("", "nodes") => {
            content(kind, new, report);
            node::update(new, old, report);
        }
        ("networking.k8s.io", "ingressclasses") => {
            content(kind, new, report);
            immutable("spec.controller", new, old, report);
        }
        ("node.k8s.io", "runtimeclasses") => {
            content(kind, new, report);
            immutable("handler", new, old, report);
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            if fields::get(new, "value") != fields::get(old, "value") {
                report.forbidden("value", "may not be changed in an update.");
            }
            immutable("preemptionPolicy", new, old, report);
        }
        ("", "resourcequotas") => {
            content(kind, new, report);
            immutable("spec.scopes", new, old, report);
        }
        ("discovery.k8s.io", "endpointslices") => {
            changed_content(kind, "endpoints", (new, old), report);
            immutable("addressType", new, old, report);
        }
        ("", "endpoints") => changed_content(kind, "subsets", (new, old), report),
        // The real server looks at these twice.
        ("", "replicationcontrollers") | ("networking.k8s.io", "networkpolicies") => {
            content(kind, new, report);
            content(kind, new, report);
        }
        ("events.k8s.io", "events") => {
            content(kind, new, report);
            config::event_update(new, old, report);
        }
        _ => content(kind, new, report),
    }
}

/// Checks new versions of claims for devices and of what these are made from.
fn update_of_devices((kind, plural): (&Kind, &str), new: &Value, old: &Value, report: &mut Report) {
    content(kind, new, report);
    // The real server looks at these twice.
    match plural {
        "resourceclaims" => {
            immutable("spec", new, old, report);
            devices::claim(new, "spec", Age::Stored, report);
        }
        "resourceclaimtemplates" => {
            immutable("spec", new, old, report);
            devices::template(new, Age::Stored, report);
        }
        "deviceclasses" => devices::class(new, Some(old), report),
        _ => device_slice::slice_update(new, old, report),
    }
}

/// Returns where an object asks for devices, or gives them, as only administrators may.
pub(crate) fn administrative(kind: &Kind, new: &Value, old: Option<&Value>) -> Option<String> {
    match (&*kind.group, &*kind.plural, old) {
        ("resource.k8s.io", "resourceclaims", None) => devices::asks_as_administrator(new),
        ("resource.k8s.io", "resourceclaims", Some(old)) => claim_status::gives_as_administrator(new, old),
        // The place that is named is that of a claim.
        ("resource.k8s.io", "resourceclaimtemplates", None) => {
            devices::asks_as_administrator(fields::get(new, "spec"))
        }
        _ => None,
    }
}

/// Checks new versions of what makes and mounts volumes.
fn update_of_storage((kind, plural): (&Kind, &str), new: &Value, old: &Value, report: &mut Report) {
    content(kind, new, report);
    match plural {
        "storageclasses" => volume::class_update(new, old, report),
        "csidrivers" => volume::driver_update(new, old, report),
        // The real server looks at these twice.
        "csinodes" => {
            content(kind, new, report);
            node::drivers_update(new, old, report);
        }
        "volumeattributesclasses" => {
            content(kind, new, report);
            volume::fixed(&["driverName", "parameters"], new, old, report);
        }
        "csistoragecapacities" => {
            let topology = fields::get(new, "nodeTopology");
            let parts = ["matchLabels", "matchExpressions"];
            let parts = parts.iter().filter_map(|part| Some(format!("{part:?}:{}", topology.get(part)?)));
            let shown = format!("{{{}}}", parts.collect::<Vec<_>>().join(","));
            immutable_shown("nodeTopology", &shown, new, old, report);
            immutable("storageClassName", new, old, report);
        }
        "volumeattachments" => {
            content(kind, new, report);
            storage::attachment_update(new, old, report);
        }
        _ => {}
    }
}

/// Returns what is wrong with the status of a new version of an object.
pub fn update_status(kind: &Kind, new: &Value, old: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_changed(new, old, Some(kind), metadata::Checks::of_status(kind), &mut report);
    status::update(kind, new, old, &mut report);
    match (&*kind.group, &*kind.plural) {
        ("", "pods") => pod_status::update(new, old, &mut report),
        ("batch", "jobs") => job_status::update(new, old, &mut report),
        ("resource.k8s.io", "resourceclaims") => claim_status::update(new, old, &mut report),
        _ => {}
    }
    report
}

/// Returns what is wrong with what an approver says of a request for a certificate.
pub fn update_approval(kind: &Kind, new: &Value, old: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_built_in(new, kind, &mut report);
    metadata::validate_update(new, old, &mut report);
    signing_request::approved(new, old, &mut report);
    report
}

/// Returns what is wrong with the metadata of a scale.
pub fn scale(kind: &Kind, scale: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_built_in(scale, kind, &mut report);
    report
}

/// Returns what is wrong with the finalizers of a new version of a namespace.
pub fn finalize(kind: &Kind, new: &Value, old: &Value) -> Report {
    let mut report = Report::default();
    metadata::validate_built_in(new, kind, &mut report);
    metadata::validate_update(new, old, &mut report);
    for (index, finalizer) in fields::texts(new, "spec.finalizers").enumerate() {
        config::finalizer(finalizer, &errors::item("spec.finalizers", index), &mut report);
    }
    report
}

/// Returns what is wrong with the metadata of a new version of a custom object.
pub fn update_custom(new: &Value, old: &Value) -> Report {
    let mut report = Report::default();
    let checks = metadata::Checks { whole: 0, changes: 1 };
    metadata::validate_changed(new, old, None, checks, &mut report);
    metadata::warn_of_finalizers(new, old, &mut report);
    report
}

/// Checks an object but for a field that stays as it was: older servers may have taken it.
fn changed_content(kind: &Kind, field: &str, (new, old): (&Value, &Value), report: &mut Report) {
    let mut found = Report::default();
    content(kind, new, &mut found);
    if fields::get(new, field) == fields::get(old, field) {
        let inside = format!("{field}[");
        found.errors.retain(|error| !error.field.starts_with(&inside));
    }
    report.errors.extend(found.errors);
    report.warnings.extend(found.warnings);
}

fn content(kind: &Kind, object: &Value, report: &mut Report) {
    match (&*kind.group, &*kind.plural) {
        ("", plural) => core_content(plural, object, report),
        ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "resource.k8s.io", plural) => {
            content_of_requests(plural, object, report);
        }
        ("events.k8s.io", "events") => config::event(object, "events.k8s.io", report),
        ("coordination.k8s.io", "leases") => config::lease(object, report),
        ("networking.k8s.io", "ingresses") => ingress::ingress(object, report),
        ("networking.k8s.io", "networkpolicies") => network::network_policy(object, report),
        ("apps", "controllerrevisions") => workload::revision(object, report),
        ("discovery.k8s.io", "endpointslices") => endpoints::slice(object, report),
        ("networking.k8s.io", "ingressclasses") => ingress::ingress_class(object, report),
        ("node.k8s.io", "runtimeclasses") => node::runtime_class(object, report),
        ("storage.k8s.io", "storageclasses") => volume::class(object, report),
        ("storage.k8s.io", "csidrivers") => volume::driver(object, report),
        ("storage.k8s.io", "csinodes") => node::drivers(object, report),
        ("storage.k8s.io", "volumeattributesclasses") => volume::attributes(object, report),
        ("storage.k8s.io", "csistoragecapacities") => volume::room(object, report),
        ("networking.k8s.io", "servicecidrs") => address::networks(object, report),
        ("networking.k8s.io", "ipaddresses") => address::address(object, report),
        ("apiregistration.k8s.io", "apiservices") => api_service::api_service(object, report),
        ("certificates.k8s.io", _) => signing_request::request(object, report),
        ("scheduling.k8s.io", "priorityclasses") => config::priority_class(object, report),
        ("storage.k8s.io", "volumeattachments") => storage::attachment(object, report),
        ("apps", "deployments") => {
            workload::deployment(object, report);
            pod::warn_of_name(object, "Pod names and hostnames", report);
        }
        ("apps", "replicasets") => {
            workload::workload(object, &workload::DEPLOYMENT, report);
            pod::warn_of_name(object, "Pod names and hostnames", report);
        }
        ("apps", "daemonsets") => workload::daemon_set(object, report),
        ("apps", "statefulsets") => workload::stateful_set(object, report),
        ("batch", "jobs") => {
            job::job(object, report);
            pod::warn_of_name(object, "Pod names and hostnames", report);
        }
        ("batch", "cronjobs") => {
            job::cron_job(object, report);
            pod::warn_of_name(object, "Pod names and hostnames", report);
        }
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
            access::role(object, kind.namespaced, report);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            access::binding(object, kind.namespaced, report);
        }
        ("autoscaling", _) => scale::autoscaler(object, report),
        ("policy", "poddisruptionbudgets") => scale::budget(object, report),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition::definition(object, report),
        _ => {}
    }
}

/// Checks an object of the group without name.
fn core_content(plural: &str, object: &Value, report: &mut Report) {
    match plural {
        "configmaps" => config::config_map(object, report),
        "secrets" => config::secret(object, report),
        "namespaces" => config::namespace(object, report),
        "events" => config::event(object, "", report),
        "pods" => {
            pod::warn_of_name(object, "the Pod's hostname", report);
            pod::own_spec(fields::get(object, "spec"), report);
        }
        "services" => network::service(object, report),
        "persistentvolumeclaims" => storage::claim(object, report),
        "resourcequotas" => quota::quota(object, report),
        "limitranges" => limits::limit_range(object, report),
        "persistentvolumes" => volume::volume(object, report),
        "endpoints" => endpoints::endpoints(object, report),
        "nodes" => node::node(object, report),
        "replicationcontrollers" => workload::replication_controller(object, report),
        "podtemplates" => workload::template_object(object, report),
        _ => {}
    }
}

/// Checks what says how requests are judged and queued, or what is asked for of devices.
fn content_of_requests(plural: &str, object: &Value, report: &mut Report) {
    match plural {
        "resourceclaims" => devices::claim(object, "spec", Age::New, report),
        "resourceclaimtemplates" => devices::template(object, Age::New, report),
        "deviceclasses" => devices::class(object, None, report),
        "resourceslices" => device_slice::slice(object, report),
        "flowschemas" => flow::schema(object, report),
        "prioritylevelconfigurations" => flow::level(object, report),
        "mutatingwebhookconfigurations" => {
            webhook::configuration(object, true, report);
        }
        "validatingwebhookconfigurations" => {
            webhook::configuration(object, false, report);
        }
        "validatingadmissionpolicies" => policy::policy(object, report),
        "validatingadmissionpolicybindings" => {
            policy::binding(object, report);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{defaults, kind};
    use objects::decode;
    use objects::types::{self, Shape};
    use serde_json::json;

    fn texts(group: &str, plural: &str, object: Value) -> Vec<String> {
        let kind = kind::builtin().iter().find(|k| k.group == group && k.plural == plural).unwrap();
        let shape = Shape::Named(types::name_of_kind(group, &kind.version, &kind.kind).unwrap());
        let mut object = decode::typed(decode::Node::from(object), &shape).unwrap().value;
        defaults::apply(&mut object, &shape);
        let report = create(kind, &object);
        report.errors.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
    }

    #[test]
    fn finalizers_of_custom_objects_need_no_path() {
        let with = |name: &str| json!({"metadata": {"name": "a", "finalizers": [name]}});
        assert!(create_custom(&with("addons.kyma-project.io")).errors.is_empty());
        assert_eq!(create_custom(&with("a b")).errors.len(), 1);
    }

    #[test]
    fn names_and_labels_are_checked() {
        let long = "a".repeat(254);
        assert_eq!(texts("", "configmaps", json!({"metadata": {"name": long}})).len(), 1);
        assert_eq!(
            texts("", "configmaps", json!({"metadata": {}})),
            ["metadata.name: Required value: name or generateName is required"]
        );
        let finalizer = texts("", "configmaps", json!({"metadata": {"name": "a", "finalizers": ["x"]}}));
        assert_eq!(
            finalizer,
            [
                "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
            ]
        );
        assert_eq!(
            texts("", "services", json!({"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 1}]}}))
                .len(),
            1
        );
        assert_eq!(
            texts("", "namespaces", json!({"metadata": {"name": "a.b"}})),
            ["metadata.name: Invalid value: \"a.b\": must not contain dots"]
        );
    }

    #[test]
    fn pods_are_checked() {
        let pod = |spec: Value| texts("", "pods", json!({"metadata": {"name": "a"}, "spec": spec}));
        assert_eq!(pod(json!({})), ["spec.containers: Required value"]);
        let container = |more: Value| {
            let mut container = json!({"name": "c", "image": "i"});
            container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            pod(json!({"containers": [container]}))
        };
        assert_eq!(container(json!({})), Vec::<String>::new());
        assert_eq!(
            container(json!({"ports": [{"containerPort": 70000}]})),
            [
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
            ]
        );
        assert_eq!(
            container(json!({"volumeMounts": [{"name": "x", "mountPath": "/"}]})),
            ["spec.containers[0].volumeMounts[0].name: Not found: \"x\""]
        );
        assert_eq!(
            container(json!({"livenessProbe": {}})),
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"]
        );
        assert_eq!(
            container(json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}})),
            [
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"
            ]
        );
    }

    #[test]
    fn workloads_are_checked() {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let deployment = |selector: Value| {
            texts(
                "apps",
                "deployments",
                json!({"metadata": {"name": "a"}, "spec": {"selector": selector, "template": template}}),
            )
        };
        assert_eq!(deployment(json!({"matchLabels": {"a": "b"}})), Vec::<String>::new());
        assert_eq!(
            deployment(json!({"matchLabels": {"a": "c"}})),
            [
                "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"
            ]
        );
        assert_eq!(
            deployment(json!({})),
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
        );
        assert_eq!(
            deployment(Value::Null),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"
            ]
        );
        let cron = |schedule: &str| {
            texts(
                "batch",
                "cronjobs",
                json!({"metadata": {"name": "a"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}),
            )
        };
        assert_eq!(
            cron("61 * * * *"),
            ["spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61"]
        );
        assert_eq!(cron("*/5 1-3 * jan mon"), Vec::<String>::new());
    }

    #[test]
    fn pods_of_a_stateful_set_mount_its_claims() {
        let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        let set = |mounted: &str| {
            let mount = json!([{"name": mounted, "mountPath": "/data"}]);
            let container = json!({"name": "c", "image": "i", "volumeMounts": mount});
            let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
            let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": [claim]});
            texts("apps", "statefulsets", json!({"metadata": {"name": "a"}, "spec": spec}))
        };
        assert_eq!(set("data"), Vec::<String>::new());
        assert_eq!(
            set("other"),
            ["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"other\""]
        );
    }

    #[test]
    fn quotas_classes_and_attachments_are_checked() {
        let quota = |scopes: Value, hard: Value| {
            let object = json!({"metadata": {"name": "a"}, "spec": {"scopes": scopes, "hard": hard}});
            texts("", "resourcequotas", object)
        };
        assert_eq!(quota(json!(["BestEffort"]), json!({"pods": "1"})), Vec::<String>::new());
        assert_eq!(
            quota(json!(["BestEffort"]), json!({"cpu": "1"})),
            ["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"]
        );
        let class = |name: &str, value: i64| {
            let object = json!({"metadata": {"name": name}, "value": value});
            texts("scheduling.k8s.io", "priorityclasses", object)
        };
        assert_eq!(class("a", 1_000_000_000), Vec::<String>::new());
        assert_eq!(
            class("a", 2_000_000_000),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
        );
        let spec = json!({"attacher": "a/b", "nodeName": "n", "source": {"persistentVolumeName": "v"}});
        let attachment = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(texts("storage.k8s.io", "volumeattachments", attachment).len(), 1);
    }

    #[test]
    fn definitions_are_checked() {
        let definition = |schema: Value| {
            texts(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                json!({
                    "metadata": {"name": "foos.x.io"},
                    "spec": {"group": "x.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
                }),
            )
        };
        assert_eq!(definition(json!({"type": "object"})), Vec::<String>::new());
        assert_eq!(
            definition(json!({})),
            ["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"]
        );
        let spec = |spec: Value| definition(json!({"type": "object", "properties": {"spec": spec}}));
        assert_eq!(
            spec(json!({"type": "array"})),
            ["spec.validation.openAPIV3Schema.properties[spec].items: Required value: must be specified"]
        );
        assert_eq!(
            spec(json!({"type": "string", "default": 1})),
            [
                "spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: \"integer\":  in body must be of type string: \"integer\""
            ]
        );
    }
}

//! Changes that are allowed at one time and not at another, and statuses that cannot be.

use apiserver::ApiServer;
use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{get, merge, post, send, server};

/// The annotation that stood for the class of a claim before there was a field.
const OLDER_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates an object, changes it by a merge patch, and returns the answer.
async fn changed(server: &ApiServer, path: &str, made: Value, part: &str, change: Value) -> (u16, Value) {
    let (status, created) = post(server, path, made).await;
    assert_eq!(status, 201, "{created}");
    let name = created["metadata"]["name"].as_str().unwrap();
    merge(server, &format!("{path}/{name}{part}"), change).await
}

#[tokio::test]
async fn slip_34_a_status_that_cannot_be_is_refused() {
    let server = server();
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    for (path, spec, status, field) in [
        (DEPLOYMENTS, &spec, json!({"replicas": -1}), "status.replicas"),
        (DEPLOYMENTS, &spec, json!({"replicas": 1, "readyReplicas": 2}), "status.readyReplicas"),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            &job,
            json!({"conditions": [{"type": "Complete", "status": "True"}]}),
            "status.completionTime",
        ),
    ] {
        let made = json!({"metadata": {"generateName": "a-"}, "spec": spec});
        let (code, answer) = changed(&server, path, made, "/status", json!({"status": status})).await;
        let fields = answer["details"]["causes"].as_array().unwrap();
        assert!(code == 422 && fields.iter().any(|cause| cause["field"] == field), "{answer}");
    }
}

#[tokio::test]
async fn slip_33_metadata_that_comes_with_a_status_is_checked_and_written() {
    const SPARE: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let server = server();
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    for (path, name, spec) in [
        (DEPLOYMENTS, "d", spec.clone()),
        ("/apis/apps/v1/namespaces/default/statefulsets", "s", spec),
        (PODS, "p", json!({"containers": [{"name": "c", "image": "i"}]})),
        (SPARE, "b", json!({"selector": {"matchLabels": {"a": "b"}}})),
        ("/api/v1/namespaces", "n", json!({})),
    ] {
        assert_eq!(post(&server, path, json!({"metadata": {"name": name}, "spec": spec})).await.0, 201);
        let object = format!("{path}/{name}");
        let status = async |metadata: Value| {
            let (code, answer) =
                merge(&server, &format!("{object}/status?dryRun=All"), json!({"metadata": metadata})).await;
            let told = answer["message"].as_str().unwrap_or_default().to_owned();
            (code, answer["metadata"].clone(), told)
        };
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
        let (code, metadata, _) = status(json!({"ownerReferences": [owner]})).await;
        let expected = if path == PODS { Value::Null } else { json!([owner]) };
        assert_eq!((code, &metadata["ownerReferences"]), (200, &expected), "{object}");
        let (code, metadata, _) = status(json!({"labels": {"x": "y"}, "annotations": {"x": "y"}})).await;
        let labels = if path == DEPLOYMENTS { &Value::Null } else { &json!("y") };
        assert_eq!((code, &metadata["labels"]["x"]), (200, labels), "{object}");
        assert_eq!(metadata["annotations"]["x"], "y", "{object}");
        for owners in [json!([{"apiVersion": "", "kind": "A", "name": "b", "uid": "c"}]), json!([null])] {
            let (code, _, told) = status(json!({"ownerReferences": owners})).await;
            let is_refused = code == 422 && told.contains("metadata.ownerReferences.apiVersion");
            assert!(is_refused == (path != PODS), "{object}: {told}");
        }
        let (code, _, told) = status(json!({"finalizers": ["noslash"]})).await;
        assert_eq!(code, if path == SPARE { 200 } else { 422 }, "{object}: {told}");
        assert_eq!(status(json!({"finalizers": ["x y"]})).await.0, 422, "{object}");
        // The object itself cannot have what is nobody.
        let (code, answer) = merge(&server, &object, json!({"metadata": {"ownerReferences": [null]}})).await;
        assert_eq!(code, 422, "{object}: {answer}");
    }
}

#[tokio::test]
async fn slip_34_a_status_does_not_end_a_namespace() {
    let server = server();
    let made = json!({"metadata": {"name": "n"}});
    let patch = json!({"status": {"phase": "Terminating"}});
    let (code, answer) = changed(&server, "/api/v1/namespaces", made, "/status", patch).await;
    assert_eq!((code, &answer["details"]["causes"][0]["field"]), (422, &json!("status.Phase")), "{answer}");
    let map = json!({"metadata": {"name": "m"}});
    assert_eq!(post(&server, "/api/v1/namespaces/n/configmaps", map).await.0, 201);
}

fn pod(spec: &Value) -> Value {
    let mut all = json!({"containers": [{"name": "c", "image": "i"}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"metadata": {"generateName": "p-"}, "spec": all})
}

#[tokio::test]
async fn slip_35_tolerations_of_a_pod_are_only_added() {
    let server = server();
    let tolerant = || pod(&json!({"tolerations": [{"key": "a", "operator": "Exists"}]}));
    let tolerating = |list: Value| json!({"spec": {"tolerations": list}});
    let (code, _) = changed(&server, PODS, tolerant(), "", tolerating(json!([]))).await;
    assert_eq!(code, 422);
    let (_, created) = post(&server, PODS, tolerant()).await;
    let mut list = created["spec"]["tolerations"].as_array().unwrap().clone();
    list.push(json!({"key": "b", "operator": "Exists"}));
    let path = format!("{PODS}/{}", created["metadata"]["name"].as_str().unwrap());
    assert_eq!(merge(&server, &path, tolerating(json!(list))).await.0, 200);
    list.push(json!({"key": "b", "operator": "Bogus"}));
    assert_eq!(merge(&server, &path, tolerating(json!(list))).await.0, 422);
}

/// Sends a strategic merge patch; returns the status, the text of the refusal, and the answer.
async fn strategic(server: &ApiServer, path: &str, change: &Value) -> (u16, String, Value) {
    let media_type = "application/strategic-merge-patch+json";
    let (status, answer) = send(server.service(), Method::PATCH, path, media_type, &change.to_string()).await;
    (status, answer["message"].as_str().unwrap_or_default().to_owned(), answer)
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "cases, one after the other")]
async fn slip_35_a_resize_changes_processor_and_memory_and_not_the_class_of_a_pod() {
    let server = server();
    let one = |name: &str, requests: Value| json!({"name": name, "image": "i", "resources": {"requests": requests}});
    let mut stays = one("s", json!({"cpu": "1"}));
    stays["restartPolicy"] = json!("Always");
    for (name, spec) in [
        ("none", json!({"containers": [one("a", json!({}))]})),
        (
            "some",
            json!({"containers": [one("a", json!({"cpu": "1", "ephemeral-storage": "1"})), one("b", json!({}))],
            "initContainers": [one("i", json!({"cpu": "1"})), stays]}),
        ),
        ("whole", json!({"containers": [one("a", json!({}))], "resources": {"requests": {"cpu": "1"}}})),
        ("windows", json!({"containers": [one("a", json!({}))], "os": {"name": "windows"}})),
    ] {
        let (status, answer) = post(&server, PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        assert_eq!(status, 201, "{answer}");
    }
    let of = |name: &str, requests: Value| json!({"name": name, "resources": {"requests": requests}});
    let containers = |list: Value| json!({"spec": {"containers": list}});
    for (pod, change, refusal) in [
        (
            "none",
            containers(json!([of("a", json!({"cpu": "1"}))])),
            "spec: Invalid value: \"BestEffort\": Pod QOS Class may not change as a result of resizing",
        ),
        ("none", containers(json!([of("a", json!({"ephemeral-storage": "1"}))])), ""),
        ("some", containers(json!([of("a", json!({"cpu": "2"}))])), ""),
        ("some", containers(json!([of("b", json!({"cpu": "2"}))])), ""),
        (
            "some",
            containers(json!([of("a", json!({"ephemeral-storage": "2"}))])),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            "some",
            containers(json!([of("a", json!({"cpu": null}))])),
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            "some",
            containers(json!([of("a", json!({"cpu": "-2"}))])),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-2\": must be greater than or equal to 0",
        ),
        (
            "some",
            containers(json!([{"name": "z", "image": "i"}])),
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        ("some", json!({"spec": {"initContainers": [of("s", json!({"cpu": "2"}))]}}), ""),
        (
            "some",
            json!({"spec": {"initContainers": [of("i", json!({"cpu": "2"}))]}}),
            "spec: Forbidden: resources for non-sidecar init containers are immutable",
        ),
        (
            "whole",
            containers(json!([of("a", json!({"cpu": "1"}))])),
            "[]: Forbidden: pods with pod-level resources cannot be resized",
        ),
        (
            "windows",
            containers(json!([of("a", json!({"cpu": "1"}))])),
            "[]: Forbidden: windows pods cannot be resized",
        ),
    ] {
        let (status, told, _) = strategic(&server, &format!("{PODS}/{pod}/resize?dryRun=All"), &change).await;
        let expected = if refusal.is_empty() { 200 } else { 422 };
        assert!(status == expected && told.ends_with(refusal), "{pod} {change}: {status} {told}");
    }
    // The image comes by another request.
    let change = containers(json!([{"name": "a", "image": "other"}]));
    let (status, told, answer) = strategic(&server, &format!("{PODS}/some/resize"), &change).await;
    assert_eq!((status, &answer["spec"]["containers"][0]["image"]), (200, &json!("i")), "{told}");
}

#[tokio::test]
async fn slip_35_ephemeral_containers_stay_as_they_came() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}});
    assert_eq!(post(&server, PODS, pod).await.0, 201);
    let path = format!("{PODS}/p/ephemeralcontainers");
    let with = |container: Value| json!({"spec": {"ephemeralContainers": [container]}});
    assert_eq!(strategic(&server, &path, &with(json!({"name": "d", "image": "x"}))).await.0, 200);
    let unsettable =
        |field: &str| format!("[0].{field}: Forbidden: cannot be set for an Ephemeral Container");
    for (container, refusal) in [
        (json!({"name": "e", "image": "x", "targetContainerName": "a"}), String::new()),
        (
            json!({"name": "d", "image": "y"}),
            "existing ephemeral containers \"d\" may not be changed\n".into(),
        ),
        (json!({"name": "a", "image": "x"}), "[0].name: Duplicate value: \"a\"".into()),
        (json!({"name": "e"}), "[0].image: Required value".into()),
        (
            json!({"name": "e", "image": "x", "targetContainerName": "z"}),
            "[0].targetContainerName: Not found: \"z\"".into(),
        ),
        (json!({"name": "e", "image": "x", "ports": [{"containerPort": 0}]}), unsettable("ports")),
        (
            json!({"name": "e", "image": "x", "resources": {"requests": {"cpu": "1"}}}),
            unsettable("resources"),
        ),
        (
            json!({"name": "e", "image": "x", "startupProbe": {"exec": {"command": ["x"]}}}),
            unsettable("startupProbe"),
        ),
    ] {
        let (status, told, _) =
            strategic(&server, &format!("{path}?dryRun=All"), &with(container.clone())).await;
        let expected = if refusal.is_empty() { 200 } else { 422 };
        assert!(status == expected && told.ends_with(&refusal), "{container}: {status} {told}");
    }
    let (status, answer) = merge(&server, &path, json!({"spec": {"ephemeralContainers": []}})).await;
    let told = answer["message"].as_str().unwrap();
    assert!(
        status == 422 && told.contains("existing ephemeral containers \"d\" may not be removed"),
        "{told}"
    );
}

#[tokio::test]
async fn slip_35_addresses_zones_and_managers_that_cannot_be_are_refused() {
    let server = server();
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let jobs = "/apis/batch/v1/namespaces/default";
    let mut managed = job.clone();
    managed["managedBy"] = json!("ab");
    let cron = |zone: &str| json!({"schedule": "* * * * *", "timeZone": zone, "jobTemplate": {"spec": job}});
    for (path, spec, refusal) in [
        ("cronjobs", cron("Europe/Berlin"), ""),
        ("cronjobs", cron("UTC"), ""),
        (
            "cronjobs",
            cron("europe/berlin"),
            "spec.timeZone: Invalid value: \"europe/berlin\": unknown time zone europe/berlin",
        ),
        ("cronjobs", cron("utc"), "spec.timeZone: Invalid value: \"utc\": unknown time zone utc"),
        (
            "jobs",
            managed,
            "spec.managedBy: Invalid value: \"ab\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
    ] {
        let made = json!({"metadata": {"generateName": "a-"}, "spec": spec});
        let (status, answer) = post(&server, &format!("{jobs}/{path}"), made).await;
        let told = answer["message"].as_str().unwrap_or_default();
        let expected = if refusal.is_empty() { 201 } else { 422 };
        assert!(status == expected && told.ends_with(refusal), "{spec}: {answer}");
    }
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let (status, answer) =
        changed(&server, services, service, "", json!({"spec": {"clusterIPs": ["None"]}})).await;
    let told = answer["message"].as_str().unwrap_or_default();
    let refusal = "spec.clusterIPs: Invalid value: [\"None\"]: first value must match `clusterIP`";
    assert!(status == 422 && told.ends_with(refusal), "{answer}");
    let (_, kept) = get(&server, &format!("{services}/s")).await;
    // Old clients know one of the two fields.
    for change in [
        json!({"clusterIPs": null}),
        json!({"clusterIP": null}),
        json!({"clusterIP": null, "clusterIPs": null}),
    ] {
        let (status, answer) = merge(&server, &format!("{services}/s"), json!({"spec": change})).await;
        assert_eq!((status, &answer["spec"]), (200, &kept["spec"]), "{change}");
    }
    let node = json!({"metadata": {"name": "n"}, "spec": {"configSource": {"configMap": {"name": "x", "namespace": "y", "kubeletConfigKey": "z"}}}});
    let (status, answer) = post(&server, "/api/v1/nodes", node).await;
    assert_eq!((status, &answer["spec"]["configSource"]), (201, &Value::Null));
}

#[tokio::test]
async fn slip_35_a_gated_pod_becomes_more_particular() {
    let server = server();
    let gated = || pod(&json!({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}}));
    for (patch, expected) in [
        (json!({"nodeSelector": {"c": "d"}}), 200),
        (json!({"nodeSelector": {"a": "x"}}), 422),
        (json!({"schedulingGates": null}), 200),
        (json!({"schedulingGates": [{"name": "g"}, {"name": "h"}]}), 422),
        (json!({"nodeName": "n"}), 422),
    ] {
        let (code, answer) = changed(&server, PODS, gated(), "", json!({"spec": patch})).await;
        assert_eq!(code, expected, "{patch} {answer}");
    }
}

#[tokio::test]
async fn slip_35_a_suspended_job_changes_where_it_runs_and_not_what() {
    let server = server();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for (field, value, expected) in [
        ("containers/0/image", json!("j"), 422),
        ("nodeSelector", json!({"a": "b"}), 200),
        ("tolerations", json!([{"key": "a", "operator": "Exists"}]), 200),
    ] {
        let job =
            json!({"metadata": {"generateName": "j-"}, "spec": {"suspend": true, "template": template}});
        let (_, created) = post(&server, jobs, job).await;
        let path = format!("{jobs}/{}", created["metadata"]["name"].as_str().unwrap());
        let added = json!([{"op": "add", "path": format!("/spec/template/spec/{field}"), "value": value}]);
        let content = "application/json-patch+json";
        let (code, _) = send(server.service(), Method::PATCH, &path, content, &added.to_string()).await;
        assert_eq!(code, expected, "{field}");
    }
}

#[tokio::test]
async fn slip_35_a_claim_without_a_class_gets_one() {
    let server = server();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |more: Value| {
        let mut spec =
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"metadata": {"generateName": "c-"}, "spec": spec})
    };
    for (before, expected) in [(json!({}), 200), (json!({"storageClassName": ""}), 422)] {
        let patch = json!({"spec": {"storageClassName": "x"}});
        let (code, answer) = changed(&server, claims, claim(before), "", patch).await;
        assert_eq!(code, expected, "{answer}");
    }
    // The class may stand in an annotation, from which it may move into the field.
    let annotated = |class: Option<&str>| {
        let mut claim = claim(json!({}));
        claim["metadata"]["annotations"] = class.map_or(json!({}), |class| json!({ OLDER_CLASS: class }));
        claim
    };
    for (before, patch, expected) in [
        (None, json!({"metadata": {"annotations": {OLDER_CLASS: "k"}}}), 422),
        (Some("k"), json!({"metadata": {"annotations": {OLDER_CLASS: "j"}}}), 422),
        (Some("k"), json!({"metadata": {"annotations": {OLDER_CLASS: null}}}), 422),
        (
            Some("k"),
            json!({"metadata": {"annotations": {OLDER_CLASS: null}}, "spec": {"storageClassName": "k"}}),
            200,
        ),
        (Some("k"), json!({"spec": {"storageClassName": "k"}}), 200),
        (Some("k"), json!({"spec": {"storageClassName": "j"}}), 422),
        (
            Some("k"),
            json!({"metadata": {"annotations": {OLDER_CLASS: "j"}}, "spec": {"storageClassName": "k"}}),
            422,
        ),
    ] {
        let (code, answer) = changed(&server, claims, annotated(before), "", patch.clone()).await;
        assert_eq!(code, expected, "{before:?} {patch} {answer}");
    }
}

#[tokio::test]
async fn slip_35_a_service_becomes_a_name_outside() {
    let server = server();
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "a.example.com"}});
    let (code, answer) = changed(&server, services, service, "", patch).await;
    assert_eq!((code, &answer["spec"]["clusterIP"]), (200, &Value::Null), "{answer}");
    assert_eq!(answer["spec"]["ports"][0]["nodePort"], Value::Null);
}

#[tokio::test]
async fn slip_35_a_name_outside_has_no_families_of_addresses() {
    let server = server();
    let services = "/api/v1/namespaces/default/services";
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    let outside =
        json!({"type": "ExternalName", "externalName": "x.y", "clusterIP": null, "clusterIPs": null});
    let (code, answer) = changed(&server, services, service, "", json!({ "spec": outside })).await;
    assert_eq!(code, 200, "{answer}");
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(answer["spec"][field], Value::Null, "{field}");
    }
    let path = format!("{services}/s");
    let (code, answer) = merge(&server, &path, json!({"spec": {"ipFamilyPolicy": "PreferDualStack"}})).await;
    let why =
        "Service \"s\" is invalid: spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services";
    assert_eq!((code, answer["message"].as_str()), (422, Some(why)));
    assert_eq!(merge(&server, &path, json!({"spec": {"ipFamilies": ["IPv4"]}})).await.0, 422);
    let (code, answer) = merge(&server, &path, json!({"spec": {"type": "ClusterIP"}})).await;
    assert_eq!((code, &answer["spec"]["ipFamilyPolicy"]), (200, &json!("SingleStack")), "{answer}");
}

#[tokio::test]
async fn slip_35_fields_that_a_type_of_service_ignores_are_warned_of() {
    let server = server();
    for (spec, expected) in [
        (
            json!({"externalName": "x.y", "ports": [{"port": 80}]}),
            "spec.externalName is ignored when spec.type is not \\\"ExternalName\\\"",
        ),
        (
            json!({"type": "ExternalName", "externalName": "x.y", "externalIPs": ["8.8.8.8"]}),
            "spec.externalIPs is ignored when spec.type is \\\"ExternalName\\\"",
        ),
        (
            json!({"clusterIP": "None", "externalIPs": ["8.8.8.8"], "ports": [{"port": 80}]}),
            "spec.externalIPs is ignored for headless services",
        ),
        (
            json!({"clusterIP": "None", "sessionAffinity": "ClientIP", "ports": [{"port": 80}]}),
            "spec.SessionAffinity is ignored for headless services",
        ),
    ] {
        let service = json!({"metadata": {"generateName": "s-"}, "spec": spec});
        let request = Request::builder()
            .method(Method::POST)
            .uri("/api/v1/namespaces/default/services")
            .header("content-type", "application/json")
            .body(Body::from(service.to_string()))
            .unwrap();
        let answer = server.service().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 201, "{spec}");
        let warnings: Vec<_> = answer.headers().get_all("warning").iter().collect();
        assert_eq!(warnings, [format!("299 - \"{expected}\"").as_str()], "{spec}");
    }
}

#[tokio::test]
async fn what_was_warned_of_is_not_warned_of_again_for_a_label() {
    let server = server();
    let ports = json!([{"containerPort": 80}]);
    let containers = json!([
        {"name": "c", "image": "i", "ports": ports},
        {"name": "d", "image": "i", "ports": ports},
    ]);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let made = json!({"metadata": {"name": "w"}, "spec": spec});
    assert_eq!(post(&server, DEPLOYMENTS, made).await.0, 201);
    let warnings = async |body: Value| {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{DEPLOYMENTS}/w"))
            .header("content-type", "application/merge-patch+json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let answer = server.service().oneshot(request).await.unwrap();
        answer.headers().get_all("warning").iter().count()
    };
    assert_eq!(warnings(json!({"metadata": {"labels": {"x": "y"}}})).await, 0);
    assert_eq!(warnings(json!({"spec": {"replicas": 2}})).await, 1);
}

#[tokio::test]
async fn slip_37_metrics_and_the_documents_of_the_issuer_are_served() {
    let server = server();
    let (code, metrics) = get(&server, "/metrics").await;
    let text = metrics.as_str().unwrap();
    assert!(code == 200 && text.contains("apiserver_resource_objects{group=\"\",resource=\"namespaces\"} 4"));
    let (code, issuer) = get(&server, "/.well-known/openid-configuration").await;
    assert_eq!((code, &issuer["issuer"]), (200, &json!("https://kubernetes.default.svc")));
    assert_eq!(get(&server, "/openid/v1/jwks").await, (200, json!({"keys": []})));
}

//! Chart bundles, end to end: plans, what the user configures, and the credentials of a release.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use addon_operator::app::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::support::program;
use crate::support::repository::Packed;
use crate::support::server::{self, get, ok};
use crate::support::source_cluster::{SOURCES, World, phase, state};

const SECRET: &str = "/api/v1/namespaces/ops/secrets/cache-binding";

const META: &str = "id: id-cache\nname: cache\nversion: 1.0.0\ndescription: A test.\ndisplayName: Cache\n";

/// A chart that knows nothing of modules: values at the root, names of objects from its own name.
const TEMPLATE: &str = r#"
{{- define "cache.name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ include "cache.name" . }}}
data: {chart: "{{ .Values.said.chart }}", plan: "{{ .Values.said.plan }}", own: "{{ .Values.said.own }}", size: "{{ .Values.size }}"}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ include "cache.name" . }}}
stringData: {password: hunter2hunter2}
---
apiVersion: v1
kind: Service
metadata: {name: {{ include "cache.name" . }}}
spec: {clusterIP: 10.0.0.77, selector: {app: cache}, ports: [{name: main, port: 6379}]}
"#;

pub(crate) const BIND: &str = r#"
credential:
- name: URI
  value: "cache://{{ include "cache.name" . }}.{{ .Release.Namespace }}/{{ .Values.size }}"
- name: PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "cache.name" . }}, key: password}}
- name: ADDRESS
  valueFrom: {serviceRef: {name: {{ include "cache.name" . }}, jsonpath: '{.spec.clusterIP}:{.spec.ports[0].port}'}}
credentialFrom:
- configMapRef: {name: {{ include "cache.name" . }}}
"#;

const SCHEMA: &str = r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
    "properties": {"size": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}}}"#;

/// Returns a bundle with the plans micro and big; big has credentials.
pub(crate) fn cache(bind: &str) -> Vec<u8> {
    let mut packed = Packed::new();
    let mut file = |name: &str, text: &str| packed.file(name, 0o644, text.as_bytes());
    file("meta.yaml", META);
    file("chart/redis/Chart.yaml", "{apiVersion: v1, name: redis, version: 0.1.0}\n");
    file("chart/redis/values.yaml", "{size: 1, said: {chart: chart, plan: chart, own: chart}}\n");
    file("chart/redis/templates/all.yaml", TEMPLATE);
    for (name, size, bindable) in [("micro", 2, false), ("big", 9, true)] {
        let meta = format!(
            "{{id: id-{name}, name: {name}, description: A plan., displayName: P, bindable: {bindable}}}\n"
        );
        file(&format!("plans/{name}/meta.yaml"), &meta);
        let values = format!("{{size: {size}, said: {{plan: {name}, own: {name}}}}}\n");
        file(&format!("plans/{name}/values.yaml"), &values);
        file(&format!("plans/{name}/create-instance-schema.json"), SCHEMA);
        file(&format!("plans/{name}/bind.yaml"), bind);
    }
    // What a module would run is a file of the chart.
    for name in ["hooks/run.sh", "enabled"] {
        let script = b"#!/bin/sh\necho ran >>\"$WORLD/ran\"\necho false >\"$MODULE_ENABLED_RESULT\"\n";
        packed.file(&format!("chart/redis/{name}"), 0o755, script);
    }
    packed.finish()
}

/// Configures the module with the text of its section.
async fn configure(world: &World, section: &str) {
    world.cluster.put("addon-operator", json!({"data": {"cacheEnabled": "true", "cache": section}})).await;
}

/// Asks the socket of the operator for a path.
fn on_socket(world: &World, path: &str) -> String {
    let mut stream = UnixStream::connect(world.cluster.path("socket")).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn decoded(secret: &Value) -> Vec<String> {
    let data = secret["data"].as_object().unwrap().iter();
    let text = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
    data.map(|(name, value)| format!("{name}={}", text(value))).collect()
}

async fn revision(world: &World, number: u32) -> Option<Value> {
    get(&world.cluster.server, &format!("/api/v1/namespaces/ops/secrets/sh.helm.release.v1.cache.v{number}"))
        .await
}

async fn a30_a_plan_is_picked_overridden_refused_and_bound() {
    let world = World::new().await;
    world.repository.publish(&[("cache", "1.0.0", cache(BIND))]);
    let operator = world.start().await;
    let port = operator.port.to_string();
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Ready" && state(object) == "Registered").await;

    // Switched on without a plan: the module says which there are, and nothing is released.
    world.cluster.put("addon-operator", json!({"data": {"cacheEnabled": "true"}})).await;
    world.settled("platform", |object| state(object) == "Error").await;
    let why = program::get(&port, "/why/module/cache");
    assert!(why.contains("no plan is picked; set plan to one of: big, micro"), "{why}");
    assert!(revision(&world, 1).await.is_none());

    // The values of the release are those of the chart, under those of the plan, under those of the user.
    configure(&world, "plan: big\nsaid: {own: override}").await;
    let values = json!({"chart": "chart", "plan": "big", "own": "override", "size": "9"});
    world.cluster.settled("cache-redis", |map| map["data"] == values).await;
    world.settled("platform", |object| state(object) == "Running").await;
    let secret = get(&world.cluster.server, SECRET).await.unwrap();
    assert_eq!(
        decoded(&secret),
        [
            "ADDRESS=10.0.0.77:6379",
            "PASSWORD=hunter2hunter2",
            "URI=cache://cache-redis.ops/9",
            "chart=chart",
            "own=override",
            "plan=big",
            "size=9"
        ]
    );
    assert_eq!(secret["metadata"]["labels"]["addon-operator.io/module"], "cache");
    let shown = on_socket(&world, "/module/cache/values.json");
    assert!(shown.contains(r#""size":9"#) && shown.contains("override"), "{shown}");
    let shown = on_socket(&world, "/module/cache/render");
    assert!(shown.contains("own: override"), "{shown}");

    // A value that breaks the schema of the plan: the release is untouched, and no message has the value.
    configure(&world, "plan: big\nsize: hunter3hunter3").await;
    server::until("the violation", || program::get(&port, "/status").contains("plan big: at '/size'")).await;
    let status = program::get(&port, "/status");
    assert!(!status.contains("hunter3"), "{status}");
    configure(&world, "plan: bug").await;
    server::until("the plan that is meant", || program::get(&port, "/status").contains("did you mean big?"))
        .await;
    assert!(revision(&world, 2).await.is_none());
    assert_eq!(get(&world.cluster.server, SECRET).await.unwrap(), secret);

    // A restart changes nothing.
    configure(&world, "plan: big\nsaid: {own: override}").await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let operator = world.start().await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    assert!(revision(&world, 2).await.is_none());
    assert_eq!(get(&world.cluster.server, SECRET).await.unwrap(), secret);

    // Another plan is an upgrade. It is not bindable, though there is a template: nothing is written, and the Secret goes.
    configure(&world, "plan: micro").await;
    world.cluster.settled("cache-redis", |map| map["data"]["size"] == "2").await;
    let secrets = kube::Api::<k8s_openapi::api::core::v1::Secret>::namespaced(world.cluster.client(), "ops");
    server::settled(&secrets, "cache-binding", Value::is_null).await;
    configure(&world, "plan: big").await;
    server::settled(&secrets, "cache-binding", |secret| !secret.is_null()).await;

    assert_eq!(world.lines("ran"), [""; 0], "code of a chart bundle ran");

    // Withdrawn: the release and its credentials are gone before the object is.
    ok(&world.cluster.server, Method::DELETE, &format!("{SOURCES}/platform"), &Value::Null).await;
    world.settled("platform", Value::is_null).await;
    assert!(get(&world.cluster.server, SECRET).await.is_none());
    assert!(get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/cache-redis").await.is_none());
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn credentials_that_are_not_there_yet_are_tried_again_and_nobody_elses_secret_is_touched() {
    let world = World::new().await;
    let bind = "credential:\n- name: KEY\n  valueFrom: {secretKeyRef: {name: later, key: key}}\n";
    world.repository.publish(&[("cache", "1.0.0", cache(bind))]);
    let operator = world.start().await;
    let port = operator.port.to_string();
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    configure(&world, "plan: big").await;
    let why = || program::get(&port, "/why/module/cache");
    let missing = "but its credentials are not in Secret cache-binding";
    server::until("the failure", || why().contains(missing) && why().contains("there is no Secret later"))
        .await;
    let release = revision(&world, 1).await.unwrap();
    assert_eq!(release["metadata"]["labels"]["status"], "deployed");
    let secrets = "/api/v1/namespaces/ops/secrets";
    let theirs = json!({"metadata": {"name": "cache-binding"}, "stringData": {"a": "theirs"}});
    let theirs = ok(&world.cluster.server, Method::POST, secrets, &theirs).await;
    let later = json!({"metadata": {"name": "later"}, "stringData": {"key": "hunter2hunter2"}});
    ok(&world.cluster.server, Method::POST, secrets, &later).await;
    server::until("the other failure", || why().contains("Secret cache-binding is there, and is not ours"))
        .await;
    assert_eq!(get(&world.cluster.server, SECRET).await.unwrap(), theirs);
    ok(&world.cluster.server, Method::DELETE, SECRET, &Value::Null).await;
    world.settled("platform", |object| state(object) == "Running").await;
    assert_eq!(decoded(&get(&world.cluster.server, SECRET).await.unwrap()), ["KEY=hunter2hunter2"]);
    assert!(revision(&world, 2).await.is_none());
    // What is removed by hand comes back with the next run, and what changed is written.
    ok(&world.cluster.server, Method::PATCH, SECRET, &json!({"data": {"KEY": "eA=="}})).await;
    configure(&world, "plan: big\nsize: 10").await;
    world.cluster.settled("cache-redis", |map| map["data"]["size"] == "10").await;
    let api = kube::Api::<k8s_openapi::api::core::v1::Secret>::namespaced(world.cluster.client(), "ops");
    server::settled(&api, "cache-binding", |secret| secret["data"]["KEY"] == "aHVudGVyMmh1bnRlcjI=").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

scenarios! {
    a30_a_plan_is_picked_overridden_refused_and_bound,
    credentials_that_are_not_there_yet_are_tried_again_and_nobody_elses_secret_is_touched,
}

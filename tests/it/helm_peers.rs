//! `--helm-backend=cli` beside Helm itself, on a server that both reach over the network. They need `helm`: `.ci/run` runs them, or
//! `cargo test --test it helm_peers -- --ignored`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;

use crate::helm_hooks::cut_off;
use crate::support::files::write;
use crate::support::in_process::Cluster;
use crate::support::pause::pause;
use crate::support::release::{MAP, NAMESPACE, ReleaseFixture, end_jobs};
use crate::support::server::get;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs helm"]
async fn a_module_is_installed_changed_left_alone_and_removed_by_helm() {
    let cluster = Cluster::new().await;
    let serving = cluster.server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let kubeconfig = cluster.path("kubeconfig");
    fs::write(&kubeconfig, serving.kubeconfig()).unwrap();
    cluster.write("modules/010-web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n");
    cluster.write("modules/010-web/values.yaml", "web: {k: one}\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {k: '{{ .Values.web.k }}', braces: '{{ \"{{\" }} x }}'}\n";
    cluster.write("modules/010-web/templates/map.yaml", map);
    cluster.write(
        "modules/010-web/templates/NOTES.txt",
        "{{ .Release.Name }} {{ .Values.web.k }} {{ \"{{\" }}\n",
    );
    cluster.write("modules/values.yaml", "webEnabled: true\n");
    let path = kubeconfig.display().to_string();
    let options = [("helm-backend", "cli"), ("kube-config", path.as_str())];
    let operator = cluster.start(&options).await;
    cluster.settled("shown", |map| map["data"]["k"] == "one" && map["data"]["braces"] == "{{ x }}").await;
    let secret = |version: u32| format!("/api/v1/namespaces/ops/secrets/sh.helm.release.v1.web.v{version}");
    let marked = async |version: u32| loop {
        let found = get(&cluster.server, &secret(version)).await.unwrap_or_default();
        let labels = found["metadata"]["labels"].clone();
        if labels["moduleChecksum"].is_string() && labels["status"] == "deployed" {
            return labels;
        }
        pause().await;
    };
    marked(1).await;
    cluster.put("addon-operator", serde_json::json!({"data": {"web": "k: two"}})).await;
    cluster.settled("shown", |map| map["data"]["k"] == "two" && map["metadata"]["labels"].is_object()).await;
    marked(2).await;
    let noted = Command::new("helm")
        .args(["get", "notes", "web", "--namespace", "ops", "--kubeconfig", &path])
        .output();
    let noted = String::from_utf8(tokio::task::block_in_place(|| noted).unwrap().stdout).unwrap();
    assert!(noted.contains("web two {{"), "{noted}");
    operator.stop().await;
    let operator = cluster.start(&options).await;
    cluster
        .put("addon-operator", serde_json::json!({"data": {"web": "k: two", "webEnabled": "false"}}))
        .await;
    cluster.settled("shown", serde_json::Value::is_null).await;
    while get(&cluster.server, &secret(2)).await.is_some() {
        pause().await;
    }
    assert!(get(&cluster.server, &secret(3)).await.is_none(), "a start changes nothing");
    let helm = |arguments: &[&str]| {
        let mut command = Command::new("helm");
        command.args(arguments).args(["--namespace", "ops", "--kubeconfig", &path]);
        let output = tokio::task::block_in_place(|| command.output().unwrap());
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    assert!(!helm(&["list", "--all"]).contains("web"));
    operator.stop().await;
}

/// A hook of the kind Job that nobody ends but the test.
const HOOK: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: prepare\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n\
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs helm"]
async fn slip_17_helm_goes_on_after_the_operator_ended_within_a_hook() {
    let mut world =
        ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
    world.timeout = Duration::from_mins(5);
    assert!(cut_off(&world).await.is_cancelled());
    let serving = world.server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig").display().to_string();
    fs::write(&kubeconfig, serving.kubeconfig()).unwrap();
    let chart = dir.path().join("web");
    write(&chart.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.2.3\n");
    write(&chart.join("templates/map.yaml"), &MAP.replace(".Values.web.k", ".Values.k"));
    write(&chart.join("templates/hook.yaml"), HOOK);
    let kubelet = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), None));
    let chart = chart.display().to_string();
    let mut helm = Command::new("helm");
    helm.args(["upgrade", "--install", "web", chart.as_str(), "--set", "k=three", "--timeout", "1m"]);
    helm.args(["--namespace", NAMESPACE, "--kubeconfig", kubeconfig.as_str()]);
    let output = tokio::task::block_in_place(|| helm.output().unwrap());
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(world.states().await.last().unwrap(), "2 deployed", "{text}");
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "three");
    // The operator goes on after helm as well.
    world.upgraded(&world.helm()).await;
    kubelet.abort();
}

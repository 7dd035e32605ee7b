//! The whole operator in this process, on an API server in this process that has faults.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use addon_operator::app::{self, Outcome};
use addon_operator::cluster::connect_in_process;
use apiserver::{Endpoint, FaultPlan};
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::Service;

use crate::support::in_process::Cluster;

/// A hook that writes what its snapshot holds into the ConfigMap `seen`.
const MIRROR: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- {name: items, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {item: "yes"}}, jqFilter: .metadata.name, group: all}
CONFIG
  exit 0
fi
names=$(grep -o '"filterResult":"[a-z0-9]*"' "$BINDING_CONTEXT_PATH" | sort -u | cut -d'"' -f4 | tr '\n' ' ')
echo "{\"operation\": \"CreateOrUpdate\", \"object\": {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"seen\", \"namespace\": \"ops\"}, \"data\": {\"names\": \"${names% }\"}}}" > "$KUBERNETES_PATCH_PATH"
"#;

fn item() -> Value {
    json!({"metadata": {"labels": {"item": "yes"}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_away_nothing_is_lost() {
    let world = Cluster::new().await;
    world.write("global-hooks/mirror.sh", MIRROR);
    world.write("modules/values.yaml", "web: {text: first}\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {text: {{ .Values.web.text }}}\n",
    );
    world.put("one", item()).await;
    world.put("two", item()).await;
    world.put("addon-operator", json!({"data": {"webEnabled": "true"}})).await;
    let operator = world.start(&[]).await;
    world.settled("seen", |map| map["data"]["names"] == "one two").await;
    world.settled("web", |map| map["data"]["text"] == "first").await;
    // The operator sees nothing and creates nothing. People go on: they apply and delete.
    let faults = world.server.faults();
    for method in [Method::GET, Method::POST, Method::PUT] {
        faults.add(FaultPlan::on(method, "*").times(u64::MAX).cut());
    }
    faults.drop_watches();
    world.put("three", item()).await;
    world.maps().delete("one", &DeleteParams::default()).await.unwrap();
    world.put("addon-operator", json!({"data": {"webEnabled": "true", "web": "text: second"}})).await;
    while faults.hits() < 4 {
        tokio::task::yield_now().await;
    }
    faults.clear();
    world.settled("seen", |map| map["data"]["names"] == "three two").await;
    world.settled("web", |map| map["data"]["text"] == "second").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    let world = Cluster::new().await;
    world.write("global-hooks/mirror.sh", MIRROR);
    world.put("one", item()).await;
    world.server.faults().add(FaultPlan::on(Method::GET, "*").times(2).cut());
    let operator = world.start(&[]).await;
    while world.server.faults().hits() < 2 {
        tokio::task::yield_now().await;
    }
    world.settled("seen", |map| map["data"]["names"] == "one").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_ends_when_a_round_of_tries_brings_nothing_further() {
    let world = Cluster::new().await;
    let config =
        "if [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":1}'; exit; fi\n";
    world.write("modules/values.yaml", "aEnabled: true\nbEnabled: true\n");
    // The first needs what the second brings; with patience both come through.
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{config}test -e \"$WORLD/brought\"\n"));
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}touch \"$WORLD/brought\"\n"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}exit 1\n"));
    assert_eq!(world.once().await, Outcome::NotConverged);
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}exit 0\n"));
    world.write("modules/020-b/enabled", "#!/bin/sh\nexit 1\n");
    assert_eq!(world.once().await, Outcome::NotConverged, "a discovery that fails");
    world.write("modules/020-b/enabled", "#!/bin/sh\necho true > \"$MODULE_ENABLED_RESULT\"\n");
    let watches = "if [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"kubernetes\":[{\"name\":\"things\",\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\"}]}'; exit; fi\n";
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{watches}"));
    assert_eq!(world.once().await, Outcome::NotConverged, "a module that waits for a kind");
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{config}"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("global-hooks/watch.sh", &format!("#!/bin/sh\n{watches}"));
    assert_eq!(world.once().await, Outcome::NotConverged, "a global hook that waits for a kind");
}

/// An API server that asks for the end of the operator at a certain request.
#[derive(Clone)]
struct Interrupting {
    service: Endpoint,
    asked: Arc<AtomicU64>,
    at: u64,
    shutdown: Arc<watch::Sender<bool>>,
}

impl<B> Service<http::Request<B>> for Interrupting
where
    Endpoint: Service<http::Request<B>>,
{
    type Response = <Endpoint as Service<http::Request<B>>>::Response;
    type Error = <Endpoint as Service<http::Request<B>>>::Error;
    type Future = <Endpoint as Service<http::Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            self.shutdown.send_replace(true);
        }
        self.service.call(request)
    }
}

/// A module with a hook at each point, and a chart.
fn write_busy_module(world: &Cluster) {
    world.write("modules/values.yaml", "webEnabled: true\nweb: {text: first}\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/maps.yaml",
        "{{ range $n := until 3 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-{{ $n }}}\n{{ end }}",
    );
    world.write(
        "modules/010-web/hooks/a.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then\n\
         echo '{\"configVersion\":\"v1\",\"onStartup\":1,\"beforeHelm\":1,\"afterHelm\":1,\"kubernetes\":[{\"kind\":\"ConfigMap\"}]}'\n\
         exit\nfi\necho $$ >> \"$WORLD/pids\"\n",
    );
}

/// What an operator may not leave behind.
async fn assert_clean(world: &Cluster, what: &str) {
    let pids = fs::read_to_string(world.path("pids")).unwrap_or_default();
    for pid in pids.lines() {
        // The number may belong to somebody else by now.
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.contains("010-web"), "{what}: hook {pid} still runs");
    }
    let tmp = fs::read_dir(world.path("tmp")).map_or(0, Iterator::count);
    assert_eq!(tmp, 0, "{what}: files of hooks are left");
    let secrets: Api<Secret> = Api::namespaced(world.client(), "ops");
    for secret in secrets.list(&ListParams::default().labels("owner=helm")).await.unwrap() {
        let status = secret.metadata.labels.unwrap_or_default().remove("status").unwrap_or_default();
        assert!(!status.starts_with("pending"), "{what}: the release is {status}");
    }
}

/// Runs a start that is told to end at the request `at`; returns how many requests there were.
async fn interrupted(world: &Cluster, at: u64) -> u64 {
    let (shutdown, ended) = watch::channel(false);
    let asked = Arc::new(AtomicU64::new(0));
    let service = Interrupting {
        service: world.server.service(),
        asked: Arc::clone(&asked),
        at,
        shutdown: Arc::new(shutdown),
    };
    let client = connect_in_process(service.clone(), "ops");
    let begun = Instant::now();
    let outcome = app::run(world.around(client, true, ended, &[]), drop).await.unwrap();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "at request {at}: the end took {took:?} ({outcome:?})");
    assert_clean(world, &format!("at request {at}")).await;
    asked.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h2_an_end_at_any_moment_of_a_converge_leaves_nothing_behind() {
    let world = Cluster::new().await;
    write_busy_module(&world);
    let requests = interrupted(&world, u64::MAX).await;
    assert!(requests > 10, "only {requests} requests");
    // All moments of a first start, and of starts on what an interrupted one has left.
    let mut points = 0;
    while points < 200 {
        let world = Cluster::new().await;
        write_busy_module(&world);
        for round in 0..10 {
            let at = 1 + (points * 7 + round) % requests;
            interrupted(&world, at).await;
            points += 1;
        }
        assert_eq!(world.once().await, Outcome::Done, "after {points} interruptions");
        assert!(Path::new(&world.path("pids")).exists());
    }
}

//! The whole operator in this process, on an API server in this process that has faults.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use addon_operator::app::{self, Outcome};
use apiserver::FaultPlan;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::in_process::{Cluster, ask_socket, observed};
use crate::support::pause::pause;
use crate::support::program::get;
use crate::support::server::{self, until};

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
        pause().await;
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
        pause().await;
    }
    world.settled("seen", |map| map["data"]["names"] == "one").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_01_a_kind_whose_lists_fail_holds_back_nobody_but_its_hook() {
    let world = Cluster::new().await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server::ok(&world.server, Method::POST, crds, &server::crd()).await;
    let things = MIRROR.replace(
        "apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {item: \"yes\"}}",
        "apiVersion: example.com/v1, kind: Thing",
    );
    world.write("global-hooks/things.sh", &things);
    world.write_web();
    let failing = FaultPlan::on(Method::GET, "/apis/example.com/v1/things?*");
    world.server.faults().add(failing.times(u64::MAX).fail(500));
    let operator = world.start(&[]).await;
    world.settled("web", |map| !map.is_null()).await;
    assert!(world.maps().get_opt("seen").await.unwrap().is_none(), "the hook has seen no list");
    let queues = get(&operator.port.to_string(), "/queue");
    assert!(queues.contains("watch of Thing is broken"), "{queues}");
    world.server.faults().clear();
    world.settled("seen", |map| map["data"]["names"] == "").await;
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
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{config}"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("global-hooks/watch.sh", &format!("#!/bin/sh\n{watches}"));
    assert_eq!(world.once().await, Outcome::NotConverged, "a global hook that waits for a kind");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_removes_what_is_off_and_its_delete_hooks_run_before_it_ends() {
    let world = Cluster::new().await;
    let hook = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"afterDeleteHelm\":1}'; exit; fi\n";
    world.write("modules/values.yaml", "webEnabled: true\ngoneEnabled: true\n");
    for (directory, name) in [("010-web", "web"), ("020-gone", "gone")] {
        world.write(&format!("modules/{directory}/Chart.yaml"), &format!("name: {name}\nversion: 0.1.0\n"));
        let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\n");
        world.write(&format!("modules/{directory}/templates/map.yaml"), &map);
    }
    world.write("modules/010-web/hooks/bye.sh", &format!("{hook}exit 1\n"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("modules/values.yaml", "webEnabled: false\ngoneEnabled: true\n");
    fs::remove_dir_all(world.path("modules/020-gone")).unwrap();
    assert_eq!(world.once().await, Outcome::NotConverged, "a hook of the removal fails");
    world.write("modules/010-web/hooks/bye.sh", &format!("{hook}touch \"$WORLD/bye\"\n"));
    // The chart is gone, and what was to be done behind it was not done.
    assert!(world.maps().get_opt("of-web").await.unwrap().is_none());
    world.write("modules/values.yaml", "webEnabled: true\n");
    assert_eq!(world.once().await, Outcome::Done);
    world.write("modules/values.yaml", "webEnabled: false\n");
    assert_eq!(world.once().await, Outcome::Done);
    for name in ["of-web", "of-gone"] {
        assert!(world.maps().get_opt(name).await.unwrap().is_none(), "{name} is left");
    }
    assert!(world.path("bye").exists(), "its hook did not run");
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
    let counted = Arc::clone(&asked);
    let shutdown = Arc::new(shutdown);
    let client = observed(&world.server, "ops", move |_| {
        if counted.fetch_add(1, Ordering::SeqCst) + 1 == at {
            shutdown.send_replace(true);
        }
    });
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

/// Returns the global values.
fn global_values(world: &Cluster) -> Value {
    let answer = ask_socket(world, "/global/values.json");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_waits_for_its_api_server_answers_what_it_waits_for() {
    let world = Cluster::new().await;
    world.server.faults().add(FaultPlan::on(Method::GET, "*").times(u64::MAX).fail(503));
    let operator = world.start(&[]).await;
    let port = operator.port.to_string();
    let is_waiting = |answer: &str| answer.contains("it waits for ConfigMap ops/addon-operator: can't read");
    until("the first try", || is_waiting(&get(&port, "/readyz"))).await;
    for path in ["/readyz", "/status", "/status/converge", "/queue", "/why/queue/main", "/journal", "/graph"]
    {
        let answer = get(&port, path);
        assert!(answer.starts_with("HTTP/1.1 503") && is_waiting(&answer), "{path}: {answer}");
    }
    for path in ["/status.json", "/global/values.json", "/module/list.json", "/queue/main.text"] {
        let answer = ask_socket(&world, path);
        assert!(answer.starts_with("HTTP/1.1 503") && is_waiting(&answer), "{path}: {answer}");
    }
    for path in ["/healthz", "/metrics", "/metrics/hooks", "/discovery", "/"] {
        assert!(get(&port, path).starts_with("HTTP/1.1 200"), "{path}: {}", get(&port, path));
    }
    assert!(get(&port, "/").contains("it waits for ConfigMap"), "{}", get(&port, "/"));
    world.server.faults().clear();
    until("the end of the start", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    assert!(get(&port, "/status").starts_with("HTTP/1.1 200"));
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Returns a hook that watches the ConfigMap `name` and does `what`.
fn watching(name: &str, filter: &str, what: &str) -> String {
    format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\n\
         echo '{{\"configVersion\":\"v1\",\"kubernetes\":[{{\"name\":\"it\",\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\
         \"nameSelector\":{{\"matchNames\":[\"{name}\"]}},\"namespace\":{{\"nameSelector\":{{\"matchNames\":[\"ops\"]}}}},\
         \"jqFilter\":\"{filter}\",\"keepFullObjectsInMemory\":false,\"queue\":\"'$(basename \"$0\")'\"}}]}}'\nexit\nfi\n{what}\n"
    )
}

/// Merges this into a ConfigMap.
async fn patch(world: &Cluster, name: &str, change: &Value) {
    let path = format!("/api/v1/namespaces/ops/configmaps/{name}");
    server::ok(&world.server, Method::PATCH, &path, change).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f_c11_a_large_object_that_changes_often_runs_its_hook_only_when_the_filter_gives_something_else() {
    let world = Cluster::new().await;
    let blob = "x".repeat(900 << 10);
    world.put("large", json!({"data": {"blob": blob, "version": "1", "beat": "0"}})).await;
    let hook = watching("large", ".data.version", "cat \"$BINDING_CONTEXT_PATH\" >> \"$WORLD/contexts\"");
    world.write("global-hooks/large.sh", &hook);
    let operator = world.start(&[]).await;
    let contexts = || {
        let text = fs::read_to_string(world.path("contexts")).unwrap_or_default();
        let runs = serde_json::Deserializer::from_str(&text).into_iter::<Vec<Value>>();
        let told = |context: &Value| format!("{} {}", context["type"], context["filterResult"]);
        runs.map_while(Result::ok).flatten().map(|context| told(&context)).collect::<Vec<_>>()
    };
    until("the first list", || contexts().len() == 1).await;
    for beat in 1..=50 {
        patch(&world, "large", &json!({"data": {"beat": beat.to_string()}})).await;
    }
    patch(&world, "large", &json!({"data": {"version": "2"}})).await;
    until("the change", || contexts().len() > 1).await;
    for beat in 51..=60 {
        patch(&world, "large", &json!({"data": {"beat": beat.to_string()}})).await;
    }
    patch(&world, "large", &json!({"data": {"version": "3"}})).await;
    until("the last change", || contexts().len() > 2).await;
    assert_eq!(contexts(), ["\"Synchronization\" null", "\"Event\" \"2\"", "\"Event\" \"3\""]);
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_e1_hooks_that_change_the_same_values_at_the_same_time_lose_no_change() {
    const HOOKS: usize = 6;
    const CHANGES: usize = 8;
    let world = Cluster::new().await;
    world.write("modules/values.yaml", "global: {seen: {}}\n");
    world.put("trigger", json!({"data": {"n": "0"}})).await;
    let name = "$(basename \"$0\" .sh)";
    // Each adds a key for each change that it is told of, to what it read when it began.
    let adds = format!(
        "sleep 0.02\nfor n in $(grep -o '\"filterResult\":\"[0-9]*\"' \"$BINDING_CONTEXT_PATH\" | grep -o '[0-9]*'); do\n\
         echo '{{\"op\":\"add\",\"path\":\"/global/seen/'{name}-$n'\",\"value\":1}}' >> \"$VALUES_JSON_PATCH_PATH\"\ndone"
    );
    for hook in 0..HOOKS {
        world.write(&format!("global-hooks/h{hook}.sh"), &watching("trigger", ".data.n", &adds));
    }
    let operator = world.start(&[]).await;
    let seen = || global_values(&world)["seen"].as_object().map_or(0, serde_json::Map::len);
    let port = operator.port.to_string();
    until("the first converge", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    // The first list is a change, too.
    until("the first list", || seen() == HOOKS).await;
    let before = HOOKS;
    for change in 1..=CHANGES {
        patch(&world, "trigger", &json!({"data": {"n": change.to_string()}})).await;
        // Runs of two changes overlap, and no two changes are one.
        let wanted = before + HOOKS * change - HOOKS / 2;
        until("half of the runs", || seen() >= wanted).await;
    }
    until("all changes", || seen() == before + HOOKS * CHANGES).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_e1_a_change_of_values_that_others_made_impossible_meanwhile_fails_and_changes_nothing() {
    let world = Cluster::new().await;
    world.write("modules/values.yaml", "global: {place: {}, other: 1}\n");
    world.put("slow", json!({"data": {"n": "0"}})).await;
    world.put("fast", json!({"data": {"n": "0"}})).await;
    // It reads the values, and ends when another one has removed what it writes into.
    let slow = "[[ -e $WORLD/tried ]] && { touch $WORLD/again; exit; }\n\
        if grep -q '\"type\":\"Event\"' \"$BINDING_CONTEXT_PATH\"; then\ntouch $WORLD/tried\n\
        while [[ ! -e $WORLD/go ]]; do sleep 0.01; done\n\
        echo '{\"op\":\"add\",\"path\":\"/global/other\",\"value\":2}{\"op\":\"add\",\"path\":\"/global/place/x\",\"value\":1}' > $VALUES_JSON_PATCH_PATH\nfi";
    let fast = "if grep -q '\"type\":\"Event\"' \"$BINDING_CONTEXT_PATH\"; then\n\
        echo '{\"op\":\"remove\",\"path\":\"/global/place\"}' > $VALUES_JSON_PATCH_PATH\nfi";
    world.write("global-hooks/slow.sh", &watching("slow", ".data.n", slow));
    world.write("global-hooks/fast.sh", &watching("fast", ".data.n", fast));
    let operator = world.start(&[]).await;
    let port = operator.port.to_string();
    until("the first converge", || get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    patch(&world, "slow", &json!({"data": {"n": "1"}})).await;
    until("the slow hook", || world.path("tried").exists()).await;
    patch(&world, "fast", &json!({"data": {"n": "1"}})).await;
    until("the fast hook", || global_values(&world).get("place").is_none()).await;
    fs::write(world.path("go"), "").unwrap();
    until("the next try", || world.path("again").exists()).await;
    let global = global_values(&world);
    assert!(global.get("place").is_none() && global["other"] == 1, "{global}");
    let journal = get(&port, "/journal");
    assert!(journal.contains("doc is missing path"), "{journal}");
    assert_eq!(operator.stop().await, Outcome::Done);
}

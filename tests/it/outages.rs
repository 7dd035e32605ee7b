//! Outages of an API server on a socket: stopped and started again, cut off until it has forgotten, or silent.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use addon_operator::app::{self, Outcome};
use apiserver::ApiServer;
use http::{Method, Request};
use kube::Client;
use kube::api::DeleteParams;
use serde_json::{Deserializer, Value, json};
use tokio::sync::{mpsc, watch};

use crate::support::DEADLINE;
use crate::support::in_process::{Cluster, Operator};
use crate::support::outage::{Outage, connected};
use crate::support::pause::{pause, pause_thread};
use crate::support::program::get;
use crate::support::server::{self, crd};
use crate::support::watching::{Fixture, config_maps};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/ops/things";

/// Returns a hook that shows the names of its snapshot in the ConfigMap `seen-<name>`.
fn mirror(name: &str, selection: &str) -> String {
    let object = format!(
        "{{\\\"apiVersion\\\": \\\"v1\\\", \\\"kind\\\": \\\"ConfigMap\\\", \\\"metadata\\\": {{\\\"name\\\": \\\"seen-{name}\\\", \\\"namespace\\\": \\\"ops\\\"}}, \\\"data\\\": {{\\\"names\\\": \\\"${{names% }}\\\"}}}}"
    );
    format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\n\
         echo '{{\"configVersion\": \"v1\", \"kubernetes\": [{{\"name\": \"all\", {selection}, \"jqFilter\": \".metadata.name\", \"group\": \"all\", \"queue\": \"{name}\"}}]}}'\n\
         exit\nfi\n\
         names=$(grep -o '\"filterResult\":\"[a-z0-9]*\"' \"$BINDING_CONTEXT_PATH\" | sort -u | cut -d'\"' -f4 | tr '\\n' ' ')\n\
         echo \"{{\\\"operation\\\": \\\"CreateOrUpdate\\\", \\\"object\\\": {object}}}\" > \"$KUBERNETES_PATCH_PATH\"\n"
    )
}

/// Items, each of which is an event for the hook that writes all of its contexts down.
const ITEMS: &str =
    r#""apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"item": "yes"}}"#;

/// Returns a hook that appends its contexts to the file `events`.
fn recorder() -> String {
    format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\n\
         echo '{{\"configVersion\": \"v1\", \"kubernetes\": [{{\"name\": \"each\", {ITEMS}, \"jqFilter\": \".metadata.name\"}}]}}'\n\
         exit\nfi\ncat \"$BINDING_CONTEXT_PATH\" >> \"$WORLD/events\"\n"
    )
}

/// Returns the events that the recorder wrote down, sorted.
fn events(world: &Cluster) -> Vec<String> {
    let text = fs::read_to_string(world.path("events")).unwrap_or_default();
    let runs = Deserializer::from_str(&text).into_iter::<Vec<Value>>().map_while(Result::ok).flatten();
    let events = runs.filter(|context| context["type"] == "Event");
    let mut told: Vec<String> = events
        .map(|event| {
            let part = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", part("watchEvent"), part("filterResult"))
        })
        .collect();
    told.sort();
    told
}

async fn thing(server: &ApiServer, name: &str) {
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}});
    server::ok(server, Method::POST, THINGS, &thing).await;
}

/// Starts an operator that reaches its API server through `client`.
async fn start(world: &Cluster, client: Client) -> Operator {
    let (shutdown, ended) = watch::channel(false);
    let around = world.around(client, false, ended, &[]);
    let (told, mut listening) = mpsc::unbounded_channel();
    let running = tokio::spawn(app::run(around, move |address| told.send(address).unwrap_or(())));
    let port = listening.recv().await.unwrap().port();
    Operator { port, shutdown, running }
}

fn item() -> Value {
    json!({"metadata": {"labels": {"item": "yes"}}})
}

fn config(text: &str) -> Value {
    json!({"data": {"webEnabled": "true", "web": format!("text: {text}")}})
}

#[tokio::test(flavor = "multi_thread")]
async fn f_c1_all_watches_live_after_a_restart_of_the_api_server_and_no_change_is_missed() {
    let mut outage = Outage::new(1_000).await;
    let mut world = Cluster::new().await;
    world.server = outage.server();
    let ops = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}});
    server::ok(&world.server, Method::POST, "/api/v1/namespaces", &ops).await;
    world.write("global-hooks/items.sh", &mirror("items", ITEMS));
    let things = r#""apiVersion": "example.com/v1", "kind": "Thing""#;
    world.write("global-hooks/things.sh", &mirror("things", things));
    world.write("global-hooks/recorder.sh", &recorder());
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {text: {{ .Values.web.text }}}\n",
    );
    server::ok(&world.server, Method::POST, CRDS, &crd()).await;
    world.put("one", item()).await;
    world.put("two", item()).await;
    world.put("addon-operator", config("first")).await;
    thing(&world.server, "t1").await;
    let operator = start(&world, outage.client().await).await;
    world.settled("seen-items", |map| map["data"]["names"] == "one two").await;
    world.settled("seen-things", |map| map["data"]["names"] == "t1").await;
    world.settled("web", |map| map["data"]["text"] == "first").await;
    // The API server stops. Where the operator can't see it, it starts again, and people go on.
    outage.stop().await;
    let port = operator.port.to_string();
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200"), "a restart of the operator would not help");
    outage.start().await;
    world.server = outage.server();
    world.put("three", item()).await;
    world.maps().delete("one", &DeleteParams::default()).await.unwrap();
    world.put("addon-operator", config("second")).await;
    thing(&world.server, "t2").await;
    // It stops once more, and is back where it was.
    outage.stop().await;
    outage.start().await;
    world.server = outage.server();
    outage.reconnect();
    world.settled("seen-items", |map| map["data"]["names"] == "three two").await;
    world.settled("seen-things", |map| map["data"]["names"] == "t1 t2").await;
    world.settled("web", |map| map["data"]["text"] == "second").await;
    // All watches go on: those of hooks, of CRDs, of the ConfigMap and of what was released.
    world.put("four", item()).await;
    world.settled("seen-items", |map| map["data"]["names"] == "four three two").await;
    let begun = Instant::now();
    while !events(&world).contains(&"Added four".to_owned()) {
        assert!(begun.elapsed() < DEADLINE, "{:?}", events(&world));
        pause().await;
    }
    assert_eq!(events(&world), ["Added four", "Added three", "Deleted one"], "each change once");
    server::ok(&world.server, Method::DELETE, &format!("{CRDS}/things.example.com"), &Value::Null).await;
    world.settled("seen-things", |map| map["data"]["names"] == "").await;
    world.maps().delete("web", &DeleteParams::default()).await.unwrap();
    world.settled("web", |map| map["data"]["text"] == "second").await;
    world.put("addon-operator", config("third")).await;
    world.settled("web", |map| map["data"]["text"] == "third").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test]
async fn f_c4_after_so_many_changes_that_the_version_is_forgotten_only_the_difference_is_told() {
    let outage = Outage::new(8).await;
    let mut world = Fixture::on(outage.server(), outage.client().await);
    for name in ["a", "b", "c"] {
        world.put("default", name, "1").await;
    }
    let monitor = world.listed(1, config_maps(), Some(".data")).await;
    world.sync(monitor, "default", "sync").await;
    outage.cut_off();
    world.delete("default", "a").await;
    world.put("default", "d", "1").await;
    // More changes than the API server remembers.
    for round in 0..20 {
        world.put("default", "b", &round.to_string()).await;
    }
    outage.reconnect();
    world.until("the difference", |seen| seen[&monitor].changes.len() >= 3).await;
    world.sync(monitor, "default", "sync-again").await;
    assert_eq!(world.changes(monitor), ["Deleted default/a", "Modified default/b", "Added default/d"]);
}

/// An API server in a process of its own.
struct Process(Child);

impl Process {
    /// Starts one, and waits until it has written its kubeconfig.
    fn start(kubeconfig: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_addon-operator"));
        command.args(["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig-out"]).arg(kubeconfig);
        let process = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while !fs::read_to_string(kubeconfig).is_ok_and(|text| text.contains("current-context")) {
            assert!(begun.elapsed() < DEADLINE, "the API server does not start");
            pause_thread();
        }
        process
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn f_c2_an_api_server_that_is_frozen_is_found_within_a_minute_and_heard_again_when_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let process = Process::start(&kubeconfig);
    let client = connected(kubeconfig).await;
    let unused = ApiServer::builder().build().unwrap();
    let mut world = Fixture::on(unused, client.clone());
    let monitor = world.listed(1, config_maps(), None).await;
    let put = async |name: &str| {
        let map = json!({"metadata": {"name": name, "labels": {"of": "test"}}});
        let request =
            Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/json");
        client.request::<Value>(request.body(map.to_string().into_bytes()).unwrap()).await.unwrap();
    };
    put("before").await;
    world.until("an event", |seen| seen[&monitor].changes == ["Added default/before"]).await;
    // The kernel still takes what is sent: no connection is closed, nothing is answered.
    process.signal("-STOP");
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    world.until("a failure", |seen| seen[&monitor].is_broken).await;
    assert!(begun.elapsed() < Duration::from_secs(61), "nobody has noticed for {:?}", begun.elapsed());
    let failure = world.seen[&monitor].failures.concat();
    assert!(failure.contains("watch of v1/ConfigMap") && failure.contains("silent"), "{failure}");
    process.signal("-CONT");
    tokio::time::resume();
    put("after").await;
    world.until("an event", |seen| seen[&monitor].keys().contains(&"default/after".to_owned())).await;
    world.until("the end of the trouble", |seen| !seen[&monitor].is_broken).await;
}

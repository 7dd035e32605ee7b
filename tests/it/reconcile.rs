//! Controllers in bash: reconcile bindings, with real processes on the embedded API server.

use addon_operator::app;
use addon_operator::cluster::connect_in_process;
use http::Method;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::support::in_process::{Cluster, Operator};
use crate::support::pause::pause;
use crate::support::program::{Workspace, get as http_get, hook};
use crate::support::server::{get, ok};

/// The kind `Website`. Its status is a subresource.
fn crd() -> Value {
    crd_with(&json!({"status": {}}))
}

/// The kind `Website` whose schema has this of the status.
fn crd_of(status: &Value) -> Value {
    let mut crd = crd();
    let version = &mut crd["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone();
    crd
}

/// The kind `Website` with these subresources.
fn crd_with(subresources: &Value) -> Value {
    let fields = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "websites.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "websites", "singular": "website", "kind": "Website", "listKind": "WebsiteList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": fields, "status": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"page": {"type": "string", "nullable": true}},
                }}}},
            }],
        },
    })
}

/// A controller that makes a page and a server of each website, and removes its finalizer when they are gone.
const WEBSITES: &str = r#"#!/usr/bin/env bash
set -euo pipefail
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: website
  apiVersion: example.com/v1
  kind: Website
  finalizer: example.com/website
  children:
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: v1, kind: Service}
CONFIG
  exit 0
fi
echo "run $(jq -r '.[0] | .type + " " + .object.metadata.name' "$BINDING_CONTEXT_PATH")" >> "$WORLD/runs"
jq -c '
  .[0] | .object as $site
  | def child($version; $kind): {apiVersion: $version, kind: $kind, metadata: {name: $site.metadata.name, namespace: $site.metadata.namespace}};
  if .type == "Finalize" then {finalized: true}
  elif $site.spec.text == "bad" then error("this text can not be shown")
  else {
    children: ([child("v1"; "ConfigMap") + {data: {text: $site.spec.text}}]
      + if $site.spec.served then [child("v1"; "Service") + {spec: {ports: [{port: 80}]}}] else [] end),
    status: {page: (.children.ConfigMap[$site.metadata.name].data.text // null)},
    conditions: [{type: "Ready", status: (if .children.ConfigMap == {} then "False" else "True" end), reason: "AsExpected"}]
  } end' "$BINDING_CONTEXT_PATH" > "$RECONCILE_RESULT_PATH"
"#;

const SITES: &str = "/apis/example.com/v1/namespaces/ops/websites";

fn object(kind: &str, name: &str) -> String {
    format!("/api/v1/namespaces/ops/{kind}/{name}")
}

struct World {
    cluster: Cluster,
    operator: Operator,
}

impl World {
    async fn start(hook: &str) -> Self {
        Self::start_with(hook, &crd()).await
    }

    async fn start_with(hook: &str, crd: &Value) -> Self {
        let cluster = Cluster::new().await;
        cluster.write("global-hooks/websites.sh", hook);
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        ok(&cluster.server, Method::POST, path, crd).await;
        let operator = cluster.start(&[]).await;
        Self { cluster, operator }
    }

    async fn create(&self, name: &str, spec: Value) {
        let site = json!({
            "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "namespace": "ops"}, "spec": spec,
        });
        ok(&self.cluster.server, Method::POST, SITES, &site).await;
    }

    async fn change(&self, name: &str, change: Value) {
        ok(&self.cluster.server, Method::PATCH, &format!("{SITES}/{name}"), &change).await;
    }

    /// Waits until what is at `path` fits; nothing is null.
    async fn settled(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = std::time::Instant::now();
        loop {
            let found = get(&self.cluster.server, path).await.unwrap_or_default();
            if fits(&found) {
                return found;
            }
            assert!(begun.elapsed() < crate::support::DEADLINE, "{path} is {found:#}");
            pause().await;
        }
    }

    async fn told_by_runs(&self, wanted: &[&str]) {
        let begun = std::time::Instant::now();
        while self.runs() != wanted {
            assert!(begun.elapsed() < crate::support::DEADLINE, "{:?}", self.runs());
            pause().await;
        }
    }

    async fn queue_until(&self, fits: impl Fn(&str) -> bool) {
        let begun = std::time::Instant::now();
        loop {
            let queue = self.queue().await;
            if fits(&queue) {
                return;
            }
            assert!(begun.elapsed() < crate::support::DEADLINE, "{queue}");
            pause().await;
        }
    }

    fn runs(&self) -> Vec<String> {
        let runs = std::fs::read_to_string(self.cluster.path("runs")).unwrap_or_default();
        runs.lines().map(str::to_owned).collect()
    }

    /// Returns the tasks of all queues as text.
    async fn queue(&self) -> String {
        let port = self.operator.port.to_string();
        tokio::task::spawn_blocking(move || http_get(&port, "/queue")).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_becomes_what_its_hook_says_and_goes_when_that_is_gone() {
    let world = World::start(WEBSITES).await;
    world.create("hello", json!({"text": "Hello", "served": true})).await;
    let site = format!("{SITES}/hello");
    let map = world.settled(&object("configmaps", "hello"), |map| map["data"]["text"] == "Hello").await;
    let living = world.settled(&site, |site| site["status"]["page"] == "Hello").await;
    assert_eq!(living["metadata"]["finalizers"], json!(["example.com/website"]));
    assert_eq!(living["status"]["observedGeneration"], living["metadata"]["generation"]);
    let owner = &map["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&living["metadata"]["uid"], &json!(true)));
    world.settled(&object("services", "hello"), |service| !service.is_null()).await;
    let ready = world.settled(&site, |site| site["status"]["conditions"][0]["status"] == "True").await;
    let since = &ready["status"]["conditions"][0]["lastTransitionTime"];
    // A child that is not named any more goes; one that somebody changed is as it was again.
    world.change("hello", json!({"spec": {"served": false}})).await;
    world.settled(&object("services", "hello"), Value::is_null).await;
    ok(
        &world.cluster.server,
        Method::PATCH,
        &object("configmaps", "hello"),
        &json!({"data": {"text": "hacked"}}),
    )
    .await;
    world.settled(&object("configmaps", "hello"), |map| map["data"]["text"] == "Hello").await;
    ok(&world.cluster.server, Method::DELETE, &object("configmaps", "hello"), &Value::Null).await;
    world.settled(&object("configmaps", "hello"), |map| map["data"]["text"] == "Hello").await;
    world.change("hello", json!({"spec": {"text": "Bye"}})).await;
    let living = world.settled(&site, |site| site["status"]["page"] == "Bye").await;
    assert!(living["status"]["conditions"][0]["lastTransitionTime"].as_str() >= since.as_str());
    ok(&world.cluster.server, Method::DELETE, &site, &Value::Null).await;
    world.settled(&site, Value::is_null).await;
    assert_eq!(get(&world.cluster.server, &object("configmaps", "hello")).await, None);
    let finalized = world.runs().iter().filter(|run| *run == "run Finalize hello").count();
    assert_eq!(finalized, 1, "{:#?}", world.runs());
    world.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_that_fails_holds_up_no_other_one() {
    let world = World::start(WEBSITES).await;
    world.create("broken", json!({"text": "bad"})).await;
    world.create("good", json!({"text": "Hello"})).await;
    world.settled(&object("configmaps", "good"), |map| map["data"]["text"] == "Hello").await;
    let begun = std::time::Instant::now();
    while !world.queue().await.contains("Website ops/broken:failures") {
        assert!(begun.elapsed() < crate::support::DEADLINE, "{}", world.queue().await);
        pause().await;
    }
    told(&world, "broken", "ReconcileFailed", "").await;
    world.change("broken", json!({"spec": {"text": "Hello"}})).await;
    world.settled(&object("configmaps", "broken"), |map| map["data"]["text"] == "Hello").await;
    world.operator.stop().await;
}

/// A controller whose result is what the object says.
const PUPPET: &str = r#"#!/usr/bin/env bash
set -euo pipefail
if [[ "${1:-}" == "--config" ]]; then
  echo '{"configVersion": "v1", "reconcile": [{"name": "website", "apiVersion": "example.com/v1", "kind": "Website", "children": [{"apiVersion": "v1", "kind": "ConfigMap"}]}]}'
  exit 0
fi
jq -r '.[0].object.spec.patches // empty' "$BINDING_CONTEXT_PATH" > "$KUBERNETES_PATCH_PATH"
jq -r '.[0].object.spec.result' "$BINDING_CONTEXT_PATH" > "$RECONCILE_RESULT_PATH"
"#;

/// Waits for an Event about a Website whose message has this text.
async fn told(world: &World, name: &str, reason: &str, text: &str) {
    let is_told = |events: &Value| {
        let mut all = events["items"].as_array().into_iter().flatten();
        all.any(|event| {
            event["reason"] == reason
                && event["involvedObject"]["name"] == name
                && event["message"].as_str().is_some_and(|message| message.contains(text))
        })
    };
    world.settled("/api/v1/namespaces/ops/events", is_told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_the_kind_has_no_place_for_is_told_with_what_to_do() {
    let world = World::start_with(PUPPET, &crd_with(&json!({}))).await;
    world.create("blank", json!({"result": {"status": {"page": "a"}}})).await;
    told(&world, "blank", "ReconcileFailed", "kind Website has no subresource status").await;
    let begun = std::time::Instant::now();
    while !world.queue().await.contains("Website ops/blank:failures") {
        assert!(begun.elapsed() < crate::support::DEADLINE, "{}", world.queue().await);
        pause().await;
    }
    // What is gone needs no status: its run is no failure, with or without the subresource.
    ok(&world.cluster.server, Method::DELETE, &format!("{SITES}/blank"), &Value::Null).await;
    world.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_schema_prunes_of_a_status_is_told_and_the_rest_is_written() {
    let status = json!({"type": "object", "properties": {"page": {"type": "string"}}});
    let world = World::start_with(PUPPET, &crd_of(&status)).await;
    let result = json!({"status": {"page": "a", "phase": "Ready"}, "conditions": [{"type": "Ready", "status": "True"}]});
    world.create("pruned", json!({"result": result.to_string()})).await;
    world.settled(&format!("{SITES}/pruned"), |site| site["status"] == json!({"page": "a"})).await;
    let fields =
        "left out what its hook says of status.conditions, status.phase: kind Website has no such fields";
    told(&world, "pruned", "StatusIgnored", fields).await;
    let text = crate::support::in_process::ask_socket(&world.cluster, "/status.text");
    assert!(text.contains("schema of the status in the CustomResourceDefinition"), "{text}");
    // What a kind need not have is not missed.
    world.create("plain", json!({"result": json!({"status": {"page": "b"}}).to_string()})).await;
    world.settled(&format!("{SITES}/plain"), |site| site["status"] == json!({"page": "b"})).await;
    let events = get(&world.cluster.server, "/api/v1/namespaces/ops/events").await.unwrap();
    let about = |event: &Value| event["involvedObject"]["name"] == "plain";
    assert!(!events["items"].as_array().unwrap().iter().any(about), "{events:#}");
    world.operator.stop().await;
}

fn map(namespace: &str, name: &str, more: &Value) -> Value {
    let mut map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}});
    map.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    map
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_hook_writes_into_other_files_is_done_before_its_children_are_made() {
    let world = World::start(PUPPET).await;
    let first = json!({"operation": "CreateIfNotExists", "object": map("ops", "first", &json!({}))});
    let result = json!({"children": [map("ops", "second", &json!({}))]});
    world.create("a", json!({"patches": first.to_string(), "result": result.to_string()})).await;
    let second = world.settled(&object("configmaps", "second"), |map| !map.is_null()).await;
    let first = get(&world.cluster.server, &object("configmaps", "first")).await.unwrap();
    let version =
        |map: &Value| -> u64 { map["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap() };
    assert!(version(&first) < version(&second));
    // What fails there keeps the children from being made.
    let wrong = json!({"operation": "MergePatch", "kind": "ConfigMap", "namespace": "ops", "name": "nobody", "mergePatch": {"data": {}}});
    let result = json!({"children": [map("ops", "third", &json!({}))]});
    world.create("b", json!({"patches": wrong.to_string(), "result": result.to_string()})).await;
    told(&world, "b", "ReconcileFailed", "nobody").await;
    assert_eq!(get(&world.cluster.server, &object("configmaps", "third")).await, None);
    world.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_field_that_can_not_change_it_is_said_that_recreate_helps_and_it_does() {
    let locked = |text: &str| {
        let map = map("ops", "locked", &json!({"immutable": true, "data": {"text": text}}));
        json!({"result": json!({"children": [map]}).to_string()})
    };
    let world = World::start(PUPPET).await;
    world.create("a", locked("one")).await;
    world.settled(&object("configmaps", "locked"), |map| map["data"]["text"] == "one").await;
    world.change("a", json!({"spec": locked("two")})).await;
    told(&world, "a", "ReconcileFailed", "immutable").await;
    let status = crate::support::in_process::ask_socket(&world.cluster, "/status.text");
    assert!(status.contains("update: Recreate"), "{status}");
    let kept = get(&world.cluster.server, &object("configmaps", "locked")).await.unwrap();
    assert_eq!(kept["data"]["text"], "one");
    let World { cluster, operator } = world;
    operator.stop().await;
    let recreates =
        PUPPET.replace(r#""kind": "ConfigMap"}"#, r#""kind": "ConfigMap", "update": "Recreate"}"#);
    assert_ne!(recreates, PUPPET);
    cluster.write("global-hooks/websites.sh", &recreates);
    let operator = cluster.start(&[]).await;
    let made = |map: &Value| map["data"]["text"] == "two" && map["immutable"] == true;
    let begun = std::time::Instant::now();
    while !get(&cluster.server, &object("configmaps", "locked")).await.is_some_and(|map| made(&map)) {
        assert!(begun.elapsed() < crate::support::DEADLINE);
        pause().await;
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_in_a_namespace_without_rights_is_refused_and_holds_up_no_other_object() {
    const ACCOUNT: &str = "system:serviceaccount:ops:operator";
    let cluster = Cluster::new().await;
    cluster.write("global-hooks/websites.sh", PUPPET);
    let server = cluster.server.clone();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(&server, Method::POST, crds, &crd()).await;
    ok(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "closed"}})).await;
    // It may see all, and write in one namespace.
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let bind = |kind: &str, role: &str| {
        json!({
            "metadata": {"name": role}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "ops"}],
        })
    };
    let rule = |verbs: &Value| json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]);
    let sees = json!({"metadata": {"name": "sees"}, "rules": rule(&json!(["get", "list", "watch"]))});
    let writes = json!({"metadata": {"name": "writes"}, "rules": rule(&json!(["*"]))});
    ok(&server, Method::POST, &format!("{rbac}/clusterroles"), &sees).await;
    ok(&server, Method::POST, &format!("{rbac}/clusterrolebindings"), &bind("ClusterRole", "sees")).await;
    ok(&server, Method::POST, &format!("{rbac}/namespaces/ops/roles"), &writes).await;
    ok(&server, Method::POST, &format!("{rbac}/namespaces/ops/rolebindings"), &bind("Role", "writes")).await;
    let service = server.service().map_request(|request: http::Request<Body>| {
        let (mut head, body) = request.into_parts();
        head.headers.insert("impersonate-user", http::HeaderValue::from_static(ACCOUNT));
        http::Request::from_parts(head, body)
    });
    let client = connect_in_process(service, "ops");
    let (shutdown, ended) = watch::channel(false);
    let running = tokio::spawn(app::run(cluster.around(client, false, ended, &[]), drop));
    let site = |name: &str, namespace: &str| {
        let result = json!({"children": [map(namespace, name, &json!({}))]}).to_string();
        json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "namespace": "ops"}, "spec": {"result": result}})
    };
    ok(&server, Method::POST, SITES, &site("forbidden", "closed")).await;
    ok(&server, Method::POST, SITES, &site("allowed", "ops")).await;
    let until = async |path: &str, fits: &dyn Fn(&Value) -> bool| {
        let begun = std::time::Instant::now();
        while !get(&server, path).await.is_some_and(|found| fits(&found)) {
            assert!(begun.elapsed() < crate::support::DEADLINE, "{path}");
            pause().await;
        }
    };
    until(&object("configmaps", "allowed"), &|_| true).await;
    let is_told = |events: &Value| {
        let mut all = events["items"].as_array().into_iter().flatten();
        all.any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == "forbidden"
                && message.contains("cannot patch")
                && message.contains("closed")
        })
    };
    until("/api/v1/namespaces/ops/events", &is_told).await;
    assert_eq!(get(&server, "/api/v1/namespaces/closed/configmaps/forbidden").await, None);
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_done_is_told_on_the_object_and_in_metrics_and_holds_up_no_other_one() {
    let world = World::start(PUPPET).await;
    let map = |namespace: &str, name: &str| map(namespace, name, &json!({}));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "ops"}});
    let foreign = map("ops", "foreign");
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/configmaps", &foreign).await;
    let wrong = [
        ("json", "no JSON at all".to_owned(), "it is no JSON"),
        (
            "kind",
            json!({"children": [secret]}).to_string(),
            "kind v1 Secret is not in children of the binding",
        ),
        ("place", json!({"children": [map("nowhere", "x")]}).to_string(), "nowhere"),
        (
            "status",
            json!({"status": {"page": 5}}).to_string(),
            "status of example.com/v1/Website/ops/status: the API server refused: ",
        ),
        (
            "name",
            json!({"children": [map("ops", "A_B")]}).to_string(),
            "child v1/ConfigMap/ops/A_B: the API server refused: ",
        ),
        ("twice", r#"{"status": {}, "status": {}}"#.to_owned(), "key \"status\" occurs twice"),
        ("foreign", json!({"children": [foreign]}).to_string(), "is there already, and is not a child of it"),
    ];
    for (name, result, _) in &wrong {
        world.create(name, json!({"result": result})).await;
    }
    world.create("good", json!({"result": json!({"children": [map("ops", "good")]}).to_string()})).await;
    world.settled(&object("configmaps", "good"), |map| !map.is_null()).await;
    for (name, _, message) in &wrong {
        told(&world, name, "ReconcileFailed", message).await;
    }
    // A queue has one first task.
    for (path, what) in [
        ("/queue", "it is no JSON"),
        ("/status", "it is no JSON"),
        ("/journal", "it is no JSON"),
        ("/why/queue/global%2Fwebsites.sh%2Fwebsite", "its first task failed"),
        ("/", "Website ops/"),
    ] {
        let port = world.operator.port.to_string();
        let page = tokio::task::spawn_blocking(move || http_get(&port, path)).await.unwrap();
        assert!(page.contains("Website ops/") && page.contains(what), "{path}: {page}");
    }
    let kept = get(&world.cluster.server, &object("configmaps", "foreign")).await.unwrap();
    assert_eq!(kept["metadata"]["labels"], Value::Null);
    let port = world.operator.port.to_string();
    let metrics = tokio::task::spawn_blocking(move || http_get(&port, "/metrics")).await.unwrap();
    let value = |name: &str| -> f64 {
        let mut lines = metrics.lines().filter(|line| line.starts_with(&format!("addon_operator_{name}{{")));
        lines.next().and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    };
    assert!((value("reconcile_keys") - 8.0).abs() < 0.1, "{metrics}");
    assert!(value("reconcile_failures_total") >= 7.0 && value("reconcile_seconds_count") >= 8.0, "{metrics}");
    world.operator.stop().await;
}

#[test]
fn of_objects_of_selected_names_what_is_wrong_with_a_result_is_in_the_log() {
    let world = Workspace::new();
    let spaces = r#""reconcile": [{"name": "spaces", "apiVersion": "v1", "kind": "Namespace", "nameSelector": {"matchNames": ["default"]}}]"#;
    world.write("global-hooks/spaces.sh", &hook(spaces, "echo no > \"$RECONCILE_RESULT_PATH\""));
    let mut running = world.dev(&[]);
    let port = running.port();
    let line = running.wait("it is no JSON");
    assert!(line.contains("global/spaces.sh") && line.contains("Namespace default"), "{line}");
    let metrics = http_get(&port, "/metrics");
    let keys = metrics.lines().find(|line| line.starts_with("addon_operator_reconcile_keys{"));
    assert!(keys.is_some_and(|line| line.ends_with("} 1")), "{keys:?}");
    assert_eq!(running.stop(), 0);
}

#[test]
fn two_global_hooks_with_one_finalizer_refuse_the_start() {
    let world = Workspace::new();
    let site = |name: &str| {
        format!(
            r#""reconcile": [{{"name": "{name}", "apiVersion": "example.com/v1", "kind": "Site", "finalizer": "example.com/site"}}]"#
        )
    };
    world.write("global-hooks/a.sh", &hook(&site("one"), "true"));
    world.write("global-hooks/b.sh", &hook(&site("two"), "true"));
    let (code, text) = world.ask(&["dev", "--once", "--state-dir", "state", "--prometheus-listen-port", "0"]);
    let says = ["global/b.sh has the same finalizer", "hook global/a.sh", "a finalizer of its own"];
    assert!(code == 2 && says.iter().all(|part| text.contains(part)), "exit {code}: {text}");
    // With finalizers of their own both are taken.
    world.write("global-hooks/b.sh", &hook(&site("two").replace("com/site", "com/other"), "true"));
    let (code, text) = world.ask(&["dev", "--once", "--state-dir", "state", "--prometheus-listen-port", "0"]);
    assert_eq!(code, 0, "{text}");
}

/// A controller in this queue whose first run waits until somebody opens the gate.
fn gated(queue: &str) -> String {
    let config = format!(
        r#"{{"configVersion": "v1", "reconcile": [{{"name": "website", "apiVersion": "example.com/v1", "kind": "Website", "queue": "{queue}",
    "finalizer": "example.com/website", "children": [{{"apiVersion": "v1", "kind": "ConfigMap"}}]}}]}}"#
    );
    let head = format!(
        "#!/usr/bin/env bash\nif [[ \"${{1:-}}\" == --config ]]; then\n  echo '{config}'\n  exit 0\nfi\n"
    );
    head + r#"
echo begin >> "$WORLD/runs"
[[ -p "$WORLD/gate" ]] && read -r < "$WORLD/gate"
jq -c '.[0] | if .type == "Finalize" then {finalized: true}
  else {children: [{apiVersion: "v1", kind: "ConfigMap", metadata: (.object.metadata | {name, namespace}), data: .object.spec}]} end' "$BINDING_CONTEXT_PATH" > "$RECONCILE_RESULT_PATH"
echo end >> "$WORLD/runs"
"#
}

/// Changes the files of a controller while its hook runs for a Website. Nothing may run for that twice at once, nothing may be left.
async fn change_while_it_runs(change: impl Fn(&Cluster)) {
    let cluster = Cluster::new().await;
    cluster.write("global-hooks/websites.sh", &gated("first"));
    let gate = cluster.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ok(&cluster.server, Method::POST, path, &crd()).await;
    let operator = cluster.start(&[]).await;
    let world = World { cluster, operator };
    world.create("slow", json!({"text": "Hello"})).await;
    world.told_by_runs(&["begin"]).await;
    change(&world.cluster);
    // What is asked for with the new files is another task, which waits.
    world.queue_until(|queue| queue.matches("ReconcileRun:").count() == 2).await;
    assert_eq!(world.runs(), ["begin"]);
    // Its hook waits there, so it opens at once; who comes later finds none.
    let opened = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    std::fs::remove_file(&gate).unwrap();
    drop(opened);
    world.settled(&object("configmaps", "slow"), |map| map["data"]["text"] == "Hello").await;
    ok(&world.cluster.server, Method::DELETE, &format!("{SITES}/slow"), &Value::Null).await;
    world.settled(&format!("{SITES}/slow"), Value::is_null).await;
    world.queue_until(|queue| !queue.contains("Website ops/slow")).await;
    let runs = world.runs();
    let is_alone = |pair: &[String]| pair == ["begin", "end"];
    assert!(runs.len() >= 6 && runs.chunks(2).all(is_alone), "{runs:?}");
    let told = get(&world.cluster.server, "/api/v1/namespaces/ops/events").await.unwrap();
    assert!(!told.to_string().contains("Reconcile"), "{told:#}");
    world.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_gets_another_name_while_a_key_of_it_runs_lets_that_run_end() {
    change_while_it_runs(|cluster| cluster.write("global-hooks/websites.sh", &gated("second"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_gets_another_file_while_a_key_of_it_runs_lets_that_run_end() {
    change_while_it_runs(|cluster| {
        let path = |name: &str| cluster.path("global-hooks").join(name);
        std::fs::rename(path("websites.sh"), path("again.sh")).unwrap();
    })
    .await;
}

//! Modules from repositories, end to end: one object is applied, and the module runs. On an API server in this process, and in
//! `tests/cluster` on a real one.

use std::time::Instant;

use addon_operator::app::Outcome;
use engine::{SourceKind, SourceSpec};
use http::Method;
use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::pause::pause;
use crate::support::program;
use crate::support::repository::Packed;
use crate::support::server::{self, get, ok};
pub(crate) use crate::support::source_cluster::{SOURCES, World, phase, state};

/// Returns a module `web`: a chart with one ConfigMap, and a hook that writes what happens to it.
fn web(version: &str, says: &str) -> Vec<u8> {
    let meta = format!("id: id-web\nname: web\nversion: {version}\ndescription: A test.\ndisplayName: Web\n");
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {says: {{ .Values.web.says }}}\n";
    let hook = format!(
        "#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then echo asked >>\"$WORLD/asked\"; \
         echo '{{\"configVersion\":\"v1\",\"onStartup\":1,\"afterDeleteHelm\":1,\"kubernetes\":[{{\"name\":\"seen\",\"apiVersion\":\"v1\",\
         \"kind\":\"ConfigMap\",\"nameSelector\":{{\"matchNames\":[\"touched\"]}},\"namespace\":{{\"nameSelector\":{{\"matchNames\":[\"ops\"]}}}},\
         \"executeHookOnSynchronization\":false}}]}}'; exit; fi\n\
         binding=$(sed -n 's/.*\"binding\":\"\\([a-zA-Z]*\\)\".*/\\1/p' \"$BINDING_CONTEXT_PATH\" | head -n 1)\n\
         echo \"{says} $binding\" >>\"$WORLD/ran\"\n"
    );
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, b"name: web\nversion: 0.1.0\n");
    packed.file("values.yaml", 0o644, format!("web: {{says: {says}}}\n").as_bytes());
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    packed.file("hooks/tell.sh", 0o755, hook.as_bytes());
    packed.finish()
}

/// Waits until the hook of `web` has written a line.
async fn ran(world: &World, line: &str) {
    server::until(line, || world.lines("ran").iter().any(|ran| ran == line)).await;
}

async fn kinds_that_are_installed_later_are_noticed_without_a_restart() {
    let world = World::without_kinds().await;
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "one"))]);
    let operator = world.start().await;
    world.install_kinds().await;
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Ready").await;
    operator.stop().await;
}

async fn the_kind_lets_in_no_digest_that_can_not_be_read() {
    let world = World::new().await;
    let digits = "0123456789abcdef".repeat(4);
    for (digest, is_good) in [
        (format!("sha256:{digits}"), true),
        (format!("sha256:{}", digits.to_uppercase()), true),
        (digits.clone(), false),
        (format!("sha256:{digits}0"), false),
        (format!("sha256:{}", &digits[1..]), false),
        (format!("sha256:{}", digits.replace('0', "g")), false),
        (format!("sha512:{digits}"), false),
        (format!(" sha256:{digits}"), false),
        (format!("sha256:{digits}\n"), false),
        (String::new(), false),
    ] {
        let include = json!([{"name": "web", "digest": digest}]);
        let spec = json!({"repositories": [{"url": "https://repo.example/index.yaml", "include": include}]});
        for kind in [SourceKind::Cluster, SourceKind::Namespaced] {
            let (place, namespace) = match kind {
                SourceKind::Cluster => (SOURCES.to_owned(), ""),
                SourceKind::Namespaced => (
                    "/apis/addons.kyma-project.io/v1alpha1/namespaces/ops/addonsconfigurations".to_owned(),
                    "ops",
                ),
            };
            let object = json!({
                "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": kind.as_str(),
                "metadata": {"generateName": "x-"}, "spec": spec,
            });
            let (status, answer) = server::send(&world.cluster.server, Method::POST, &place, &object).await;
            assert_eq!(status, if is_good { 201 } else { 422 }, "{digest:?}: {answer}");
            // Both read the same texts.
            assert_eq!(SourceSpec::read(kind, namespace, &spec).is_ok(), is_good, "{digest:?}");
        }
    }
}

async fn a22_a23_a24_a18_a_module_is_published_switched_on_kept_replaced_and_removed() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "one"))]);
    let operator = world.start().await;
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Ready").await;
    let object = world.object("platform").await;
    assert_eq!(object["metadata"]["finalizers"], json!(["addons.kyma-project.io"]));
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    assert_eq!(state(&object), "Registered", "{object}");
    assert_eq!(
        world.lines("asked"),
        Vec::<String>::new(),
        "code of a module ran that nobody has switched on"
    );

    world.enable("web", true).await;
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
    ran(&world, "one onStartup").await;
    world.settled("platform", |object| state(object) == "Running").await;
    let record = "/api/v1/namespaces/ops/secrets/sh.helm.release.v1.web.v1";
    let marked = get(&world.cluster.server, record).await.unwrap();
    let mark = &marked["metadata"]["annotations"]["addon-operator.io/source"];
    assert_eq!(mark, "ClusterAddonsConfiguration platform");
    // The same text fits no label, so that has a hash of it.
    let label = marked["metadata"]["labels"]["addon-operator.io/source"].as_str().unwrap();
    assert!(label.len() == 32 && label.bytes().all(|digit| digit.is_ascii_hexdigit()), "{label}");
    let ready = world.object("platform").await;
    assert_eq!(operator.stop().await, Outcome::Done);

    // The repository is down, and what was on the disk is gone.
    world.repository.put("/index.yaml", crate::support::repository::Reply::Status(503, Vec::new()));
    world.repository.asked();
    std::fs::remove_dir_all(world.cluster.path("sources")).unwrap();
    std::fs::remove_file(world.cluster.path("ran")).unwrap();
    let operator = world.start().await;
    ran(&world, "one onStartup").await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    world.cluster.put("touched", json!({"data": {"by": "a person"}})).await;
    ran(&world, "one seen").await;
    assert_eq!(get(&world.cluster.server, record).await.unwrap()["metadata"]["labels"]["status"], "deployed");
    assert!(get(&world.cluster.server, &record.replace(".v1.web.v1", ".v1.web.v2")).await.is_none());
    assert_eq!(world.repository.asked(), [], "a restart asked the repository");
    let after = world.object("platform").await;
    assert_eq!(after["metadata"]["resourceVersion"], ready["metadata"]["resourceVersion"], "{after}");

    // Other bytes under the same version, and somebody says so.
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "two"))]);
    let raise = json!({"spec": {"reprocessRequest": 1}});
    ok(&world.cluster.server, Method::PATCH, &format!("{SOURCES}/platform"), &raise).await;
    world.cluster.settled("web", |map| map["data"]["says"] == "two").await;
    ran(&world, "two onStartup").await;
    world.settled("platform", |object| phase(object) == "Ready" && state(object) == "Running").await;

    // Deleted: the release goes, the hook of the bundle runs, and only then the object.
    ok(&world.cluster.server, Method::DELETE, &format!("{SOURCES}/platform"), &Value::Null).await;
    world.settled("platform", Value::is_null).await;
    assert!(world.lines("ran").contains(&"two afterDeleteHelm".to_owned()), "{:?}", world.lines("ran"));
    world.cluster.settled("web", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a04_a12_one_status_shows_all_that_is_wrong_and_it_heals_by_itself() {
    let world = World::new().await;
    let good = web("1.0.0", "one");
    world.repository.publish(&[("web", "1.0.0", good.clone()), ("db", "1.0.0", b"no archive".to_vec())]);
    let operator = world.start().await;
    world
        .apply(
            "platform",
            &[world.repository.url("/index.yaml"), world.repository.url("/gone.yaml"), String::new()],
        )
        .await;
    world.settled("platform", |object| phase(object) == "Failed").await;
    let status = world.object("platform").await["status"].clone();
    let reason = |path: &str| status.pointer(path).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(reason("/repositories/0/addons/0/reason").as_deref(), Some("LoadingError"), "{status}");
    assert_eq!(reason("/repositories/0/addons/1/status").as_deref(), Some("Ready"), "{status}");
    assert_eq!(reason("/repositories/1/reason").as_deref(), Some("FetchingIndexError"), "{status}");
    assert_eq!(reason("/repositories/2/reason").as_deref(), Some("EmptyURLError"), "{status}");
    let spec = json!({"spec": {"repositories": [{"url": world.repository.url("/index.yaml")}]}});
    ok(&world.cluster.server, Method::PATCH, &format!("{SOURCES}/platform"), &spec).await;
    world.settled("platform", |object| object["status"]["observedGeneration"] == 2).await;
    // The content is mended, the object is not touched.
    world.repository.publish(&[("web", "1.0.0", good)]);
    world.settled("platform", |object| phase(object) == "Ready").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a_broken_registry_holds_back_no_module_of_files_and_removes_nothing() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "one"))]);
    let operator = world.start().await;
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.enable("web", true).await;
    world.settled("platform", |object| state(object) == "Running").await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let registry = "/api/v1/namespaces/ops/secrets/addon-operator-sources";
    let name = get(&world.cluster.server, registry).await.unwrap()["data"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .cloned();
    let broken = json!({"data": {name.unwrap(): "bm8gcmVnaXN0cnk="}});
    ok(&world.cluster.server, Method::PATCH, registry, &broken).await;
    world.cluster.write("modules/010-db/Chart.yaml", "name: db\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n";
    world.cluster.write("modules/010-db/templates/map.yaml", map);
    world.cluster.write("modules/values.yaml", "dbEnabled: true\n");
    let operator = world.start().await;
    world.cluster.settled("db", |map| !map.is_null()).await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
}

async fn a_lost_registry_takes_no_module_down_and_leaves_no_release() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "one"))]);
    let operator = world.start().await;
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.enable("web", true).await;
    world.settled("platform", |object| state(object) == "Running").await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let registry = "/api/v1/namespaces/ops/secrets/addon-operator-sources";
    ok(&world.cluster.server, Method::DELETE, registry, &Value::Null).await;
    world.repository.put("/index.yaml", crate::support::repository::Reply::Status(503, Vec::new()));
    std::fs::remove_dir_all(world.cluster.path("sources")).unwrap();
    std::fs::remove_file(world.cluster.path("ran")).unwrap();
    // The bundle comes from its Secrets.
    let operator = world.start().await;
    world.settled("platform", |object| phase(object) == "Failed" && state(object) == "Retained").await;
    ran(&world, "one onStartup").await;
    assert!(get(&world.cluster.server, registry).await.is_some());
    ok(&world.cluster.server, Method::DELETE, &format!("{SOURCES}/platform"), &Value::Null).await;
    world.settled("platform", Value::is_null).await;
    assert!(world.lines("ran").contains(&"one afterDeleteHelm".to_owned()), "{:?}", world.lines("ran"));
    world.cluster.settled("web", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

/// Runs a command of the program against the operator, and returns its exit code and what it printed.
fn asked(world: &World, arguments: &[&str]) -> (i32, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_addon-operator"));
    command.args(arguments).arg("--debug-unix-socket").arg(world.cluster.path("socket")).env_clear();
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

async fn people_see_a_source_have_it_processed_again_and_read_no_password() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web("1.0.0", "one"))]);
    let operator = world.start().await;
    let url = world.repository.url("/index.yaml").replace("://", "://me:hunter2@");
    world.apply("platform", &[url, world.repository.url("/gone.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Failed").await;
    let (code, list) = asked(&world, &["source", "list"]);
    assert!(code == 0 && list.contains("ClusterAddonsConfiguration") && list.contains("Failed"), "{list}");
    let (_, as_json) = asked(&world, &["source", "list", "-o", "json"]);
    let data: Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(data["sources"][0]["repositories"][1]["reason"], "FetchingIndexError", "{data}");
    let (code, why) = asked(&world, &["why", "source", "cac/platform"]);
    assert!(code == 0 && why.contains("/gone.yaml: FetchingIndexError: "), "{why}");
    let port = operator.port.to_string();
    let mut told = vec![list, as_json, why];
    for path in ["/", "/status", "/queue", "/metrics", "/why/source/platform"] {
        let (port, path) = (port.clone(), path.to_owned());
        told.push(tokio::task::spawn_blocking(move || program::get(&port, &path)).await.unwrap());
    }
    for (text, says) in told[3..].iter().zip([
        "<th scope=\"row\">cac/platform</th>",
        "ClusterAddonsConfiguration platform is failed",
        "AddonsReconcile:addons:ClusterAddonsConfiguration platform",
        "addons_configurations{kind=\"ClusterAddonsConfiguration\",phase=\"Failed\"} 1",
        "\"about\":\"source\"",
    ]) {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert!(
        told[6].contains("addons_fetch_seconds_count{outcome=\"failed\",scheme=\"https\"}"),
        "{}",
        told[6]
    );
    for text in &told {
        assert!(!text.contains("hunter2"), "{text}");
    }
    let events = "/api/v1/namespaces/default/events";
    let uid = world.object("platform").await["metadata"]["uid"].clone();
    let of_source = || async {
        let events = get(&world.cluster.server, events).await.unwrap();
        let items = events["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().filter(|event| event["involvedObject"]["uid"] == uid).collect::<Vec<_>>()
    };
    let begun = Instant::now();
    let event = loop {
        if let Some(event) = of_source().await.pop() {
            break event;
        }
        assert!(begun.elapsed() < DEADLINE, "the Event did not come");
        pause().await;
    };
    assert_eq!(event["involvedObject"]["name"], "platform");
    assert_eq!((&event["reason"], &event["type"]), (&json!("SourceFailed"), &json!("Warning")));
    assert!(!event.to_string().contains("hunter2"), "{event}");
    let before = world.object("platform").await["metadata"]["generation"].as_i64().unwrap();
    let (code, text) = asked(&world, &["source", "sync", "platform"]);
    assert_eq!((code, text.as_str()), (0, "ClusterAddonsConfiguration platform is processed again\n"));
    world.settled("platform", |object| object["status"]["observedGeneration"] == before + 1).await;
    assert_eq!(world.object("platform").await["spec"]["reprocessRequest"], 1);
    assert_eq!(operator.stop().await, Outcome::Done);
}

scenarios! {
    kinds_that_are_installed_later_are_noticed_without_a_restart,
    the_kind_lets_in_no_digest_that_can_not_be_read,
    a22_a23_a24_a18_a_module_is_published_switched_on_kept_replaced_and_removed,
    a04_a12_one_status_shows_all_that_is_wrong_and_it_heals_by_itself,
    a_broken_registry_holds_back_no_module_of_files_and_removes_nothing,
    a_lost_registry_takes_no_module_down_and_leaves_no_release,
    people_see_a_source_have_it_processed_again_and_read_no_password,
}

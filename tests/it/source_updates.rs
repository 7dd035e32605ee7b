//! Versions of modules that come, do not run and go back, and plans of what would come, through the whole operator.

use std::process::Command;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::module_sources::{SOURCES, World, phase, state};
use crate::support::in_process::tell_socket;
use crate::support::repository::{Packed, Reply, index};
use crate::support::server::{ok, send};

/// Returns a module `web`: a chart with one ConfigMap, or one that can't be rendered.
fn web(version: &str, says: &str, is_good: bool) -> Vec<u8> {
    bundle("web", version, says, is_good)
}

/// Returns such a module with a name.
fn bundle(name: &str, version: &str, says: &str, is_good: bool) -> Vec<u8> {
    let mut packed = Packed::new();
    let meta =
        format!("id: id-{name}\nname: {name}\nversion: {version}\ndescription: A test.\ndisplayName: A\n");
    let map = if is_good {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{says: {{{{ .Values.{name}.says }}}}}}\n"
        )
    } else {
        "{{ fail \"this version does not run\" }}\n".to_owned()
    };
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, format!("name: {name}\nversion: 0.1.0\n").as_bytes());
    packed.file("values.yaml", 0o644, format!("{name}: {{says: {says}}}\n").as_bytes());
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    packed.finish()
}

/// A world in which version 1.0.0 of `web` runs.
async fn running() -> World {
    let world = World::new().await;
    world.enable("web", true).await;
    offer(&world, "1.0.0", web("1.0.0", "one", true));
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world
}

/// Has the repository offer this version and no other.
fn offer(world: &World, version: &'static str, packed: Vec<u8>) {
    world.repository.put("/index.yaml", Reply::File(index(&[("web", version, packed.clone())], true)));
    world.repository.put(&format!("/web-{version}.tgz"), Reply::File(packed));
}

async fn raise(world: &World, counter: u64) {
    let spec = json!({"spec": {"reprocessRequest": counter}});
    ok(&world.cluster.server, Method::PATCH, &format!("{SOURCES}/platform"), &spec).await;
}

/// Returns whether a version in a status was given up.
fn is_rolled_back(object: &Value) -> bool {
    let lines = object.pointer("/status/repositories/0/addons").and_then(Value::as_array);
    lines.into_iter().flatten().any(|line| line["module"]["state"] == "RolledBack")
}

/// Runs a command of the program on a running operator. Returns its exit code and its output.
fn source(world: &World, args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_addon-operator"))
        .arg("source")
        .args(args)
        .args(["--debug-unix-socket", world.cluster.path("socket").to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_does_not_run_makes_way_for_the_one_before_and_stays_away_over_a_restart() {
    let world = running().await;
    let operator = world.start().await;
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
    world.settled("platform", |object| state(object) == "Running").await;
    offer(&world, "2.0.0", web("2.0.0", "two", false));
    let begun = Instant::now();
    raise(&world, 1).await;
    world.settled("platform", is_rolled_back).await;
    // Three attempts, five seconds apart, and what comes after them.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    let is_back = |object: &Value| {
        phase(object) == "Ready"
            && is_rolled_back(object)
            && state(object) == "Running"
            && object["status"]["modules"] == "1/1"
    };
    world.settled("platform", is_back).await;
    let object = world.object("platform").await;
    assert_eq!(object.pointer("/status/repositories/0/addons/0/version").unwrap(), "1.0.0");
    operator.stop().await;
    // Not even its files are there: the bundle before comes from the Secrets.
    std::fs::remove_dir_all(world.cluster.path("sources")).unwrap();
    let operator = world.start().await;
    world.settled("platform", is_back).await;
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
    raise(&world, 2).await;
    offer(&world, "2.0.0", web("2.0.0", "two", true));
    raise(&world, 3).await;
    world.cluster.settled("web", |map| map["data"]["says"] == "two").await;
    operator.stop().await;
}

/// Returns an object with two fields that nobody knows.
fn mistyped(object: &Value) -> Value {
    let mut object = object.clone();
    object["spec"]["repositries"] = json!([]);
    object["spec"]["repositories"][0]["include"] = json!([{"name": "web", "vresion": "1.0.0"}]);
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_would_come_change_and_go_and_writes_nothing() {
    let world = running().await;
    let file = world.cluster.path("platform.yaml");
    let plan = |object: &Value| {
        std::fs::write(&file, object.to_string()).unwrap();
        source(&world, &["plan", file.to_str().unwrap()])
    };
    let object = |url: &str| {
        json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "ClusterAddonsConfiguration",
            "metadata": {"name": "platform"}, "spec": {"repositories": [{"url": url}]},
        })
    };
    let url = world.repository.url("/index.yaml");
    assert_eq!(plan(&object(&url)).0, 2, "nobody answers");
    let operator = world.start().await;
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
    world.settled("platform", |object| state(object) == "Running").await;
    let before = world.object("platform").await;
    assert_eq!(plan(&object(&url)), (0, "Nothing would change.\n".to_owned()));
    offer(&world, "2.0.0", web("2.0.0", "two", true));
    let (code, text) = plan(&object(&url));
    assert!(code == 1 && text.starts_with("web changes from 1.0.0 to 2.0.0\n"), "{text}");
    assert!(text.contains("one") && text.contains("two"), "{text}");
    let (code, text) = source(&world, &["plan", file.to_str().unwrap(), "-o", "json"]);
    let data: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &data["modules"][0]["change"], &data["changes"]), (1, &json!("change"), &json!(true)));
    // What comes is shown whole, with what people wrote for it before.
    let cache = bundle("cache", "1.0.0", "three", true);
    world.repository.publish(&[("web", "2.0.0", web("2.0.0", "two", true)), ("cache", "1.0.0", cache)]);
    world
        .cluster
        .put("addon-operator", json!({"data": {"webEnabled": "true", "cache": "says: four\n"}}))
        .await;
    let (code, text) = plan(&object(&url));
    assert_eq!(code, 1);
    let (comes, changes) = text.split_once("web changes").unwrap();
    assert!(comes.starts_with("cache comes with 1.0.0, off until the ConfigMap switches it on\n"), "{text}");
    assert!(comes.contains("\n+kind: ConfigMap\n") && comes.contains("\n+  says: four\n"), "{text}");
    let is_removed = |line: &str| line.starts_with('-') && !line.starts_with("---");
    assert!(!comes.lines().any(is_removed), "there is nothing before: {text}");
    assert!(changes.contains("\n-  says: one\n"), "{text}");
    offer(&world, "2.0.0", web("2.0.0", "two", true));
    let gone = json!({"apiVersion": object("")["apiVersion"], "kind": "ClusterAddonsConfiguration",
        "metadata": {"name": "platform"}, "spec": {"repositories": []}});
    assert_eq!(plan(&gone), (1, "web goes with 1.0.0, its release is removed\n".to_owned()));
    let (code, text) = plan(&object(&world.repository.url("/none.yaml")));
    assert!(code == 2 && text.starts_with("problem: repository 1: FetchingIndexError: "), "{text}");
    for (wrong, says) in [
        (json!({"kind": "Pod"}), "apiVersion is \"\""),
        (json!({"apiVersion": before["apiVersion"], "kind": "Pod"}), "kind is \"Pod\""),
        (json!({"apiVersion": before["apiVersion"], "kind": before["kind"]}), "metadata.name is empty"),
        (
            mistyped(&object(&url)),
            "does not know these fields: spec.repositories[0].include[0].vresion, spec.repositries",
        ),
    ] {
        let (code, text) = plan(&wrong);
        assert!(code == 2 && text.contains(says), "{code} {text}");
    }
    std::fs::write(&file, format!("---\n{}\n---\n{}\n", object(&url), gone)).unwrap();
    let (code, text) = source(&world, &["plan", file.to_str().unwrap()]);
    assert!(code == 2 && text.contains("it has 2 objects: a plan is of one"), "{code} {text}");
    // What is read from the cluster has more than people write, and all of it is known.
    std::fs::write(&file, format!("---\n{before}\n---\n")).unwrap();
    assert_eq!(source(&world, &["plan", file.to_str().unwrap()]).0, 1);
    assert_eq!(world.object("platform").await, before);
    world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_paused_and_resumed_by_commands() {
    let world = running().await;
    let operator = world.start().await;
    world.settled("platform", |object| state(object) == "Running").await;
    let (code, text) = source(&world, &["pause", "platform"]);
    assert!(code == 0 && text.contains("is suspended"), "{text}");
    let is_suspended = |object: &Value| {
        let all = object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().any(|condition| condition["type"] == "Suspended")
    };
    world.settled("platform", is_suspended).await;
    let (code, text) = source(&world, &["sync", "platform"]);
    assert!(code == 1 && text.contains("source resume cac/platform"), "{text}");
    offer(&world, "2.0.0", web("2.0.0", "two", true));
    let (code, text) = source(&world, &["resume", "platform"]);
    assert!(code == 0 && text.contains("is looked after again"), "{text}");
    world.cluster.settled("web", |map| map["data"]["says"] == "two").await;
    world.settled("platform", |object| !is_suspended(object)).await;
    // Scripts do the same by URL, on the socket alone.
    let tell = |path: &str| tokio::task::block_in_place(|| tell_socket(&world.cluster, "POST", path));
    let answer = tell("/source/platform/pause");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("is suspended"), "{answer}");
    world.settled("platform", is_suspended).await;
    assert_eq!(world.object("platform").await["spec"]["suspend"], true);
    let answer = tell("/source/platform/sync");
    assert!(!answer.starts_with("HTTP/1.1 2") && answer.contains("source resume cac/platform"), "{answer}");
    let answer = tell("/source/platform/resume");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("is looked after again"), "{answer}");
    world.settled("platform", |object| !is_suspended(object)).await;
    let answer = tell("/source/nobody/pause");
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("nobody"), "{answer}");
    let head =
        "POST /source/platform/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let mut port = TcpStream::connect(("127.0.0.1", operator.port)).await.unwrap();
    port.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    port.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_takes_in_is_what_can_be_read() {
    let world = World::new().await;
    let url = world.repository.url("/index.yaml");
    let repositories = json!([{"url": url, "include": [{"name": "web", "version": ">=1.0 <2"}]}]);
    let status = async |number: usize, extra: &Value| {
        let mut spec = json!({"repositories": repositories});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "ClusterAddonsConfiguration",
            "metadata": {"name": format!("s{number}")}, "spec": spec,
        });
        send(&world.cluster.server, Method::POST, SOURCES, &object).await.0
    };
    let cases = [
        (json!({"updateInterval": "1m30s", "suspend": true, "approval": "manual"}), 201),
        (json!({"windows": [{"cron": "0 2 * * *", "length": "2h"}], "dependsOn": [{"name": "a"}]}), 201),
        (json!({"updateInterval": "soon"}), 422),
        (json!({"approval": "Maybe"}), 422),
        (json!({"windows": [{"cron": "0 2 * * *"}]}), 422),
        (json!({"dependsOn": [{"kind": "Repository", "name": "a"}]}), 422),
    ];
    for (number, (extra, expected)) in cases.iter().enumerate() {
        assert_eq!(status(number, extra).await, *expected, "{extra}");
    }
}

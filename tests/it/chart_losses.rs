//! Maps of charts that somebody removes or changes: they are written again at once, and what can't be had holds back nobody else.

use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, chart};
use crate::support::program;
use crate::support::repository::Reply;
use crate::support::server::{self, ok};

const PACKAGE: &str = "helm-pkg-corp-alpha-0.1.0-1";

/// Returns an operator with a module that is installed from version 0.1.0 of a chart.
async fn installed(world: &World) -> crate::support::in_process::Operator {
    let module = "chart: {repository: corp, name: alpha, version: '0.1.0'}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", module);
    world.cluster.write("modules/050-plain/Chart.yaml", "name: plain\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
    world.cluster.write("modules/050-plain/templates/map.yaml", map);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\nplainEnabled: true\n");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    world.synced("Chart", "module-cache").await;
    operator
}

async fn remove(world: &World, name: &str) {
    ok(&world.cluster.server, Method::DELETE, &format!("{MAPS}/{name}"), &Value::Null).await;
}

/// Returns the names of the objects that own a map, sorted.
fn owners(map: &Value) -> Vec<String> {
    let owners = map["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> =
        owners.iter().map(|owner| owner["name"].as_str().unwrap_or_default().to_owned()).collect();
    names.sort();
    names
}

async fn what_is_written_about_a_map_and_to_whom_it_belongs_is_put_right_at_once() {
    let world = World::new().await;
    let operator = installed(&world).await;
    world.cluster.settled(PACKAGE, |map| owners(map) == ["addon-operator-charts", "module-cache"]).await;
    world.repository.asked();
    for (name, edit) in [
        ("helm-tmpl-corp-alpha-0.1.0", json!({"labels": {"yaho.soer3n.dev/chart": null}})),
        ("helm-default-corp-alpha-0.1.0", json!({"labels": {"yaho.soer3n.dev/repo": "other"}})),
        ("helm-corp-alpha-index", json!({"labels": {"yaho.soer3n.dev/repo": "other"}})),
        ("helm-corp-alpha-index", json!({"ownerReferences": null})),
        ("helm-crds-corp-alpha-0.1.0", json!({"ownerReferences": null})),
        (PACKAGE, json!({"annotations": {"addon-operator.io/digest": "sha256:00"}})),
        (
            PACKAGE,
            json!({"annotations": {"addon-operator.io/parts": "7", "addon-operator.io/repository": null}}),
        ),
        (PACKAGE, json!({"labels": {"addon-operator.io/package": "0"}})),
        (PACKAGE, json!({"ownerReferences": null})),
    ] {
        let before = world.map(name).await.unwrap();
        ok(&world.cluster.server, Method::PATCH, &format!("{MAPS}/{name}"), &json!({"metadata": edit})).await;
        let is_right = |map: &Value| {
            let is_same = |field: &str| map["metadata"][field] == before["metadata"][field];
            is_same("labels") && is_same("annotations") && is_same("uid") && owners(map) == owners(&before)
        };
        world.cluster.settled(name, is_right).await;
    }
    let asked = world.repository.asked();
    assert!(
        !asked.iter().any(|(path, _)| path.contains(".tgz")),
        "the bytes were there all the time: {asked:?}"
    );
    operator.stop().await;
}

async fn b14_the_same_archive_from_another_repository_goes_with_that() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    let charts = json!([{"name": "alpha", "versions": ["0.1.0"]}]);
    let spec = json!({"name": "other", "url": world.repository.url(""), "charts": charts});
    world.apply("Repository", "other", spec).await;
    world.synced("Chart", "alpha-other").await;
    operator.stop().await;
    let operator = installed(&world).await;
    world.cluster.settled(PACKAGE, |map| owners(map) == ["addon-operator-charts", "module-cache"]).await;
    assert_eq!(owners(&world.map("helm-pkg-other-alpha-0.1.0-1").await.unwrap()), ["alpha-other"]);
    world.delete("Repository", "other").await;
    world.cluster.settled("helm-pkg-other-alpha-0.1.0-1", Value::is_null).await;
    assert!(world.map(PACKAGE).await.is_some());
    operator.stop().await;
}

async fn what_somebody_removes_or_replaces_is_written_again_at_once() {
    let world = World::new().await;
    let operator = installed(&world).await;
    let pinned = |map: &Value| owners(map) == ["addon-operator-charts", "module-cache"];
    world.cluster.settled(PACKAGE, pinned).await;
    let before = world.map(PACKAGE).await.unwrap();
    for name in
        [PACKAGE, "helm-tmpl-corp-alpha-0.1.0", "helm-default-corp-alpha-0.1.0", "helm-corp-alpha-index"]
    {
        let before = world.map(name).await.unwrap();
        remove(&world, name).await;
        let is_new = |map: &Value| !map.is_null() && map["metadata"]["uid"] != before["metadata"]["uid"];
        world.cluster.settled(name, is_new).await;
        let after = world.map(name).await.unwrap();
        assert_eq!(
            (&after["data"], &after["binaryData"]),
            (&before["data"], &before["binaryData"]),
            "{name}"
        );
    }
    // It belongs to who stays with it, as before.
    world.cluster.settled(PACKAGE, pinned).await;
    let after = world.map(PACKAGE).await.unwrap();
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    let archives = |asked: Vec<(String, u16)>| asked.iter().filter(|(path, _)| path.contains(".tgz")).count();
    assert_eq!(archives(world.repository.asked()), 2, "the package alone was fetched again");

    // Somebody puts something else in its place, and writes into the list of versions.
    let mut other = world.map("helm-default-corp-alpha-0.1.0").await.unwrap();
    remove(&world, "helm-default-corp-alpha-0.1.0").await;
    let metadata = &other["metadata"];
    other = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"values": "{}"}, "immutable": true,
        "metadata": {"name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"]},
    });
    let _ = server::send(&world.cluster.server, Method::POST, MAPS, &other).await;
    let is_ours = |map: &Value| map["data"]["values"].as_str().is_some_and(|text| text.contains("hello"));
    world.cluster.settled("helm-default-corp-alpha-0.1.0", is_ours).await;
    let edit = json!({"binaryData": {"versions": "W10="}});
    ok(&world.cluster.server, Method::PATCH, &format!("{MAPS}/helm-corp-alpha-index"), &edit).await;
    world.cluster.settled("helm-corp-alpha-index", |map| map["binaryData"]["versions"] != "W10=").await;
    operator.stop().await;
}

async fn a_module_whose_package_can_not_be_had_is_held_alone() {
    let world = World::new().await;
    let operator = installed(&world).await;
    operator.stop().await;
    remove(&world, PACKAGE).await;
    for path in ["/index.yaml", "/alpha-0.1.0.tgz"] {
        world.repository.put(path, Reply::Status(503, Vec::new()));
    }
    let operator = world.start().await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let why = || crate::support::in_process::ask_socket(&world.cluster, "/why/module/cache");
    server::until("the reason", || why().contains("the package of version 0.1.0 is lost")).await;
    server::until("what its Chart says", || why().contains("503")).await;
    let queues = crate::support::in_process::ask_socket(&world.cluster, "/queue/list.text");
    assert!(queues.contains("- 'main' queue: empty."), "{queues}");
    assert!(world.map("shown").await.is_some(), "its release is left as it is");

    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.annotate("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"})).await;
    world.cluster.settled(PACKAGE, |map| !map.is_null()).await;
    server::until("its end", || why().contains("running")).await;
    operator.stop().await;
}

async fn b17_what_was_published_again_takes_the_place_of_nothing_that_is_lost() {
    let world = World::new().await;
    let operator = installed(&world).await;
    let other = chart("alpha", "0.1.0", "", &[("values.yaml", b"says: other\n")]);
    world.publish("", &[("alpha", "0.1.0", other)]);
    world.apply("Repository", "corp", json!({"url": format!("{}/", world.repository.url(""))})).await;
    let has_changed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "DigestChanged")
    };
    let before = world.settled("Chart", "module-cache", has_changed).await;
    remove(&world, PACKAGE).await;
    let said = world.failed("Chart", "module-cache", "createConfigmapsFailed").await;
    assert!(said.contains("the repository has other bytes by now"), "{said}");
    assert_eq!(world.map(PACKAGE).await, None);
    let after = world.object("Chart", "module-cache").await;
    assert_eq!(after["status"]["resolved"], before["status"]["resolved"], "what was kept stays known");
    operator.stop().await;
    // A restart forgets nothing of it.
    let operator = world.start().await;
    world.failed("Chart", "module-cache", "createConfigmapsFailed").await;
    assert_eq!(world.map(PACKAGE).await, None);
    world.annotate("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"})).await;
    world.cluster.settled(PACKAGE, |map| !map.is_null()).await;
    operator.stop().await;
}

scenarios! {
    what_is_written_about_a_map_and_to_whom_it_belongs_is_put_right_at_once,
    b14_the_same_archive_from_another_repository_goes_with_that,
    b17_what_was_published_again_takes_the_place_of_nothing_that_is_lost,
    what_somebody_removes_or_replaces_is_written_again_at_once,
    a_module_whose_package_can_not_be_had_is_held_alone,
}

//! What of charts is seen with `kubectl get`: columns, labels, annotations, owners, and what nobody can change. On the API server in
//! this process, and in `tests/cluster` on a real one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};

use crate::support::charts::{MAPS, World, alpha, beta, chart};
use crate::support::repository::digest;
use crate::support::server::{self, get, ok, send};

fn corp(world: &World, charts: &Value) -> Value {
    json!({"name": "corp", "url": world.repository.url(""), "charts": charts})
}

/// Returns what `kubectl get` prints of an object: its cells by the names of the columns.
async fn printed(world: &World, plural: &str, name: &str) -> Value {
    let request = Request::get(format!("/apis/yaho.soer3n.dev/v1alpha1/{plural}/{name}"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let client = Client::new(world.cluster.server.service(), "default");
    let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    let table: Value = serde_json::from_slice(&bytes).unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let cells = table["rows"][0]["cells"].as_array().unwrap().iter().cloned();
    columns.map(|column| column["name"].as_str().unwrap().to_owned()).zip(cells).collect::<Map<_, _>>().into()
}

/// Returns the versions that an index map lists.
fn listed(map: &Value) -> Vec<String> {
    let Some(text) = map["binaryData"]["versions"].as_str() else { return Vec::new() };
    let versions: Vec<Value> = serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
    versions.iter().map(|version| version["version"].as_str().unwrap().to_owned()).collect()
}

async fn b01_b03_b11_the_columns_say_group_repository_and_what_is_synced() {
    let world = World::new().await;
    let url = world.repository.url("");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("beta", "0.1.0", beta("0.1.0", &url, "~0.1"))]);
    let operator = world.start().await;
    let charts = json!([{"name": "beta", "versions": ["0.1.0"]}]);
    let repos = json!([{"name": "corp", "url": url, "charts": charts}]);
    world.apply("RepoGroup", "group", json!({"labelSelector": "corp-group", "repos": repos})).await;
    world.synced("Chart", "beta-corp").await;
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 2).await;
    let row = printed(&world, "repositories", "corp").await;
    assert_eq!(
        [&row["Group"], &row["Synced"], &row["Charts"]],
        [&json!("corp-group"), &json!(true), &json!(2)]
    );
    let row = printed(&world, "charts", "beta-corp").await;
    assert_eq!(
        [&row["Group"], &row["Repo"], &row["Versions"], &row["Deps"]],
        ["corp-group", "corp", "synced", "synced"],
        "{row}"
    );
    operator.stop().await;
}

async fn b02_only_the_index_maps_of_charts_that_are_listed_are_renewed() {
    let world = World::new().await;
    world.publish(
        "",
        &[("alpha", "0.1.0", alpha("0.1.0")), ("other", "0.1.0", chart("other", "0.1.0", "", &[]))],
    );
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.synced("Repository", "corp").await;
    world.apply("Repository", "corp", corp(&world, &json!([{"name": "alpha"}]))).await;
    let made = world.synced("Chart", "alpha-corp").await;
    assert_eq!((&made["spec"]["createDeps"], &made["spec"]["versions"]), (&json!(true), &json!([])));
    let other = world.map("helm-corp-other-index").await.unwrap();
    let versions = ["0.1.0", "0.2.0"];
    let all = versions.map(|version| ("alpha", version, alpha(version)));
    let others = versions.map(|version| ("other", version, chart("other", version, "", &[])));
    world.publish("", &[all, others].concat());
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world.cluster.settled("helm-corp-alpha-index", |map| listed(map) == ["0.2.0", "0.1.0"]).await;
    world.synced("Repository", "corp").await;
    assert_eq!(world.map("helm-corp-other-index").await.unwrap(), other, "nobody asks for it");
    assert_eq!(world.maps().await, ["helm-corp-alpha-index", "helm-corp-other-index"]);
    operator.stop().await;
}

async fn b03_b16_labels_and_annotations_say_what_a_map_is_of_and_nobody_can_change_it() {
    let world = World::new().await;
    let packed = alpha("0.1.0+3");
    world.publish("", &[("alpha", "0.1.0+3", packed.clone())]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    world.synced("Chart", "mine").await;
    let list = get(&world.cluster.server, MAPS).await.unwrap();
    let of_version = |map: &&Value| {
        map["metadata"]["annotations"]["addon-operator.io/version"] == "0.1.0+3"
            && map["metadata"]["annotations"]["addon-operator.io/chart"] == "alpha"
            && map["metadata"]["annotations"]["addon-operator.io/repository"] == "corp"
    };
    let maps: Vec<&Value> = list["items"].as_array().unwrap().iter().filter(of_version).collect();
    let label = |map: &&Value| map["metadata"]["labels"]["yaho.soer3n.dev/type"].as_str().map(str::to_owned);
    let mut types: Vec<String> = maps.iter().filter_map(label).collect();
    types.sort();
    assert_eq!(types, ["crds", "default", "tmpl"]);
    let (shown, parts): (Vec<&Value>, Vec<&Value>) =
        maps.iter().copied().partition(|map| label(map).is_some());
    for map in &shown {
        let labels = &map["metadata"]["labels"];
        assert_eq!(labels["yaho.soer3n.dev/chart"], "alpha-0.1.0_3");
        let name = map["metadata"]["name"].as_str().unwrap();
        let edit = json!({"data": {"values": "{}"}, "binaryData": null});
        let (status, _) = send(&world.cluster.server, Method::PATCH, &format!("{MAPS}/{name}"), &edit).await;
        assert_eq!(status, 422, "{name}");
    }
    // What modules are installed from is no fourth of them.
    assert_eq!(parts.len(), 1);
    let labels = json!({"addon-operator.io/package": digest(&packed)[..40]});
    assert_eq!((&parts[0]["metadata"]["labels"], &parts[0]["immutable"]), (&labels, &json!(true)));
    operator.stop().await;
}

async fn b14_the_maps_of_a_version_belong_to_all_who_want_it_and_go_with_the_last() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let names = [
        "tmpl-corp-alpha-0.1.0",
        "crds-corp-alpha-0.1.0",
        "default-corp-alpha-0.1.0",
        "pkg-corp-alpha-0.1.0-1",
    ];
    let names = names.map(|name| format!("helm-{name}"));
    for chart in ["one", "two"] {
        world.apply("Chart", chart, json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
        world.synced("Chart", chart).await;
    }
    let owners = |map: &Value| {
        let owners = map["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.iter().map(|owner| owner["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for name in &names {
        world.cluster.settled(name, |map| owners(map) == ["one", "two"]).await;
    }
    world.delete("Chart", "one").await;
    for name in &names {
        world.cluster.settled(name, |map| owners(map) == ["two"]).await;
    }
    world.delete("Chart", "two").await;
    for name in &names {
        world.cluster.settled(name, Value::is_null).await;
    }
    assert_eq!(world.maps().await, ["helm-corp-alpha-index"]);
    world.delete("Repository", "corp").await;
    world.settled("Repository", "corp", Value::is_null).await;
    world.cluster.settled("helm-corp-alpha-index", Value::is_null).await;
    operator.stop().await;
}

async fn lists_of_versions_that_somebody_removed_are_there_again() {
    let world = World::new().await;
    let all = ["alpha", "beta"].map(|name| (name, "0.1.0", chart(name, "0.1.0", "", &[])));
    world.publish("", &all);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.synced("Repository", "corp").await;
    let index = format!("{MAPS}/helm-corp-beta-index");
    ok(&world.cluster.server, Method::DELETE, &index, &Value::Null).await;
    world.cluster.settled("helm-corp-beta-index", |map| listed(map) == ["0.1.0"]).await;
    operator.stop().await;
    // While nobody looks, and though no Chart is about it.
    ok(&world.cluster.server, Method::DELETE, &index, &Value::Null).await;
    let operator = world.start().await;
    world.cluster.settled("helm-corp-beta-index", |map| listed(map) == ["0.1.0"]).await;
    operator.stop().await;
}

async fn what_maps_say_is_read_by_people_and_is_right_again_after_a_restart() {
    let world = World::new().await;
    world.write_module("alpha", "0.1.0");
    let shown = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {says: {{ .Values.says }}, more: {{ .Values.more }}}\n";
    let files: [(&str, &[u8]); 2] =
        [("values.yaml", b"says: hello\nmore: nothing\n"), ("templates/shown.yaml", shown)];
    world.publish("", &[("alpha", "0.1.0", chart("alpha", "0.1.0", "", &files))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    world.synced("Chart", "module-cache").await;
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 1).await;
    operator.stop().await;
    // While nobody looks, the list of versions is edited, and other maps take the place of those that can't be.
    let edit = json!({"binaryData": {"versions": "W10="}});
    ok(&world.cluster.server, Method::PATCH, &format!("{MAPS}/helm-corp-alpha-index"), &edit).await;
    let map = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {says: taken, more: taken}\n";
    for (word, field, data) in [
        ("tmpl", "binaryData", json!({"shown.yaml": STANDARD.encode(map)})),
        ("default", "data", json!({"values": r#"{"more":"taken","says":"taken"}"#})),
    ] {
        let name = format!("helm-{word}-corp-alpha-0.1.0");
        let mut other = world.map(&name).await.unwrap();
        ok(&world.cluster.server, Method::DELETE, &format!("{MAPS}/{name}"), &Value::Null).await;
        for gone in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            other["metadata"].as_object_mut().unwrap().remove(gone);
        }
        other[field] = data;
        ok(&world.cluster.server, Method::POST, MAPS, &other).await;
    }
    world.cluster.put("addon-operator", json!({"data": {"cache": "more: set\n"}})).await;
    world.repository.asked();
    let operator = world.start().await;
    world.cluster.settled("shown", |map| map["data"] == json!({"says": "hello", "more": "set"})).await;
    let is_right = |map: &Value| map["data"]["values"] == r#"{"more":"nothing","says":"hello"}"#;
    world.cluster.settled("helm-default-corp-alpha-0.1.0", is_right).await;
    let is_right = |its: &Value| !its.is_null() && its["binaryData"]["shown.yaml"] != STANDARD.encode(map);
    world.cluster.settled("helm-tmpl-corp-alpha-0.1.0", is_right).await;
    world.cluster.settled("helm-corp-alpha-index", |map| listed(map) == ["0.1.0"]).await;
    let index = || world.repository.asked().into_iter().any(|asked| asked == ("/index.yaml".to_owned(), 200));
    server::until("the index to be fetched", index).await;
    operator.stop().await;
}

scenarios! {
    b01_b03_b11_the_columns_say_group_repository_and_what_is_synced,
    b02_only_the_index_maps_of_charts_that_are_listed_are_renewed,
    b03_b16_labels_and_annotations_say_what_a_map_is_of_and_nobody_can_change_it,
    b14_the_maps_of_a_version_belong_to_all_who_want_it_and_go_with_the_last,
    lists_of_versions_that_somebody_removed_are_there_again,
    what_maps_say_is_read_by_people_and_is_right_again_after_a_restart,
}

//! `kube`'s client, watcher, reflector and finalizer helper.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::{client, server};

fn config_map(name: &str) -> ConfigMap {
    let mut map =
        ConfigMap { data: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])), ..ConfigMap::default() };
    map.metadata.name = Some(name.to_owned());
    map
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

#[tokio::test]
async fn objects_are_created_read_changed_and_deleted() {
    let server = server();
    let maps = config_maps(&client(&server));
    let created = maps.create(&PostParams::default(), &config_map("x")).await.unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let patch = Patch::Merge(json!({"data": {"c": "d"}}));
    maps.patch("x", &PatchParams::default(), &patch).await.unwrap();
    let read = maps.get("x").await.unwrap();
    assert_eq!(read.data.unwrap().len(), 2);
    let error = maps.replace("x", &PostParams::default(), &created).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409));
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn applying_creates_and_owns() {
    let server = server();
    let maps = config_maps(&client(&server));
    let apply = |data: serde_json::Value| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}),
        )
    };
    maps.patch("x", &PatchParams::apply("one"), &apply(json!({"a": "1", "b": "1"}))).await.unwrap();
    let error = maps.patch("x", &PatchParams::apply("two"), &apply(json!({"a": "2"}))).await.unwrap_err();
    assert!(error.to_string().contains("conflict with \"one\": .data.a"), "{error}");
    maps.patch("x", &PatchParams::apply("two").force(), &apply(json!({"a": "2"}))).await.unwrap();
    let left = maps.patch("x", &PatchParams::apply("one"), &apply(json!({}))).await.unwrap();
    assert_eq!(left.data.unwrap(), BTreeMap::from([("a".to_owned(), "2".to_owned())]));
}

#[tokio::test]
async fn a_watch_tells_what_happens() {
    let server = server();
    let maps = config_maps(&client(&server));
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("x")).await.unwrap();
    maps.patch("x", &PatchParams::default(), &Patch::Merge(json!({"data": {"c": "d"}}))).await.unwrap();
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => format!("added {}", object.name_any()),
            WatchEvent::Modified(object) => format!("modified {}", object.data.unwrap().len()),
            WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
            WatchEvent::Bookmark(_) => "bookmark".to_owned(),
            WatchEvent::Error(error) => panic!("{error:?}"),
        });
    }
    assert_eq!(seen, ["added x", "modified 2", "deleted x"]);
}

#[tokio::test]
async fn a_reflector_follows_with_lists_and_with_streamed_lists() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = server();
        let maps = config_maps(&client(&server));
        maps.create(&PostParams::default(), &config_map("before")).await.unwrap();
        let (reader, writer) = reflector::store();
        let mut stream = watcher(maps.clone(), config).reflect(writer).applied_objects().boxed();
        assert_eq!(stream.try_next().await.unwrap().unwrap().name_any(), "before");
        maps.create(&PostParams::default(), &config_map("after")).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap().name_any(), "after");
        assert_eq!(reader.len(), 2);
    }
}

#[tokio::test]
async fn the_finalizer_helper_runs_its_course() {
    let server = server();
    let maps = config_maps(&client(&server));
    maps.create(&PostParams::default(), &config_map("x")).await.unwrap();
    let mut seen = Vec::new();
    for step in 0..3 {
        let object = Arc::new(maps.get("x").await.unwrap());
        let mut noted = "";
        finalizer(&maps, "example.com/test", object, |event| {
            noted = match event {
                Finalizer::Apply(_) => "apply",
                Finalizer::Cleanup(_) => "cleanup",
            };
            async { Ok::<_, std::io::Error>(kube::runtime::controller::Action::await_change()) }
        })
        .await
        .unwrap();
        seen.push(noted);
        if step == 1 {
            maps.delete("x", &DeleteParams::default()).await.unwrap();
        }
    }
    assert_eq!(seen, ["", "apply", "cleanup"]);
    assert!(maps.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn lists_are_stable_across_their_parts() {
    let server = server();
    let maps = config_maps(&client(&server));
    for name in ["a", "b", "c", "d"] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(2));
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("e")).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().continue_token(&token)).await.unwrap();
    assert_eq!(rest.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["c", "d"]);
}

#[tokio::test]
async fn a_namespace_that_is_deleted_is_emptied() {
    let server = server();
    let client = client(&server);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("work".to_owned());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
    maps.create(&PostParams::default(), &config_map("x")).await.unwrap();
    namespaces.delete("work", &DeleteParams::default()).await.unwrap();
    server.settled().await;
    assert!(namespaces.get_opt("work").await.unwrap().is_none());
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    let error = maps.create(&PostParams::default(), &config_map("y")).await.unwrap_err();
    assert!(error.to_string().contains("namespaces \"work\" not found"), "{error}");
}

#[tokio::test]
async fn discovery_finds_kinds() {
    let server = server();
    let discovery = kube::Discovery::new(client(&server)).run_aggregated().await.unwrap();
    assert!(discovery.has_group("apps"));
    let pods: Api<Pod> = Api::default_namespaced(client(&server));
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

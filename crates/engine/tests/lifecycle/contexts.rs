//! Binding context files, byte by byte: every shape, their order and what becomes of those that wait.

use engine::hook::WatchEvent::{self, Added, Deleted, Modified};
use engine::snapshot::{Item, Key};
use engine::{Event, MonitorId};
use golang::json;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::build::{PODS, changed, config, cron, files};
use crate::world::World;

/// Compares the context files of all runs with a file.
macro_rules! assert_golden {
    ($world:expr, $name:literal) => {
        let seen = $world.context_files.clone().unwrap();
        assert_eq!(seen, include_str!(concat!("contexts/", $name)), "{}", $name);
    };
}

fn object(kind: &str, name: &str, value: u8) -> Value {
    json!({
        "kind": kind, "apiVersion": "v1",
        "metadata": {"namespace": "ns", "name": name, "resourceVersion": value.to_string(), "labels": {"<a>&b": "ü"}},
        "spec": {"big": 9_007_199_254_740_993_i64, "half": 0.5, "whole": 1.0, "none": null},
    })
}

/// An object as a binding without filter sees it.
fn plain(kind: &str, name: &str, value: u8) -> Item {
    Item::unfiltered(json::bytes(&object(kind, name, value)).into(), true)
}

/// An object as a binding with a filter sees it.
fn filtered(kind: &str, name: &str, value: u8, result: &Value, keeps: bool) -> Item {
    let kept = keeps.then(|| json::bytes(&object(kind, name, value)).into());
    Item::filtered(kept, json::bytes(result).into())
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

/// A change that the watch with this number tells.
fn tells(monitor: u64, change: WatchEvent, name: &str, item: Item) -> Event {
    changed(MonitorId::new(monitor), change, key(name), Arc::new(item))
}

#[test]
fn contexts_of_lifecycle_points() {
    let files = files()
        .global_hook("g.sh", "{onStartup: 1, beforeAll: 1, afterAll: 1, kubernetes: [{name: nodes, kind: Node, jqFilter: .metadata.name, keepFullObjectsInMemory: false}]}")
        .global_hook("plain.sh", "{beforeAll: 2}")
        .module(10, "web")
        .hook("h.sh", "{onStartup: 1, beforeHelm: 1, afterHelm: 1, beforeDeleteHelm: 1, afterDeleteHelm: 1, kubernetes: [{name: pods, kind: Pod, executeHookOnSynchronization: false}, {name: more, kind: Pod, executeHookOnSynchronization: false, nameSelector: {matchNames: [x]}}]}");
    let mut world = World::new(&files)
        .keeping_contexts()
        .holds("Node", Key::new("", "one"), filtered("Node", "one", 1, &json!("one"), false))
        .holds("Pod", key("b"), plain("Pod", "b", 1))
        .holds("Pod", key("a"), plain("Pod", "a", 2))
        .settled();
    world.after(100, config(101, &[("webEnabled", "false")]));
    assert_golden!(world, "lifecycle.txt");
}

#[test]
fn contexts_of_objects_without_a_filter() {
    let files = files().global_hook("w.sh", PODS);
    let world = World::new(&files)
        .keeping_contexts()
        .holds("Pod", key("b"), plain("Pod", "b", 1))
        .holds("Pod", key("a"), plain("Pod", "a", 1))
        .at(100, tells(1, Added, "c", plain("Pod", "c", 2)))
        .at(200, tells(1, Modified, "c", plain("Pod", "c", 3)))
        .at(300, tells(1, Modified, "c", plain("Pod", "c", 3)))
        .at(400, tells(1, Deleted, "c", plain("Pod", "c", 4)))
        .settled();
    assert_golden!(world, "plain.txt");
}

#[test]
fn contexts_of_objects_with_a_filter() {
    for (keeps, golden) in
        [(true, include_str!("contexts/filtered.txt")), (false, include_str!("contexts/results_only.txt"))]
    {
        let files = files().global_hook(
            "w.sh",
            &format!(
                "kubernetes: [{{name: pods, kind: Pod, jqFilter: .spec, keepFullObjectsInMemory: {keeps}}}]"
            ),
        );
        let item = |value, result: Value| filtered("Pod", "c", value, &result, keeps);
        let world = World::new(&files)
            .keeping_contexts()
            .holds("Pod", key("a"), filtered("Pod", "a", 1, &json!({"z": [1, "<&>"], "a": 1.5}), keeps))
            .at(100, tells(1, Added, "c", item(2, json!(""))))
            .at(200, tells(1, Modified, "c", item(3, json!(null))))
            .at(300, tells(1, Modified, "c", item(4, json!(null))))
            .at(400, tells(1, Modified, "c", item(5, json!([1, true]))))
            .at(500, tells(1, Deleted, "c", item(6, json!(1_000_000_000_000_000_000_000_f64))))
            .settled();
        assert_eq!(world.context_files.unwrap(), golden, "objects are kept: {keeps}");
    }
}

#[test]
fn contexts_of_objects_of_which_nothing_is_kept() {
    let files =
        files().global_hook("w.sh", "kubernetes: [{name: pods, kind: Pod, keepFullObjectsInMemory: false}]");
    let nothing = |value| Item::unfiltered(json::bytes(&object("Pod", "a", value)).into(), false);
    let world = World::new(&files)
        .keeping_contexts()
        .holds("Pod", key("a"), nothing(1))
        .at(100, tells(1, Modified, "a", nothing(2)))
        .at(200, tells(1, Deleted, "a", nothing(3)))
        .settled();
    assert_golden!(world, "nothing.txt");
}

#[test]
fn contexts_with_snapshots() {
    let files = files().global_hook(
        "w.sh",
        "{kubernetes: [
            {name: pods, kind: Pod, includeSnapshotsFrom: [pods, names]},
            {name: names, kind: Node, jqFilter: .metadata.name, keepFullObjectsInMemory: false, executeHookOnSynchronization: false},
            {name: empty, kind: Secret, executeHookOnSynchronization: false}],
          schedule: [{name: 'each minute', crontab: '* * * * *', includeSnapshotsFrom: [names, empty, names]}, {crontab: '0 * * * *'}]}",
    );
    let world = World::new(&files)
        .keeping_contexts()
        .holds("Pod", key("a"), plain("Pod", "a", 1))
        .holds("Node", Key::new("", "z"), filtered("Node", "z", 1, &json!("z"), false))
        .at(100, tells(1, Added, "b", plain("Pod", "b", 2)))
        .at(200, tells(1, Modified, "b", plain("Pod", "b", 3)))
        .at(300, tells(1, Deleted, "b", plain("Pod", "b", 4)))
        .at(400, cron("* * * * *"))
        .at(500, cron("0 * * * *"))
        .settled();
    assert_golden!(world, "snapshots.txt");
}

#[test]
fn contexts_of_groups() {
    let files = files().global_hook(
        "w.sh",
        "{kubernetes: [
            {name: pods, kind: Pod, group: both, jqFilter: .metadata.name, keepFullObjectsInMemory: false},
            {name: nodes, kind: Node, group: both, jqFilter: .metadata.name, keepFullObjectsInMemory: false},
            {name: other, kind: Secret, executeHookOnSynchronization: false}],
          schedule: [{name: tick, crontab: '* * * * *', group: both}, {name: alone, crontab: '0 * * * *', group: lonely}, {name: more, crontab: '1 * * * *', group: both, includeSnapshotsFrom: [other]}]}",
    );
    let item = |name: &str| filtered("Pod", name, 1, &json!(name), false);
    let world = World::new(&files)
        .keeping_contexts()
        .holds("Pod", key("a"), item("a"))
        .at(100, tells(1, Added, "b", item("b")))
        .at(200, tells(2, Added, "n", item("n")))
        .at(300, tells(1, Deleted, "a", item("a")))
        .at(400, cron("* * * * *"))
        .at(500, cron("0 * * * *"))
        .at(600, cron("1 * * * *"))
        .settled();
    assert_golden!(world, "groups.txt");
}

#[test]
fn contexts_that_wait_are_one_file_in_their_order() {
    let files = files()
        .global_hook(
            "w.sh",
            "{kubernetes: [
            {name: pods, kind: Pod, jqFilter: .metadata.name, keepFullObjectsInMemory: false, includeSnapshotsFrom: [pods]},
            {name: grouped, kind: Node, group: g, jqFilter: .metadata.name, keepFullObjectsInMemory: false}],
          schedule: [{name: tick, crontab: '* * * * *'}, {name: also, crontab: '* * * * *', group: g}]}",
        )
        .global_hook("z.sh", "schedule: [{name: tick, crontab: '1 * * * *'}]");
    let item = |name: &str| filtered("Pod", name, 1, &json!(name), false);
    let world = World::new(&files)
        .keeping_contexts()
        .settled()
        .takes("global/w.sh", 1_000)
        .at(10, tells(1, Added, "a", item("a")))
        // While the first runs: two of a group that are adjacent, one apart, and one behind another hook.
        .at(20, tells(1, Added, "b", item("b")))
        .at(30, tells(2, Added, "n", item("n")))
        .at(40, tells(2, Added, "m", item("m")))
        .at(50, tells(1, Deleted, "a", item("a")))
        .at(60, cron("* * * * *"))
        .at(70, cron("1 * * * *"))
        .at(80, tells(2, Deleted, "n", item("n")))
        .at(90, tells(1, Added, "c", item("c")))
        .settled();
    assert_golden!(world, "combined.txt");
}

#[test]
fn contexts_of_the_old_dialect() {
    let files = files().module(10, "web").hook(
        "old.sh",
        r#"{"onStartup": 1, "beforeHelm": 2, "schedule": [{"name": "tick", "crontab": "* * * * *"}],
            "onKubernetesEvent": [{"name": "pods", "kind": "pod"}, {"kind": "node", "jqFilter": ".metadata.name", "event": ["delete"]}]}"#,
    );
    let node = || filtered("Node", "n", 1, &json!("n"), true);
    let mut world = World::new(&files)
        .keeping_contexts()
        .holds("pod", key("a"), plain("Pod", "a", 1))
        .settled()
        .takes("web/old.sh", 1_000);
    world.send_in(10, tells(1, Added, "b", plain("Pod", "b", 1)));
    world.send_in(20, tells(1, Modified, "b", plain("Pod", "b", 2)));
    world.send_in(30, tells(1, Deleted, "b", plain("Pod", "b", 3)));
    world.send_in(40, tells(2, Added, "n", node()));
    world.send_in(50, tells(2, Deleted, "n", node()));
    world.after(60, cron("* * * * *"));
    assert_golden!(world, "v0.txt");
}

#[test]
fn contexts_with_names_that_need_care() {
    let files = files().global_hook(
        "w.sh",
        r#"{"kubernetes": [{"name": "a \"quoted\" <name> & ü\u2028", "kind": "Pod", "group": "</script>", "jqFilter": ".", "keepFullObjectsInMemory": false}, {"kind": "Secret"}, {"kind": "Node"}]}"#,
    );
    let world = World::new(&files)
        .keeping_contexts()
        .holds("Secret", key("a"), plain("Secret", "a", 1))
        .at(100, tells(1, Added, "b", filtered("Pod", "b", 1, &json!("\u{2028}\u{7}\t\\"), false)))
        .settled();
    assert_golden!(world, "names.txt");
}

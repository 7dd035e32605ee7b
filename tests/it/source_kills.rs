//! Module sources under kills: before and after every write of an addition, an update, a version that goes back, and a deletion. The
//! end is the same.

use std::time::Instant;

use http::Method;
use serde_json::{Value, json};

use crate::module_sources::{SOURCES, World, phase, state};
use crate::support::DEADLINE;
use crate::support::kills::{Beginning, Moment, killed, lives};
use crate::support::pause::pause;
use crate::support::repository::{Packed, Repository};
use crate::support::server::{get, ok};

/// How many writes a part of a life takes at most.
const AT_MOST: usize = 40;

/// What the operator is at when it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Add,
    Update,
    Rollback,
    Delete,
}

/// How long the operator waits before it tries again what failed, so that a version is given up soon.
const RETRY: (&str, &str) = ("retry-delay", "20ms");

/// Returns a module `web`: a chart with one ConfigMap.
fn web(says: &str) -> Vec<u8> {
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {says: {{ .Values.web.says }}}\n";
    version("1.0.0", says, map)
}

/// Returns a version of it with this template.
fn version(version: &str, says: &str, map: &str) -> Vec<u8> {
    let mut packed = Packed::new();
    let meta = format!("id: id-web\nname: web\nversion: {version}\ndescription: A test.\ndisplayName: Web\n");
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, b"name: web\nversion: 0.1.0\n");
    packed.file("values.yaml", 0o644, format!("web: {{says: {says}}}\n").as_bytes());
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    packed.finish()
}

/// Waits until the work is done.
async fn done(world: &World, work: Work) {
    match work {
        Work::Add | Work::Update => {
            let says = if work == Work::Add { "one" } else { "two" };
            world.cluster.settled("web", |map| map["data"]["says"] == says).await;
            let is_current = |object: &Value| {
                object["status"]["observedGeneration"] == object["metadata"]["generation"]
                    && phase(object) == "Ready"
                    && state(object) == "Running"
            };
            world.settled("platform", is_current).await;
        }
        Work::Rollback => {
            let states = |object: &Value| {
                let lines =
                    object.pointer("/status/repositories/0/addons").and_then(Value::as_array).cloned();
                let lines = lines.unwrap_or_default();
                let state = |line: &Value| format!("{} {}", line["version"], line["module"]["state"]);
                lines.iter().map(state).collect::<Vec<_>>()
            };
            let expected = [r#""1.0.0" "Running""#, r#""2.0.0" "RolledBack""#];
            world.settled("platform", |object| states(object) == expected).await;
            world.cluster.settled("web", |map| map["data"]["says"] == "one").await;
        }
        Work::Delete => world.settled("platform", Value::is_null).await,
    }
}

/// Returns how the operator is started.
fn options(world: &World) -> Vec<(&str, &str)> {
    world.options().into_iter().chain([RETRY]).collect()
}

/// Returns the names of the Secrets that belong to the release and to the bundles.
async fn secrets(world: &World) -> Vec<(String, Value)> {
    let listed = get(&world.cluster.server, "/api/v1/namespaces/ops/secrets").await.unwrap();
    let secrets = listed["items"].as_array().unwrap();
    secrets
        .iter()
        .map(|secret| {
            let metadata = &secret["metadata"];
            (metadata["name"].as_str().unwrap().to_owned(), metadata["labels"]["status"].clone())
        })
        .collect()
}

/// Returns the cluster as it is when `work` begins, and the identity of the module's object there.
async fn beginning(work: Work) -> (Beginning, Value) {
    let world = World::on(Beginning::cluster().await, Repository::tls(&["localhost"]).await);
    world.install_kinds().await;
    world.repository.publish(&[("web", "1.0.0", web("one"))]);
    world.enable("web", true).await;
    let mut uid = Value::Null;
    if work != Work::Add {
        let operator = world.start().await;
        world.apply("platform", &[world.repository.url("/index.yaml")]).await;
        done(&world, Work::Add).await;
        operator.stop().await;
        let map = get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/web").await.unwrap();
        uid = map["metadata"]["uid"].clone();
    }
    let path = format!("{SOURCES}/platform");
    match work {
        Work::Add => world.apply("platform", &[world.repository.url("/index.yaml")]).await,
        Work::Update | Work::Rollback => {
            let bad = || version("2.0.0", "two", "{{ fail \"this version does not run\" }}\n");
            let published =
                if work == Work::Update { ("web", "1.0.0", web("two")) } else { ("web", "2.0.0", bad()) };
            world.repository.publish(&[published]);
            let raise = json!({"spec": {"reprocessRequest": 1}});
            ok(&world.cluster.server, Method::PATCH, &path, &raise).await;
        }
        Work::Delete => {
            ok(&world.cluster.server, Method::DELETE, &path, &Value::Null).await;
        }
    }
    (Beginning::of(world.cluster, world.repository).await, uid)
}

/// Does `work` with a kill at the write of this number. Returns the cluster that is left, and whether there was such a write.
async fn struck(beginning: &Beginning, work: Work, at: (usize, Moment)) -> (World, bool) {
    let (cluster, repository) = beginning.again();
    let world = World::on(cluster, repository);
    let is_struck = killed(&world.cluster, &options(&world), at, async || done(&world, work).await).await;
    (world, is_struck)
}

/// Does the rest of `work`, and looks at all that it leaves.
async fn ends(world: &World, work: Work, uid: &Value, place: &str) {
    let (operator, begun) = (world.cluster.start(&options(world)).await, Instant::now());
    done(world, work).await;
    // The record is ended last, and bundles that nobody needs any more go when all is done.
    let expected = usize::from(work != Work::Delete);
    // A version that was given up is registered all the same, so that nobody fetches it again.
    let kept = expected + usize::from(work == Work::Rollback);
    loop {
        let left = secrets(world).await;
        let bundles = left.iter().filter(|(name, _)| name.starts_with("addon-operator-bundle-")).count();
        let records = left.iter().filter(|(name, _)| name.starts_with("sh.helm"));
        let states: Vec<&str> = records.filter_map(|(_, status)| status.as_str()).collect();
        let deployed = states.iter().filter(|state| **state == "deployed").count();
        let is_pending = states.iter().any(|state| state.starts_with("pending"));
        if bundles == kept && deployed == expected && !is_pending {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{place}: {left:?}");
        pause().await;
    }
    operator.stop().await;
    if work == Work::Delete {
        world.cluster.settled("web", Value::is_null).await;
        return;
    }
    let map = get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/web").await.unwrap();
    assert!(uid.is_null() || map["metadata"]["uid"] == *uid, "{place}: the object was made anew");
}

/// Kills the operator around each write that the work takes, each time in a life of its own, and when the work is done.
async fn struck_everywhere(work: Work) {
    let (beginning, uid) = beginning(work).await;
    let (world, _) = struck(&beginning, work, (AT_MOST * 10, Moment::Before)).await;
    ends(&world, work, &uid, &format!("{work:?}, killed when it is done")).await;
    for moment in [Moment::Before, Moment::After] {
        let writes = lives(moment, async |number| {
            assert!(number < AT_MOST, "{work:?} takes more writes than expected");
            let (world, is_struck) = struck(&beginning, work, (number, moment)).await;
            if is_struck {
                ends(&world, work, &uid, &format!("{work:?}, killed {moment:?} write {number}")).await;
            }
            is_struck
        })
        .await;
        assert!(writes >= 2, "{work:?}, {moment:?}: only {writes} writes were hit");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_an_addition_changes_no_end() {
    struck_everywhere(Work::Add).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_an_update_changes_no_end() {
    struck_everywhere(Work::Update).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_a_version_that_goes_back_changes_no_end() {
    struck_everywhere(Work::Rollback).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_a_deletion_changes_no_end() {
    struck_everywhere(Work::Delete).await;
}

//! Records of releases that fit no Secret: what Helm reads stands in one, and the rest in others beside it.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use addon_operator::config::Environment;
use addon_operator::helm::Helm;
use apiserver::FaultPlan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::record::MAX_RECORD_BYTES;
use engine::{Drift, Event, ModuleName, ReleaseAction, ReleaseName};
use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::release::{MAP, ReleaseFixture, decoded, edit, noise, secrets, watched};

/// The label that says which parts a record has.
const PARTS: &str = "addon-operator.io/record-parts";

/// Returns a release whose chart has a file with so many letters.
fn with_file(letters: usize) -> ReleaseFixture {
    let mut world = ReleaseFixture::new(&files(&noise(letters), MAP));
    world.history_max = 2;
    world
}

fn files<'f>(noise: &'f str, map: &'f str) -> Vec<(&'f str, &'f str)> {
    let chart = "apiVersion: v2\nname: web\nversion: 1.2.3\n";
    vec![("Chart.yaml", chart), ("noise.txt", noise), ("templates/map.yaml", map)]
}

/// Returns the Secrets, each by the name behind `sh.helm.release.v1.web.`.
async fn stored(world: &ReleaseFixture) -> Vec<(String, Value)> {
    let list = world.get(&secrets()).await.unwrap();
    let named = |secret: &Value| {
        let name = secret["metadata"]["name"].as_str().unwrap();
        (name.strip_prefix("sh.helm.release.v1.web.").unwrap().to_owned(), secret.clone())
    };
    list["items"].as_array().unwrap().iter().map(named).collect()
}

async fn stored_names(world: &ReleaseFixture) -> Vec<String> {
    stored(world).await.into_iter().map(|(name, _)| name).collect()
}

async fn upgraded_to(world: &ReleaseFixture, helm: &Helm, k: &str) -> ReleaseAction {
    world.upgrade(helm, json!({ "k": k })).await.unwrap().action
}

#[tokio::test]
async fn a_large_record_is_one_that_helm_reads_and_continuations_that_it_does_not_see() {
    let world = with_file(1_500_000);
    let helm = world.helm();
    assert_eq!(upgraded_to(&world, &helm, "one").await, ReleaseAction::Installed);
    assert_eq!(stored_names(&world).await, ["v1", "v1.part1", "v1.part2"]);
    let found = stored(&world).await;
    let head = decoded(&found[0].1);
    assert_eq!((head.info.status.name(), head.name.as_str(), head.version), ("deployed", "web", 1));
    assert!(head.manifest.contains("name: web-map"), "{}", head.manifest);
    assert!(head.chart.unwrap().get().contains("\"version\":\"1.2.3\""));
    for (_, part) in &found[1..] {
        assert_eq!(part["type"], "addon-operator.io/record-part");
        assert_eq!(part["metadata"]["labels"]["owner"], Value::Null);
        assert_eq!(part["metadata"]["ownerReferences"][0]["uid"], found[0].1["metadata"]["uid"]);
    }
    // It is a release as any other: nothing to do is nothing done, also after a start.
    world.requests();
    assert_eq!(upgraded_to(&world, &helm, "one").await, ReleaseAction::Unchanged);
    assert_eq!(world.requests(), Vec::<String>::new());
    let helm = world.helm();
    assert_eq!(upgraded_to(&world, &helm, "one").await, ReleaseAction::Unchanged);
    assert!(world.requests().iter().all(|request| request.starts_with("GET")));
    // What is there is told from what was rendered.
    let mut events = watched(&helm);
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    let told = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap();
    assert!(matches!(told, Some(engine::Event::ReleaseDrifted { .. })), "{told:?}");
    // The limit of the history holds for continuations, too.
    for (k, expected) in [
        ("two", vec!["v1", "v1.part1", "v1.part2", "v2", "v2.part1", "v2.part2"]),
        ("three", vec!["v2", "v2.part1", "v2.part2", "v3", "v3.part1", "v3.part2"]),
    ] {
        assert_eq!(upgraded_to(&world, &helm, k).await, ReleaseAction::Upgraded);
        assert_eq!(stored_names(&world).await, expected);
    }
    assert_eq!(world.states().await, ["2 superseded", "3 deployed"]);
    // A chart that became small has a record as ever.
    world.write(&files("small", MAP));
    assert_eq!(upgraded_to(&world, &helm, "four").await, ReleaseAction::Upgraded);
    let found = stored(&world).await;
    let (name, small) = found.last().unwrap();
    assert_eq!((name.as_str(), &small["metadata"]["labels"][PARTS]), ("v4", &Value::Null));
    helm.uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(stored(&world).await.is_empty() && world.map("web-map").await.is_none());
}

#[tokio::test]
async fn a_small_record_costs_no_request_more() {
    let world = with_file(10);
    world.upgraded(&world.helm()).await;
    let writes: Vec<String> =
        world.requests().into_iter().filter(|request| !request.starts_with("GET")).collect();
    assert_eq!(writes.len(), 3, "the record, the object, the record: {writes:?}");
    world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(!world.requests().iter().any(|request| request.contains("record-")));
}

#[tokio::test]
async fn what_a_manifest_renders_is_restored_though_it_fits_no_secret_itself() {
    // Each map may have 1 MiB, and one rendered again as text more than that.
    let map = |name: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{data}'}}\n")
    };
    let text = noise(1_800_000).replace('\\', "/").replace('\'', "\"");
    let (one, two) = text.split_at(900_000);
    let (first, second) = (map("web-map", one), map("web-two", two));
    let world = ReleaseFixture::new(&[("templates/a.yaml", &first), ("templates/b.yaml", &second)]);
    world.upgraded(&world.helm()).await;
    let found = stored(&world).await;
    let head = decoded(&found[0].1);
    assert!(
        head.manifest.contains("name: web-two") && !head.manifest.contains("\ndata"),
        "{}",
        head.manifest
    );
    assert!(found.len() > 2);
    // What left the chart goes, which only the whole record knows.
    world.write(&[("templates/a.yaml", &first.replace("data: {k:", "data: {other:"))]);
    world.upgraded(&world.helm()).await;
    let data = world.map("web-map").await.unwrap()["data"].clone();
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["other"]);
    assert!(world.map("web-two").await.is_none());
}

#[tokio::test]
async fn a_continuation_that_is_missing_or_altered_is_told_by_name_and_a_new_revision_takes_its_place() {
    let world = with_file(1_500_000);
    let helm = world.helm();
    upgraded_to(&world, &helm, "one").await;
    let path = format!("{}/sh.helm.release.v1.web.v1.part2", secrets());
    let whole = world.get(&path).await.unwrap();
    let name = ModuleName::from("web");
    let _events = watched(&helm);
    let object = "default/ConfigMap/web-map";
    let problem = async || helm.mend(&name, object).await.unwrap_err().to_string();
    let put = async |part: &Value, change: &dyn Fn(&mut Value)| {
        let mut part = part.clone();
        part["metadata"] = json!({"name": part["metadata"]["name"], "labels": part["metadata"]["labels"]});
        change(&mut part);
        world.post(&secrets(), &part).await;
    };
    world.delete(&path).await;
    let told = problem().await;
    let named = "revision 1 of release web can not be read: its continuation, Secret default/sh.helm.release.v1.web.v1.part2,";
    for part in [named, "is missing; put it back as it was, or a new revision takes its place"] {
        assert!(told.contains(part), "{told}");
    }
    let other = STANDARD.encode("other");
    put(&whole, &|part| part["data"]["part"] = other.clone().into()).await;
    assert!(problem().await.contains("v1.part2, was altered"));
    // Also if it fits itself.
    world.delete(&path).await;
    put(&whole, &|part| {
        part["data"]["part"] = other.clone().into();
        part["metadata"]["labels"]["addon-operator.io/record-digest"] =
            chart::record::digest(b"other").into();
    })
    .await;
    assert!(problem().await.contains("are not those that were written with it"));
    let many = json!({"metadata": {"labels": { PARTS: "1.1000.ab" }}});
    let before = world.get(&format!("{}/sh.helm.release.v1.web.v1", secrets())).await.unwrap();
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &many).await;
    assert!(problem().await.contains("a count from 1 to 32"));
    let label = json!({"metadata": {"labels": { PARTS: before["metadata"]["labels"][PARTS] }}});
    edit(&world, "secrets", "sh.helm.release.v1.web.v1", &label).await;
    world.delete(&path).await;
    put(&whole, &|_| {}).await;
    helm.mend(&name, object).await.unwrap();
    assert_eq!(upgraded_to(&world, &world.helm(), "one").await, ReleaseAction::Unchanged);
    // Without it a revision takes the place of this one, and the objects stay.
    let uid = world.map("web-map").await.unwrap()["metadata"]["uid"].clone();
    world.delete(&path).await;
    assert_eq!(upgraded_to(&world, &world.helm(), "one").await, ReleaseAction::Upgraded);
    assert_eq!(world.map("web-map").await.unwrap()["metadata"]["uid"], uid);
    assert_eq!(stored_names(&world).await.last().unwrap(), "v2.part2");
    // It is removed with what is left of it.
    world.delete(&path.replace("web.v1.", "web.v2.")).await;
    world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(stored(&world).await.is_empty() && world.map("web-map").await.is_none());
}

#[tokio::test]
async fn a_continuation_that_somebody_deletes_is_noticed_at_once_and_drift_goes_on() {
    let world = with_file(1_500_000);
    let helm = world.helm();
    upgraded_to(&world, &helm, "one").await;
    let mut events = watched(&helm);
    let told = async |events: &mut tokio::sync::mpsc::UnboundedReceiver<Event>| {
        tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap()
    };
    for revision in [1, 2] {
        let name = format!("sh.helm.release.v1.web.v{revision}.part2");
        world.delete(&format!("{}/{name}", secrets())).await;
        let Event::ReleaseDrifted { drift: Drift::Status(what), .. } = told(&mut events).await else {
            panic!("it is not noticed")
        };
        assert!(what.contains(&format!("Secret default/{name}, is missing")), "{what}");
        // The module runs, and its release is whole again.
        assert_eq!(upgraded_to(&world, &helm, "one").await, ReleaseAction::Upgraded);
    }
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "theirs"}})).await;
    let drift = told(&mut events).await;
    assert!(
        matches!(&drift, Event::ReleaseDrifted { drift: Drift::Changed { object, .. }, .. } if object == "default/ConfigMap/web-map"),
        "{drift:?}"
    );
    helm.mend(&ModuleName::from("web"), "default/ConfigMap/web-map").await.unwrap();
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "one");
}

#[tokio::test]
async fn a_record_that_grows_too_large_while_it_is_written_gets_continuations() {
    // Objects that are refused, which the description of the revision tells.
    let refused = |name: &str| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {name}}}\n")
    };
    let names: String = noise(4_000).chars().map(|c| if c.is_ascii_lowercase() { c } else { 'x' }).collect();
    let names: Vec<&str> = (0..100).map(|number| &names[number * 40..number * 40 + 40]).collect();
    let mut names = names;
    names.sort_unstable();
    names.dedup();
    let template: String = names.iter().map(|name| refused(name)).collect();
    let length = async |letters: usize| {
        let text = noise(letters);
        let world = ReleaseFixture::new(&files(&text, &template));
        world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
        let found = stored(&world).await;
        let data = STANDARD.decode(found[0].1["data"]["release"].as_str().unwrap()).unwrap();
        (world, data.len(), found)
    };
    let (_, small, _) = length(700_000).await;
    let (_, larger, _) = length(800_000).await;
    // As large as a record may be that says that it failed, and a little more, so that only the one before fits.
    let missing = MAX_RECORD_BYTES + 400 - small;
    let (world, _, found) = length(700_000 + missing * 100_000 / (larger - small)).await;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["v1", "v1.part1"]);
    assert_eq!(world.states().await, ["1 failed"]);
    assert!(decoded(&found[0].1).info.description.contains("not found"));
    world.write(&files("small", MAP));
    assert_eq!(upgraded_to(&world, &world.helm(), "one").await, ReleaseAction::Upgraded);
    world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(stored(&world).await.is_empty());
}

/// What the operator is at when it is killed.
#[derive(Clone, Copy, Debug)]
enum Work {
    Install,
    Upgrade,
    Uninstall,
}

/// Does `work` and is killed at the request of this number, before it is sent or before its answer comes; then works again.
/// Returns whether there was such a request.
async fn killed(work: Work, is_sent: bool, request: u64) -> bool {
    let place = format!("{work:?}, {is_sent}, request {request}");
    let world = with_file(1_300_000);
    if !matches!(work, Work::Install) {
        upgraded_to(&world, &world.helm(), "one").await;
    }
    let carry_out = async |helm: &Helm| match work {
        Work::Install | Work::Upgrade => {
            world.upgrade(helm, json!({"k": "two"})).await.map(|outcome| outcome.action)
        }
        Work::Uninstall => helm.uninstall(&ReleaseName::from("web")).await.map(|outcome| outcome.action),
    };
    let faults = world.server.faults();
    let hits = faults.hits();
    if is_sent {
        faults.add(FaultPlan::any().nth(request).cut_answer());
    }
    faults.add(FaultPlan::any().nth(request).times(u64::MAX).cut());
    let _ = carry_out(&world.helm()).await;
    let was_hit = faults.hits() > hits;
    faults.clear();
    let names = stored_names(&world).await;
    let is_led_to = |name: &String| names.contains(&name.split('.').next().unwrap().to_owned());
    assert!(names.iter().all(is_led_to), "{place}: a continuation without a record: {names:?}");
    carry_out(&world.helm()).await.unwrap_or_else(|failure| panic!("{place}: {failure}"));
    let names = stored_names(&world).await;
    match work {
        Work::Install => assert_eq!(names, ["v1", "v1.part1", "v1.part2"], "{place}"),
        Work::Upgrade => {
            assert_eq!(names, ["v1", "v1.part1", "v1.part2", "v2", "v2.part1", "v2.part2"], "{place}");
        }
        Work::Uninstall => assert!(names.is_empty(), "{place}: {names:?}"),
    }
    if !matches!(work, Work::Uninstall) {
        assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "two", "{place}");
        assert_eq!(carry_out(&world.helm()).await.unwrap(), ReleaseAction::Unchanged, "{place}");
    }
    was_hit
}

/// A kill before a request leaves the cluster as one after the request before. So every second request is enough for each of the
/// two moments. With `EVERY_KILL` each request is hit.
#[tokio::test]
async fn whatever_a_kill_leaves_of_a_large_record_the_next_start_puts_right() {
    let step = if Environment::of_process().text("EVERY_KILL").is_some() { 1 } else { 2 };
    for work in [Work::Install, Work::Upgrade, Work::Uninstall] {
        for is_sent in [false, true] {
            let mut request = 1;
            while killed(work, is_sent, request).await {
                request += step;
                assert!(request < 40, "{work:?} takes more requests than expected");
            }
            assert!(request > 8, "{work:?}: only requests before the {request}th were hit");
        }
    }
}

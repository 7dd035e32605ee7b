//! Objects of a release that lose a label by which they are watched, and operations of others while they go on.

use std::time::Duration;

use addon_operator::helm::Helm;
use chart::record::Status;
use engine::{Drift, DriftMode, DriftSettings, Event, ModuleName, ReleaseAction};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::release::{
    EXTRA, MAP, NAMESPACE, ReleaseFixture, decoded, edit, encoded, record_secret, secrets, watched,
    watched_as,
};

const OBJECTS: [(&str, &str); 2] = [("templates/map.yaml", MAP), ("templates/extra.yaml", EXTRA)];

/// How long anything takes that is done at once.
const AT_ONCE: Duration = Duration::from_secs(5);

fn map_path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
}

fn absent(name: &str) -> Event {
    drifted(Drift::Absent(format!("{NAMESPACE}/ConfigMap/{name}")))
}

fn drifted(drift: Drift) -> Event {
    Event::ReleaseDrifted { module: ModuleName::from("web"), drift }
}

/// Returns what is told of the release within some time.
async fn told(events: &mut UnboundedReceiver<Event>, within: Duration) -> Option<Event> {
    tokio::time::timeout(within, events.recv()).await.ok().flatten()
}

/// Takes the label off that all objects of modules have.
async fn unlabel(world: &ReleaseFixture, name: &str) {
    edit(world, "configmaps", name, &json!({"metadata": {"labels": {"heritage": null}}})).await;
}

/// Returns a running operator whose release is watched.
async fn running(world: &ReleaseFixture) -> (Helm, UnboundedReceiver<Event>) {
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    assert_eq!(told(&mut events, AT_ONCE).await, None);
    (helm, events)
}

/// Checks that the next thing that is told is the label that an object lacks.
async fn lacks_label(events: &mut UnboundedReceiver<Event>, name: &str) {
    let event = told(events, AT_ONCE).await;
    let Some(Event::ReleaseDrifted { drift: Drift::Changed { object, place, .. }, .. }) = &event else {
        unreachable!("{event:?}")
    };
    let shown = format!("{NAMESPACE}/ConfigMap/{name}");
    assert_eq!((object.as_str(), place.as_str()), (shown.as_str(), "/metadata/labels/heritage"));
}

/// Returns the requests that are neither a watch nor a list before one.
fn asked(world: &ReleaseFixture) -> Vec<String> {
    let mut asked = world.requests();
    asked.retain(|request| !request.contains("watch=true") && !request.contains("limit="));
    asked
}

#[tokio::test(start_paused = true)]
async fn slip_07_an_object_that_lost_its_label_is_not_gone_until_it_is_deleted() {
    let world = ReleaseFixture::new(&OBJECTS);
    let (helm, mut events) = running(&world).await;
    for name in ["web-map", "web-extra"] {
        unlabel(&world, name).await;
        lacks_label(&mut events, name).await;
    }
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    assert_eq!(world.states().await, ["1 deployed"]);
    // It is followed, and nobody asks again and again.
    world.requests();
    assert_eq!(told(&mut events, Duration::from_hours(2)).await, None);
    assert_eq!(asked(&world), [""; 0]);
    world.delete(&map_path("web-map")).await;
    assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-map")));
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    for name in ["web-map", "web-extra"] {
        assert_eq!(world.map(name).await.unwrap()["metadata"]["labels"]["heritage"], "addon-operator");
    }
    // With its label back it is one among all others again: no watch is left but that of the kind.
    world.requests();
    assert_eq!(told(&mut events, Duration::from_hours(2)).await, None);
    let requests = world.requests();
    assert!(requests.iter().any(|request| request.contains("/api/v1/configmaps?")), "{requests:?}");
    let of_namespace = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?");
    assert!(!requests.iter().any(|request| request.contains(&of_namespace)), "{requests:?}");
    world.delete(&map_path("web-extra")).await;
    assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-extra")));
}

#[tokio::test(start_paused = true)]
async fn slip_07_an_object_that_lost_its_label_before_a_start_is_not_gone_either() {
    let world = ReleaseFixture::new(&OBJECTS);
    world.upgraded(&world.helm()).await;
    unlabel(&world, "web-map").await;
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    let mut events = watched(&helm);
    lacks_label(&mut events, "web-map").await;
    world.delete(&map_path("web-map")).await;
    assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-map")));
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    // What is gone at the start is seen.
    unlabel(&world, "web-map").await;
    world.delete(&map_path("web-extra")).await;
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Upgraded);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_its_label_is_put_right_where_the_module_asks_for_that() {
    let world = ReleaseFixture::new(&OBJECTS);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() });
    unlabel(&world, "web-map").await;
    lacks_label(&mut events, "web-map").await;
    helm.mend(&ModuleName::from("web"), &format!("{NAMESPACE}/ConfigMap/web-map")).await.unwrap();
    assert_eq!(world.map("web-map").await.unwrap()["metadata"]["labels"]["heritage"], "addon-operator");
    world.delete(&map_path("web-map")).await;
    assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-map")));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_made_anew_in_the_place_of_one_is_told_as_gone() {
    let world = ReleaseFixture::new(&OBJECTS);
    let (_helm, mut events) = running(&world).await;
    let mut map = world.map("web-map").await.unwrap();
    world.delete(&map_path("web-map")).await;
    map["metadata"] = json!({"name": "web-map", "labels": map["metadata"]["labels"]});
    world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &map).await;
    assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-map")));
}

#[tokio::test(start_paused = true)]
async fn slip_07_an_object_that_may_not_be_read_is_gone_only_if_no_list_has_it() {
    for is_deleted in [false, true] {
        let world = ReleaseFixture::new(&OBJECTS);
        let (_helm, mut events) = running(&world).await;
        let reads = apiserver::FaultPlan::on(Method::GET, &map_path("web-map")).times(u64::MAX);
        world.server.faults().add(reads.fail(403));
        if is_deleted {
            world.delete(&map_path("web-map")).await;
            assert_eq!(told(&mut events, AT_ONCE).await, Some(absent("web-map")));
        } else {
            unlabel(&world, "web-map").await;
            assert_eq!(told(&mut events, Duration::from_mins(10)).await, None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slip_07_an_object_that_others_made_anew_without_the_label_is_gone_also_if_the_first_look_fails() {
    for code in [0, 403, 500] {
        let world = ReleaseFixture::new(&OBJECTS);
        let (_helm, mut events) = running(&world).await;
        let reads = apiserver::FaultPlan::on(Method::GET, &map_path("web-map"));
        world.server.faults().add(if code == 0 { reads.cut() } else { reads.fail(code) });
        world.delete(&map_path("web-map")).await;
        let theirs = json!({"metadata": {"name": "web-map"}, "data": {"k": "theirs"}});
        world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &theirs).await;
        assert_eq!(told(&mut events, Duration::from_mins(10)).await, Some(absent("web-map")), "{code}");
    }
}

/// Writes the record of a second revision as `helm upgrade` does, in this state.
async fn write_record(world: &ReleaseFixture, method: Method, status: &str) {
    let first = "sh.helm.release.v1.web.v1";
    let second = "sh.helm.release.v1.web.v2";
    let old = world.get(&format!("{}/{first}", secrets())).await.unwrap();
    let mut record = decoded(&old);
    record.version = 2;
    record.info.status = Status::from_name(status);
    let mut labels = old["metadata"]["labels"].clone();
    labels["version"] = "2".into();
    labels["status"] = status.into();
    let path = if method == Method::POST { secrets() } else { format!("{}/{second}", secrets()) };
    world.send(method, &path, &record_secret(second, &labels, &encoded(&record))).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_of_somebody_else_has_half_a_minute_also_if_it_deletes_objects() {
    for (ends, method, status) in [
        (true, Method::POST, "pending-upgrade"),
        (false, Method::POST, "pending-upgrade"),
        (false, Method::POST, "uninstalling"),
    ] {
        let world = ReleaseFixture::new(&OBJECTS);
        let helm = world.helm();
        world.upgraded(&helm).await;
        let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() });
        assert_eq!(told(&mut events, AT_ONCE).await, None);
        write_record(&world, method, status).await;
        unlabel(&world, "web-extra").await;
        edit(&world, "configmaps", "web-extra", &json!({"data": {"a": "theirs"}})).await;
        world.delete(&map_path("web-map")).await;
        assert_eq!(told(&mut events, Duration::from_secs(25)).await, None, "{status}");
        let what = if ends {
            write_record(&world, Method::PUT, "deployed").await;
            "somebody else wrote revision 2, which is deployed".to_owned()
        } else {
            format!("somebody else wrote revision 2, which is {status}")
        };
        // Either watch may be the first: both are a reason to run.
        let event = told(&mut events, Duration::from_secs(10)).await;
        let gone = absent("web-map");
        let expected = [drifted(Drift::Status(what)), gone];
        assert!(event.as_ref().is_some_and(|event| expected.contains(event)), "{status}: {event:?}");
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
        assert!(world.map("web-map").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_put_right_when_somebody_else_has_finished() {
    let world = ReleaseFixture::new(&OBJECTS);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched_as(&helm, DriftSettings { mode: DriftMode::Enforce, ignore: Vec::new() });
    edit(&world, "configmaps", "web-extra", &json!({"data": {"a": "theirs"}})).await;
    assert!(told(&mut events, AT_ONCE).await.is_some());
    write_record(&world, Method::POST, "pending-upgrade").await;
    let begun = tokio::time::Instant::now();
    helm.mend(&ModuleName::from("web"), &format!("{NAMESPACE}/ConfigMap/web-extra")).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 30);
    assert_eq!(world.map("web-extra").await.unwrap()["data"]["a"], Value::from("b"));
}

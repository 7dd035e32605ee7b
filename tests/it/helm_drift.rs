//! What others do to the records of a release while the operator runs, or before it starts.

use addon_operator::helm::Helm;
use apiserver::FaultPlan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Drift, Event, ModuleName, ReleaseAction, ReleaseName};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::DEADLINE;
use crate::support::pause::pause;
use crate::support::release::{
    EXTRA, NAMESPACE, ReleaseFixture, decoded, edit, encoded, files, record_secret, secrets, watched,
};

fn name(version: u32) -> String {
    format!("sh.helm.release.v1.web.v{version}")
}

/// Writes a revision with what an earlier one holds, as `helm rollback` does: labels are carried on.
async fn roll_back(world: &ReleaseFixture, from: u32, to: u32, status: &str) {
    let old = world.get(&format!("{}/{}", secrets(), name(from))).await.unwrap();
    let mut record = decoded(&old);
    record.version = to;
    record.info.status = chart::record::Status::from_name(status);
    let mut labels = old["metadata"]["labels"].clone();
    labels["version"] = to.to_string().into();
    labels["status"] = status.into();
    let secret = record_secret(&name(to), &labels, &encoded(&record));
    world.post(&secrets(), &secret).await;
}

async fn mark(world: &ReleaseFixture, version: u32, labels: Value) {
    edit(world, "secrets", &name(version), &json!({"metadata": {"labels": labels}})).await;
}

/// Returns a running operator whose release has two revisions.
async fn running(world: &ReleaseFixture) -> (Helm, UnboundedReceiver<Event>) {
    let helm = world.helm();
    world.upgraded(&helm).await;
    let events = watched(&helm);
    world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    (helm, events)
}

/// Waits for the next thing that is told of the release.
async fn told(events: &mut UnboundedReceiver<Event>) -> String {
    let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap();
    let text = format!("{event:?}");
    if let Event::ReleaseDrifted { module, drift: Drift::Status(what) } = event {
        assert_eq!(module, ModuleName::from("web"));
        return what;
    }
    text
}

#[tokio::test]
async fn a_rollback_beside_the_operator_is_told_and_undone() {
    let world = ReleaseFixture::new(&files());
    let (helm, mut events) = running(&world).await;
    roll_back(&world, 1, 3, "deployed").await;
    mark(&world, 2, json!({"status": "superseded"})).await;
    edit(&world, "configmaps", "web-map", &json!({"data": {"k": "one"}})).await;
    let mut what = told(&mut events).await;
    if what.contains("Changed") {
        what = told(&mut events).await;
    }
    assert_eq!(what, "somebody else wrote revision 3, which is deployed");
    let outcome = world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
    assert_eq!((outcome.action, outcome.revision), (ReleaseAction::Upgraded, 4));
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "two");
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Unchanged);
}

#[tokio::test]
async fn whatever_happens_to_the_records_of_a_running_operator_is_told_and_healed() {
    let cut = json!({"data": {"release": "QQ=="}});
    for (edits, expected) in [
        (vec![json!({"metadata": {"labels": {"status": "failed"}}})], "the status of revision 2 is failed"),
        (
            vec![json!({"metadata": {"labels": {"addon-operator.io/owner": null}}})],
            "revision 2 is marked as somebody else's",
        ),
        (vec![json!({"metadata": {"labels": {"owner": null}}})], "the record of revision 2 is gone"),
        (vec![cut], "the record of revision 2 can not be read"),
        (vec![], "the record of revision 2 is gone"),
    ] {
        let world = ReleaseFixture::new(&files());
        let (helm, mut events) = running(&world).await;
        for edit_ in &edits {
            edit(&world, "secrets", &name(2), edit_).await;
        }
        if edits.is_empty() {
            world.delete(&format!("{}/{}", secrets(), name(2))).await;
        }
        let what = told(&mut events).await;
        assert!(what.starts_with(expected), "{what}");
        world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
        // The next one finds all as it was left.
        world.requests();
        assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Unchanged);
        assert_eq!(world.requests(), [""; 0]);
        let states = world.states().await;
        assert_eq!(states.iter().filter(|state| state.ends_with(" deployed")).count(), 1, "{states:?}");
    }
}

#[tokio::test]
async fn what_the_operator_writes_itself_is_neither_told_nor_looked_at() {
    let world = ReleaseFixture::new(&files());
    let (helm, mut events) = running(&world).await;
    world.requests();
    for number in 0..5 {
        world.upgrade(&helm, json!({"k": format!("v{number}")})).await.unwrap();
    }
    // The watch tells in order: when this comes, all before it has come.
    mark(&world, 7, json!({"status": "failed"})).await;
    assert_eq!(told(&mut events).await, "the status of revision 7 is failed");
    let looks = world.requests().into_iter().filter(|request| request.contains("labelSelector=name%3Dweb"));
    // One for each upgrade, one for the edit.
    assert_eq!(looks.count(), 6);
}

#[tokio::test]
async fn who_is_at_work_on_a_release_is_left_to_it() {
    let world = ReleaseFixture::new(&files());
    let (_helm, mut events) = running(&world).await;
    world.requests();
    roll_back(&world, 1, 3, "pending-rollback").await;
    let looked = async {
        while !world.requests().iter().any(|request| request.contains("labelSelector=name%3Dweb")) {
            pause().await;
        }
    };
    tokio::time::timeout(DEADLINE, looked).await.unwrap();
    mark(&world, 2, json!({"status": "superseded"})).await;
    mark(&world, 3, json!({"status": "deployed"})).await;
    assert_eq!(told(&mut events).await, "somebody else wrote revision 3, which is deployed");
}

#[tokio::test]
async fn an_uninstall_beside_an_upgrade_costs_no_failed_run() {
    let world = ReleaseFixture::new(&files());
    let helm = world.helm();
    world.upgraded(&helm).await;
    world.requests();
    // The record of the first revision goes while the second is made.
    let path = format!("*/secrets/{}*", name(1));
    world.server.faults().add(FaultPlan::on(Method::PATCH, &path).fail(404));
    assert_eq!(world.upgrade(&helm, json!({"k": "two"})).await.unwrap().action, ReleaseAction::Upgraded);
    assert_eq!(world.server.faults().hits(), 1);
    // As helm does it: there are never two deployed revisions.
    let patched: Vec<bool> = world
        .requests()
        .iter()
        .filter(|request| request.starts_with("PATCH") && request.contains("/secrets/"))
        .map(|request| request.contains(&name(2)))
        .collect();
    assert_eq!(patched, [false, true]);
}

#[tokio::test]
async fn a_record_that_was_cut_is_replaced_at_the_next_start() {
    for data in ["", "QQ==", "SDRzSUFBQUFBQUFDLw=="] {
        let world = ReleaseFixture::new(&files());
        world.upgraded(&world.helm()).await;
        edit(&world, "secrets", &name(1), &json!({"data": {"release": data}})).await;
        let helm = world.helm();
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded, "{data:?}");
        assert_eq!(world.states().await, ["2 deployed"]);
        world.requests();
        assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
        assert_eq!(world.requests(), [""; 0]);
        // A start reads one record, and writes nothing.
        assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Unchanged);
        let requests = world.requests();
        let of_records = requests.iter().filter(|request| request.contains("/secrets"));
        assert_eq!(of_records.count(), 2, "{requests:?}");
        assert!(requests.iter().all(|request| request.starts_with("GET")), "{requests:?}");
    }
}

#[tokio::test]
async fn what_was_written_since_the_first_list_of_records_is_seen_before_anything_is_installed() {
    let mut world = ReleaseFixture::new(&files());
    world.name = "db";
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Installed);
    world.name = "web";
    assert_eq!(world.upgraded(&world.helm()).await, ReleaseAction::Installed);
    // The list of the first operator showed no such release.
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
    assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
}

#[tokio::test]
async fn what_happens_to_a_record_after_the_first_list_is_told_once_its_release_is_watched() {
    let mut world = ReleaseFixture::new(&files());
    for name in ["web", "db"] {
        world.name = name;
        world.upgraded(&world.helm()).await;
    }
    let helm = world.helm();
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    mark(&world, 1, json!({"status": "failed"})).await;
    world.name = "web";
    // The answer is that of the list, and the watch begins behind it.
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Unchanged);
    let mut events = watched(&helm);
    assert_eq!(told(&mut events).await, "the status of revision 1 is failed");
    assert_eq!(world.upgraded(&helm).await, ReleaseAction::Upgraded);
}

#[tokio::test]
async fn a_release_whose_records_were_cut_is_removed_with_its_objects() {
    let kept = EXTRA.replace("web-extra}", "web-kept, annotations: {helm.sh/resource-policy: keep}}");
    let elsewhere = EXTRA.replace("web-extra}", "web-other, namespace: kube-public}");
    let mut charts = files();
    charts.push(("templates/kept.yaml", &kept));
    charts.push(("templates/other.yaml", &elsewhere));
    for (upgraded, cut) in [(false, vec![1]), (true, vec![2]), (true, vec![1, 2])] {
        let world = ReleaseFixture::new(&charts);
        let helm = world.helm();
        world.upgraded(&helm).await;
        if upgraded {
            world.upgrade(&helm, json!({"k": "two"})).await.unwrap();
        }
        // Objects that are marked as those of another release are none of ours.
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "foreign",
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": NAMESPACE},
            },
        });
        world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &body).await;
        for version in &cut {
            edit(&world, "secrets", &name(*version), &json!({"data": {"release": "QQ=="}})).await;
        }
        let outcome = world.helm().uninstall(&ReleaseName::from("web")).await.unwrap();
        assert_eq!(outcome.action, ReleaseAction::Uninstalled);
        assert!(world.states().await.is_empty());
        for gone in ["web-map", "web-extra"] {
            assert!(world.map(gone).await.is_none(), "{gone} after {cut:?}");
        }
        assert!(world.get("/api/v1/namespaces/kube-public/configmaps/web-other").await.is_none());
        assert!(world.map("web-kept").await.is_some() && world.map("foreign").await.is_some());
    }
}

#[tokio::test]
async fn texts_of_a_secret_are_neither_sent_again_nor_named_as_what_changes() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: web-secret}\nstringData: {a: x}\n";
    let mut chart = files();
    chart.push(("templates/secret.yaml", secret));
    let world = ReleaseFixture::new(&chart);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let mut events = watched(&helm);
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
    told(&mut events).await;
    world.requests();
    let outcome = world.upgrade(&helm, json!({"k": "one"})).await.unwrap();
    assert_eq!(outcome.changed.as_deref(), Some("ConfigMap default/web-map was missing"));
    let requests = world.requests();
    assert!(!requests.iter().any(|request| request.starts_with("PATCH") && request.contains("web-secret")));
    // What is not as wanted is written.
    edit(&world, "secrets", "web-secret", &json!({"stringData": {"a": "y"}})).await;
    world.delete(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/web-map")).await;
    while !told(&mut events).await.contains("Absent") {}
    let outcome = world.upgrade(&helm, json!({"k": "one"})).await.unwrap();
    // An object that was not there at all says more than one that differed.
    assert_eq!(outcome.changed.as_deref(), Some("ConfigMap default/web-map was missing"));
    let path = format!("{}/web-secret", secrets());
    assert_eq!(world.get(&path).await.unwrap()["data"]["a"], STANDARD.encode("x"));
}

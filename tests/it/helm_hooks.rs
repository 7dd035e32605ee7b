//! Hooks of charts: what is deleted when one fails, is refused, or is cut off by the end of the operator.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::helm::{Cancellation, ReleaseRun};
use apiserver::FaultPlan;
use engine::ReleaseAction;
use futures::StreamExt as _;
use http::Method;
use kube::Client;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::support::pause::pause;
use crate::support::release::{EXTRA, MAP, NAMESPACE, ReleaseFixture, end_jobs, says};

const SPEC: &str = "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n";

/// Returns a hook of the kind Job that runs before an installation or an upgrade.
fn job(name: &str, weight: i32, policies: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '{weight}', helm.sh/hook-delete-policy: '{policies}'}}\n{SPEC}"
    )
}

async fn job_is_there(world: &ReleaseFixture, name: &str) -> bool {
    world.get(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")).await.is_some()
}

/// Returns when the Job of this name is there.
async fn made(client: Client, name: &str) {
    let jobs = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("batch", "v1", "Job"));
    let api: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(client, NAMESPACE, &jobs);
    let mut found = std::pin::pin!(watcher(api, watcher::Config::default()).applied_objects());
    while let Some(Ok(job)) = found.next().await {
        if job.metadata.name.as_deref() == Some(name) {
            return;
        }
    }
}

#[tokio::test]
async fn slip_20_a_hook_that_fails_leaves_nothing_that_keeps_the_next_try_from_succeeding() {
    let (first, second) = (job("first", 1, "hook-succeeded"), job("second", 2, "hook-failed"));
    let world = ReleaseFixture::without_nodes(&[
        ("templates/map.yaml", MAP),
        ("templates/first.yaml", &first),
        ("templates/second.yaml", &second),
    ]);
    let failing = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), Some("second")));
    let error = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    says(&error, &["pre-install hook Job second failed", "BackoffLimitExceeded"]);
    failing.abort();
    assert!(!job_is_there(&world, "first").await && !job_is_there(&world, "second").await);
    let mending = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), None));
    world.upgraded(&world.helm()).await;
    assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
    mending.abort();
}

#[tokio::test]
async fn slip_22_an_object_of_somebody_else_is_not_deleted_because_a_hook_has_its_name() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: 'hook-failed,hook-succeeded'}}\n";
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", map)]);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}});
    let before = world.post(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &theirs).await;
    let error = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    says(&error, &["pre-install hook ConfigMap theirs failed", "already exists"]);
    let after = world.map("theirs").await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test]
async fn slip_22_of_a_hook_whose_object_was_replaced_meanwhile_the_new_one_stays() {
    let hook = job("prepare", 1, "hook-succeeded");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
    let client = || Client::new(world.server.service(), NAMESPACE);
    let replaced = async {
        made(client(), "prepare").await;
        let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs");
        world.delete(&format!("{path}/prepare")).await;
        let theirs = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "prepare"},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
        });
        world.post(&path, &theirs).await;
        end_jobs(client(), None).await;
    };
    let helm = world.helm();
    let action = tokio::select! {
        action = world.upgraded(&helm) => action,
        () = replaced => unreachable!(),
    };
    assert_eq!(action, ReleaseAction::Installed);
    assert!(job_is_there(&world, "prepare").await);
}

#[tokio::test(start_paused = true)]
async fn slip_22_what_others_make_in_the_place_of_a_deleted_object_is_not_waited_for() {
    let hook = job("prepare", 1, "before-hook-creation");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
    let jobs = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs");
    let other = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "prepare"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    world.post(&jobs, &other).await;
    let looks = FaultPlan::on(Method::GET, &format!("{jobs}/prepare"));
    world.server.faults().add(looks.delay(Duration::from_secs(20)));
    let replaced = async {
        while world.server.faults().hits() < 1 {
            pause().await;
        }
        world.post(&jobs, &other).await
    };
    let helm = world.helm();
    let (outcome, theirs) = tokio::join!(world.upgrade(&helm, json!({"k": "one"})), replaced);
    says(&outcome.unwrap_err(), &["pre-install hook Job prepare failed", "already exists"]);
    let found = world.get(&format!("{jobs}/prepare")).await.unwrap();
    assert_eq!(found["metadata"]["uid"], theirs["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_whose_object_somebody_deletes_has_failed_and_is_run_again() {
    let hook = job("prepare", 1, "before-hook-creation");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
    let deleted = async {
        made(Client::new(world.server.service(), NAMESPACE), "prepare").await;
        world.delete(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/prepare")).await;
    };
    let helm = world.helm();
    let begun = Instant::now();
    let (outcome, ()) = tokio::join!(world.upgrade(&helm, json!({"k": "one"})), deleted);
    says(&outcome.unwrap_err(), &["pre-install hook Job prepare failed: Job prepare was deleted"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "it was waited for");
    let ending = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), None));
    world.upgraded(&helm).await;
    ending.abort();
    assert!(job_is_there(&world, "prepare").await);
}

#[tokio::test]
async fn slip_24_all_objects_of_a_hook_that_is_a_list_are_made_waited_for_and_deleted() {
    let item = |name: &str| {
        format!("{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}}}, {}}}", SPEC.trim())
    };
    let list = format!(
        "apiVersion: v1\nkind: List\nmetadata: {{name: all, annotations: {{helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: 'before-hook-creation,hook-failed'}}}}\nitems:\n- {}\n- {}\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: third}}}}\n",
        item("one"),
        item("two"),
    );
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &list)]);
    let failing = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), Some("two")));
    let error = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    says(&error, &["pre-install hook List all failed: Job two: BackoffLimitExceeded"]);
    failing.abort();
    assert!(!job_is_there(&world, "one").await && !job_is_there(&world, "two").await);
    assert!(world.map("third").await.is_none());
    let mending = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), None));
    world.upgraded(&world.helm()).await;
    mending.abort();
    // They stay, as the policy says, and the ones before them are gone.
    assert!(job_is_there(&world, "one").await && job_is_there(&world, "two").await);
    assert!(world.map("third").await.is_some());
}

/// Upgrades, and lets the operator end when the Job `prepare` of a hook is there; returns why the upgrade failed.
pub(crate) async fn cut_off(world: &ReleaseFixture) -> engine::Failure {
    let (signal, cancelled) = oneshot::channel();
    let helm = world.helm();
    let (module, values) = (world.module(), world.values(json!({"k": "two"})));
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let cancellation = Cancellation::on(cancelled).telling(Arc::new(move |what| {
        listener.lock().unwrap().push(what);
        Box::pin(std::future::ready(()))
    }));
    let upgrade = helm.upgrade_until(
        ReleaseRun { module: &module, values: &values, maintenance: false, source: None, is_recorded: true },
        &cancellation,
    );
    let ends = async {
        made(Client::new(world.server.service(), NAMESPACE), "prepare").await;
        signal.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(3), upgrade), ends);
    let told: Vec<Option<String>> = told.lock().unwrap().clone();
    let [Some(what), None] = &*told else { unreachable!("{told:?}") };
    assert!(
        what.starts_with(&format!("Job {NAMESPACE}/prepare (pre-")) && what.ends_with(" to end"),
        "{what}"
    );
    outcome.unwrap().unwrap_err()
}

#[tokio::test]
async fn slip_17_a_release_whose_hook_runs_when_the_operator_ends_is_failed_and_not_pending() {
    for (policies, stays) in [("before-hook-creation", true), ("hook-failed", false)] {
        let hook = job("prepare", 1, policies);
        let mut world =
            ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
        world.timeout = Duration::from_mins(5);
        let failure = cut_off(&world).await;
        assert!(failure.is_cancelled(), "{failure}");
        assert_eq!(world.states().await, ["1 failed"]);
        assert_eq!(job_is_there(&world, "prepare").await, stays, "{policies}");
        // The next start goes on.
        let kubelet = tokio::spawn(end_jobs(Client::new(world.server.service(), NAMESPACE), None));
        world.upgraded(&world.helm()).await;
        assert_eq!(world.states().await, ["1 superseded", "2 deployed"]);
        kubelet.abort();
    }
}

#[tokio::test]
async fn slip_17_an_upgrade_that_is_cut_off_leaves_the_revision_before_it_in_force() {
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP)]);
    world.upgraded(&world.helm()).await;
    let hook = job("prepare", 1, "before-hook-creation");
    let extra = EXTRA.replace("web-extra", "web-later");
    world.write(&[
        ("templates/map.yaml", MAP),
        ("templates/hook.yaml", &hook),
        ("templates/later.yaml", &extra),
    ]);
    assert!(cut_off(&world).await.is_cancelled());
    assert_eq!(world.states().await, ["1 deployed", "2 failed"]);
    assert_eq!(world.map("web-map").await.unwrap()["data"]["k"], "one");
    assert!(world.map("web-later").await.is_none());
}

#[tokio::test]
async fn a_hook_is_waited_for_through_a_break_of_the_api_server() {
    let hook = job("prepare", 1, "before-hook-creation");
    let world = ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
    let client = || Client::new(world.server.service(), NAMESPACE);
    let jobs = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs");
    // The first look at the Job is refused.
    let looks = format!("{jobs}?*fieldSelector=*");
    world.server.faults().add(FaultPlan::on(Method::GET, &looks).fail(503));
    let ended = async {
        made(client(), "prepare").await;
        while world.server.faults().hits() < 1 {
            pause().await;
        }
        end_jobs(client(), None).await;
    };
    let helm = world.helm();
    let action = tokio::select! {
        action = world.upgraded(&helm) => action,
        () = ended => unreachable!(),
    };
    assert_eq!(action, ReleaseAction::Installed);
    assert_eq!(world.server.faults().hits(), 1);
}

#[tokio::test]
async fn a_hook_that_can_not_be_seen_until_its_time_is_over_is_told_with_the_reason() {
    let hook = job("prepare", 1, "before-hook-creation");
    let mut world =
        ReleaseFixture::without_nodes(&[("templates/map.yaml", MAP), ("templates/hook.yaml", &hook)]);
    world.timeout = Duration::from_millis(1500);
    let jobs = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs?*fieldSelector=*");
    world.server.faults().add(FaultPlan::on(Method::GET, &jobs).times(u64::MAX).fail(503));
    let error = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    says(&error, &["Job prepare is not done after 1 s, as far as one can see: "]);
    // What no time can bring is told at once.
    world.timeout = Duration::from_mins(10);
    world.server.faults().clear();
    world.server.faults().add(FaultPlan::on(Method::GET, &jobs).times(u64::MAX).fail(403));
    let error = world.upgrade(&world.helm(), json!({"k": "one"})).await.unwrap_err();
    says(&error, &["failed to probe for whether the condition is fulfilled yet"]);
}

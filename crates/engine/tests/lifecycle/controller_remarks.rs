//! What is told of objects whose hook never fails: it goes round in circles, never ends, or ends what does not end.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::snapshot::Key;
use engine::view::{Format, status, why};
use serde_json::{Value, json};

use crate::build::Files;
use crate::control_plane::{ControlPlane, DROPPED, Hook, TERMINATING};
use crate::controllers::{controller, follower, site, sites, team};

const FORMAT: Format<'_> = Format { show: &|text| text.to_owned(), at: &|_| String::new() };

fn started(files: &Files, hook: Hook) -> ControlPlane {
    let mut plane = ControlPlane::new(files, hook);
    plane.run_for(1);
    plane
}

fn map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}, "spec": {"text": text}})
}

fn runs(told: &[String]) -> usize {
    told.iter().filter(|line| line.starts_with("Reconcile")).count()
}

fn reasons(plane: &ControlPlane) -> Vec<&'static str> {
    plane.announcements.iter().map(|announcement| announcement.reason).collect()
}

fn shown(plane: &ControlPlane) -> String {
    status::text(&plane.engine.view_at(plane.now), FORMAT)
}

/// Draws another number at each call, in all tests.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn a_hook_that_asks_for_something_else_each_time_is_slowed_down_and_that_is_told() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let is_mended = context["object"]["spec"]["mended"] == true;
        let text = if is_mended { "always".to_owned() } else { next().to_string() };
        Ok(json!({"children": [map("x", &text)]}))
    }
    let mut plane = started(&controller(), hook);
    site(&mut plane, "a", json!({}));
    let first = runs(&plane.run_for(4));
    assert!((15..=25).contains(&first), "{first} runs");
    let later = runs(&plane.run_for(3_600));
    assert!((12..=20).contains(&later), "{later} runs in an hour");
    assert_eq!(reasons(&plane), ["ReconcileLoop"]);
    let message = &plane.announcements[0].message;
    assert!(message.ends_with("ConfigMap ns/x differs at spec.text"), "{message}");
    let picture = shown(&plane);
    assert!(
        picture.contains("Site ns/a") && picture.contains("ConfigMap ns/x differs at spec.text"),
        "{picture}"
    );
    let why = why::queue(&plane.engine.view(), "global/site.sh/site", FORMAT).unwrap().data().to_string();
    assert!(why.contains("to say the same each time it runs: ConfigMap ns/x differs at spec.text"), "{why}");
    // A change of the object ends the wait, and one quiet run the rest.
    site(&mut plane, "a", json!({"mended": true}));
    assert!(runs(&plane.run_for(1)) >= 1);
    assert_eq!(reasons(&plane), ["ReconcileLoop", "ReconcileRecovered"]);
    assert!(!shown(&plane).contains("Site ns/a") && !plane.has_work(), "{}", shown(&plane));
}

#[test]
fn a_hook_that_makes_another_child_each_time_is_slowed_down() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(_: &Value) -> Result<Value, &'static str> {
        Ok(json!({"children": [map(&format!("x-{}", next()), "")]}))
    }
    let mut plane = started(&controller(), hook);
    site(&mut plane, "a", json!({}));
    plane.run_for(60);
    let later = runs(&plane.run_for(3_600));
    assert!((11..=20).contains(&later), "{later} runs in an hour");
    assert_eq!(reasons(&plane), ["ReconcileLoop"]);
    assert!(
        plane.announcements[0].message.contains("is made and ConfigMap ns/x-"),
        "{:?}",
        plane.announcements
    );
}

#[test]
fn a_child_that_is_refused_for_hours_is_a_failure_and_no_circle() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(_: &Value) -> Result<Value, &'static str> {
        Ok(json!({"children": [map("x", "1"), map("y", "1")]}))
    }
    let mut plane = started(&controller(), hook);
    plane.put(&("ConfigMap".to_owned(), Key::new("ns", "x")), map("x", "theirs"));
    site(&mut plane, "a", json!({}));
    let told = plane.run_for(6 * 3_600);
    assert!(runs(&told) > 2 * 20, "{}", runs(&told));
    assert_eq!(reasons(&plane), ["ReconcileFailed"]);
    assert!(shown(&plane).contains("Site ns/a is not as its controller says for "), "{}", shown(&plane));
}

#[test]
fn a_hook_that_follows_what_others_change_is_not_slowed_down() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        Ok(json!({"children": [map("x", &context["related"]["all"].to_string())]}))
    }
    let mut plane = started(&follower(), hook);
    site(&mut plane, "a", json!({}));
    plane.run_for(1);
    for number in 0..100 {
        team(&mut plane, number);
        plane.run_for_millis(20);
    }
    plane.run_for(1);
    assert_eq!(reasons(&plane), [""; 0]);
    let text = plane.get("ConfigMap", "x").unwrap()["spec"]["text"].to_string();
    assert!(text.contains("99") && !plane.has_work(), "{text}");
}

#[test]
fn that_an_object_is_never_finalized_is_in_the_queue_at_once_and_told_after_five_minutes() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let is_free = context["object"]["metadata"]["labels"]["free"] == "yes";
        Ok(if context["type"] == "Finalize" && is_free { json!({"finalized": true}) } else { json!({}) })
    }
    let mut plane = started(&controller(), hook);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "a"));
    assert_eq!(plane.run_for(10), ["Finalize ns/a"]);
    let task = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks).next().unwrap();
    assert_eq!(task.waits_for.as_deref(), Some("its hook to say that it is finalized"));
    assert_eq!(reasons(&plane), [""; 0]);
    assert_eq!(plane.run_for(3_600), [""; 0], "it is not run again by itself");
    assert_eq!(reasons(&plane), ["FinalizePending"]);
    assert!(shown(&plane).contains("does not say that it is finalized"), "{}", shown(&plane));
    let address = ("Site".to_owned(), Key::new("ns", "a"));
    let mut freed = plane.objects[&address].clone();
    freed["metadata"]["labels"] = json!({"free": "yes"});
    plane.put(&address, freed);
    plane.run_for(10);
    assert!(plane.objects.is_empty() && !plane.has_work());
    assert!(!shown(&plane).contains("finalized"), "{}", shown(&plane));
}

#[test]
fn a_finalize_that_asks_to_come_back_is_told_as_well() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(_: &Value) -> Result<Value, &'static str> {
        Ok(json!({"requeueAfter": "1m"}))
    }
    let mut plane = started(&controller(), hook);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "a"));
    assert_eq!(plane.run_for(270).len(), 5);
    let task = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks).next().unwrap();
    assert!(task.retry_in.is_some() && task.waits_for.is_some(), "{task:?}");
    assert_eq!(plane.run_for(600).len(), 10);
    assert_eq!(reasons(&plane), ["FinalizePending"]);
}

#[test]
fn a_namespace_that_is_being_deleted_is_waited_for_and_no_failure() {
    let mut plane = started(&controller(), sites);
    // The finalizer is added before.
    plane.refusals.extend([None, Some(TERMINATING), Some(TERMINATING), None]);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(1);
    let task = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks).next().unwrap();
    assert_eq!(task.waits_for.as_deref(), Some("a namespace that is being deleted to be gone"));
    plane.run_for(20);
    assert_eq!((plane.children("a"), plane.failures, plane.has_work()), (vec!["x"], 0, false));
    assert!(plane.announcements.is_empty());
}

#[test]
fn that_a_kind_is_missing_is_a_condition_and_an_event_of_each_object_while_it_lasts() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.missing_kinds.insert("Service".to_owned());
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(3);
    assert!(plane.announcements.is_empty(), "modules may bring it");
    // Somebody else is faster once.
    plane.refusals.push_back(Some("conflict"));
    plane.run_for(60);
    let stalled = |plane: &ControlPlane, name: &str| {
        let conditions = plane.get("Site", name).unwrap()["status"]["conditions"].clone();
        conditions.as_array().into_iter().flatten().map(|one| one["message"].to_string()).collect::<String>()
    };
    assert_eq!(stalled(&plane, "a"), "\"kind Service does not exist yet\"");
    let condition = plane.get("Site", "a").unwrap()["status"]["conditions"][0].clone();
    let fields = [&condition["type"], &condition["status"], &condition["reason"]];
    assert_eq!(fields, ["Stalled", "True", "KindMissing"]);
    // One that comes later is told at once, and what is told once is not written again, by another process either.
    site(&mut plane, "b", json!({"maps": ["y"]}));
    plane.run_for(2);
    assert_eq!(stalled(&plane, "b"), stalled(&plane, "a"));
    assert_eq!(reasons(&plane), ["ReconcileWaiting"; 2]);
    assert_eq!(plane.run_for(3_600), [""; 0]);
    let picture = shown(&plane);
    assert!(
        picture.contains("watch of Service waits for 61 min for kind Service, which does not exist"),
        "{picture}"
    );
    assert!(picture.contains("Watches: 3, 2 objects, 1 for kinds that do not exist, 0 broken"), "{picture}");
    plane.restart();
    assert_eq!(plane.run_for(3_600), [""; 0]);
    plane.announcements.clear();
    plane.bring("Service");
    plane.run_for(10);
    assert_eq!((stalled(&plane, "a"), stalled(&plane, "b")), (String::new(), String::new()));
    assert_eq!(reasons(&plane), ["ReconcileRecovered"; 2]);
    assert_eq!((plane.children("a"), plane.children("b"), plane.has_work()), (vec!["x"], vec!["y"], false));
}

#[test]
fn a_condition_whose_removal_is_refused_goes_a_little_later() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.missing_kinds.insert("Service".to_owned());
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(60);
    assert_eq!(plane.get("Site", "a").unwrap()["status"]["conditions"][0]["type"], "Stalled");
    plane.refusals.push_back(Some("the webhook can't be reached"));
    plane.bring("Service");
    plane.run_for(20);
    let site = plane.get("Site", "a").unwrap();
    assert!(!site["status"].to_string().contains("Stalled"), "{site}");
    assert_eq!((plane.failures, plane.has_work()), (1, false));
}

#[test]
fn a_condition_that_is_not_seen_before_its_kind_comes_goes_as_soon_as_it_is() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.missing_kinds.insert("Service".to_owned());
    plane.run_for(1);
    plane.watch_lag = 500;
    site(&mut plane, "a", json!({"maps": ["x"]}));
    let stalled =
        |plane: &ControlPlane| plane.get("Site", "a").unwrap()["status"].to_string().contains("Stalled");
    while !stalled(&plane) {
        plane.run_for_millis(10);
    }
    // The write is answered, and the watch does not tell of it yet.
    plane.run_for_millis(20);
    plane.bring("Service");
    plane.run_for(60);
    assert!(!stalled(&plane), "{:#}", plane.get("Site", "a").unwrap());
    assert_eq!((plane.children("a"), plane.has_work()), (vec!["x"], false));
}

#[test]
fn a_kind_without_conditions_waits_as_well() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.missing_kinds.insert("Service".to_owned());
    plane.refusals.push_back(Some("status.conditions: unknown field"));
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    assert_eq!(plane.run_for(3_600), [""; 0]);
    assert_eq!((reasons(&plane), plane.failures), (vec!["ReconcileWaiting"], 0));
    plane.bring("Service");
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
}

#[test]
fn what_the_api_server_drops_of_a_status_is_told_until_it_takes_all_of_it() {
    let mut plane = started(&controller(), sites);
    // The finalizer comes before.
    plane.refusals.extend([None, Some(DROPPED)]);
    site(&mut plane, "a", json!({}));
    plane.run_for(60);
    assert_eq!((reasons(&plane), plane.failures, plane.has_work()), (vec!["StatusIgnored"], 0, false));
    assert_eq!(plane.announcements[0].message, DROPPED);
    assert!(shown(&plane).contains("schema of the status"), "{}", shown(&plane));
    assert_eq!(plane.run_for(3_600), [""; 0]);
    site(&mut plane, "a", json!({"other": 1}));
    plane.run_for(10);
    assert!(!shown(&plane).contains(DROPPED), "{}", shown(&plane));
    assert_eq!(reasons(&plane).len(), 1);
}

#[test]
fn that_an_object_is_finalized_that_is_not_being_deleted_has_no_effect_and_is_told() {
    #[expect(clippy::unnecessary_wraps, reason = "it is a hook, and hooks may fail")]
    fn hook(context: &Value) -> Result<Value, &'static str> {
        let is_wrong = context["object"]["spec"]["mended"] != true;
        Ok(json!({"children": [map("x", "1")], "finalized": is_wrong}))
    }
    let mut plane = started(&controller(), hook);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"]);
    assert_eq!(plane.get("Site", "a").unwrap()["metadata"]["finalizers"], json!(["example.com/site"]));
    assert_eq!(reasons(&plane), ["FinalizedIgnored"]);
    assert!(shown(&plane).contains("finalized: true, which has no effect"), "{}", shown(&plane));
    site(&mut plane, "a", json!({"mended": true}));
    plane.run_for(10);
    assert!(!shown(&plane).contains("finalized: true"), "{}", shown(&plane));
}

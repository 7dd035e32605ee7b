//! Finalizers of objects whose hook names another one, or none, than it named before.

use engine::snapshot::Key;
use engine::view::{Format, status};
use serde_json::{Value, json};

use crate::build::{Files, files};
use crate::control_plane::{ControlPlane, LOST};
use crate::controllers::{site, sites};

const FORMAT: Format<'_> = Format { show: &|text| text.to_owned(), at: &|_| String::new() };

/// Adds a controller of sites with this finalizer.
fn with(files: &Files, name: &str, finalizer: Option<&str>) -> Files {
    let finalizer = finalizer.map(|name| format!(", finalizer: {name}")).unwrap_or_default();
    let binding = name.trim_end_matches(".sh");
    let config = format!(
        "reconcile: [{{name: {binding}, apiVersion: example.com/v1, kind: Site{finalizer}, children: [{{apiVersion: v1, kind: ConfigMap}}]}}]"
    );
    files.clone().global_hook(name, &config)
}

fn controller(finalizer: Option<&str>) -> Files {
    with(&files(), "site.sh", finalizer)
}

/// A module with a controller of sites.
fn module() -> Files {
    const CONFIG: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
        children: [{apiVersion: v1, kind: ConfigMap}]}]";
    files().module(1, "ctl").hooks_only().hook("site.sh", CONFIG)
}

/// Lets go of all that is deleted, unless that says that it waits.
fn hook(context: &Value) -> Result<Value, &'static str> {
    match (context["type"] == "Finalize", context["object"]["spec"]["waits"] == true) {
        (true, true) => Err("exit status 1"),
        (is_finalized, _) => Ok(json!({"finalized": is_finalized})),
    }
}

/// Returns a world with a site that lives, and one that waits for its end.
fn started(files: &Files) -> ControlPlane {
    let mut plane = ControlPlane::new(files, hook);
    plane.lets_go = true;
    plane.run_for(1);
    site(&mut plane, "lives", json!({}));
    site(&mut plane, "ends", json!({"waits": true}));
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "ends"));
    plane.run_for(10);
    assert_eq!(finalizers(&plane, "ends"), json!(["example.com/old"]));
    plane
}

fn finalizers(plane: &ControlPlane, name: &str) -> Value {
    plane.get("Site", name).unwrap()["metadata"]["finalizers"].clone()
}

fn shown(plane: &ControlPlane) -> String {
    status::text(&plane.engine.view_at(plane.now), FORMAT)
}

/// Gives the operator other files: while it runs, or by another start.
fn change(plane: &mut ControlPlane, files: &Files, is_start: bool) {
    if is_start {
        plane.replace(files);
    } else {
        plane.reload(files);
    }
}

#[test]
fn a_finalizer_that_is_renamed_is_replaced_and_an_object_on_its_way_out_is_finalized_by_it() {
    for is_start in [true, false] {
        let mut plane = started(&controller(Some("example.com/old")));
        change(&mut plane, &controller(Some("example.com/new")), is_start);
        let told = plane.run_for(10);
        assert_eq!(finalizers(&plane, "lives"), json!(["example.com/new"]), "{told:#?}");
        let written = told.iter().filter(|line| line.starts_with("finalizers")).count();
        assert_eq!(written, 1, "one write does both: {told:#?}");
        assert_eq!(finalizers(&plane, "ends"), json!(["example.com/old"]), "none can be added to what ends");
        site(&mut plane, "ends", json!({}));
        assert!(plane.run_for(10).contains(&"Finalize ns/ends".to_owned()));
        assert!(plane.get("Site", "ends").is_none());
        // Once replaced, all is as it should be.
        plane.restart();
        let told = plane.run_for(10);
        assert!(!told.iter().any(|line| line.starts_with("finalizers")), "{told:#?}");
        plane.delete("Site", &Key::new("ns", "lives"));
        plane.run_for(10);
        assert!(plane.objects.is_empty() && !plane.has_work());
        assert!(plane.announcements.iter().all(|one| one.reason != "FinalizerLeft"));
    }
}

#[test]
fn a_finalizer_that_is_dropped_goes_and_nobody_is_asked_about_the_end() {
    let mut plane = started(&controller(Some("example.com/old")));
    plane.replace(&controller(None));
    let told = plane.run_for(10);
    assert_eq!(finalizers(&plane, "lives"), json!([]), "{told:#?}");
    assert!(plane.get("Site", "ends").is_none() && !told.iter().any(|line| line.starts_with("Finalize")));
    let annotations = &plane.get("Site", "lives").unwrap()["metadata"]["annotations"];
    assert!(annotations.as_object().unwrap().is_empty(), "{annotations}");
    assert!(!plane.has_work());
}

#[test]
fn a_finalizer_that_is_there_and_that_nobody_recorded_is_left_alone() {
    let mut plane = ControlPlane::new(&controller(Some("example.com/new")), hook);
    plane.lets_go = true;
    plane.run_for(1);
    let manifest = json!({"apiVersion": "example.com/v1", "kind": "Site",
        "metadata": {"name": "a", "namespace": "ns", "finalizers": ["example.com/old", "example.com/new"]}, "spec": {}});
    plane.put(&("Site".to_owned(), Key::new("ns", "a")), manifest);
    let told = plane.run_for(10);
    assert!(!told.iter().any(|line| line.starts_with("finalizers")), "{told:#?}");
    plane.delete("Site", &Key::new("ns", "a"));
    plane.run_for(3_600);
    assert_eq!(finalizers(&plane, "a"), json!(["example.com/old"]));
    assert!(plane.announcements.is_empty() && !plane.has_work(), "it may be that of anybody");
}

#[test]
fn an_object_that_stays_by_the_finalizer_of_a_binding_that_is_not_there_says_so() {
    for is_start in [true, false] {
        let one = controller(Some("example.com/one"));
        let both = with(&one, "two.sh", Some("example.com/two"));
        let mut plane = ControlPlane::new(&both, hook);
        plane.lets_go = true;
        plane.run_for(1);
        site(&mut plane, "a", json!({}));
        plane.run_for(10);
        assert_eq!(finalizers(&plane, "a").as_array().unwrap().len(), 2);
        change(&mut plane, &one, is_start);
        plane.run_for(3_600);
        assert!(plane.announcements.is_empty() && !plane.has_work(), "what lives can wait for the binding");
        plane.delete("Site", &Key::new("ns", "a"));
        plane.run_for(10);
        assert_eq!(finalizers(&plane, "a"), json!(["example.com/two"]));
        let task = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks).next().unwrap();
        let waits = "its finalizer example.com/two to be removed, which binding global/two.sh/two added that is not there";
        assert_eq!(task.waits_for.as_deref(), Some(waits));
        assert!(plane.announcements.is_empty());
        assert_eq!(plane.run_for(3_600), [""; 0]);
        let told: Vec<_> = plane.announcements.iter().map(|one| (one.reason, one.warning)).collect();
        assert_eq!(told, [("FinalizerLeft", true)]);
        let picture = shown(&plane);
        assert!(picture.contains("example.com/two") && picture.contains("metadata.finalizers"), "{picture}");
        // The binding comes back, and looks after it.
        change(&mut plane, &both, is_start);
        plane.run_for(10);
        assert!(plane.objects.is_empty() && !plane.has_work());
        assert!(shown(&plane).contains("Nothing needs attention"), "{}", shown(&plane));
    }
}

#[test]
fn a_binding_that_gets_another_name_takes_its_finalizer_along_and_may_then_rename_it() {
    for is_start in [true, false] {
        let mut plane = started(&controller(Some("example.com/old")));
        change(&mut plane, &with(&files(), "other.sh", Some("example.com/old")), is_start);
        let told = plane.run_for(10);
        let written = told.iter().filter(|line| line.starts_with("finalizers")).count();
        assert_eq!(written, 1, "of what lives: {told:#?}");
        let record = json!({"global/other.sh/other": "example.com/old"}).to_string();
        let annotations = &plane.get("Site", "lives").unwrap()["metadata"]["annotations"];
        assert_eq!(annotations["addon-operator.io/finalizers"], record.as_str());
        change(&mut plane, &with(&files(), "other.sh", Some("example.com/new")), is_start);
        plane.run_for(10);
        assert_eq!(finalizers(&plane, "lives"), json!(["example.com/new"]));
        plane.delete("Site", &Key::new("ns", "lives"));
        plane.run_for(10);
        assert!(plane.get("Site", "lives").is_none());
    }
}

/// Returns which finalizer keeps a deleted object, as its task says.
fn told_of(plane: &ControlPlane) -> Option<String> {
    plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks).find_map(|task| task.waits_for)
}

#[test]
fn an_object_that_stays_by_the_finalizer_of_a_module_that_is_off_says_so() {
    for is_start in [true, false] {
        for is_deleted_before in [true, false] {
            let mut plane = ControlPlane::new(&module(), sites);
            plane.run_for(1);
            site(&mut plane, "a", json!({"maps": ["x"], "fails": is_deleted_before}));
            plane.run_for(10);
            if is_deleted_before {
                plane.delete("Site", &Key::new("ns", "a"));
                plane.run_for(10);
                plane.announcements.clear();
            }
            change(&mut plane, &module().off(), is_start);
            plane.run_for(10);
            if is_deleted_before && !is_start {
                // The removal of the module waits for the end of the object for some minutes.
                plane.run_for(300);
                plane.announcements.clear();
            }
            plane.delete("Site", &Key::new("ns", "a"));
            plane.run_for(10);
            let waits = "its finalizer example.com/site to be removed, which binding ctl/site.sh/site added that is not there";
            assert_eq!(told_of(&plane).as_deref(), Some(waits), "{is_start} {is_deleted_before}");
            assert_eq!(plane.run_for(3_600), [""; 0]);
            let warnings = plane.announcements.iter().filter(|one| one.warning);
            let warnings: Vec<_> = warnings.map(|one| one.reason).collect();
            assert_eq!(warnings, ["FinalizerLeft"], "{is_start} {is_deleted_before}");
            assert!(shown(&plane).contains("metadata.finalizers"), "{}", shown(&plane));
            // The module is on again, and looks after it.
            site(&mut plane, "a", json!({}));
            change(&mut plane, &module(), is_start);
            plane.run_for(10);
            assert!(plane.get("Site", "a").is_none() && !plane.has_work(), "{:?}", told_of(&plane));
        }
    }
}

#[test]
fn a_module_that_is_off_is_looked_after_as_long_as_its_finalizer_is_on_an_object() {
    for is_start in [true, false] {
        let mut plane = ControlPlane::new(&module(), sites);
        plane.run_for(1);
        site(&mut plane, "a", json!({}));
        plane.run_for(10);
        change(&mut plane, &module().off(), is_start);
        plane.run_for(10);
        assert_eq!((plane.watches(), plane.has_work()), (1, false), "it says nothing of what lives");
        // Somebody takes it away by hand.
        let site = ("Site".to_owned(), Key::new("ns", "a"));
        let mut object = plane.objects[&site].clone();
        object["metadata"]["finalizers"] = json!([]);
        plane.put(&site, object);
        plane.run_for(10);
        assert_eq!(plane.watches(), 0);
        plane.restart();
        plane.run_for(10);
        assert_eq!(plane.watches(), 0);
        // What can't be watched for one that is off is no trouble.
        assert!(shown(&plane).contains("Nothing needs attention"), "{}", shown(&plane));
    }
}

/// A controller of the sites with a label.
fn selecting() -> Files {
    const CONFIG: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
        labelSelector: {matchLabels: {mine: 'yes'}}, children: [{apiVersion: v1, kind: ConfigMap}]}]";
    files().global_hook("site.sh", CONFIG)
}

/// Gives a site the label, or takes it away.
fn label(plane: &mut ControlPlane, name: &str, is_mine: bool) {
    let address = ("Site".to_owned(), Key::new("ns", name));
    let new = json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": name, "namespace": "ns"}, "spec": {"maps": ["x"]}});
    let mut object = plane.objects.get(&address).cloned().unwrap_or(new);
    object["metadata"]["labels"] = if is_mine { json!({"mine": "yes"}) } else { json!({}) };
    plane.put(&address, object);
}

#[test]
fn an_object_that_left_the_selection_is_left_alone_while_it_lives_and_finalized_when_it_is_deleted() {
    for is_restarted in [false, true] {
        let mut plane = ControlPlane::new(&selecting(), sites);
        plane.run_for(1);
        label(&mut plane, "a", true);
        label(&mut plane, "b", false);
        plane.run_for(10);
        assert_eq!((plane.watches(), finalizers(&plane, "b")), (2, Value::Null), "nothing was left");
        label(&mut plane, "a", false);
        plane.run_for(10);
        if is_restarted {
            plane.restart();
        }
        plane.run_for(10);
        assert_eq!(plane.watches(), 3);
        site(&mut plane, "a", json!({"maps": ["y"]}));
        assert_eq!(plane.run_for(3_600), [""; 0]);
        assert_eq!(plane.children("a"), ["x"]);
        plane.delete("Site", &Key::new("ns", "a"));
        let told = plane.run_for(10);
        assert!(told.contains(&"Finalize ns/a".to_owned()), "{told:#?}");
        assert!(plane.get("Site", "a").is_none() && plane.children("a").is_empty() && !plane.has_work());
        assert_eq!(plane.watches(), 2, "nothing is left");
        plane.delete("Site", &Key::new("ns", "b"));
        plane.run_for(10);
        assert!(plane.objects.is_empty() && plane.announcements.is_empty());
    }
}

#[test]
fn an_object_that_leaves_the_selection_may_do_so_at_any_moment_and_come_back() {
    for millis in 0..40 {
        let mut plane = ControlPlane::new(&selecting(), sites);
        plane.run_for(1);
        label(&mut plane, "a", true);
        plane.run_for_millis(millis);
        label(&mut plane, "a", false);
        plane.run_for_millis(millis / 2);
        if millis % 3 == 0 {
            label(&mut plane, "a", true);
            plane.run_for(10);
            assert_eq!(plane.children("a"), ["x"]);
        }
        if millis % 2 == 0 {
            plane.relist();
        }
        plane.delete("Site", &Key::new("ns", "a"));
        plane.run_for(60);
        assert!(plane.objects.is_empty() && !plane.has_work(), "{millis}: {:#?}", plane.objects);
        assert_eq!(plane.watches(), 2, "{millis}");
    }
}

#[test]
fn a_status_that_is_said_together_with_the_end_is_seen_before_the_finalizer_goes() {
    let says = |context: &Value| {
        let is_over = context["type"] == "Finalize";
        Ok(json!({"finalized": is_over, "status": {"phase": if is_over { "Over" } else { "Ready" }}}))
    };
    let mut plane = ControlPlane::new(&module(), says);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    plane.watch_lag = 50;
    plane.delete("Site", &Key::new("ns", "a"));
    let told = plane.run_for_millis(400);
    assert_eq!(told.iter().filter(|line| line.starts_with("Finalize")).count(), 1, "{told:#?}");
    assert!(plane.get("Site", "a").is_none() && !plane.has_work(), "{told:#?}");
    assert_eq!(plane.conflicts, 0);
}

/// Makes a ConfigMap `w`, and at the end one more, before it says that it is finalized.
fn saved(context: &Value) -> Value {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}});
    let is_saved = context["children"]["ConfigMap"].get("backup").is_some();
    match (context["type"] == "Finalize", is_saved) {
        (true, true) => json!({"finalized": true}),
        (true, false) => json!({"children": [map("w"), map("backup")]}),
        (false, _) => json!({"children": [map("w")]}),
    }
}

#[test]
fn what_is_finalized_stays_so_while_its_children_go_and_its_hook_is_not_asked_again() {
    for is_restarted in [false, true] {
        let mut plane = ControlPlane::new(&module(), |context| Ok(saved(context)));
        plane.run_for(1);
        site(&mut plane, "a", json!({}));
        plane.run_for(10);
        // One goes slowly.
        let slow = ("ConfigMap".to_owned(), Key::new("ns", "w"));
        let mut held = plane.objects[&slow].clone();
        held["metadata"]["finalizers"] = json!(["example.com/else"]);
        plane.put(&slow, held);
        plane.run_for(10);
        plane.delete("Site", &Key::new("ns", "a"));
        let told = plane.run_for(10);
        assert_eq!(told.iter().filter(|line| line.starts_with("Finalize")).count(), 2, "{told:#?}");
        assert_eq!(plane.children("a"), ["w"], "what was saved goes with it");
        if is_restarted {
            plane.restart();
        }
        site(&mut plane, "a", json!({"other": 1}));
        let told = plane.run_for(3_600);
        let is_done = |line: &String| line.starts_with("Finalize") || line.starts_with("apply");
        assert!(!told.iter().any(is_done), "{is_restarted}: {told:#?}");
        assert_eq!(told_of(&plane).as_deref(), Some("ConfigMap ns/w to be gone"));
        assert!(plane.announcements.is_empty(), "{:?}", plane.announcements);
        let mut free = plane.objects[&slow].clone();
        free["metadata"]["finalizers"] = json!([]);
        plane.put(&slow, free);
        plane.run_for(10);
        assert!(plane.objects.is_empty() && !plane.has_work(), "{is_restarted}");
    }
}

#[test]
fn what_is_finalized_stays_so_when_its_binding_gets_another_queue_or_file_at_that_moment() {
    let before = controller(Some("example.com/site"));
    let in_queue = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, queue: other, \
        children: [{apiVersion: v1, kind: ConfigMap}]}]";
    // Of the other files, one begins before the old one ends, and one behind it.
    let after = ["site.sh", "aside.sh", "tomorrow.sh"].map(|file| files().global_hook(file, in_queue));
    for (number, after) in after.iter().enumerate() {
        for millis in 0..160 {
            // That the hook is not asked again is looked at there.
            let mut plane = ControlPlane::new(&before, |context| Ok(saved(context)));
            plane.run_for(1);
            site(&mut plane, "a", json!({}));
            plane.run_for(10);
            plane.watch_lag = 30;
            plane.delete("Site", &Key::new("ns", "a"));
            plane.run_for_millis(millis);
            plane.reload(after);
            let told = plane.run_for(600);
            assert!(plane.objects.is_empty() && !plane.has_work(), "{number} {millis}: {told:#?}");
        }
    }
}

#[test]
fn what_is_finalized_goes_on_whatever_answer_is_lost_and_without_children_it_is_one_write() {
    for lost in 0..12 {
        let mut plane = ControlPlane::new(&module(), |context| Ok(saved(context)));
        plane.run_for(1);
        site(&mut plane, "a", json!({}));
        plane.run_for(10);
        plane.refusals = (0..lost).map(|_| None).chain([Some(LOST), Some("refused")]).collect();
        plane.delete("Site", &Key::new("ns", "a"));
        plane.run_for(600);
        assert!(plane.objects.is_empty() && !plane.has_work(), "{lost}");
    }
    let mut plane = ControlPlane::new(&module(), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    plane.delete("Site", &Key::new("ns", "a"));
    assert_eq!(plane.run_for(10), ["Finalize ns/a", "finalizers [] of ns/a"]);
}

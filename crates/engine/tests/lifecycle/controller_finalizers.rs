//! Finalizers of objects whose hook names another one, or none, than it named before.

use engine::snapshot::Key;
use engine::view::{Format, status};
use serde_json::{Value, json};

use crate::build::{Files, files};
use crate::control_plane::ControlPlane;
use crate::controllers::site;

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

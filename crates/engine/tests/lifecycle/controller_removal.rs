//! Modules that are removed and whose hooks finalize objects: those of their own release, and those that their hooks delete.

use engine::snapshot::Key;
use serde_json::{Value, json};

use crate::build::{Files, files};
use crate::control_plane::ControlPlane;
use crate::controllers::{site, sites};

const CONFIG: &str = "reconcile: [{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, \
    children: [{apiVersion: v1, kind: ConfigMap}]}]";

/// A module whose chart has the Site `main`, of which it is the controller.
fn module() -> Files {
    files().module(1, "ctl").hook("site.sh", CONFIG)
}

fn address(name: &str) -> (String, Key) {
    ("Site".to_owned(), Key::new("ns", name))
}

fn started(files: &Files, spec: &Value) -> ControlPlane {
    let mut plane = ControlPlane::new(files, sites);
    let main = json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "main", "namespace": "ns"}, "spec": spec});
    plane.release.insert(address("main"), main);
    plane.run_for(10);
    plane
}

/// Returns what tasks wait for.
fn waits(plane: &ControlPlane) -> Vec<String> {
    let tasks = plane.engine.view().queues.into_iter().flat_map(|queue| queue.tasks);
    tasks.filter_map(|task| task.waits_for).collect()
}

#[test]
fn what_leaves_with_the_release_of_a_module_is_finalized_before_its_bindings_are_off() {
    for is_restarted in [false, true] {
        let mut plane = started(&module(), &json!({"maps": ["x"], "orderly": true}));
        site(&mut plane, "other", json!({"maps": ["y"]}));
        plane.run_for(10);
        assert_eq!((plane.children("main"), plane.children("other")), (vec!["x"], vec!["y"]));
        if is_restarted {
            plane.replace(&module().off());
        } else {
            plane.reload(&module().off());
        }
        let told = plane.run_for(60);
        assert!(told.contains(&"uninstall ctl".to_owned()), "{told:#?}");
        assert!(plane.get("Site", "main").is_none() && plane.children("main").is_empty(), "{told:#?}");
        assert_eq!(plane.children("other"), ["y"], "what lives stays");
        let runs = told.iter().any(|line| *line == "Reconcile ns/other");
        assert!(!is_restarted || !runs, "nothing is prepared for its hook: {told:#?}");
        assert!(!plane.has_work(), "{:?}", waits(&plane));
        // Now they are off.
        plane.delete("Site", &Key::new("ns", "other"));
        plane.run_for(10);
        assert_eq!(
            waits(&plane),
            [
                "its finalizer example.com/site to be removed, which binding ctl/site.sh/site added that is not there"
            ]
        );
    }
}

#[test]
fn what_the_hook_of_a_module_deletes_at_its_end_is_finalized_meanwhile() {
    for point in ["beforeDeleteHelm", "afterDeleteHelm"] {
        let files = module().hook("bye.sh", &format!("{point}: 1"));
        let mut plane = started(&files, &json!({"maps": ["x"]}));
        site(&mut plane, "hooked", json!({"maps": ["y"]}));
        plane.run_for(10);
        plane.reload(&files.off());
        let told = plane.run_for(120);
        assert!(told.contains(&"uninstall ctl".to_owned()), "{point}: {told:#?}");
        assert!(plane.objects.is_empty() && !plane.has_work(), "{point}: {:?} {told:#?}", waits(&plane));
    }
}

#[test]
fn an_object_that_is_not_finalized_keeps_the_removal_of_its_module_for_some_minutes_and_says_so() {
    let mut plane = started(&module(), &json!({"fails": true}));
    plane.reload(&module().off());
    plane.run_for(60);
    assert!(waits(&plane).contains(&"Site ns/main to be finalized".to_owned()), "{:?}", waits(&plane));
    // The module is on again, and looks after it as before.
    plane.reload(&module());
    plane.run_for(60);
    assert!(!waits(&plane).contains(&"Site ns/main to be finalized".to_owned()), "{:?}", waits(&plane));
    plane.reload(&module().off());
    plane.run_for(400);
    let left = "its finalizer example.com/site to be removed, which binding ctl/site.sh/site added that is not there";
    assert_eq!(waits(&plane), [left]);
    site(&mut plane, "main", json!({}));
    plane.reload(&module());
    plane.run_for(60);
    let is_old =
        plane.get("Site", "main").is_some_and(|site| !site["metadata"]["deletionTimestamp"].is_null());
    assert!(!is_old && !plane.has_work(), "{:?}", waits(&plane));
}

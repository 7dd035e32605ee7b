//! Children that have lost their owner, or their binding.

use engine::snapshot::Key;
use serde_json::{Value, json};

use crate::build::{Files, files};
use crate::control_plane::ControlPlane;
use crate::controllers::{controller, site, sites};

fn map(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}

fn address(name: &str) -> (String, Key) {
    ("ConfigMap".to_owned(), Key::new("ns", name))
}

/// Takes the owner from a child, as the garbage collector does.
fn orphan(plane: &mut ControlPlane, name: &str) {
    let mut object = plane.objects[&address(name)].clone();
    object["metadata"].as_object_mut().unwrap().remove("ownerReferences").unwrap();
    plane.put(&address(name), object);
}

#[test]
fn a_child_that_was_orphaned_is_taken_back_by_an_object_that_lives() {
    let mut plane = ControlPlane::new(&controller(), sites);
    plane.run_for(1);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    plane.run_for(10);
    orphan(&mut plane, "x");
    assert!(plane.children("a").is_empty());
    // Its owner is made again.
    let mut old = plane.get("Site", "a").unwrap().clone();
    old["metadata"]["finalizers"] = json!([]);
    let site_address = ("Site".to_owned(), Key::new("ns", "a"));
    plane.put(&site_address, old);
    plane.delete("Site", &site_address.1);
    plane.run_for_millis(100);
    site(&mut plane, "a", json!({"maps": ["x"]}));
    let told = plane.run_for(10);
    assert_eq!(plane.children("a"), ["x"], "{told:#?}");
    assert_eq!((plane.failures, plane.run_for(3_600)), (0, Vec::new()));
    // One that names nobody and was made by nobody we know is not touched.
    plane.put(
        &address("y"),
        json!({"metadata": {"name": "y", "namespace": "ns", "labels": {"addon-operator.io/child": "true"}}}),
    );
    site(&mut plane, "a", json!({"maps": ["x", "y"]}));
    let told = plane.run_for(1);
    assert!(
        told.iter().any(|line| line.contains("ns/y is there already, and is not a child of it")),
        "{told:#?}"
    );
}

/// Makes `w`; at the end `w` and a backup, until that is there.
fn saved(context: &Value) -> Value {
    let is_saved = context["children"]["ConfigMap"].get("backup").is_some();
    match (context["type"] == "Finalize", is_saved) {
        (true, true) => json!({"finalized": true}),
        (true, false) => json!({"children": [map("w", "ns"), map("backup", "ns")]}),
        (false, _) => json!({"children": [map("w", "ns")]}),
    }
}

#[test]
fn children_that_are_to_stay_without_their_owner_stay_and_its_end_goes_on_without_them() {
    let mut plane = ControlPlane::new(&controller(), |context| Ok(saved(context)));
    plane.lets_go = true;
    plane.run_for(1);
    site(&mut plane, "a", json!({}));
    plane.run_for(10);
    let site_address = ("Site".to_owned(), Key::new("ns", "a"));
    let mut object = plane.objects[&site_address].clone();
    object["metadata"]["finalizers"] = json!(["orphan", "example.com/site"]);
    plane.put(&site_address, object);
    plane.delete("Site", &site_address.1);
    let told = plane.run_for(60);
    assert!(!told.iter().any(|line| line.starts_with("Finalize")), "they are still its own: {told:#?}");
    let queues = format!("{:?}", plane.engine.view().queues);
    assert!(queues.contains("the garbage collector to part it from its children"), "{queues}");
    orphan(&mut plane, "w");
    let mut object = plane.objects[&site_address].clone();
    object["metadata"]["finalizers"] = json!(["example.com/site"]);
    plane.put(&site_address, object);
    let told = plane.run_for(60);
    assert!(told.contains(&"apply ConfigMap ns/backup".to_owned()), "{told:#?}");
    assert_eq!(plane.failures, 0, "{told:#?}");
    assert_eq!(plane.objects.keys().collect::<Vec<_>>(), [&address("w")]);
    assert!(!plane.has_work());
}

/// Makes a ConfigMap in another namespace, as the binding is called.
fn far(context: &Value) -> Value {
    let name = context["binding"].as_str().unwrap();
    match context["type"].as_str() {
        Some("Finalize") => json!({"finalized": true}),
        _ => json!({"children": [map(name, "far")]}),
    }
}

fn with(files: &Files, module: &str, binding: &str, finalizer: &str) -> Files {
    let config = format!(
        "reconcile: [{{name: {binding}, apiVersion: example.com/v1, kind: Site{finalizer}, children: [{{apiVersion: v1, kind: ConfigMap}}]}}]"
    );
    files.clone().module(1, module).hooks_only().hook(&format!("{binding}.sh"), &config)
}

#[test]
fn an_object_that_is_deleted_takes_the_children_along_whose_binding_has_another_name_now_and_no_others() {
    let finalizer = ", finalizer: example.com/site";
    for has_other in [false, true] {
        let other = if has_other { with(&files(), "two", "two", "") } else { files() };
        let mut plane = ControlPlane::new(&with(&other, "ctl", "old", finalizer), |context| Ok(far(context)));
        plane.run_for(1);
        site(&mut plane, "a", json!({}));
        plane.run_for(10);
        assert_eq!(plane.objects.len(), 2 + usize::from(has_other));
        // The operator does not run meanwhile.
        plane.delete("Site", &Key::new("ns", "a"));
        let other = if has_other { other.off() } else { other };
        plane.replace(&with(&other, "ctl", "new", finalizer));
        let told = plane.run_for(60);
        let left: Vec<&str> = plane.objects.keys().map(|(_, key)| &*key.name).collect();
        let expected: &[&str] = if has_other { &["two"] } else { &[] };
        assert_eq!(left, expected, "who is off may come back: {told:#?}");
        assert!(!plane.has_work());
    }
}
